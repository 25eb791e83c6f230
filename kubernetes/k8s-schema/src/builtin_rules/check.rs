//! The checks that rules consist of, and the errors that they report.
use std::net::IpAddr;

use serde_json::Value;

use crate::metadata::labels;
use crate::{FieldError, FieldErrorKind, names};

/// Fields and what they have to satisfy, in order. A field called `` is the value itself.
pub(super) type Rules = &'static [(&'static str, Check)];

/// What is wrong with a text; empty if nothing is.
pub(super) type Format = fn(&str) -> Vec<String>;

/// A function that checks a value and reports errors at its path.
pub(super) type Rule = fn(&Value, &str, &mut Vec<FieldError>);

/// What a field has to satisfy.
pub(super) enum Check {
    /// It is there and not empty.
    Required,
    /// The same, with a detail in the message.
    RequiredWith(&'static str),
    /// A text that is not empty has no problems.
    Text(Format),
    /// A text, if there is one, is one of these.
    OneOf(&'static [&'static str]),
    /// It is there and one of these.
    Exactly(&'static [&'static str]),
    /// A number, if there is one, is not negative.
    NonNegative,
    /// A number, if there is one, is within these bounds.
    Between(i64, i64, &'static str),
    /// A label selector.
    Selector,
    /// A map of labels.
    Labels,
    /// Each item of a list follows these rules.
    Items(Rules),
    /// The fields of an object, if there is one, follow these rules.
    Fields(Rules),
    /// The fields of an object follow these rules, and no object is an empty one.
    Struct(Rules),
    /// Whatever the function checks.
    With(Rule),
}

pub(super) const PORT_RANGE: &str = "must be between 1 and 65535, inclusive";
pub(super) const NOT_NEGATIVE: &str = "must be greater than or equal to 0";
pub(super) const PORT: Check = Check::Between(1, 65_535, PORT_RANGE);

pub(super) fn error(path: impl Into<String>, kind: FieldErrorKind, detail: &str) -> FieldError {
    FieldError::new(path, kind, detail)
}

pub(super) fn required(path: impl Into<String>, detail: &str) -> FieldError {
    error(path, FieldErrorKind::Required, detail)
}

pub(super) fn forbidden(path: impl Into<String>, detail: &str) -> FieldError {
    error(path, FieldErrorKind::Forbidden, detail)
}

pub(super) fn invalid(path: impl Into<String>, value: &Value, detail: &str) -> FieldError {
    error(path, FieldErrorKind::Invalid, detail).with_value(value.clone())
}

pub(super) fn duplicate(path: impl Into<String>, value: &Value) -> FieldError {
    error(path, FieldErrorKind::Duplicate, "").with_value(value.clone())
}

/// Upstream: k8s.io/apimachinery/pkg/util/validation/field/errors.go: NotSupported
pub(super) fn not_supported(path: &str, value: &Value, supported: &[&str]) -> FieldError {
    let listed: Vec<String> = supported.iter().map(|value| format!("{value:?}")).collect();
    let detail = format!("supported values: {}", listed.join(", "));
    FieldError::new(path, FieldErrorKind::NotSupported, detail).with_value(value.clone())
}

/// An error for each problem.
pub(super) fn problems(
    path: &str,
    value: &Value,
    problems: Vec<String>,
    errors: &mut Vec<FieldError>,
) {
    errors.extend(problems.into_iter().map(|problem| invalid(path, value, &problem)));
}

pub(super) fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

pub(super) fn items<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value[field].as_array().map_or(&[], Vec::as_slice)
}

pub(super) fn below(path: &str, field: &str) -> String {
    match (path, field) {
        (path, "") => path.to_owned(),
        ("", field) => field.to_owned(),
        (path, field) => format!("{path}.{field}"),
    }
}

/// Whether a value is the zero value of its Go type, which an absent field has too.
pub(super) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Number(number) => number.as_i64() == Some(0),
        Value::Bool(truth) => !truth,
    }
}

/// Checks a value by rules.
pub(super) fn apply(rules: Rules, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for (field, check) in rules {
        let found = if field.is_empty() { value } else { &value[*field] };
        check.apply(found, &below(path, field), errors);
    }
}

impl Check {
    fn apply(&self, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
        match self {
            Self::Required if is_empty(value) => errors.push(required(path, "")),
            Self::RequiredWith(detail) if is_empty(value) => errors.push(required(path, detail)),
            Self::Required | Self::RequiredWith(_) => {}
            Self::Text(rule) => {
                if let Some(text) = value.as_str().filter(|text| !text.is_empty()) {
                    problems(path, value, rule(text), errors);
                }
            }
            Self::OneOf(supported) => {
                let text = value.as_str().unwrap_or_default();
                if !text.is_empty() && !supported.contains(&text) {
                    errors.push(not_supported(path, value, supported));
                }
            }
            Self::Exactly(supported) => {
                let text = value.as_str().unwrap_or_default();
                if !supported.contains(&text) {
                    errors.push(not_supported(path, &text.into(), supported));
                }
            }
            Self::NonNegative => non_negative(value, path, errors),
            Self::Between(least, most, detail) => {
                let fits = |number: i64| (*least..=*most).contains(&number);
                if value.as_i64().is_some_and(|number| !fits(number)) {
                    errors.push(invalid(path, value, detail));
                }
            }
            Self::Selector => selector(value, path, errors),
            Self::Labels => labels(Some(value), path, errors),
            Self::Items(rules) => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    apply(rules, item, &format!("{path}[{index}]"), errors);
                }
            }
            Self::Fields(rules) if !value.is_null() => apply(rules, value, path, errors),
            Self::Fields(_) => {}
            Self::Struct(rules) => apply(rules, value, path, errors),
            Self::With(rule) => rule(value, path, errors),
        }
    }
}

/// Upstream: k8s.io/apimachinery/pkg/api/validation/generic.go: ValidateNonnegativeField
pub(super) fn non_negative(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if value.as_i64().is_some_and(|number| number < 0) {
        errors.push(invalid(path, value, NOT_NEGATIVE));
    }
}

/// Checks a label selector: its labels, and its expressions.
///
/// Upstream: k8s.io/apimachinery/pkg/apis/meta/v1/validation/validation.go: ValidateLabelSelector
pub(super) fn selector(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    labels(value.get("matchLabels"), &format!("{path}.matchLabels"), errors);
    for (index, expression) in items(value, "matchExpressions").iter().enumerate() {
        let at = format!("{path}.matchExpressions[{index}]");
        let values = items(expression, "values");
        match text(expression, "operator") {
            "In" | "NotIn" if values.is_empty() => errors.push(required(
                format!("{at}.values"),
                "must be specified when `operator` is 'In' or 'NotIn'",
            )),
            "Exists" | "DoesNotExist" if !values.is_empty() => errors.push(forbidden(
                format!("{at}.values"),
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            )),
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => {
                let at = format!("{at}.operator");
                errors.push(invalid(at, &other.into(), "not a valid selector operator"));
            }
        }
        let key = text(expression, "key");
        problems(&format!("{at}.key"), &key.into(), names::qualified(key), errors);
        for (index, value) in values.iter().enumerate() {
            let found = names::label_value(value.as_str().unwrap_or_default());
            problems(&format!("{at}.values[{index}]"), value, found, errors);
        }
    }
}

/// Whether a selector selects everything.
pub(super) fn selects_all(selector: &Value) -> bool {
    is_empty(&selector["matchLabels"]) && is_empty(&selector["matchExpressions"])
}

/// Whether a selector selects these labels.
///
/// Upstream: k8s.io/apimachinery/pkg/apis/meta/v1/helpers.go: LabelSelectorAsSelector
pub(super) fn selects(selector: &Value, labels: &Value) -> bool {
    let wanted = selector["matchLabels"].as_object();
    let by_label = wanted.into_iter().flatten().all(|(key, value)| labels.get(key) == Some(value));
    let by_expression = items(selector, "matchExpressions").iter().all(|expression| {
        let found = labels.get(text(expression, "key"));
        let is_in = found.is_some_and(|found| items(expression, "values").contains(found));
        match text(expression, "operator") {
            "In" => is_in,
            "NotIn" => !is_in,
            "Exists" => found.is_some(),
            "DoesNotExist" => found.is_none(),
            _ => false,
        }
    });
    by_label && by_expression
}

/// Checks a port given by number or by name.
///
/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: ValidatePortNumOrName
pub(super) fn port_or_name(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    match value {
        Value::String(name) => problems(path, value, names::port(name), errors),
        Value::Number(_) => PORT.apply(value, path, errors),
        _ => {}
    }
}

/// Checks a number that is not negative, or a percentage of at most 100.
///
/// Upstream: k8s.io/kubernetes/pkg/apis/apps/validation/validation.go: ValidatePositiveIntOrPercent
pub(super) fn count_or_percentage(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let Some(text) = value.as_str() else { return non_negative(value, path, errors) };
    let digits = text
        .strip_suffix('%')
        .filter(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()));
    match digits {
        None => {
            let detail = "a valid percent string must be a numeric string followed by an ending \
                          '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";
            errors.push(invalid(path, value, detail));
        }
        Some(digits) if digits.parse().is_ok_and(|percentage: u32| percentage <= 100) => {}
        Some(_) => errors.push(invalid(path, value, "must not be greater than 100%")),
    }
}

/// Whether a count or percentage is zero.
pub(super) fn is_zero(value: &Value) -> bool {
    value.as_i64() == Some(0) || matches!(value.as_str(), Some("0%"))
}

/// What is wrong with an IP address.
///
/// Upstream: k8s.io/apimachinery/pkg/util/validation/ip.go: IsValidIP
pub(super) fn address(text: &str) -> Vec<String> {
    let detail = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
    if text.parse::<IpAddr>().is_ok() { Vec::new() } else { vec![detail.to_owned()] }
}

/// What is wrong with a CIDR.
///
/// Upstream: k8s.io/apimachinery/pkg/util/validation/ip.go: IsValidCIDR
pub(super) fn network(text: &str) -> Vec<String> {
    let fits = text.split_once('/').is_some_and(|(address, bits)| {
        let limit = match address.parse::<IpAddr>() {
            Ok(IpAddr::V4(_)) => 32,
            Ok(IpAddr::V6(_)) => 128,
            Err(_) => return false,
        };
        bits.parse::<u8>().is_ok_and(|bits| bits <= limit)
    });
    let detail = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
    if fits { Vec::new() } else { vec![detail.to_owned()] }
}
