//! Cells that are more than the value of a field.
use serde_json::Value;

pub(super) mod authorization;
pub(super) mod events;
pub(super) mod extensions;
pub(super) mod jobs;
pub(super) mod machines;
pub(super) mod network;
pub(super) mod scaling;
pub(super) mod services;
pub(super) mod workloads;

pub(super) const NONE: &str = "<none>";
pub(super) const UNSET: &str = "<unset>";
pub(super) const UNKNOWN: &str = "<unknown>";

pub(super) fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

pub(super) fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or_default()
}

pub(super) fn string(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

pub(super) fn joined<'a>(values: impl IntoIterator<Item = &'a str>) -> String {
    values.into_iter().collect::<Vec<_>>().join(",")
}

pub(super) fn or_none(text: String) -> Value {
    if text.is_empty() { NONE.into() } else { text.into() }
}

pub(super) fn none(_: &Value) -> Value {
    NONE.into()
}

pub(super) fn data_count(object: &Value) -> Value {
    let count = |field: &str| object[field].as_object().map_or(0, serde_json::Map::len);
    (count("data") + count("binaryData")).into()
}

pub(super) fn labels(labels: &Value) -> String {
    labels
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", string(value)))
        .collect::<Vec<_>>()
        .join(",")
}

pub(super) fn label_selector(selector: &Value) -> String {
    let mut parts = Vec::new();
    let plain = labels(&selector["matchLabels"]);
    if !plain.is_empty() {
        parts.push(plain);
    }
    for expression in items(&selector["matchExpressions"]) {
        let key = string(&expression["key"]);
        let values = joined(items(&expression["values"]).iter().map(string));
        parts.push(match string(&expression["operator"]) {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        });
    }
    parts.join(",")
}

pub(super) fn has_condition(object: &Value, condition_type: &str) -> bool {
    items(&object["status"]["conditions"])
        .iter()
        .any(|condition| condition["type"] == condition_type && condition["status"] == "True")
}
