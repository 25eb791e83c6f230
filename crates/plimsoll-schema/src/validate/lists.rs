//! Uniqueness in sets and list maps, and the objects inside objects.
use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::below;
use crate::fields::PathValue;
use crate::schema::node::{Edge, Relationship};
use crate::{FieldError, FieldErrorKind, Schema};

/// Repeated items of sets and repeated keys of list maps.
pub(super) fn check_keys(schema: &Schema, value: &Value, errors: &mut Vec<FieldError>) {
    keys(schema, &schema.root_edge(), value, "", errors);
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

/// Embedded resources say what they are.
pub(super) fn check_embedded(schema: &Schema, value: &Value, errors: &mut Vec<FieldError>) {
    embedded(schema, &schema.root_edge(), value, "", errors);
}

fn embedded(schema: &Schema, edge: &Edge, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let node = schema.node(edge.node);
    if node.embedded && value.is_object() {
        for name in ["apiVersion", "kind"] {
            let text = value.get(name).cloned().unwrap_or_else(|| json!(""));
            if text == json!("") {
                let at = below(path, name);
                errors.push(FieldError::new(at, FieldErrorKind::Required, "must not be empty"));
            }
        }
    }
    match value {
        Value::Object(entries) => {
            let Some(map) = &node.map else { return };
            for (key, value) in entries {
                if let Some(edge) = map.fields.get(key).or(map.additional.as_ref()) {
                    embedded(schema, edge, value, &below(path, key), errors);
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
