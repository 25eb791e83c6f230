//! Quantities such as `100m` and `1Gi`.
//!
//! Upstream: k8s.io/apiserver/pkg/cel/library/quantity.go: Quantity
//! Upstream: k8s.io/apimachinery/pkg/api/resource/quantity.go: ParseQuantity
use std::cmp::Ordering;

use super::{EvaluationResult, failed};
use crate::value::opaque::{Opaque, Quantity};
use crate::{EvaluationError, Value};

const UNIT: i128 = 1_000_000_000;
const WRONG_FORMAT: &str = "quantities must match the regular expression \
                            '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

pub(super) fn call(function: &str, arguments: &[Value]) -> Option<EvaluationResult> {
    match (function, arguments) {
        ("quantity", [Value::String(text)]) => Some(
            parse(text)
                .map(|quantity| Opaque::Quantity(quantity).into_value())
                .map_err(EvaluationError::new),
        ),
        ("isQuantity", [Value::String(text)]) => Some(Ok(Value::Bool(parse(text).is_ok()))),
        (_, [Value::Opaque(of), rest @ ..]) => match &**of {
            Opaque::Quantity(quantity) => on_quantity(function, *quantity, rest),
            _ => None,
        },
        _ => None,
    }
}

fn on_quantity(function: &str, quantity: Quantity, rest: &[Value]) -> Option<EvaluationResult> {
    let other = match rest {
        [] => return unary(function, quantity),
        [Value::Int(value)] => Quantity { nano: i128::from(*value) * UNIT, whole: true },
        [Value::Opaque(of)] => match &**of {
            Opaque::Quantity(other) => *other,
            _ => return None,
        },
        _ => return None,
    };
    let is_number = matches!(rest, [Value::Int(_)]);
    let order = quantity.nano.cmp(&other.nano);
    let sum = |nano: i128| Opaque::Quantity(Quantity { nano, whole: nano % UNIT == 0 });
    match function {
        "add" => Some(Ok(sum(quantity.nano.saturating_add(other.nano)).into_value())),
        "sub" => Some(Ok(sum(quantity.nano.saturating_sub(other.nano)).into_value())),
        "isGreaterThan" if !is_number => Some(Ok(Value::Bool(order == Ordering::Greater))),
        "isLessThan" if !is_number => Some(Ok(Value::Bool(order == Ordering::Less))),
        "compareTo" if !is_number => Some(Ok(Value::Int(order as i64))),
        _ => None,
    }
}

fn unary(function: &str, quantity: Quantity) -> Option<EvaluationResult> {
    let integer = i64::try_from(quantity.nano / UNIT)
        .ok()
        .filter(|_| quantity.whole && quantity.nano % UNIT == 0);
    match function {
        "sign" => Some(Ok(Value::Int(quantity.nano.signum() as i64))),
        "isInteger" => Some(Ok(Value::Bool(integer.is_some()))),
        "asInteger" => match integer {
            Some(value) => Some(Ok(Value::Int(value))),
            None => failed("cannot convert value to integer"),
        },
        "asApproximateFloat" => Some(Ok(Value::Double(quantity.nano as f64 / UNIT as f64))),
        _ => None,
    }
}

/// Reads a quantity as apimachinery does.
///
/// Upstream: k8s.io/apimachinery/pkg/api/resource/quantity.go: parseQuantityString
fn parse(text: &str) -> Result<Quantity, String> {
    if text.is_empty() {
        return Err(WRONG_FORMAT.to_owned());
    }
    let (negative, rest) = match text.as_bytes()[0] {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let whole_end = rest.bytes().take_while(u8::is_ascii_digit).count();
    let whole = &rest[..whole_end];
    let mut suffix = &rest[whole_end..];
    let mut fraction = "";
    if let Some(after) = suffix.strip_prefix('.') {
        let end = after.bytes().take_while(u8::is_ascii_digit).count();
        fraction = &after[..end];
        suffix = &after[end..];
    }
    if whole.is_empty() && fraction.is_empty() {
        return Err(WRONG_FORMAT.to_owned());
    }
    let (base, exponent) = unit(suffix).ok_or_else(|| {
        let shaped =
            suffix.bytes().all(|byte| byte.is_ascii_digit() || b"eEinumkKMGTP+-".contains(&byte));
        if shaped { "unable to parse quantity's suffix" } else { WRONG_FORMAT }.to_owned()
    })?;
    let digits: i128 = format!("{whole}{fraction}").parse().unwrap_or(i128::MAX);
    let scaled = scale(digits, fraction.len() as i32, base, exponent);
    let nano = scaled.unwrap_or(i128::MAX);
    let places = fraction.len() as i32;
    let whole = scaled.is_some() && if base == 10 { exponent >= places } else { places == 0 };
    Ok(Quantity { nano: if negative { -nano } else { nano }, whole })
}

/// What a suffix multiplies by: a base and its exponent.
fn unit(suffix: &str) -> Option<(i128, i32)> {
    Some(match suffix {
        "" => (10, 0),
        "n" => (10, -9),
        "u" => (10, -6),
        "m" => (10, -3),
        "k" => (10, 3),
        "M" => (10, 6),
        "G" => (10, 9),
        "T" => (10, 12),
        "P" => (10, 15),
        "E" => (10, 18),
        "Ki" => (2, 10),
        "Mi" => (2, 20),
        "Gi" => (2, 30),
        "Ti" => (2, 40),
        "Pi" => (2, 50),
        "Ei" => (2, 60),
        _ => (10, suffix.strip_prefix(['e', 'E'])?.parse().ok()?),
    })
}

/// `digits` / 10^`places` * base^exponent in thousand-millionths, rounded up; nothing
/// if that is too large.
fn scale(digits: i128, places: i32, base: i128, exponent: i32) -> Option<i128> {
    let mut value = digits;
    let mut decimal = 9_i32.checked_sub(places)?;
    if base == 2 {
        value = value.checked_mul(base.checked_pow(exponent as u32)?)?;
    } else {
        decimal = decimal.checked_add(exponent)?;
    }
    if value == 0 {
        return Some(0);
    }
    if decimal >= 0 {
        return value.checked_mul(10_i128.checked_pow(decimal as u32)?);
    }
    let Some(divisor) = 10_i128.checked_pow(decimal.unsigned_abs()) else {
        return Some(1);
    };
    let exact = value % divisor == 0;
    Some(value / divisor + i128::from(!exact))
}
