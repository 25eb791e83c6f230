//! Operators: arithmetic, order, equality.
//!
//! Upstream: github.com/google/cel-go/common/types/overflow.go: addInt64Checked
//! Upstream: github.com/google/cel-go/common/types/compare.go: compareDoubleInt
use std::cmp::Ordering;
use std::sync::Arc;

use super::{EvaluationResult, failed, time};
use crate::value::{compare, equal};
use crate::{EvaluationError, Value};

const OVERFLOW: &str = "integer overflow";
const UNSIGNED_OVERFLOW: &str = "unsigned integer overflow";

pub(super) fn call(function: &str, arguments: &[Value]) -> Option<EvaluationResult> {
    match (function, arguments) {
        ("!_", [Value::Bool(value)]) => Some(Ok(Value::Bool(!value))),
        ("-_", [Value::Int(value)]) => {
            Some(value.checked_neg().map(Value::Int).ok_or_else(|| error(OVERFLOW)))
        }
        ("-_", [Value::Double(value)]) => Some(Ok(Value::Double(-value))),
        ("_==_", [left, right]) => Some(Ok(Value::Bool(equal(left, right)))),
        ("_!=_", [left, right]) => Some(Ok(Value::Bool(!equal(left, right)))),
        ("_<_" | "_<=_" | "_>_" | "_>=_", [left, right]) => ordered(function, left, right),
        ("_+_", [left, right]) => add(left, right),
        ("_-_", [left, right]) => subtract(left, right),
        ("_*_" | "_/_" | "_%_", [left, right]) => multiply(function, left, right),
        _ => None,
    }
}

fn error(message: &str) -> EvaluationError {
    EvaluationError::new(message)
}

fn ordered(function: &str, left: &Value, right: &Value) -> Option<EvaluationResult> {
    let is_nan = |value: &Value| matches!(value, Value::Double(value) if value.is_nan());
    let is_number =
        |value: &Value| matches!(value, Value::Int(_) | Value::Uint(_) | Value::Double(_));
    if is_number(left) && is_number(right) && (is_nan(left) || is_nan(right)) {
        return failed("NaN values cannot be ordered");
    }
    let order = compare(left, right)?;
    Some(Ok(Value::Bool(match function {
        "_<_" => order == Ordering::Less,
        "_<=_" => order != Ordering::Greater,
        "_>_" => order == Ordering::Greater,
        _ => order != Ordering::Less,
    })))
}

fn add(left: &Value, right: &Value) -> Option<EvaluationResult> {
    Some(match (left, right) {
        (Value::Int(left), Value::Int(right)) => {
            left.checked_add(*right).map(Value::Int).ok_or_else(|| error(OVERFLOW))
        }
        (Value::Uint(left), Value::Uint(right)) => {
            left.checked_add(*right).map(Value::Uint).ok_or_else(|| error(UNSIGNED_OVERFLOW))
        }
        (Value::Double(left), Value::Double(right)) => Ok(Value::Double(left + right)),
        (Value::String(left), Value::String(right)) => Ok(Value::string(format!("{left}{right}"))),
        (Value::Bytes(left), Value::Bytes(right)) => {
            Ok(Value::Bytes([&left[..], &right[..]].concat().into()))
        }
        (Value::List(left), Value::List(right)) => Ok(Value::List(Arc::new(left.plus(right)))),
        (Value::Duration(left), Value::Duration(right)) => {
            left.checked_add(*right).map(Value::Duration).ok_or_else(|| error("duration overflow"))
        }
        (Value::Timestamp(at), Value::Duration(by))
        | (Value::Duration(by), Value::Timestamp(at)) => time::shift(*at, i128::from(*by)),
        _ => return None,
    })
}

fn subtract(left: &Value, right: &Value) -> Option<EvaluationResult> {
    Some(match (left, right) {
        (Value::Int(left), Value::Int(right)) => {
            left.checked_sub(*right).map(Value::Int).ok_or_else(|| error(OVERFLOW))
        }
        (Value::Uint(left), Value::Uint(right)) => {
            left.checked_sub(*right).map(Value::Uint).ok_or_else(|| error(UNSIGNED_OVERFLOW))
        }
        (Value::Double(left), Value::Double(right)) => Ok(Value::Double(left - right)),
        (Value::Duration(left), Value::Duration(right)) => {
            left.checked_sub(*right).map(Value::Duration).ok_or_else(|| error("duration overflow"))
        }
        (Value::Timestamp(at), Value::Duration(by)) => time::shift(*at, -i128::from(*by)),
        (Value::Timestamp(left), Value::Timestamp(right)) => i64::try_from(left - right)
            .map(Value::Duration)
            .map_err(|_| error("timestamp overflow")),
        _ => return None,
    })
}

fn multiply(function: &str, left: &Value, right: &Value) -> Option<EvaluationResult> {
    Some(match (function, left, right) {
        ("_*_", Value::Int(left), Value::Int(right)) => {
            left.checked_mul(*right).map(Value::Int).ok_or_else(|| error(OVERFLOW))
        }
        ("_*_", Value::Uint(left), Value::Uint(right)) => {
            left.checked_mul(*right).map(Value::Uint).ok_or_else(|| error(UNSIGNED_OVERFLOW))
        }
        ("_*_", Value::Double(left), Value::Double(right)) => Ok(Value::Double(left * right)),
        ("_/_", Value::Int(_), Value::Int(0)) | ("_/_", Value::Uint(_), Value::Uint(0)) => {
            Err(error("division by zero"))
        }
        ("_%_", Value::Int(_), Value::Int(0)) | ("_%_", Value::Uint(_), Value::Uint(0)) => {
            Err(error("modulus by zero"))
        }
        ("_/_", Value::Int(left), Value::Int(right)) => {
            left.checked_div(*right).map(Value::Int).ok_or_else(|| error(OVERFLOW))
        }
        ("_%_", Value::Int(left), Value::Int(right)) => {
            left.checked_rem(*right).map(Value::Int).ok_or_else(|| error(OVERFLOW))
        }
        ("_/_", Value::Uint(left), Value::Uint(right)) => Ok(Value::Uint(left / right)),
        ("_%_", Value::Uint(left), Value::Uint(right)) => Ok(Value::Uint(left % right)),
        ("_/_", Value::Double(left), Value::Double(right)) => Ok(Value::Double(left / right)),
        _ => return None,
    })
}
