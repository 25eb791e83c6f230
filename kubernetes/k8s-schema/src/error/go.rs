//! Values as Go prints them in messages.
//!
//! Upstream: k8s.io/apimachinery/pkg/util/validation/field/errors.go: ErrorBody
use std::fmt::Write as _;

use k8s_cel::go::{float_text, quote};
use serde_json::{Number, Value};

/// A value in a field error: texts quoted, numbers plain, everything else as Go's compact JSON.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => quote(text),
        Value::Number(number) => self::number(number),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => json(value),
    }
}

/// Compact JSON with sorted keys, in which `<`, `>` and `&` are escaped.
pub(crate) fn json(value: &Value) -> String {
    let text = value.to_string();
    if !text.contains(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        return text;
    }
    text.chars().fold(String::with_capacity(text.len()), |mut out, character| {
        match character {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(character));
            }
            other => out.push(other),
        }
        out
    })
}

/// A number: integers as they are, others as [`float_text`].
pub(crate) fn number(number: &Number) -> String {
    match number.as_f64() {
        Some(value) if number.is_f64() => float_text(value),
        _ => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_objects_are_escaped() {
        assert_eq!(
            shown(&serde_json::json!({"b": "<&>", "a": 1})),
            "{\"a\":1,\"b\":\"\\u003c\\u0026\\u003e\"}"
        );
    }
}
