//! One step of a field path, and the order and equality of values inside it.
//!
//! Upstream: sigs.k8s.io/structured-merge-diff/v6/fieldpath/element.go: PathElement
//! Upstream: sigs.k8s.io/structured-merge-diff/v6/fieldpath/serialize-pe.go: SerializePathElement
use std::cmp::Ordering;
use std::fmt;

use serde_json::{Number, Value};

use super::FieldsError;

/// A scalar inside a path, ordered as structured-merge-diff orders values: numbers (integers and
/// floats compare by value), strings, booleans, lists, maps, null.
#[derive(Clone, Debug)]
pub struct PathValue(pub Value);

impl PartialEq for PathValue {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for PathValue {}

impl PartialOrd for PathValue {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for PathValue {
    fn cmp(&self, other: &Self) -> Ordering {
        compare_values(&self.0, &other.0)
    }
}

/// One step from an object to one of its fields or items.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PathElement {
    /// A field of a struct or a key of a map.
    Field(String),
    /// An item of a list map, by its key fields, sorted by name.
    Key(Vec<(String, PathValue)>),
    /// An item of a set.
    Value(PathValue),
    /// An item of an atomic list, by position.
    Index(i64),
}

impl PathElement {
    /// Reads a key of `FieldsV1`; nothing for an element of an unknown kind.
    pub(super) fn parse(text: &str) -> Result<Option<Self>, FieldsError> {
        let malformed = || FieldsError::Key { key: text.to_owned() };
        let (kind, rest) = text.split_once(':').ok_or_else(malformed)?;
        if kind.len() != 1 {
            return Err(malformed());
        }
        let element = match kind {
            "f" => Ok(Self::Field(rest.to_owned())),
            "v" => serde_json::from_str(rest)
                .map(|value| Self::Value(PathValue(value)))
                .map_err(|_| malformed()),
            "k" => {
                let keys: serde_json::Map<String, Value> =
                    serde_json::from_str(rest).map_err(|_| malformed())?;
                Ok(Self::Key(
                    keys.into_iter().map(|(name, value)| (name, PathValue(value))).collect(),
                ))
            }
            "i" => rest.parse().map(Self::Index).map_err(|_| malformed()),
            _ => return Ok(None),
        };
        element.map(Some)
    }

    /// Writes a key of `FieldsV1`.
    pub(super) fn to_key(&self) -> String {
        match self {
            Self::Field(name) => format!("f:{name}"),
            Self::Value(value) => format!("v:{}", go_json(&value.0)),
            Self::Index(index) => format!("i:{index}"),
            Self::Key(keys) => {
                let mut out = String::from("k:{");
                for (index, (name, value)) in keys.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    out.push_str(&go_json(&Value::String(name.clone())));
                    out.push(':');
                    out.push_str(&go_json(&value.0));
                }
                out.push('}');
                out
            }
        }
    }
}

impl fmt::Display for PathElement {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(out, ".{name}"),
            Self::Value(value) => write!(out, "[={}]", shown(&value.0)),
            Self::Index(index) => write!(out, "[{index}]"),
            Self::Key(keys) => {
                out.write_str("[")?;
                for (index, (name, value)) in keys.iter().enumerate() {
                    let comma = if index > 0 { "," } else { "" };
                    write!(out, "{comma}{name}={}", shown(&value.0))?;
                }
                out.write_str("]")
            }
        }
    }
}

/// JSON as Go writes it: `<`, `>`, `&` and the two line separators escaped.
fn go_json(value: &Value) -> String {
    let plain = value.to_string();
    if !plain.contains(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        return plain;
    }
    let mut out = String::with_capacity(plain.len() + 16);
    for character in plain.chars() {
        match character {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                out.push_str(&format!("\\u{:04x}", u32::from(character)));
            }
            other => out.push(other),
        }
    }
    out
}

/// A scalar as paths show it.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => format!("{text:?}"),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            value.to_string()
        }
    }
}

/// Whether two values are the same, integers and floats compared by value.
pub(crate) fn values_equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => compare_numbers(left, right).is_eq(),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(l, r)| values_equal(l, r))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().zip(right).all(|((left_key, left), (right_key, right))| {
                    left_key == right_key && values_equal(left, right)
                })
        }
        (left, right) => left == right,
    }
}

/// A total order over values.
fn compare_values(left: &Value, right: &Value) -> Ordering {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => compare_numbers(left, right),
        (Value::String(left), Value::String(right)) => left.cmp(right),
        (Value::Bool(left), Value::Bool(right)) => left.cmp(right),
        (Value::Array(left), Value::Array(right)) => left
            .iter()
            .zip(right)
            .map(|(left, right)| compare_values(left, right))
            .find(|order| order.is_ne())
            .unwrap_or_else(|| left.len().cmp(&right.len())),
        (Value::Object(left), Value::Object(right)) => left
            .iter()
            .zip(right)
            .map(|(left, right)| left.0.cmp(right.0).then_with(|| compare_values(left.1, right.1)))
            .find(|order| order.is_ne())
            .unwrap_or_else(|| left.len().cmp(&right.len())),
        (left, right) => rank(left).cmp(&rank(right)),
    }
}

fn compare_numbers(left: &Number, right: &Number) -> Ordering {
    match (left.as_i64(), right.as_i64()) {
        (Some(left), Some(right)) => left.cmp(&right),
        _ => left.as_f64().unwrap_or(f64::NAN).total_cmp(&right.as_f64().unwrap_or(f64::NAN)),
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}
