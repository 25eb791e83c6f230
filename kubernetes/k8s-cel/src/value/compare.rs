//! Equality and order of values, across number types.
//!
//! Upstream: github.com/google/cel-go/common/types/util.go: Equal
//! Upstream: github.com/google/cel-go/common/types/compare.go: compareDoubleInt
use std::cmp::Ordering;

use super::Value;

/// Whether `==` holds. Values of different types differ, numbers excepted.
pub(crate) fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Null, Value::Null) => true,
        (Value::Bool(left), Value::Bool(right)) => left == right,
        (Value::String(left), Value::String(right)) => left == right,
        (Value::Bytes(left), Value::Bytes(right)) => left == right,
        (Value::Timestamp(left), Value::Timestamp(right)) => left == right,
        (Value::Duration(left), Value::Duration(right)) => left == right,
        (Value::List(left), Value::List(right)) => left.equals(right),
        (Value::Map(left), Value::Map(right)) => {
            left.entries.len() == right.entries.len()
                && left.entries.iter().all(|(key, value)| {
                    right.find(&key.value()).is_some_and(|other| equal(value, other))
                })
        }
        (Value::Optional(None), Value::Optional(None)) => true,
        (Value::Optional(Some(left)), Value::Optional(Some(right))) => equal(left, right),
        (Value::Type(left), Value::Type(right)) => left.runtime_name() == right.runtime_name(),
        (Value::Opaque(left), Value::Opaque(right)) => left.equals(right),
        (Value::Int(_) | Value::Uint(_) | Value::Double(_), _) => {
            numeric(left, right) == Some(Ordering::Equal)
        }
        _ => false,
    }
}

/// The order of two values; nothing if they have none.
pub(crate) fn compare(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Bool(left), Value::Bool(right)) => Some(left.cmp(right)),
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        (Value::Bytes(left), Value::Bytes(right)) => Some(left.cmp(right)),
        (Value::Timestamp(left), Value::Timestamp(right)) => Some(left.cmp(right)),
        (Value::Duration(left), Value::Duration(right)) => Some(left.cmp(right)),
        _ => numeric(left, right),
    }
}

fn numeric(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => Some(left.cmp(right)),
        (Value::Uint(left), Value::Uint(right)) => Some(left.cmp(right)),
        (Value::Int(left), Value::Uint(right)) => Some(i128::from(*left).cmp(&i128::from(*right))),
        (Value::Uint(left), Value::Int(right)) => Some(i128::from(*left).cmp(&i128::from(*right))),
        (Value::Double(left), Value::Double(right)) => left.partial_cmp(right),
        (Value::Double(left), Value::Int(right)) => with_integer(*left, i128::from(*right)),
        (Value::Double(left), Value::Uint(right)) => with_integer(*left, i128::from(*right)),
        (Value::Int(left), Value::Double(right)) => {
            with_integer(*right, i128::from(*left)).map(Ordering::reverse)
        }
        (Value::Uint(left), Value::Double(right)) => {
            with_integer(*right, i128::from(*left)).map(Ordering::reverse)
        }
        _ => None,
    }
}

/// The order of a double and an integer. Integers become doubles where the double is in their
/// range, as cel-go compares them.
fn with_integer(double: f64, integer: i128) -> Option<Ordering> {
    double.partial_cmp(&(integer as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_different_types_are_equal_and_other_values_are_not() {
        assert!(equal(&Value::Int(1), &Value::Double(1.0)));
        assert!(equal(&Value::Uint(1), &Value::Int(1)));
        assert!(!equal(&Value::Int(-1), &Value::Uint(u64::MAX)));
        assert!(!equal(&Value::Int(1), &Value::from("1")));
        assert!(!equal(&Value::Double(f64::NAN), &Value::Double(f64::NAN)));
    }
}
