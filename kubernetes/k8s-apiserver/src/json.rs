//! Reading and writing JSON values.
use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;

/// Encodes a document whose keys are all strings.
pub(crate) fn to_bytes(value: &impl Serialize) -> Bytes {
    serde_json::to_vec(value).expect("a document with string keys always encodes").into()
}

/// A string; empty if the value is missing or something else.
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The strings in a list; none if the value is missing or something else.
pub(crate) fn texts(value: &Value) -> impl Iterator<Item = &str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str)
}
