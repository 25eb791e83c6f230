//! Objects that an API server would not take, or not as they are written.

use k8s_schema::{builtin, unknown_fields};
use serde_json::Value;

use super::FindingCollector;
use crate::Manifest;
use crate::annotations::DELETE;
use crate::definition::Scope;
use crate::diagnostic::FindingCode;
use crate::kinds::Kinds;

pub(super) fn check(
    manifest: &Manifest,
    object: &Value,
    kinds: &Kinds,
    report: &mut FindingCollector<'_>,
) {
    let key = &manifest.key;
    if manifest.version.is_empty() {
        let message = format!("the {} has no apiVersion", key.kind);
        report.add(manifest, "kind", FindingCode::MissingApiVersion, message);
        return;
    }
    let kind = key.group_kind();
    let namespace = object.pointer("/metadata/namespace").and_then(Value::as_str);
    let namespace = namespace.unwrap_or_default();
    match kinds.scope(&kind) {
        // What is to be deleted may be of a kind that is gone.
        None if manifest.is_annotated_true(DELETE) => {}
        None => {
            let message = format!(
                "neither Kubernetes nor a CustomResourceDefinition of the payload defines {kind}"
            );
            report.add(manifest, "kind", FindingCode::UnknownKind, message);
        }
        Some(_) if !kinds.serves(&kind, &manifest.version) => {
            let message = format!("version {} of {kind} is not served", manifest.version);
            report.add(manifest, "apiVersion", FindingCode::UnknownKind, message);
        }
        Some(Scope::Cluster) if !namespace.is_empty() => {
            let message = format!(
                "objects of kind {kind} have no namespace: {namespace:?} is ignored, remove it"
            );
            report.add(manifest, "metadata.namespace", FindingCode::UnexpectedNamespace, message);
        }
        Some(Scope::Namespaced) if key.namespace.is_empty() => {
            let message = format!("objects of kind {kind} need a namespace");
            report.add(manifest, "metadata", FindingCode::MissingNamespace, message);
        }
        Some(Scope::Cluster | Scope::Namespaced) => {}
    }
    if let Some(schema) = builtin::schema(&key.group, &manifest.version, &key.kind) {
        for field in unknown_fields(&schema, object) {
            let message = format!("{kind} has no field {field}: it is dropped");
            report.add(manifest, &field, FindingCode::UnknownField, message);
        }
    }
    if key.group == "batch" && key.kind == "Job" && object.pointer("/spec/selector").is_some() {
        let message = "a Job that is to be applied again must leave its selector to the API server";
        report.add(manifest, "spec.selector", FindingCode::JobSelector, message);
    }
}
