//! The single value validations.
//!
//! Upstream: k8s.io/kube-openapi/pkg/validation/validate/values.go: Pattern
//! Upstream: k8s.io/kube-openapi/pkg/validation/validate/values.go: IsValueValidAgainstRange
use serde_json::{Map, Number, Value};

use k8s_cel::go::{float_text, regexp};

use super::{ValidationResult, below};
use crate::fields::values_equal;
use crate::schema::node::{DeclaredType, Node, Rules};
use crate::{FieldError, FieldErrorKind};

fn invalid(path: &str, value: Value, text: &str, out: &mut ValidationResult) {
    let at = if path.is_empty() { "<nil>" } else { path };
    let detail = format!("{path} in body {text}");
    out.push(FieldError::new(at, FieldErrorKind::Invalid, detail).with_value(value));
}

/// What a text or a number has to satisfy.
pub(super) fn scalar(rules: &Rules, value: &Value, path: &str, out: &mut ValidationResult) {
    match value {
        Value::String(text) => {
            let length = text.chars().count() as u64;
            if let Some(limit) = rules.max_length.filter(|limit| length > *limit) {
                let unit = if limit == 1 { "byte" } else { "bytes" };
                let detail = format!("may not be more than {limit} {unit}");
                out.push(FieldError::new(path, FieldErrorKind::TooLong, detail));
            } else if let Some(limit) = rules.min_length.filter(|limit| length < *limit) {
                let text = format!("should be at least {limit} chars long");
                invalid(path, value.clone(), &text, out);
            } else if let Some(text_pattern) = &rules.pattern {
                let compiled = rules.compiled.get_or_init(|| regexp::compile(text_pattern).ok());
                if compiled.as_ref().is_some_and(|regex| !regex.is_match(text)) {
                    invalid(path, value.clone(), &format!("should match '{text_pattern}'"), out);
                }
            }
        }
        Value::Number(number) => numeric(rules, number, value, path, out),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {}
    }
}

/// A bound as Go compares it: with whole numbers, the bound loses its fraction.
fn bound_for(number: &Number, bound: &Number) -> (std::cmp::Ordering, String) {
    let as_float = |number: &Number| number.as_f64().unwrap_or(f64::NAN);
    match number.as_i64() {
        Some(whole) => {
            let limit = bound.as_i64().unwrap_or_else(|| as_float(bound) as i64);
            (whole.cmp(&limit), limit.to_string())
        }
        None => {
            let limit = as_float(bound);
            let order = as_float(number).partial_cmp(&limit);
            (order.unwrap_or(std::cmp::Ordering::Equal), float_text(limit))
        }
    }
}

fn numeric(rules: &Rules, number: &Number, value: &Value, path: &str, out: &mut ValidationResult) {
    if let Some(factor) = &rules.multiple_of {
        multiple(number, factor, value, path, out);
    }
    if let Some(bound) = &rules.minimum {
        let (order, bound) = bound_for(number, bound);
        if order.is_lt() || (rules.exclusive_minimum && order.is_eq()) {
            let or_equal = if rules.exclusive_minimum { "" } else { " or equal to" };
            invalid(path, value.clone(), &format!("should be greater than{or_equal} {bound}"), out);
        }
    }
    if let Some(bound) = &rules.maximum {
        let (order, bound) = bound_for(number, bound);
        if order.is_gt() || (rules.exclusive_maximum && order.is_eq()) {
            let or_equal = if rules.exclusive_maximum { "" } else { " or equal to" };
            invalid(path, value.clone(), &format!("should be less than{or_equal} {bound}"), out);
        }
    }
}

/// How far a quotient may be from a whole number and still count as one.
const WHOLE_TOLERANCE: f64 = 1e-9;

fn multiple(
    number: &Number,
    factor: &Number,
    value: &Value,
    path: &str,
    out: &mut ValidationResult,
) {
    let as_float = |number: &Number| number.as_f64().unwrap_or(f64::NAN);
    let (fits, shown) = match number.as_i64() {
        Some(whole) => {
            let factor = factor.as_i64().unwrap_or_else(|| as_float(factor) as i64);
            (factor > 0 && whole % factor == 0, factor.to_string())
        }
        None => {
            let (number, factor) = (as_float(number), as_float(factor));
            let quotient = if factor < 1.0 { 1.0 / factor * number } else { number / factor };
            let off = (quotient - quotient.round()).abs();
            (factor > 0.0 && off <= WHOLE_TOLERANCE, float_text(factor))
        }
    };
    if shown.starts_with('-') || shown == "0" {
        let detail = format!("factor MultipleOf declared for {path} must be positive: {shown}");
        let error = FieldError::new(path, FieldErrorKind::Invalid, detail);
        out.push(error.with_shown(shown));
    } else if !fits {
        invalid(path, value.clone(), &format!("should be a multiple of {shown}"), out);
    }
}

/// The first whole number that 64 bits cannot hold.
const I64_LIMIT: f64 = 9_223_372_036_854_775_808.0;

/// Whether a number fits its format.
pub(super) fn range(node: &Node, number: &Number, path: &str, out: &mut ValidationResult) {
    let format = node.format.as_deref();
    let is_integer = node.declared == Some(DeclaredType::Integer);
    let fits = match (is_integer, format) {
        (true, Some("int32")) => number.as_i64().is_some_and(|value| i32::try_from(value).is_ok()),
        (true, _) => {
            let is_small = |value: f64| value.fract() == 0.0 && value.abs() < I64_LIMIT;
            number.as_i64().is_some() || number.as_f64().is_some_and(is_small)
        }
        (false, Some("float")) => {
            number.as_f64().is_some_and(|value| value.abs() <= f64::from(f32::MAX))
        }
        (false, _) => true,
    };
    if fits {
        return;
    }
    let kind = if is_integer { "integer" } else { "number" };
    let wanted = match format {
        Some(format) => format!("{kind} with format {format}"),
        None => format!("{kind} (default format)"),
    };
    out.push_general(format!("Checked value must be of type {wanted} in {path}"));
}

/// Whether the value is one of those enumerated.
pub(super) fn allowed(rules: &Rules, value: &Value, path: &str, out: &mut ValidationResult) {
    let Some(allowed) = &rules.allowed else { return };
    if allowed.iter().any(|other| values_equal(value, other) && !value.is_null()) {
        return;
    }
    // A null is listed among the values, yet compares to nothing there.
    if value.is_null() && allowed.iter().any(Value::is_null) {
        return;
    }
    let quoted: Vec<String> = allowed
        .iter()
        .map(|value| match value {
            Value::String(text) => format!("{text:?}"),
            other => format!("{:?}", other.to_string()),
        })
        .collect();
    let detail = format!("supported values: {}", quoted.join(", "));
    out.push(FieldError::new(path, FieldErrorKind::NotSupported, detail).with_value(value.clone()));
}

fn too_many(path: &str, actual: u64, limit: u64, out: &mut ValidationResult) {
    let unit = if limit == 1 { "item" } else { "items" };
    let detail = format!("must have at most {limit} {unit}");
    let at = if path.is_empty() { "<nil>" } else { path };
    out.push(FieldError::new(at, FieldErrorKind::TooMany, detail).with_value(actual.into()));
}

/// What a list has to satisfy as a whole.
pub(super) fn items(rules: &Rules, items: &[Value], path: &str, out: &mut ValidationResult) {
    let count = items.len() as u64;
    if let Some(limit) = rules.min_items.filter(|limit| count < *limit) {
        invalid(path, count.into(), &format!("should have at least {limit} items"), out);
    }
    if let Some(limit) = rules.max_items.filter(|limit| count > *limit) {
        too_many(path, count, limit, out);
    }
    let repeats = || items.iter().enumerate().any(|(index, item)| items[..index].contains(item));
    if rules.unique_items && repeats() {
        invalid(path, "".into(), "shouldn't contain duplicates", out);
    }
}

/// How many fields a map may have.
pub(super) fn properties(
    rules: &Rules,
    entries: &Map<String, Value>,
    path: &str,
    out: &mut ValidationResult,
) {
    let count = entries.len() as u64;
    if let Some(limit) = rules.min_properties.filter(|limit| count < *limit) {
        invalid(path, count.into(), &format!("should have at least {limit} properties"), out);
    }
    if let Some(limit) = rules.max_properties.filter(|limit| count > *limit) {
        too_many(path, count, limit, out);
    }
}

/// Whether the required fields are there.
pub(super) fn required(
    rules: &Rules,
    entries: &Map<String, Value>,
    null_is_missing: bool,
    path: &str,
    out: &mut ValidationResult,
) {
    let is_missing = |name: &&String| match entries.get(*name) {
        None => true,
        Some(value) => null_is_missing && value.is_null(),
    };
    for name in rules.required.iter().filter(is_missing) {
        out.push(FieldError::new(below(path, name), FieldErrorKind::Required, ""));
    }
}
