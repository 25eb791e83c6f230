//! Conversions between types: `int('1')`, `string(1.5)`, `type(x)`.
//!
//! Upstream: github.com/google/cel-go/common/types/int.go: ConvertToType
//! Upstream: github.com/google/cel-go/common/types/double.go: ConvertToType
//! Upstream: github.com/google/cel-go/common/types/string.go: ConvertToType
//! Upstream: github.com/google/cel-go/common/types/timestamp.go: ConvertToType
use super::{EvaluationResult, failed};
use crate::go::parse_duration;
use crate::types::Type;
use crate::value::opaque::Opaque;
use crate::value::{display_text, time};
use crate::{EvaluationError, Value};

pub(super) fn call(function: &str, arguments: &[Value]) -> Option<EvaluationResult> {
    let [value] = arguments else { return None };
    match function {
        "dyn" => Some(Ok(value.clone())),
        "type" => Some(Ok(Value::Type(value.type_of()))),
        "bool" => boolean(value),
        "bytes" => match value {
            Value::Bytes(_) => Some(Ok(value.clone())),
            Value::String(text) => Some(Ok(Value::Bytes(text.as_bytes().into()))),
            _ => None,
        },
        "double" => double(value),
        "int" => integer(value),
        "uint" => unsigned(value),
        "string" => text(value),
        "duration" => match value {
            Value::Duration(_) => Some(Ok(value.clone())),
            Value::String(text) => Some(
                parse_duration(text)
                    .map(Value::Duration)
                    .ok_or_else(|| conversion_error(&Type::String, &Type::Duration)),
            ),
            _ => None,
        },
        "timestamp" => match value {
            Value::Timestamp(_) => Some(Ok(value.clone())),
            Value::String(text) => Some(
                time::parse_timestamp(text)
                    .map(Value::Timestamp)
                    .ok_or_else(|| conversion_error(&Type::String, &Type::Timestamp)),
            ),
            Value::Int(seconds) => Some(
                time::from_seconds(*seconds)
                    .map(Value::Timestamp)
                    .ok_or_else(|| EvaluationError::new("timestamp overflow")),
            ),
            _ => None,
        },
        _ => None,
    }
}

fn conversion_error(from: &Type, to: &Type) -> EvaluationError {
    let (from, to) = (from.runtime_name(), to.runtime_name());
    EvaluationError::new(format!("type conversion error from '{from}' to '{to}'"))
}

fn boolean(value: &Value) -> Option<EvaluationResult> {
    match value {
        Value::Bool(_) => Some(Ok(value.clone())),
        Value::String(text) => Some(match &**text {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Value::Bool(true)),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Value::Bool(false)),
            _ => Err(conversion_error(&Type::String, &Type::Bool)),
        }),
        _ => None,
    }
}

fn double(value: &Value) -> Option<EvaluationResult> {
    Some(match value {
        Value::Double(_) => Ok(value.clone()),
        Value::Int(value) => Ok(Value::Double(*value as f64)),
        Value::Uint(value) => Ok(Value::Double(*value as f64)),
        Value::String(text) => match parse_double(text) {
            Some(value) => Ok(Value::Double(value)),
            None => Err(conversion_error(&Type::String, &Type::Double)),
        },
        _ => return None,
    })
}

/// A number as Go's `strconv` reads it.
fn parse_double(text: &str) -> Option<f64> {
    let lower = text.to_ascii_lowercase();
    let value: f64 = lower.parse().ok()?;
    let names_infinity = lower.trim_start_matches(['+', '-']).starts_with("inf");
    (value.is_finite() || value.is_nan() || names_infinity).then_some(value)
}

fn integer(value: &Value) -> Option<EvaluationResult> {
    let overflow = || EvaluationError::new("integer overflow");
    Some(match value {
        Value::Int(_) => Ok(value.clone()),
        Value::Uint(value) => i64::try_from(*value).map(Value::Int).map_err(|_| overflow()),
        Value::Double(value) => {
            let limit = i64::MAX as f64;
            if value.is_nan() || *value <= -limit || *value >= limit {
                return failed("integer overflow");
            }
            Ok(Value::Int(*value as i64))
        }
        Value::String(text) => {
            text.parse().map(Value::Int).map_err(|_| conversion_error(&Type::String, &Type::Int))
        }
        Value::Duration(nanoseconds) => Ok(Value::Int(*nanoseconds)),
        Value::Timestamp(at) => Ok(Value::Int(at.div_euclid(1_000_000_000) as i64)),
        _ => return None,
    })
}

fn unsigned(value: &Value) -> Option<EvaluationResult> {
    let overflow = || EvaluationError::new("unsigned integer overflow");
    Some(match value {
        Value::Uint(_) => Ok(value.clone()),
        Value::Int(value) => u64::try_from(*value).map(Value::Uint).map_err(|_| overflow()),
        Value::Double(value) => {
            if value.is_nan() || *value < 0.0 || *value >= u64::MAX as f64 {
                return failed("unsigned integer overflow");
            }
            Ok(Value::Uint(*value as u64))
        }
        Value::String(text) if !text.starts_with('+') => {
            text.parse().map(Value::Uint).map_err(|_| conversion_error(&Type::String, &Type::Uint))
        }
        Value::String(_) => Err(conversion_error(&Type::String, &Type::Uint)),
        _ => return None,
    })
}

fn text(value: &Value) -> Option<EvaluationResult> {
    Some(match value {
        Value::String(_) => Ok(value.clone()),
        Value::Bytes(bytes) => std::str::from_utf8(bytes)
            .map(Value::from)
            .map_err(|_| EvaluationError::new("invalid UTF-8 in bytes, cannot convert to string")),
        Value::Bool(_)
        | Value::Int(_)
        | Value::Uint(_)
        | Value::Double(_)
        | Value::Timestamp(_)
        | Value::Duration(_) => Ok(Value::string(display_text(value))),
        Value::Opaque(of) => match &**of {
            Opaque::Ip(address) => Ok(Value::string(address.to_string())),
            Opaque::Cidr(range) => Ok(Value::string(range.to_string())),
            _ => return None,
        },
        _ => return None,
    })
}
