//! Generates `plimsoll/plimsoll-api/crds/*.yaml` from the types: `cargo xtask codegen crds`.
//!
//! The sources are read as text, line by line: rustfmt gives them one shape, and what does not fit
//! is an error. So the definitions need no derive macro, no feature and no dependency of the
//! program. Names and optionality come from the fields and their serde attributes, descriptions
//! from the doc comments, and the rest from markers in the form that controller-gen reads in Go:
//! `// +listType=map`, `// +required`, `// +kubebuilder:validation:MaxItems=32`. A marker goes on in
//! comment lines that are indented by one more blank.

mod parse;
mod yaml;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Map, Value, json};

use self::parse::{Field, Marker, Type, parse};

/// The folder of the definitions.
pub(crate) const FOLDER: &str = "plimsoll/plimsoll-api/crds";
/// The sources with the types, relative to the root.
const SOURCES: [&str; 22] = [
    "plimsoll/plimsoll-api/src/condition.rs",
    "plimsoll/plimsoll-api/src/config.rs",
    "plimsoll/plimsoll-api/src/config/conditional_updates.rs",
    "plimsoll/plimsoll-api/src/key.rs",
    "plimsoll/plimsoll-api/src/objects.rs",
    "plimsoll/plimsoll-api/src/objects/olm.rs",
    "plimsoll/plimsoll-api/src/objects/action.rs",
    "plimsoll/plimsoll-api/src/olm.rs",
    "plimsoll/plimsoll-api/src/olm/action.rs",
    "plimsoll/plimsoll-api/src/olm/action/change.rs",
    "plimsoll/plimsoll-api/src/olm/action/generators.rs",
    "plimsoll/plimsoll-api/src/olm/action/part.rs",
    "plimsoll/plimsoll-api/src/olm/action/status.rs",
    "plimsoll/plimsoll-api/src/olm/catalog.rs",
    "plimsoll/plimsoll-api/src/olm/certificates.rs",
    "plimsoll/plimsoll-api/src/olm/policy.rs",
    "plimsoll/plimsoll-api/src/olm/readiness.rs",
    "plimsoll/plimsoll-api/src/olm/revision.rs",
    "plimsoll/plimsoll-api/src/olm/selector.rs",
    "plimsoll/plimsoll-api/src/olm/status.rs",
    "plimsoll/plimsoll-api/src/olm/window.rs",
    "plimsoll/plimsoll-api/src/progress.rs",
];
/// The kinds, with their groups and versions.
const KINDS: [(&str, &str, &str); 14] = [
    ("ClusterVersion", "config.openshift.io", "v1"),
    ("ClusterOperator", "config.openshift.io", "v1"),
    ("ReleaseProgress", "plimsoll.io", "v1alpha1"),
    ("Operator", "olm.io", "v1"),
    ("OperatorRevision", "olm.io", "v1"),
    ("Catalog", "olm.io", "v1"),
    ("Action", "olm.io", "v1"),
    ("RetryAction", "olm.io", "v1"),
    ("CronAction", "olm.io", "v1"),
    ("EventAction", "olm.io", "v1"),
    ("ActionPart", "olm.io", "v1"),
    ("ActionClass", "olm.io", "v1"),
    ("ActionPolicy", "olm.io", "v1"),
    ("MaintenanceWindow", "olm.io", "v1"),
];

/// Writes the definitions.
pub(crate) fn write(root: &Path) -> Result<()> {
    let read = |path: &str| {
        fs::read_to_string(root.join(path)).with_context(|| format!("failed to read {path}"))
    };
    for (name, text) in generate(read)? {
        fs::write(root.join(FOLDER).join(name), text)?;
    }
    Ok(())
}

/// The definitions as file names and texts, made of the sources that `read` returns.
pub(crate) fn generate(read: impl Fn(&str) -> Result<String>) -> Result<Vec<(String, String)>> {
    let mut types = BTreeMap::new();
    for path in SOURCES {
        let parsed = parse(&read(path)?).with_context(|| format!("failed to parse {path}"))?;
        types.extend(parsed);
    }
    KINDS
        .into_iter()
        .map(|(kind, group, version)| {
            let (plural, definition) = definition(&types, kind, group, version)
                .with_context(|| format!("failed to define {kind}"))?;
            let head =
                "# Generated from the types of plimsoll-api by `cargo xtask codegen crds`.\n";
            Ok((format!("{plural}.yaml"), format!("{head}{}", yaml::render(&definition))))
        })
        .collect()
}

fn definition(
    types: &BTreeMap<String, Type>,
    kind: &str,
    group: &str,
    version: &str,
) -> Result<(String, Value)> {
    let object = types.get(kind).context("there is no such type")?;
    let (mut plural, mut scope) = (String::new(), String::new());
    let mut names = json!({
        "kind": kind, "listKind": format!("{kind}List"), "singular": kind.to_lowercase(),
    });
    let (mut metadata, mut columns) = (json!({}), Vec::new());
    let mut schema = struct_schema(types, object)?;
    schema.insert("description".to_owned(), json!(object.description));
    for marker in &object.markers {
        match marker.name.as_str() {
            "kubebuilder:resource" => {
                let arguments = marker.arguments()?;
                plural = arguments.get("path").context("the resource has no path")?.clone();
                names["plural"] = json!(plural);
                if let Some(short) = arguments.get("shortName") {
                    names["shortNames"] = json!(short.split(';').collect::<Vec<_>>());
                }
                let given = arguments.get("scope").context("the resource has no scope")?;
                ensure!(["Cluster", "Namespaced"].contains(&given.as_str()));
                scope.clone_from(given);
            }
            "kubebuilder:printcolumn" => columns.push(column(marker)?),
            "kubebuilder:metadata" => {
                let arguments = marker.arguments()?;
                let annotation =
                    arguments.get("annotations").context("there are no annotations")?;
                let (name, value) = annotation.split_once('=').context("it has no value")?;
                metadata["annotations"] = json!({ name: value });
            }
            _ => apply(&mut schema, marker)?,
        }
    }
    metadata["name"] = json!(format!("{plural}.{group}"));
    let properties = schema.get_mut("properties").context("the type has no fields")?;
    properties["apiVersion"] =
        json!({ "type": "string", "description": "API version of this object." });
    properties["kind"] = json!({ "type": "string", "description": "Kind of this object." });
    let has_status = properties.get("status").is_some();
    let mut definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": {
            "group": group,
            "names": names,
            "scope": scope,
            "versions": [{
                "name": version,
                "served": true,
                "storage": true,
                "additionalPrinterColumns": columns,
                "schema": { "openAPIV3Schema": schema },
            }],
        },
    });
    if has_status {
        definition["spec"]["versions"][0]["subresources"] = json!({ "status": {} });
    }
    Ok((plural, definition))
}

/// Returns the column that a marker adds to tables.
fn column(marker: &Marker) -> Result<Value> {
    let mut column = marker.arguments()?;
    let path = column.remove("JSONPath").context("a column has no JSONPath")?;
    column.insert("jsonPath".to_owned(), path);
    let priority = column.remove("priority").map(|it| it.parse::<u32>()).transpose()?;
    let mut column = json!(column);
    if let Some(priority) = priority {
        column["priority"] = json!(priority);
    }
    Ok(column)
}

/// The schema of a struct: its fields, with those of flattened ones in their place.
fn struct_schema(types: &BTreeMap<String, Type>, it: &Type) -> Result<Map<String, Value>> {
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for field in &it.fields {
        if field.flatten {
            let inner = types.get(&field.type_).context("a flattened type is not known")?;
            let inner = struct_schema(types, inner)?;
            properties.extend(inner["properties"].as_object().cloned().unwrap_or_default());
            required.extend(inner["required"].as_array().cloned().unwrap_or_default());
            continue;
        }
        let schema = field_schema(types, field)
            .with_context(|| format!("failed to read field `{}`", field.name))?;
        if field.markers.iter().any(|it| it.name == "required") || !(it.default || field.default) {
            required.push(json!(field.name));
        }
        properties.insert(field.name.clone(), Value::Object(schema));
    }
    let mut schema = Map::new();
    schema.insert("type".to_owned(), json!("object"));
    if !properties.is_empty() {
        schema.insert("properties".to_owned(), Value::Object(properties));
    }
    if !required.is_empty() {
        schema.insert("required".to_owned(), Value::Array(required));
    }
    Ok(schema)
}

fn field_schema(types: &BTreeMap<String, Type>, field: &Field) -> Result<Map<String, Value>> {
    let mut schema = type_schema(types, &field.type_)?;
    if field.type_ != "ObjectMeta" {
        ensure!(!field.description.is_empty(), "it has no description");
        schema.insert("description".to_owned(), json!(field.description));
    }
    if field.type_.starts_with("Option<") && !field.skipped && !field.default {
        schema.insert("nullable".to_owned(), json!(true));
    }
    for marker in &field.markers {
        apply(&mut schema, marker)?;
    }
    Ok(schema)
}

fn type_schema(types: &BTreeMap<String, Type>, name: &str) -> Result<Map<String, Value>> {
    let inner = |prefix: &str| name.strip_prefix(prefix).and_then(|it| it.strip_suffix('>'));
    if let Some(item) = inner("Option<") {
        return type_schema(types, item);
    }
    let schema = if let Some(item) = inner("Vec<") {
        json!({ "type": "array", "items": type_schema(types, item)? })
    } else {
        match name {
            "String" => json!({ "type": "string" }),
            "bool" => json!({ "type": "boolean" }),
            "i64" => json!({ "type": "integer", "format": "int64" }),
            "u32" | "u64" | "usize" => {
                json!({ "type": "integer", "format": "int64", "minimum": 0 })
            }
            "Timestamp" => json!({ "type": "string", "format": "date-time" }),
            "Value" | "ObjectMeta" => json!({ "type": "object" }),
            "BTreeMap<String, String>" => {
                json!({ "type": "object", "additionalProperties": { "type": "string" } })
            }
            _ => {
                let named = types.get(name).with_context(|| format!("no type `{name}`"))?;
                if named.is_enum {
                    json!({ "type": "string" })
                } else {
                    return struct_schema(types, named);
                }
            }
        }
    };
    schema.as_object().cloned().context("a schema is an object")
}

/// Adds to a schema what a marker says.
fn apply(schema: &mut Map<String, Value>, marker: &Marker) -> Result<()> {
    let value = marker.value.trim();
    let number = || value.parse::<u64>().with_context(|| format!("`{value}` is not a number"));
    let name = marker.name.as_str();
    let (key, value) = match name {
        "required" => return Ok(()),
        "nullable" => ("nullable", json!(true)),
        "kubebuilder:validation:Schemaless" => {
            schema.remove("type");
            return Ok(());
        }
        "kubebuilder:pruning:PreserveUnknownFields" => {
            ("x-kubernetes-preserve-unknown-fields", json!(true))
        }
        "listType" => ("x-kubernetes-list-type", json!(value)),
        "listMapKey" => return push(schema, "x-kubernetes-list-map-keys", json!(value)),
        "kubebuilder:validation:XValidation" => {
            let rule = json!(marker.arguments()?);
            return push(schema, "x-kubernetes-validations", rule);
        }
        "kubebuilder:validation:Enum" => ("enum", json!(listed(value))),
        "kubebuilder:validation:Format" => ("format", json!(value)),
        "kubebuilder:validation:Pattern" => ("pattern", json!(value.trim_matches('`'))),
        "kubebuilder:default" => ("default", json!(number()?)),
        "kubebuilder:validation:Minimum" => ("minimum", json!(number()?)),
        "kubebuilder:validation:Maximum" => ("maximum", json!(number()?)),
        "kubebuilder:validation:MinItems" => ("minItems", json!(number()?)),
        "kubebuilder:validation:MaxItems" => ("maxItems", json!(number()?)),
        "kubebuilder:validation:MaxProperties" => ("maxProperties", json!(number()?)),
        "kubebuilder:validation:MinLength" => ("minLength", json!(number()?)),
        "kubebuilder:validation:MaxLength" => ("maxLength", json!(number()?)),
        "kubebuilder:validation:items:MaxLength" => {
            let items = schema.get_mut("items").context("it is not a list")?;
            items["maxLength"] = json!(number()?);
            return Ok(());
        }
        "kubebuilder:validation:items:Enum" => {
            let items = schema.get_mut("items").context("it is not a list")?;
            items["enum"] = json!(listed(value));
            return Ok(());
        }
        _ => bail!("the marker `{name}` is not known"),
    };
    schema.insert(key.to_owned(), value);
    Ok(())
}

/// Returns the values that a marker lists.
fn listed(values: &str) -> Vec<&str> {
    values.split(';').map(|it| it.trim_matches('"')).collect()
}

fn push(schema: &mut Map<String, Value>, key: &str, value: Value) -> Result<()> {
    let list = schema.entry(key).or_insert_with(|| json!([]));
    list.as_array_mut().context("it is not a list")?.push(value);
    Ok(())
}

#[cfg(test)]
mod tests;
