//! The scale subresource.
use std::sync::Arc;

use plimsoll_schema::{FieldError, FieldErrorKind};
use serde_json::{Value, json};

use super::metadata;
use super::update::{Aim, Ownership, Part, find, update};
use crate::admission::{self, Attributes, Operation};
use crate::cluster::{Call, Cluster};
use crate::registry::{ApiResource, custom::ScalePaths};
use crate::request::selector::format_labels;
use crate::status::{ApiError, Result};
use crate::store::ObjectKey;

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

fn scale_of(resource: &ApiResource, object: &Value) -> Value {
    let paths = paths_of(resource);
    let number = |path: &str| object.pointer(&pointer(path)).and_then(Value::as_i64);
    let mut status = json!({"replicas": number(&paths.status_replicas).unwrap_or_default()});
    let selector = match &paths.label_selector {
        Some(path) => object.pointer(&pointer(path)).and_then(Value::as_str).map(str::to_owned),
        None => built_in_selector(object),
    };
    if let Some(selector) = selector.filter(|selector| !selector.is_empty()) {
        status["selector"] = selector.into();
    }
    let mut spec = json!({});
    if let Some(replicas) = number(&paths.spec_replicas).filter(|replicas| *replicas != 0) {
        spec["replicas"] = replicas.into();
    }
    let mut kept = serde_json::Map::new();
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object["metadata"].get(field) {
            kept.insert(field.to_owned(), value.clone());
        }
    }
    json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": kept,
        "spec": spec,
        "status": status,
    })
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
/// When the object does not exist.
pub(crate) fn get(
    cluster: &Cluster,
    call: &mut Call,
    resource: &Arc<ApiResource>,
    key: &ObjectKey,
) -> Result<Value> {
    find(cluster, call, resource, key)?
        .map(|object| scale_of(resource, &object))
        .ok_or_else(|| ApiError::not_found(resource.subject(), &key.name))
}

/// Writes the scale of an object; `change` turns the present scale into the new one.
///
/// # Errors
/// When the object does not exist or the scale is not acceptable.
pub(crate) fn write(
    cluster: &mut Cluster,
    call: &mut Call,
    resource: &Arc<ApiResource>,
    key: &ObjectKey,
    change: impl FnOnce(Value) -> Result<Value>,
) -> Result<Value> {
    let live = find(cluster, call, resource, key)?
        .ok_or_else(|| ApiError::not_found(resource.subject(), &key.name))?;
    let before = scale_of(resource, &live);
    let mut scale = change(before.clone())?;
    let attributes = Attributes::new(call, Operation::Update, resource, &key.namespace, &key.name)
        .of("scale", Some(&before));
    admission::admit(cluster, call, &attributes, &mut scale)?;
    let replicas = scale["spec"]["replicas"].as_i64().unwrap_or_default();
    if replicas < 0 {
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
    admission::validate(cluster, call, &attributes, Some(&scale))?;
    let mut object = live.clone();
    set(&mut object, &paths_of(resource).spec_replicas, replicas.into());
    let revision = metadata::text(&scale, "resourceVersion").to_owned();
    metadata::of(&mut object).insert("resourceVersion".to_owned(), revision.into());
    let aim = Aim { resource, key, part: Part::Special("scale") };
    let updated = update(cluster, call, aim, &live, object, Ownership::Record)?;
    Ok(scale_of(resource, &updated))
}

fn set(object: &mut Value, path: &str, value: Value) {
    let mut at = object;
    for segment in path.split('.').filter(|segment| !segment.is_empty()) {
        at = &mut at[segment];
    }
    *at = value;
}
