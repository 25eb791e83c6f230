//! Whether a value fits its type, as far as field ownership depends on it.
//!
//! Upstream: sigs.k8s.io/structured-merge-diff/v6/typed/validate.go: validatingObjectWalker
use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::keys::item_element;
use crate::Schema;
use crate::fields::PathElement;
use crate::go::{go_text, go_type};
use crate::schema::node::{Edge, ListType, MapType, Relationship, Scalar, Shape};

/// What does not fit, each as `path: text`.
pub(crate) fn check(schema: &Schema, value: &Value) -> Vec<String> {
    let mut checker = TypeChecker { schema, allows_repeats: false, errors: Vec::new() };
    checker.walk(&schema.root_edge(), value, &mut String::new());
    checker.errors
}

/// Like [`check`], for an object that is there: sets and list maps may have items more than once.
pub(crate) fn check_live(schema: &Schema, value: &Value) -> Vec<String> {
    let mut checker = TypeChecker { schema, allows_repeats: true, errors: Vec::new() };
    checker.walk(&schema.root_edge(), value, &mut String::new());
    checker.errors
}

/// What does not fit, as one message.
///
/// Upstream: sigs.k8s.io/structured-merge-diff/v6/typed/helpers.go: ValidationErrors
pub(crate) fn defect_list(defects: &[String]) -> String {
    match defects {
        [only] => only.clone(),
        all => format!("errors:\n  {}", all.join("\n  ")),
    }
}

struct TypeChecker<'a> {
    schema: &'a Schema,
    allows_repeats: bool,
    errors: Vec<String>,
}

impl TypeChecker<'_> {
    fn report(&mut self, path: &str, text: &str) {
        let text = if path.is_empty() { text.to_owned() } else { format!("{path}: {text}") };
        self.errors.push(text);
    }

    fn walk(&mut self, edge: &Edge, value: &Value, path: &mut String) {
        let schema = self.schema;
        match schema.shape(edge, Some(value)) {
            Shape::Nothing => self.report(path, "schema error: invalid atom: inlined"),
            Shape::Scalar(scalar) => {
                if let Some(text) = wrong_scalar(scalar, value) {
                    self.report(path, &text);
                }
            }
            Shape::Map(map, _) => match value {
                Value::Null => {}
                Value::Object(entries) => self.entries(map, entries, path),
                other => {
                    self.report(path, &format!("expected map, got &{{{}}}", go_text(other)));
                }
            },
            Shape::List(list) => self.items(list, value, path),
        }
    }

    fn entries(&mut self, map: &MapType, entries: &Map<String, Value>, path: &mut String) {
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
                    self.report(path, "field not declared in schema");
                }
                Some(edge) => self.walk(edge, value, path),
            }
            path.truncate(length);
        }
    }

    fn items(&mut self, list: &ListType, value: &Value, path: &mut String) {
        let items = match value {
            Value::Null => return,
            Value::Array(items) => items,
            other => {
                let text = format!("expected list, got &{{{}}}", go_text(other));
                return self.report(path, &text);
            }
        };
        let mut seen: BTreeSet<PathElement> = BTreeSet::new();
        for (index, item) in items.iter().enumerate() {
            let length = path.len();
            if list.relationship == Relationship::Atomic {
                path.push_str(&format!("[{index}]"));
            } else {
                match item_element(self.schema, list, item) {
                    Err(text) => return self.report(path, &format!("element {index}: {text}")),
                    Ok(element) => {
                        let shown = element.to_string();
                        if !seen.insert(element) && !self.allows_repeats {
                            self.report(path, &format!("duplicate entries for key {shown}"));
                        }
                        path.push_str(&shown);
                    }
                }
            }
            self.walk(&list.items, item, path);
            path.truncate(length);
        }
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
        (Scalar::Boolean, other) => Some(format!("expected boolean, got &{{{}}}", go_text(other))),
        (Scalar::Untyped, other) => {
            Some(format!("expected any scalar, got &{{{}}}", go_text(other)))
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
