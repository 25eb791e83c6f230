//! Whether a value fits its type as far as ownership goes.
use std::collections::BTreeSet;

use serde_json::Value;

use super::keys::item_element;
use crate::Schema;
use crate::fields::PathElement;
use crate::schema::node::{Edge, ListType, Relationship, Scalar, Shape};

/// What does not fit, each as `path: text`.
pub(crate) fn check(schema: &Schema, value: &Value) -> Vec<String> {
    let mut errors = Vec::new();
    walk(schema, &schema.root_edge(), value, &mut String::new(), &mut errors);
    errors
}

fn report(path: &str, text: &str, errors: &mut Vec<String>) {
    errors.push(if path.is_empty() { text.to_owned() } else { format!("{path}: {text}") });
}

fn walk(schema: &Schema, edge: &Edge, value: &Value, path: &mut String, errors: &mut Vec<String>) {
    match schema.shape(edge, Some(value)) {
        Shape::Nothing => report(path, "schema error: invalid atom: inlined", errors),
        Shape::Scalar(scalar) => {
            if let Some(text) = wrong_scalar(scalar, value) {
                report(path, &text, errors);
            }
        }
        Shape::Map(map, _) => {
            let entries = match value {
                Value::Null => return,
                Value::Object(entries) => entries,
                other => {
                    return report(
                        path,
                        &format!("expected map, got &{{{}}}", shown(other)),
                        errors,
                    );
                }
            };
            // As kube-apiserver does, of several unknown fields in one object one is named.
            let mut named_unknown = false;
            for (key, value) in entries {
                let length = path.len();
                path.push('.');
                path.push_str(key);
                match map.value(key) {
                    None if named_unknown => {}
                    None => {
                        named_unknown = true;
                        report(path, "field not declared in schema", errors);
                    }
                    Some(edge) => walk(schema, edge, value, path, errors),
                }
                path.truncate(length);
            }
        }
        Shape::List(list) => check_items(schema, list, value, path, errors),
    }
}

fn check_items(
    schema: &Schema,
    list: &ListType,
    value: &Value,
    path: &mut String,
    errors: &mut Vec<String>,
) {
    let items = match value {
        Value::Null => return,
        Value::Array(items) => items,
        other => {
            return report(path, &format!("expected list, got &{{{}}}", shown(other)), errors);
        }
    };
    let mut seen: BTreeSet<PathElement> = BTreeSet::new();
    for (index, item) in items.iter().enumerate() {
        let length = path.len();
        if list.relationship == Relationship::Atomic {
            path.push_str(&format!("[{index}]"));
        } else {
            match item_element(schema, list, item) {
                Err(text) => return report(path, &format!("element {index}: {text}"), errors),
                Ok(element) => {
                    let shown = element.to_string();
                    if !seen.insert(element) {
                        report(path, &format!("duplicate entries for key {shown}"), errors);
                    }
                    path.push_str(&shown);
                }
            }
        }
        walk(schema, &list.items, item, path, errors);
        path.truncate(length);
    }
}

fn wrong_scalar(scalar: Scalar, value: &Value) -> Option<String> {
    match (scalar, value) {
        (_, Value::Null)
        | (Scalar::Numeric, Value::Number(_))
        | (Scalar::String, Value::String(_))
        | (Scalar::Boolean, Value::Bool(_))
        | (Scalar::Untyped, Value::Number(_) | Value::String(_) | Value::Bool(_)) => None,
        (Scalar::Numeric, other) => {
            Some(format!("expected numeric (int or float), got {}", go_type(other)))
        }
        (Scalar::String, other) => Some(format!(
            "expected string, got &value.valueUnstructured{{Value:{}}}",
            quoted(other)
        )),
        (Scalar::Boolean, other) => Some(format!("expected boolean, got &{{{}}}", shown(other))),
        (Scalar::Untyped, other) => Some(format!("expected any scalar, got &{{{}}}", shown(other))),
    }
}

/// The Go type that kube-apiserver would name.
fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// A value as Go prints it by default.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(shown).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(map) => {
            let entries: Vec<String> =
                map.iter().map(|(key, value)| format!("{key}:{}", shown(value))).collect();
            format!("map[{}]", entries.join(" "))
        }
    }
}

/// A value as Go prints its source form.
fn quoted(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::String(text) => format!("{text:?}"),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(quoted).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Object(map) => {
            let entries: Vec<String> =
                map.iter().map(|(key, value)| format!("{key:?}:{}", quoted(value))).collect();
            format!("map[string]interface {{}}{{{}}}", entries.join(", "))
        }
    }
}
