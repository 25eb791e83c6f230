//! Conversion between the storage version of objects and the version of a request.
//!
//! Custom resources without a conversion webhook only exchange their `apiVersion`, and are pruned
//! and defaulted by the schema of the storage version. Of the built-in kinds, only those that are
//! converted here differ between their versions.
use std::sync::Arc;

use bytes::Bytes;
use k8s_schema as schema;
use k8s_schema::protobuf;
use serde_json::{Map, Value};

use crate::json::to_bytes;
use crate::semantics::cluster::Cluster;
use crate::semantics::context::RequestContext;
use crate::semantics::registry::{ApiResource, CustomVersion, Registry};
use crate::status::{ApiError, Result, StatusReason};
use crate::storage::Stored;

pub(crate) mod webhook;

/// Fields of events: their name in the core group, which is stored, and in `events.k8s.io`.
const EVENT_FIELDS: [(&str, &str); 7] = [
    ("count", "deprecatedCount"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("involvedObject", "regarding"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
];

/// Whether the stored form of an object is its form in the version of `resource`.
pub(crate) fn is_verbatim(resource: &ApiResource, stored: &Stored) -> bool {
    match resource.custom() {
        Some(custom) => stored.schema_id == resource.schema_id && !is_exchanged(custom, resource),
        None => !is_converted(resource),
    }
}

/// Whether objects are stored in another version that differs only in the `apiVersion`.
fn is_exchanged(custom: &CustomVersion, resource: &ApiResource) -> bool {
    custom.conversion.is_none() && custom.storage_version != resource.version
}

fn is_converted(resource: &ApiResource) -> bool {
    matches!(
        (resource.group.as_str(), resource.version.as_str(), resource.kind.as_str()),
        ("events.k8s.io", _, "Event") | ("autoscaling", "v1", "HorizontalPodAutoscaler")
    )
}

/// The object in the version of `resource`.
pub(crate) fn read(resource: &ApiResource, stored: &Stored) -> Value {
    let mut value = stored.decode_as(&resource.api_version(), &resource.kind);
    if is_verbatim(resource, stored) {
        return value;
    }
    if let Some(custom) = resource.custom() {
        if is_exchanged(custom, resource) {
            fit_to(custom, &custom.stored_schema, &mut value);
            if !custom.preserves_unknown_fields {
                keeping_ownership(&mut value, |value| drop(schema::prune(&custom.schema, value)));
            }
        } else {
            fit_to(custom, &custom.schema, &mut value);
        }
    } else {
        from_storage(resource, &mut value);
    }
    value
}

/// Prunes and defaults a custom object by a schema.
fn fit_to(custom: &CustomVersion, to: &schema::Schema, object: &mut Value) {
    keeping_ownership(object, |object| {
        if !custom.preserves_unknown_fields {
            schema::prune(to, object);
        }
        schema::apply_defaults(to, object);
    });
}

/// Applies `change` to an object without its `managedFields`, which schemas do not describe.
///
/// Upstream: k8s.io/apiextensions-apiserver/pkg/apiserver/conversion/converter.go: Convert
fn keeping_ownership(object: &mut Value, change: impl FnOnce(&mut Value)) {
    let managed =
        object["metadata"].as_object_mut().and_then(|metadata| metadata.remove("managedFields"));
    change(object);
    if let Some(managed) = managed {
        object["metadata"]["managedFields"] = managed;
    }
}

/// An object in another version of its kind, with that version's schema; none if that version is
/// not served. Of custom resources only the `apiVersion` is exchanged.
pub(crate) fn to_version(
    registry: &Registry,
    resource: &ApiResource,
    object: &Value,
    api_version: &str,
) -> Option<(schema::Schema, Value)> {
    let target = registry.find_kind(api_version, &resource.kind)?;
    let mut value = object.clone();
    if resource.custom().is_none() {
        let from = object["apiVersion"].as_str().unwrap_or_default();
        if let Some(from) = registry.find_kind(from, &resource.kind) {
            to_storage(from, &mut value);
        }
        if is_converted(target) {
            from_storage(target, &mut value);
        }
    }
    value["apiVersion"] = api_version.into();
    Some((target.schema().clone(), value))
}

/// The encoded object without `apiVersion` and `kind`, in the version of `resource`.
pub(crate) fn read_bytes(resource: &ApiResource, stored: &Stored) -> Bytes {
    if is_verbatim(resource, stored) {
        return stored.bytes().clone();
    }
    let mut value = read(resource, stored);
    if let Some(fields) = value.as_object_mut() {
        fields.remove("apiVersion");
        fields.remove("kind");
    }
    to_bytes(&value)
}

/// Converts an object to its storage version, without webhooks.
pub(crate) fn to_storage(resource: &ApiResource, object: &mut Value) {
    if let Some(custom) = resource.custom().filter(|custom| is_exchanged(custom, resource)) {
        fit_to(custom, &custom.stored_schema, object);
    }
    let Some(fields) = object.as_object_mut().filter(|_| is_converted(resource)) else {
        return;
    };
    if resource.kind == "Event" {
        for (at_rest, name) in EVENT_FIELDS {
            rename(fields, name, at_rest);
        }
        // It is left without a namespace if the object has none: clients select it by that.
        fields.entry("involvedObject").or_insert_with(|| Value::Object(Map::new()));
    } else {
        target_to_metrics(fields);
    }
}

/// Converts an object from one version to another.
///
/// # Errors
/// When a webhook has to be called first, or fails to convert it.
pub(crate) fn between(
    context: &mut RequestContext,
    from: &ApiResource,
    to: &ApiResource,
    mut object: Value,
) -> Result<Value> {
    if (&from.group, &from.version) == (&to.group, &to.version) {
        return Ok(object);
    }
    if let Some(webhook) = to.custom().and_then(|custom| custom.conversion.as_ref()) {
        let converted = webhook::convert(context, webhook, &to.api_version(), vec![object])?;
        return Ok(converted.into_iter().next().unwrap_or_default());
    }
    if from.custom().is_none() {
        to_storage(from, &mut object);
        if is_converted(to) {
            from_storage(to, &mut object);
        }
    }
    object["apiVersion"] = to.api_version().into();
    Ok(object)
}

/// Converts an object to its storage version; also returns the id of the schema of that version.
///
/// # Errors
/// When a webhook has to be called first, or fails to convert it.
pub(crate) fn to_stored_form(
    cluster: &Cluster,
    context: &mut RequestContext,
    resource: &ApiResource,
    mut object: Value,
) -> Result<(Value, u64)> {
    if let Some(storage_form) = cluster.registry.storage_form(resource) {
        let mut at_rest = between(context, resource, &storage_form, object)?;
        fit(&storage_form, &mut at_rest);
        check_bounds(resource, &at_rest)?;
        return Ok((at_rest, storage_form.schema_id));
    }
    to_storage(resource, &mut object);
    check_bounds(resource, &object)?;
    Ok((object, resource.schema_id))
}

/// Largest object at rest, in bytes: the largest request that etcd accepts (`--max-request-bytes`).
const STORED_LEN_MAX: usize = 3 << 19;

/// Deepest object at rest, in levels: lists, events and reviews have to hold it, and no JSON is read
/// that is deeper than 127 levels (`serde_json`).
const STORED_DEPTH_MAX: usize = 120;

/// How much longer the JSON of a text may be than the text: a control character has six bytes.
const ESCAPED_LEN_MAX: usize = 6;

/// Checks that an object is neither too large nor too deep to be stored.
fn check_bounds(resource: &ApiResource, at_rest: &Value) -> Result<()> {
    let Some(length) = text_len(at_rest, STORED_DEPTH_MAX) else {
        return Err(ApiError::bad_request(format!(
            "the object is nested more than {STORED_DEPTH_MAX} levels deep, its managedFields included"
        )));
    };
    if length <= STORED_LEN_MAX / ESCAPED_LEN_MAX {
        return Ok(());
    }
    let mut length = to_bytes(at_rest).len();
    if length > STORED_LEN_MAX && resource.custom().is_none() {
        // Built-in kinds are stored as protocol buffers, which are shorter.
        length = protobuf::encode(at_rest).map_or(length, |bytes| bytes.len());
    }
    if length > STORED_LEN_MAX {
        return Err(ApiError::new(StatusReason::Unknown, "etcdserver: request is too large"));
    }
    Ok(())
}

/// The length of a value as JSON, but for escapes; none if it has more levels than `depth`.
fn text_len(value: &Value, depth: usize) -> Option<usize> {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => Some(NUMBER_LEN),
        Value::String(text) => Some(text.len() + 3),
        Value::Array(items) => {
            let below = depth.checked_sub(1)?;
            items.iter().try_fold(3, |sum, item| Some(sum + text_len(item, below)?))
        }
        Value::Object(entries) => {
            let below = depth.checked_sub(1)?;
            entries.iter().try_fold(3, |sum, (key, value)| {
                Some(sum + key.len() + 4 + text_len(value, below)?)
            })
        }
    }
}

/// Longest JSON of a number, in bytes.
const NUMBER_LEN: usize = 25;

/// Converts objects to the version of `resource`, if a webhook converts them.
///
/// # Errors
/// When a webhook has to be called first, or fails to convert one.
pub(crate) fn all_in_version(
    cluster: &Cluster,
    context: &mut RequestContext,
    resource: &ApiResource,
    mut objects: Vec<Arc<Stored>>,
) -> Result<Vec<Arc<Stored>>> {
    let Some(webhook) = resource.custom().and_then(|custom| custom.conversion.as_ref()) else {
        return Ok(objects);
    };
    let desired = resource.api_version();
    let mut places = Vec::new();
    let mut others = Vec::new();
    for (place, stored) in objects.iter().enumerate() {
        let version = cluster.registry.version_of(resource, stored.schema_id);
        if version != resource.version {
            places.push(place);
            others.push(stored.decode_as(&format!("{}/{version}", resource.group), &resource.kind));
        }
    }
    if others.is_empty() {
        return Ok(objects);
    }
    let converted = webhook::convert(context, webhook, &desired, others)?;
    for (place, mut value) in places.into_iter().zip(converted) {
        fit(resource, &mut value);
        let stored = &objects[place];
        objects[place] = Arc::new(Stored::new(
            stored.key.clone(),
            &mut value,
            stored.revision,
            resource.schema_id,
        ));
    }
    Ok(objects)
}

/// Converts one object to the version of `resource`, if a webhook converts it.
///
/// # Errors
/// When a webhook has to be called first, or fails to convert it.
pub(crate) fn shown(
    cluster: &Cluster,
    context: &mut RequestContext,
    resource: &ApiResource,
    stored: &Arc<Stored>,
) -> Result<Arc<Stored>> {
    let shown = all_in_version(cluster, context, resource, vec![Arc::clone(stored)])?;
    Ok(shown.into_iter().next().unwrap_or_else(|| Arc::clone(stored)))
}

/// The written object in the version of the request.
///
/// `object` is the object in that version before it was converted for storage, if it was kept.
pub(crate) fn written(
    cluster: &Cluster,
    resource: &ApiResource,
    stored: &Stored,
    object: Option<Value>,
) -> Value {
    match object {
        Some(mut object) if cluster.registry.storage_form(resource).is_some() => {
            object["metadata"]["resourceVersion"] = stored.revision.to_string().into();
            object
        }
        Some(_) | None => read(resource, stored),
    }
}

/// An object that was marked for deletion: the metadata of `stored`, and everything else, labels
/// and annotations included, of `before`.
pub(crate) fn marked(resource: &ApiResource, before: &Stored, stored: &Stored) -> Arc<Stored> {
    let mut value = before.decode();
    let labels = ["labels", "annotations"].map(|field| value["metadata"].get(field).cloned());
    value["metadata"] = stored.decode()["metadata"].take();
    for (field, kept) in ["labels", "annotations"].into_iter().zip(labels) {
        if let (Some(kept), Some(metadata)) = (kept, value["metadata"].as_object_mut()) {
            metadata.insert(field.to_owned(), kept);
        }
    }
    Arc::new(Stored::new(stored.key.clone(), &mut value, stored.revision, resource.schema_id))
}

/// Prunes and defaults a custom object by the schema of `resource`.
fn fit(resource: &ApiResource, value: &mut Value) {
    if let Some(custom) = resource.custom() {
        fit_to(custom, &custom.schema, value);
    }
}

fn from_storage(resource: &ApiResource, object: &mut Value) {
    let Some(fields) = object.as_object_mut() else {
        return;
    };
    if resource.kind == "Event" {
        for (at_rest, name) in EVENT_FIELDS {
            rename(fields, at_rest, name);
        }
        for reporting in ["reportingController", "reportingInstance"] {
            if fields.get(reporting).is_some_and(|value| value == "") {
                fields.remove(reporting);
            }
        }
    } else {
        metrics_to_target(fields);
    }
}

fn rename(fields: &mut Map<String, Value>, from: &str, to: &str) {
    if let Some(value) = fields.remove(from) {
        fields.insert(to.to_owned(), value);
    }
}

/// `autoscaling/v1` has a single metric, the CPU utilization.
///
/// Upstream: k8s.io/kubernetes/pkg/apis/autoscaling/v1/conversion.go: Convert_v1_HorizontalPodAutoscalerSpec_To_autoscaling_HorizontalPodAutoscalerSpec
fn target_to_metrics(fields: &mut Map<String, Value>) {
    let Some(spec) = fields.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    if let Some(percentage) = spec.remove("targetCPUUtilizationPercentage") {
        spec.insert(
            "metrics".to_owned(),
            serde_json::json!([{
                "type": "Resource",
                "resource": {
                    "name": "cpu",
                    "target": {"type": "Utilization", "averageUtilization": percentage},
                },
            }]),
        );
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/autoscaling/v1/conversion.go: Convert_autoscaling_HorizontalPodAutoscalerSpec_To_v1_HorizontalPodAutoscalerSpec
fn metrics_to_target(fields: &mut Map<String, Value>) {
    if let Some(status) = fields.get_mut("status").and_then(Value::as_object_mut) {
        status.remove("currentMetrics");
        status.remove("conditions");
        status.entry("currentReplicas").or_insert_with(|| 0.into());
    }
    let Some(spec) = fields.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    let metrics = spec.remove("metrics");
    spec.remove("behavior");
    let percentage = metrics
        .as_ref()
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .find(|metric| metric["resource"]["name"] == "cpu")
        .and_then(|metric| metric.pointer("/resource/target/averageUtilization"));
    if let Some(percentage) = percentage {
        spec.insert("targetCPUUtilizationPercentage".to_owned(), percentage.clone());
    }
}
