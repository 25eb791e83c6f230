//! Values as messages show them.
//!
//! Upstream: github.com/google/cel-go/common/types/format.go: Format
use super::{Value, time};
use crate::go::float_text;

/// A value as messages show it, and as `string()` converts those that it does.
pub(crate) fn display_text(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => value.to_string(),
        Value::Double(value) => float_text(*value),
        Value::String(text) => text.to_string(),
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::Timestamp(at) => time::timestamp_text(*at),
        Value::Duration(nanoseconds) => time::duration_text(*nanoseconds),
        Value::List(list) => {
            let items: Vec<String> = list.items.iter().map(display_text).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Map(map) => {
            let entries: Vec<String> = map
                .entries
                .iter()
                .map(|(key, value)| format!("{key}: {}", display_text(value)))
                .collect();
            format!("{{{}}}", entries.join(", "))
        }
        Value::Optional(None) => "optional.none()".to_owned(),
        Value::Optional(Some(value)) => format!("optional.of({})", display_text(value)),
        Value::Type(of) => of.runtime_name().to_owned(),
        Value::Opaque(_) | Value::Host(_) => value.type_name(),
    }
}
