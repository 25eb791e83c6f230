//! Label and field selectors.
use std::collections::BTreeMap;

use serde_json::Value;

mod fields;
mod labels;

pub(crate) use fields::FieldSelector;
pub(crate) use labels::LabelSelector;

/// The value of a plain dotted path, as field selectors compare it.
pub(crate) fn field_text(object: &Value, path: &str) -> String {
    let mut at = object;
    for segment in path.split('.') {
        match at.get(segment) {
            Some(below) => at = below,
            None => return String::new(),
        }
    }
    match at {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        Value::Bool(_) | Value::Number(_) => at.to_string(),
        Value::Array(_) | Value::Object(_) => String::new(),
    }
}

/// A selector that holds for objects with all of these labels.
pub(crate) fn format_labels(labels: &BTreeMap<String, String>) -> String {
    labels.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",")
}
