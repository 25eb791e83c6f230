//! The scale subresource.
use std::sync::Arc;

use k8s_schema::managed::{self, ManagerInfo};
use k8s_schema::{FieldError, FieldErrorKind, builtin, decoding_error};
use serde_json::{Value, json};

use super::patch::{check_options, refused_apply};
use super::update::{Ownership, WriteTarget, check_name, find, update};
use crate::request::content::MediaType;
use crate::request::selector::format_labels;
use crate::semantics::cluster::Cluster;
use crate::semantics::cluster::admission::{self, Operation, WriteAttributes};
use crate::semantics::context::RequestContext;
use crate::semantics::metadata;
use crate::semantics::part::ObjectPart;
use crate::semantics::registry::{ApiResource, ScalePaths};
use crate::semantics::validation;
use crate::status::{ApiError, Result, StatusReason};
use crate::storage::ObjectKey;

mod ownership;

/// The `apiVersion` of scales.
const API_VERSION: &str = "autoscaling/v1";

/// The paths of the built-in kinds that scale.
fn paths_of(resource: &ApiResource) -> ScalePaths {
    resource.custom().and_then(|custom| custom.scale.clone()).unwrap_or_else(|| ScalePaths {
        spec_replicas: ".spec.replicas".to_owned(),
        status_replicas: ".status.replicas".to_owned(),
        label_selector: None,
    })
}

fn pointer(path: &str) -> String {
    path.replace('.', "/")
}

/// The scale of an object.
///
/// # Errors
/// When what stands at a path is not of its type: an object that is older than the subresource.
///
/// Upstream: k8s.io/kubernetes/pkg/registry/apps/deployment/storage/storage.go: scaleFromDeployment
/// Upstream: k8s.io/apiextensions-apiserver/pkg/registry/customresource/etcd.go: scaleFromCustomResource
fn scale_of(resource: &ApiResource, object: &Value) -> Result<Value> {
    let paths = paths_of(resource);
    let replicas = replicas_at(&paths.spec_replicas, object)?;
    let mut status = json!({"replicas": replicas_at(&paths.status_replicas, object)?});
    let selector = match &paths.label_selector {
        Some(path) => at_path(path, object, "string", Value::is_string)?
            .and_then(Value::as_str)
            .map(str::to_owned),
        None if resource.custom().is_some() => None,
        None => built_in_selector(object),
    };
    if let Some(selector) = selector.filter(|selector| !selector.is_empty()) {
        status["selector"] = selector.into();
    }
    let spec = if replicas == 0 { json!({}) } else { json!({"replicas": replicas}) };
    let mut kept = serde_json::Map::new();
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object["metadata"].get(field) {
            kept.insert(field.to_owned(), value.clone());
        }
    }
    Ok(json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": kept,
        "spec": spec,
        "status": status,
    }))
}

/// A number of replicas; 0 where there is none.
fn replicas_at(path: &str, object: &Value) -> Result<i32> {
    let count = at_path(path, object, "int64", Value::is_i64)?.and_then(Value::as_i64);
    // Go converts the number, which drops what has no room.
    Ok(count.unwrap_or_default() as i32)
}

/// The value at a path of fields, if there is one.
///
/// # Errors
/// When it, or what leads to it, is not of its type.
fn at_path<'a>(
    path: &str,
    object: &'a Value,
    expected: &str,
    fits: fn(&Value) -> bool,
) -> Result<Option<&'a Value>> {
    match validation::nested(object, path, expected, fits) {
        (_, Some(why)) => Err(ApiError::new(StatusReason::Unknown, why)),
        (found, None) => Ok(found),
    }
}

fn built_in_selector(object: &Value) -> Option<String> {
    let selector = &object["spec"]["selector"];
    let labels = selector
        .get("matchLabels")
        .unwrap_or(selector)
        .as_object()?
        .iter()
        .map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned()))
        .collect();
    Some(format_labels(&labels))
}

/// Reads the scale of an object.
///
/// # Errors
/// When the object does not exist, or a custom one has no replicas.
pub(crate) fn get(
    cluster: &Cluster,
    context: &mut RequestContext,
    resource: &Arc<ApiResource>,
    key: &ObjectKey,
) -> Result<Value> {
    let object = find(cluster, context, resource, key)?
        .ok_or_else(|| ApiError::not_found(resource.subject(), &key.name))?;
    let scale = scale_of(resource, &object)?;
    let path = paths_of(resource).spec_replicas;
    if resource.custom().is_some() && object.pointer(&pointer(&path)).is_none() {
        let error = format!("the spec replicas field {path:?} does not exist");
        return Err(ApiError::internal(error));
    }
    Ok(scale)
}

/// Writes the scale of an object; `change` turns the present scale into the new one.
///
/// # Errors
/// When the object does not exist, or the scale is invalid or denied.
///
/// Upstream: k8s.io/kubernetes/pkg/registry/apps/deployment/storage/storage.go: Update
pub(crate) fn write(
    cluster: &mut Cluster,
    context: &mut RequestContext,
    resource: &Arc<ApiResource>,
    key: &ObjectKey,
    change: impl FnOnce(Value) -> Result<Value>,
) -> Result<Value> {
    let live = find(cluster, context, resource, key)?
        .ok_or_else(|| ApiError::not_found(resource.subject(), &key.name))?;
    let present = tracked_scale(cluster, resource, &live)?;
    let wanted = checked(key, change(scale_of(resource, &live)?)?)?;
    let mut scale = wanted.clone();
    if scale.is_object() {
        metadata::of(&mut scale).remove("managedFields");
    }
    // Go omits zero replicas.
    if scale["spec"]["replicas"] == 0
        && let Some(spec) = scale["spec"].as_object_mut()
    {
        spec.remove("replicas");
    }
    let schema = builtin::scale_schema();
    let scale = managed::track_update(schema, Some(&present), scale, &actor(context));
    let revision = metadata::text(&wanted, "resourceVersion").to_owned();
    store(cluster, context, target_of(resource, key), &live, scale, &revision)
}

/// Applies a scale server-side.
///
/// # Errors
/// When the object does not exist, another manager owns its replicas, or the scale is invalid.
pub(crate) fn apply(
    cluster: &mut Cluster,
    context: &mut RequestContext,
    resource: &Arc<ApiResource>,
    key: &ObjectKey,
    document: &Value,
) -> Result<Value> {
    check_options(context, MediaType::ApplyPatch)?;
    let live = find(cluster, context, resource, key)?
        .ok_or_else(|| ApiError::not_found(resource.subject(), &key.name))?;
    let present = tracked_scale(cluster, resource, &live)?;
    let force = context.parameters.force.unwrap_or_default();
    if resource.custom().is_some() && present["metadata"].get("managedFields").is_none() {
        return Err(ApiError::new(
            StatusReason::Unknown,
            "failed to create manager for existing fields: failed to convert live object (/; \
             autoscaling/v1, Kind=Scale) to proper version: request to convert CR to an invalid \
             group/version: autoscaling/v1",
        ));
    }
    let scale = managed::server_side_apply(
        builtin::scale_schema(),
        Some(&present),
        document,
        &actor(context),
        force,
    )
    .map_err(|error| refused_apply(API_VERSION, "Scale", document, &present, &error))?;
    store(cluster, context, target_of(resource, key), &live, scale, "")
}

fn target_of<'a>(resource: &'a Arc<ApiResource>, key: &'a ObjectKey) -> WriteTarget<'a> {
    WriteTarget { resource, key, part: ObjectPart::Subresource("scale") }
}

fn actor(context: &RequestContext) -> ManagerInfo<'_> {
    ManagerInfo {
        manager: &context.manager,
        api_version: API_VERSION,
        subresource: "scale",
        now: &context.now,
        reset_fields: &[],
    }
}

/// The path of the replicas in a version of the kind.
fn replicas_path(cluster: &Cluster, resource: &ApiResource, api_version: &str) -> Option<String> {
    if api_version == resource.api_version() {
        return Some(paths_of(resource).spec_replicas);
    }
    let other = cluster.registry.find_kind(api_version, &resource.kind)?;
    Some(paths_of(other).spec_replicas)
}

fn entries(object: &Value) -> &[Value] {
    object["metadata"]["managedFields"].as_array().map_or(&[], Vec::as_slice)
}

/// The scale of an object with its `managedFields`.
fn tracked_scale(cluster: &Cluster, resource: &ApiResource, live: &Value) -> Result<Value> {
    let mut scale = scale_of(resource, live)?;
    let owners =
        ownership::of_scale(entries(live), |version| replicas_path(cluster, resource, version));
    if !owners.is_empty() {
        metadata::of(&mut scale).insert("managedFields".to_owned(), owners.into());
    }
    Ok(scale)
}

/// Stores the replicas of a scale and their ownership.
fn store(
    cluster: &mut Cluster,
    context: &mut RequestContext,
    target: WriteTarget<'_>,
    live: &Value,
    mut scale: Value,
    revision: &str,
) -> Result<Value> {
    let WriteTarget { resource, key, .. } = target;
    let before = scale_of(resource, live)?;
    let attributes =
        WriteAttributes::new(context, Operation::Update, resource, &key.namespace, &key.name)
            .of("scale", Some(&before));
    admission::admit(cluster, context, &attributes, &mut scale)?;
    check_decodable(&scale)?;
    let replicas = scale["spec"]["replicas"].as_i64().unwrap_or_default();
    // Errors of custom objects are about the whole object.
    if replicas < 0 && resource.custom().is_none() {
        return Err(ApiError::invalid(
            crate::status::Subject { group: "autoscaling", noun: "Scale" },
            &key.name,
            &[FieldError::new(
                "spec.replicas",
                FieldErrorKind::Invalid,
                "must be greater than or equal to 0",
            )
            .with_value(replicas.into())],
        ));
    }
    admission::validate(cluster, context, &attributes, Some(&scale))?;
    let owners =
        ownership::of_parent(entries(live), entries(&scale), &resource.api_version(), |version| {
            replicas_path(cluster, resource, version)
        });
    let mut object = live.clone();
    set(&mut object, &paths_of(resource).spec_replicas, replicas.into());
    let metadata = metadata::of(&mut object);
    metadata.insert("resourceVersion".to_owned(), revision.into());
    metadata.remove("managedFields");
    if !owners.is_empty() {
        metadata.insert("managedFields".to_owned(), owners.into());
    }
    let updated = update(cluster, context, target, live, object, Ownership::Recorded)?;
    scale_of(resource, &updated)
}

/// Checks that a document is a valid scale of this object.
fn checked(key: &ObjectKey, scale: Value) -> Result<Value> {
    check_name(key, &scale)?;
    check_decodable(&scale)?;
    Ok(scale)
}

/// Checks that the values of a scale have the types of its fields.
fn check_decodable(scale: &Value) -> Result<()> {
    match decoding_error(builtin::scale_schema(), scale) {
        None => Ok(()),
        Some(problem) => Err(ApiError::bad_request(format!(
            "Scale in version \"v1\" cannot be handled as a Scale: {problem}"
        ))),
    }
}

fn set(object: &mut Value, path: &str, value: Value) {
    let mut at = object;
    for segment in path.split('.').filter(|segment| !segment.is_empty()) {
        at = &mut at[segment];
    }
    *at = value;
}
