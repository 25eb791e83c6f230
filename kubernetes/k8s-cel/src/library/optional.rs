//! Values that may be absent.
//!
//! Upstream: github.com/google/cel-go/cel/library.go: OptionalTypes
use std::sync::Arc;

use super::{EvaluationResult, failed};
use crate::Value;
use crate::value::display_text;

pub(super) fn call(function: &str, arguments: &[Value]) -> Option<EvaluationResult> {
    let present = |value: &Value| Some(Ok(Value::Optional(Some(Arc::new(value.clone())))));
    match (function, arguments) {
        ("optional.none", []) => Some(Ok(Value::Optional(None))),
        ("optional.of", [value]) => present(value),
        ("optional.ofNonZeroValue", [value]) => {
            if is_zero(value) {
                Some(Ok(Value::Optional(None)))
            } else {
                present(value)
            }
        }
        ("hasValue", [Value::Optional(value)]) => Some(Ok(Value::Bool(value.is_some()))),
        ("value", [Value::Optional(Some(value))]) => Some(Ok((**value).clone())),
        ("value", [Value::Optional(None)]) => failed("optional.none() dereference"),
        ("optional.unwrap" | "unwrapOpt", [Value::List(list)]) => {
            let mut items = Vec::new();
            for item in &list.items {
                match item {
                    Value::Optional(Some(value)) => items.push((**value).clone()),
                    Value::Optional(None) => {}
                    other => {
                        let shown = display_text(other);
                        return failed(format!("value {shown} is not optional"));
                    }
                }
            }
            Some(Ok(Value::list(items)))
        }
        _ => None,
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null | Value::Optional(None) => true,
        Value::Bool(value) => !value,
        Value::Int(value) => *value == 0,
        Value::Uint(value) => *value == 0,
        Value::Double(value) => *value == 0.0,
        Value::String(text) => text.is_empty(),
        Value::Bytes(bytes) => bytes.is_empty(),
        Value::Duration(value) => *value == 0,
        Value::List(list) => list.items.is_empty(),
        Value::Map(map) => map.entries.is_empty(),
        Value::Optional(Some(value)) => is_zero(value),
        Value::Timestamp(_) | Value::Type(_) | Value::Opaque(_) | Value::Host(_) => false,
    }
}
