//! From a manifest to the object that is applied: what is added, and what is left to others.
//!
//! Server-side apply with forced ownership enforces exactly what the manifest holds, so what the
//! manifest must not enforce is taken out here (CV-4, CV-5, CV-8).

use plimsoll_api::CLUSTER_VERSION;
use serde_json::{Map, Value, json};

use crate::plan::{Action, Step, is_cluster_operator};
use crate::progress::Scope;

/// Annotation: the service CA operator fills in the CA bundles of this object.
const INJECT_CA_BUNDLE: &str = "service.beta.openshift.io/inject-cabundle";

/// The object that a step applies. One that keeps its conversion has none: who applies it fills in that of
/// the cluster.
pub fn object(step: &Step, scope: Scope) -> Value {
    let mut object = step.manifest.object();
    if step.action == Action::Gate || is_cluster_operator(&step.manifest.key) {
        object = cluster_operator(&object);
    }
    if step.manifest.is_annotated_true(INJECT_CA_BUNDLE) {
        remove_ca_bundles(&mut object, &step.manifest.key.kind);
    }
    if step.is_repeated
        && step.manifest.definition.is_some()
        && let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut)
    {
        spec.remove("conversion");
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        if scope == Scope::Cluster {
            metadata.remove("namespace");
        }
        for field in ["creationTimestamp", "managedFields", "resourceVersion", "uid"] {
            metadata.remove(field);
        }
        remove_cluster_version_owner(metadata);
    }
    object
}

/// A ClusterOperator as it is created: its status belongs to its operator, and the API demands a
/// spec that many manifests leave out.
fn cluster_operator(manifest: &Value) -> Value {
    json!({
        "apiVersion": manifest["apiVersion"],
        "kind": manifest["kind"],
        "metadata": manifest["metadata"],
        "spec": {},
    })
}

/// The status that a freshly created ClusterOperator gets, so that its related objects are known
/// before its operator reports (CO-6); `None` when the manifest names none.
pub fn fast_fill(step: &Step) -> Option<Value> {
    let manifest = step.manifest.object();
    let related = manifest.pointer("/status/relatedObjects")?;
    let any = related.as_array().is_some_and(|objects| !objects.is_empty());
    any.then(|| json!({ "status": { "relatedObjects": related } }))
}

/// What a ClusterVersion owns goes with it: whoever deleted the one object would delete the cluster.
/// So nothing that is applied is owned by it, whatever the manifest says; owners of other kinds are
/// kept.
fn remove_cluster_version_owner(metadata: &mut Map<String, Value>) {
    let Some(Value::Array(references)) = metadata.get_mut("ownerReferences") else { return };
    references.retain(|reference| {
        let text = |field: &str| reference[field].as_str().unwrap_or_default();
        !is_cluster_version(text("apiVersion"), text("kind"))
    });
    if references.is_empty() {
        metadata.remove("ownerReferences");
    }
}

/// Whether an owner reference with this API version and kind is to a ClusterVersion.
pub fn is_cluster_version(api_version: &str, kind: &str) -> bool {
    let group = api_version.split_once('/').map(|(group, _)| group);
    kind == CLUSTER_VERSION.kind && group == Some(CLUSTER_VERSION.group)
}

fn remove_ca_bundles(object: &mut Value, kind: &str) {
    for config in client_configs(object, kind) {
        config.remove("caBundle");
    }
}

/// Sets the `caBundle` of whatever an object calls by a service, as base64; whether any was another
/// one before. Objects that call no service have none.
pub fn set_ca_bundles(object: &mut Value, ca_bundle: &str) -> bool {
    let kind = object["kind"].as_str().unwrap_or_default().to_owned();
    let mut is_changed = false;
    for config in client_configs(object, &kind) {
        let calls_service = config.get("service").is_some_and(Value::is_object);
        if calls_service && config.get("caBundle").is_none_or(|it| it != ca_bundle) {
            config.insert("caBundle".to_owned(), ca_bundle.into());
            is_changed = true;
        }
    }
    is_changed
}

/// The `caBundle` of whatever an object calls, as base64; `None` where it has none.
pub fn ca_bundle(object: &Value) -> Option<String> {
    let mut object = object.clone();
    let kind = object["kind"].as_str().unwrap_or_default().to_owned();
    let configs = client_configs(&mut object, &kind);
    configs.into_iter().find_map(|it| it.get("caBundle")?.as_str().map(str::to_owned))
}

/// What says whom an object calls.
fn client_configs<'o>(object: &'o mut Value, kind: &str) -> Vec<&'o mut Map<String, Value>> {
    let configs: Vec<Option<&mut Value>> = match kind {
        // Without the Webhook strategy there is no client configuration.
        "CustomResourceDefinition" => {
            vec![object.pointer_mut("/spec/conversion/webhook/clientConfig")]
        }
        "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => {
            let webhooks = object.get_mut("webhooks").and_then(Value::as_array_mut);
            webhooks.into_iter().flatten().map(|it| it.get_mut("clientConfig")).collect()
        }
        "APIService" => vec![object.get_mut("spec")],
        _ => Vec::new(),
    };
    configs.into_iter().flatten().filter_map(Value::as_object_mut).collect()
}

/// One step of a path into an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathPart {
    /// A field of a map.
    Field(String),
    /// An item of a list by position.
    Index(usize),
    /// An item of a list by the values of its keys.
    Keys(Vec<(String, Value)>),
}

/// The paths of the fields that an API server refused to know, from the text of its answer to a
/// server-side apply: `.userNames: field not declared in schema`. Plain create and update drop
/// such fields; so do we, and warn.
pub fn undeclared_fields(message: &str) -> Vec<Vec<PathPart>> {
    const REFUSAL: &str = ": field not declared in schema";
    message
        .split(REFUSAL)
        .filter_map(|before| {
            let start = before.rfind([' ', '\n']).map_or(0, |at| at + 1);
            // A key with a space in its value would be cut: take the path from its first dot.
            let text = before.get(start..)?;
            text.starts_with('.').then(|| parse_path(text)).flatten()
        })
        .collect()
}

/// The parts of a path that begins with a dot; `None` if it is not one.
pub(super) fn parse_path(text: &str) -> Option<Vec<PathPart>> {
    let mut parts = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[']).unwrap_or(after.len());
            parts.push(PathPart::Field(after[..end].to_owned()));
            rest = &after[end..];
        } else {
            let inner = rest.strip_prefix('[')?;
            let end = inner.find(']')?;
            parts.push(parse_selector(&inner[..end])?);
            rest = &inner[end + 1..];
        }
    }
    (!parts.is_empty()).then_some(parts)
}

fn parse_selector(text: &str) -> Option<PathPart> {
    if let Ok(index) = text.parse() {
        return Some(PathPart::Index(index));
    }
    let keys = text.split(',').map(|pair| {
        let (key, value) = pair.split_once('=')?;
        Some((key.to_owned(), serde_json::from_str(value).ok()?))
    });
    keys.collect::<Option<Vec<_>>>().map(PathPart::Keys)
}

/// Removes the field at a path; false when there is none.
pub fn remove_field(object: &mut Value, path: &[PathPart]) -> bool {
    let Some((last, parents)) = path.split_last() else {
        return false;
    };
    let mut at = object;
    for part in parents {
        let next = match part {
            PathPart::Field(name) => at.get_mut(name.as_str()),
            PathPart::Index(index) => at.get_mut(*index),
            PathPart::Keys(keys) => at.as_array_mut().and_then(|items| {
                items.iter_mut().find(|item| keys.iter().all(|(key, value)| item[key] == *value))
            }),
        };
        let Some(next) = next else { return false };
        at = next;
    }
    match last {
        PathPart::Field(name) => {
            at.as_object_mut().is_some_and(|map| map.remove(name.as_str()).is_some())
        }
        PathPart::Index(_) | PathPart::Keys(_) => false,
    }
}

/// A path as people read it: `.spec.containers[0].image`.
pub fn display_path(path: &[PathPart]) -> String {
    path.iter()
        .map(|part| match part {
            PathPart::Field(name) => format!(".{name}"),
            PathPart::Index(index) => format!("[{index}]"),
            PathPart::Keys(keys) => {
                let keys: Vec<_> = keys.iter().map(|(k, v)| format!("{k}={v}")).collect();
                format!("[{}]", keys.join(","))
            }
        })
        .collect()
}

#[cfg(test)]
mod tests;
