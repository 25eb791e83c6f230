//! The JSON schema of a configuration.

use std::collections::BTreeSet;

use k8s_schema::builtin;
use serde_json::{Map, Value, json};

use super::{
    AllowedNamespace, DEPLOYMENT_CONFIG, DEPLOYMENT_FIELDS, WATCH_NAMESPACE, WatchNamespace,
    watch_namespace_rules,
};
use crate::bundle::{Bundle, BundleContent};

const REFERENCE: &str = "#/components/schemas/";
const POD: &str = "io.k8s.api.core.v1.PodSpec";
const CONTAINER: &str = "io.k8s.api.core.v1.Container";

/// The JSON schema of what an installation of a bundle into a namespace can configure.
pub fn config_schema(bundle: &Bundle, install_namespace: &str) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    let mut definitions = Map::new();
    if let BundleContent::Registry(content) = &bundle.content {
        let (presence, allowed) = watch_namespace_rules(&content.csv.install_modes);
        if presence != WatchNamespace::Unknown {
            let schema = watch_namespace(presence, allowed, install_namespace);
            properties.insert(WATCH_NAMESPACE.to_owned(), schema);
        }
        if presence == WatchNamespace::Required {
            required.push(WATCH_NAMESPACE);
        }
        properties.insert(DEPLOYMENT_CONFIG.to_owned(), deployment_config(&mut definitions));
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
        "$defs": definitions,
    })
}

fn watch_namespace(
    presence: WatchNamespace,
    allowed: AllowedNamespace,
    install_namespace: &str,
) -> Value {
    let mut schema = json!({
        "type": "string",
        "minLength": 1,
        "maxLength": 63,
        "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
        "description": "the namespace that the operator watches",
    });
    match allowed {
        AllowedNamespace::Any => {}
        AllowedNamespace::Own => schema["const"] = install_namespace.into(),
        AllowedNamespace::Other => schema["not"] = json!({ "const": install_namespace }),
    }
    if presence == WatchNamespace::Optional {
        schema = json!({ "anyOf": [{ "type": "null" }, schema] });
    }
    schema
}

fn deployment_config(definitions: &mut Map<String, Value>) -> Value {
    let all = builtin::openapi_definitions("", "v1").unwrap_or_default();
    let mut properties = Map::new();
    for (field, place) in DEPLOYMENT_FIELDS {
        let schema = match *place {
            "/metadata" => {
                json!({ "type": "object", "additionalProperties": { "type": "string" } })
            }
            "/spec" => all[POD]["properties"][*field].clone(),
            _ => all[CONTAINER]["properties"][*field].clone(),
        };
        properties.insert((*field).to_owned(), schema);
    }
    let mut schema = json!({
        "type": ["object", "null"],
        "properties": properties,
        "additionalProperties": false,
    });
    let mut wanted = BTreeSet::new();
    relocate(&mut schema, &mut wanted);
    while let Some(name) = wanted.pop_first() {
        if definitions.contains_key(&name) {
            continue;
        }
        let mut definition = all[&name].clone();
        relocate(&mut definition, &mut wanted);
        definitions.insert(name, definition);
    }
    schema
}

/// Points references at the definitions of this schema, and names what they refer to. What belongs
/// to OpenAPI or Kubernetes alone is dropped.
fn relocate(schema: &mut Value, wanted: &mut BTreeSet<String>) {
    match schema {
        Value::Object(entries) => {
            entries.retain(|key, _| key != "default" && !key.starts_with("x-kubernetes-"));
            for (key, value) in entries.iter_mut() {
                let name = value.as_str().and_then(|text| text.strip_prefix(REFERENCE));
                match name.filter(|_| key == "$ref").map(str::to_owned) {
                    Some(name) => {
                        *value = format!("#/$defs/{name}").into();
                        wanted.insert(name);
                    }
                    None => relocate(value, wanted),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| relocate(item, wanted)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
