//! Uniqueness in sets and list maps, and the objects inside objects.
//!
//! Upstream: k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype/validation.go: ValidateListSetsAndMaps
//! Upstream: k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta/validation.go: Validate
use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::below;
use crate::fields::PathValue;
use crate::metadata::{MetadataOwner, validate_metadata};
use crate::schema::node::{Edge, Relationship};
use crate::{FieldError, FieldErrorKind, Schema, names};

/// Repeated items of sets and repeated keys of list maps; nothing if `live` has some already.
pub(super) fn check_keys(schema: &Schema, value: &Value, live: Option<&Value>) -> Vec<FieldError> {
    let found = |value: &Value| {
        let mut errors = Vec::new();
        keys(schema, &schema.root_edge(), value, "", &mut errors);
        errors
    };
    let errors = found(value);
    if errors.is_empty() || live.is_some_and(|live| !found(live).is_empty()) {
        return Vec::new();
    }
    errors
}

fn keys(schema: &Schema, edge: &Edge, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let node = schema.node(edge.node);
    match (value, &node.map, &node.list) {
        (Value::Object(entries), Some(map), _) => {
            for (key, value) in entries {
                // `metadata` has its own checks.
                if path.is_empty() && key == "metadata" {
                    continue;
                }
                match (map.fields.get(key), &map.additional) {
                    (Some(edge), _) => keys(schema, edge, value, &below(path, key), errors),
                    (None, Some(edge)) => {
                        keys(schema, edge, value, &format!("{path}[{key}]"), errors);
                    }
                    (None, None) => {}
                }
            }
        }
        (Value::Array(items), _, Some(list)) => {
            match &list.relationship {
                Relationship::Atomic => {}
                Relationship::Set => repeated(items.iter().cloned(), path, errors),
                Relationship::Map(names) => map_keys(names, items, path, errors),
            }
            for (index, item) in items.iter().enumerate() {
                keys(schema, &list.items, item, &format!("{path}[{index}]"), errors);
            }
        }
        _ => {}
    }
}

fn map_keys(names: &[String], items: &[Value], path: &str, errors: &mut Vec<FieldError>) {
    if let Some(index) = items.iter().position(|item| !item.is_object() && !item.is_null()) {
        let detail = "must be an object for an array of list-type map";
        let error = FieldError::new(format!("{path}[{index}]"), FieldErrorKind::Invalid, detail);
        return errors.push(error.with_value(items[index].clone()));
    }
    let key = |item: &Value| {
        let key: Map<String, Value> =
            names.iter().filter_map(|name| Some((name.clone(), item.get(name)?.clone()))).collect();
        Value::Object(key)
    };
    repeated(items.iter().map(key), path, errors);
}

/// Reports each value that occurs again, at its second place.
fn repeated(values: impl Iterator<Item = Value>, path: &str, errors: &mut Vec<FieldError>) {
    let mut seen: BTreeMap<PathValue, usize> = BTreeMap::new();
    for (index, value) in values.enumerate() {
        let count = seen.entry(PathValue(value.clone())).or_default();
        *count += 1;
        if *count == 2 {
            let at = format!("{path}[{index}]");
            errors.push(FieldError::new(at, FieldErrorKind::Duplicate, "").with_value(value));
        }
    }
}

/// Embedded resources say what they are, and have metadata like any other.
pub(super) fn check_embedded(schema: &Schema, value: &Value, errors: &mut Vec<FieldError>) {
    embedded(schema, &schema.root_edge(), value, "", errors);
}

fn embedded(schema: &Schema, edge: &Edge, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let node = schema.node(edge.node);
    match value {
        Value::Object(entries) => {
            if node.embedded {
                embedded_resource(entries, path, errors);
            }
            let Some(map) = &node.map else { return };
            for (key, value) in entries {
                // The metadata of the object itself has its own checks.
                if path.is_empty() && key == "metadata" {
                    continue;
                }
                match (map.fields.get(key), &map.additional) {
                    (Some(edge), _) => embedded(schema, edge, value, &below(path, key), errors),
                    (None, Some(edge)) => {
                        embedded(schema, edge, value, &format!("{path}[{key}]"), errors);
                    }
                    (None, None) => {}
                }
            }
        }
        Value::Array(items) => {
            let Some(list) = &node.list else { return };
            for (index, item) in items.iter().enumerate() {
                embedded(schema, &list.items, item, &format!("{path}[{index}]"), errors);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn embedded_resource(entries: &Map<String, Value>, path: &str, errors: &mut Vec<FieldError>) {
    for name in ["apiVersion", "kind"] {
        if !entries.contains_key(name) {
            errors.push(FieldError::new(below(path, name), FieldErrorKind::Required, ""));
        }
    }
    let invalid = |name: &str, value: &Value, detail: &str| {
        FieldError::new(below(path, name), FieldErrorKind::Invalid, detail)
            .with_value(value.clone())
    };
    for (name, value) in entries {
        let text = value.as_str();
        match (name.as_str(), text) {
            ("apiVersion" | "kind", None) => errors.push(invalid(name, value, "must be a string")),
            ("apiVersion" | "kind", Some("")) => {
                errors.push(invalid(name, value, "must not be empty"));
            }
            ("apiVersion", Some(text)) if text.matches('/').count() > 1 => {
                let detail = format!("unexpected GroupVersion string: {text}");
                errors.push(invalid(name, value, &detail));
            }
            ("kind", Some(text)) => {
                let problems = names::label_1035(&text.to_lowercase());
                if !problems.is_empty() {
                    let detail = format!(
                        "may have mixed case, but should otherwise match: {}",
                        problems.join(",")
                    );
                    errors.push(invalid(name, value, &detail));
                }
            }
            ("metadata", _) => errors.extend(embedded_metadata(value, &below(path, name))),
            _ => {}
        }
    }
}

fn embedded_metadata(metadata: &Value, path: &str) -> Vec<FieldError> {
    let text = |field: &str| metadata.get(field).and_then(Value::as_str).unwrap_or_default();
    let owner =
        MetadataOwner { name: names::path_segment, namespaced: !text("namespace").is_empty() };
    if !text("name").is_empty() {
        return validate_metadata(owner, None, metadata, path);
    }
    // An object inside of another one need not have a name.
    let mut named = metadata.clone();
    if let Some(fields) = named.as_object_mut() {
        fields.insert("name".to_owned(), json!("fakename"));
    }
    validate_metadata(owner, None, &named, path)
}

/// Why the metadata of an object, or of one inside of it, cannot even be read.
pub(super) fn malformed(schema: &Schema, edge: &Edge, value: &Value, path: &str) -> Option<String> {
    let node = schema.node(edge.node);
    match value {
        Value::Object(entries) => {
            let own = (node.embedded || path.is_empty())
                .then(|| malformed_own(schema, entries, path))
                .flatten();
            let map = node.map.as_ref();
            own.or_else(|| {
                entries.iter().filter(|(key, _)| !path.is_empty() || *key != "metadata").find_map(
                    |(key, value)| {
                        let edge = map?.fields.get(key).or(map?.additional.as_ref())?;
                        malformed(schema, edge, value, &below(path, key))
                    },
                )
            })
        }
        Value::Array(items) => {
            let list = node.list.as_ref()?;
            let each = |(index, item): (usize, &Value)| {
                malformed(schema, &list.items, item, &format!("{path}[{index}]"))
            };
            items.iter().enumerate().find_map(each)
        }
        _ => None,
    }
}

fn malformed_own(schema: &Schema, entries: &Map<String, Value>, path: &str) -> Option<String> {
    if !path.is_empty() {
        for name in ["apiVersion", "kind"] {
            if let Some(value) = entries.get(name).filter(|value| !value.is_string()) {
                let error = FieldError::new(below(path, name), FieldErrorKind::Invalid, "");
                let error = error.with_value(value.clone());
                return Some(format!("{error}: must be a string"));
            }
        }
    }
    let metadata = entries.get("metadata")?;
    let edge = schema.root_edge();
    let own = schema.node(edge.node).map.as_ref()?.fields.get("metadata")?;
    let without_null: Map<String, Value> = metadata
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(_, value)| !value.is_null())
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let validator = super::SchemaValidator { schema };
    let mut result = super::ValidationResult::default();
    let shown = if metadata.is_object() { Value::Object(without_null) } else { metadata.clone() };
    validator.node(own.node, &shown, "", None, &mut result);
    let wrong = |error: &&FieldError| {
        error.kind == FieldErrorKind::TypeInvalid
            && error.value.as_ref().is_some_and(|value| value != "null")
    };
    let error = result.errors.iter().find(wrong)?;
    let actual = match error.value.as_ref().and_then(Value::as_str)? {
        "boolean" => "bool",
        "integer" => "number",
        other => other,
    };
    let declared = error.detail.split("must be of type ").nth(1)?.split(':').next()?;
    let wanted = if declared == "integer" { "int64" } else { declared };
    let field = error.path.trim_start_matches('.').split(['.', '[']).next()?;
    let problem = match field {
        "" | "<nil>" => {
            format!("json: cannot unmarshal {actual} into Go value of type v1.ObjectMeta")
        }
        field => format!(
            "json: cannot unmarshal {actual} into Go struct field ObjectMeta.{field} of type {wanted}"
        ),
    };
    if path.is_empty() {
        return Some(problem);
    }
    let error = FieldError::new(below(path, "metadata"), FieldErrorKind::Invalid, problem);
    Some(error.with_value(metadata.clone()).to_string())
}
