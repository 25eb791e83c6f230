//! OpenAPI version 2: one document of everything, for older clients.
use k8s_schema::builtin;
use serde_json::{Map, Value, json};

use super::{binary, custom};
use crate::semantics::cluster::Cluster;

/// The document.
pub(super) struct Document {
    /// Whether the recorded document is complete; then `value` is null.
    pub(super) is_packed: bool,
    pub(super) value: Value,
}

/// The document of all kinds.
pub(super) fn document(cluster: &Cluster) -> Document {
    let mut schemas = Map::new();
    for resource in cluster.registry.all().filter(|resource| resource.custom().is_some()) {
        custom::add_schemas(&mut schemas, cluster, resource);
    }
    if schemas.is_empty() {
        return Document { is_packed: true, value: Value::Null };
    }
    let mut value = built_in();
    for (name, mut schema) in schemas {
        if schema["x-kubernetes-preserve-unknown-fields"] == true {
            // A kind without a schema has no properties in version 2.
            let kind = schema["x-kubernetes-group-version-kind"].take();
            schema = json!({"type": "object", "x-kubernetes-group-version-kind": kind});
        }
        to_version_2(&mut schema);
        value["definitions"][name] = schema;
    }
    Document { is_packed: false, value }
}

fn built_in() -> Value {
    builtin::document("v2")
        .and_then(|document| serde_json::from_slice(&document.text()).ok())
        .unwrap_or_else(|| json!({"swagger": "2.0", "info": super::info(), "paths": {}}))
}

/// Drops what version 2 cannot express: alternatives, defaults, and fields beside a reference.
///
/// Upstream: k8s.io/apiextensions-apiserver/pkg/controller/openapi/v2/conversion.go: ToStructuralOpenAPIV2
fn to_version_2(schema: &mut Value) {
    let Some(fields) = schema.as_object_mut() else {
        return;
    };
    if fields.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true)) {
        fields.retain(|key, _| key == "description" || key.starts_with("x-kubernetes-"));
        return;
    }
    if fields.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) {
        fields.remove("type");
    }
    if fields.remove("nullable") == Some(Value::Bool(true)) {
        fields.retain(|key, _| key == "description" || key.starts_with("x-kubernetes-"));
        return;
    }
    if let Some(Value::Array(parts)) = fields.remove("allOf")
        && let [one] = parts.as_slice()
        && let Some(reference) = one["$ref"].as_str()
    {
        fields.insert("$ref".to_owned(), reference.into());
    }
    for unknown in ["anyOf", "oneOf", "not", "default"] {
        fields.remove(unknown);
    }
    if let Some(Value::String(reference)) = fields.get_mut("$ref") {
        *reference = reference.replace("#/components/schemas/", "#/definitions/");
    }
    for (key, value) in fields.iter_mut() {
        match key.as_str() {
            "properties" => {
                value
                    .as_object_mut()
                    .into_iter()
                    .flatten()
                    .for_each(|(_, property)| to_version_2(property));
            }
            "items" | "additionalProperties" => to_version_2(value),
            _ => {}
        }
    }
}

/// The document in its binary form.
pub(super) fn protobuf(document: &Document) -> Vec<u8> {
    if document.is_packed { binary::encode(&built_in()) } else { binary::encode(&document.value) }
}
