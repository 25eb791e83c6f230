//! The one form that kube-apiserver gives to values that may be written in several.
//!
//! Upstream: k8s.io/apimachinery/pkg/api/resource/quantity.go: CanonicalizeBytes
//! Upstream: k8s.io/apimachinery/pkg/apis/meta/v1/time.go: UnmarshalJSON
//! Upstream: k8s.io/apimachinery/pkg/apis/meta/v1/micro_time.go: UnmarshalJSON
#[cfg(test)]
mod tests;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::Value;

use crate::quantity::{MALFORMED, Quantity};
use crate::schema::node::{Edge, MICRO_TIME, QUANTITY};
use crate::{FieldError, FieldErrorKind, Schema};

/// Gives quantities and times in an object of a built-in kind their canonical form.
///
/// # Errors
/// kube-apiserver's message when a quantity, a time or base64 data is malformed.
pub fn canonicalize(schema: &Schema, value: &mut Value) -> Result<(), String> {
    canonicalize_fields(schema, value).map_err(|error| error.detail)
}

/// [`canonicalize`] for callers that want to know which field is malformed.
///
/// # Errors
/// The first malformed field, with kube-apiserver's message as the detail.
pub fn canonicalize_fields(schema: &Schema, value: &mut Value) -> Result<(), FieldError> {
    walk(schema, &schema.root_edge(), value)
}

fn walk(schema: &Schema, edge: &Edge, value: &mut Value) -> Result<(), FieldError> {
    let node = schema.node(edge.node);
    match value {
        Value::Object(entries) => {
            let Some(map) = &node.map else { return Ok(()) };
            for (key, value) in entries {
                if let Some(edge) = map.fields.get(key).or(map.additional.as_ref()) {
                    walk(schema, edge, value).map_err(|error| error.within(key))?;
                }
            }
        }
        Value::Array(items) => {
            let Some(list) = &node.list else { return Ok(()) };
            for (index, item) in items.iter_mut().enumerate() {
                walk(schema, &list.items, item)
                    .map_err(|error| error.within(&format!("[{index}]")))?;
            }
        }
        Value::String(_) | Value::Number(_) => {
            if let Some(format) = node.format.as_deref() {
                scalar(format, value)
                    .map_err(|detail| FieldError::new("", FieldErrorKind::Invalid, detail))?;
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
    Ok(())
}

fn scalar(format: &str, value: &mut Value) -> Result<(), String> {
    match (format, &*value) {
        (QUANTITY, given) => {
            let text = given.as_str().map_or_else(|| given.to_string(), str::to_owned);
            let quantity = Quantity::parse(&text).ok_or(MALFORMED)?;
            *value = quantity.to_string().into();
        }
        ("date-time" | MICRO_TIME, Value::String(text)) if !text.is_empty() => {
            *value = time(text, format == MICRO_TIME)?.into();
        }
        ("byte", Value::String(text)) => {
            // Line breaks in encoded data are skipped, and gone afterwards.
            let joined: String = text.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
            if let Err(error) = STANDARD.decode(&joined) {
                return Err(format!(
                    "illegal base64 data at input byte {}",
                    position(&error, text)
                ));
            }
            if joined.len() != text.len() {
                *value = joined.into();
            }
        }
        _ => {}
    }
    Ok(())
}

fn position(error: &base64::DecodeError, text: &str) -> usize {
    match error {
        base64::DecodeError::InvalidByte(offset, _)
        | base64::DecodeError::InvalidLastSymbol { offset, .. } => *offset,
        _ => text.len() - text.len() % 4,
    }
}

fn time(text: &str, micro: bool) -> Result<String, String> {
    let layout =
        if micro { "2006-01-02T15:04:05.000000Z07:00" } else { "2006-01-02T15:04:05Z07:00" };
    if micro {
        check_micro(text, layout)?;
    }
    let has_date = text.as_bytes().get(10).is_some_and(|byte| *byte == b'T');
    let time: Timestamp = text.parse().ok().filter(|_| has_date).ok_or_else(|| {
        format!("parsing time {text:?} as {layout:?}: cannot parse {text:?} as \"2006\"")
    })?;
    let seconds = time.strftime("%Y-%m-%dT%H:%M:%S");
    if micro {
        return Ok(format!("{seconds}.{:06}Z", time.subsec_nanosecond() / 1000));
    }
    Ok(format!("{seconds}Z"))
}

/// Times in microseconds have six digits after the point, no fewer and no more.
fn check_micro(text: &str, layout: &str) -> Result<(), String> {
    const SECONDS_LEN: usize = "2006-01-02T15:04:05".len();
    let Some(rest) = text.get(SECONDS_LEN..) else { return Ok(()) };
    let digits = rest.strip_prefix('.').unwrap_or_default();
    let count = digits.bytes().take_while(u8::is_ascii_digit).count();
    let (found, wanted) = match count {
        6 => return Ok(()),
        0..6 => (rest, ".000000"),
        _ => (&digits[6..], "Z07:00"),
    };
    Err(format!("parsing time {text:?} as {layout:?}: cannot parse {found:?} as {wanted:?}"))
}
