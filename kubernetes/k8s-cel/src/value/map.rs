//! Lists and maps, in an order that does not differ from run to run.
//!
//! Upstream: github.com/google/cel-go/common/types/list.go: baseList
//! Upstream: github.com/google/cel-go/common/types/map.go: baseMap
//! Upstream: k8s.io/apiserver/pkg/cel/common/valuesunstructured.go: unstructuredSetList
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::{Value, equal};

/// A list, and how Kubernetes relates its items.
#[derive(Clone, Debug)]
pub struct ListValue {
    /// The items, in order.
    pub items: Vec<Value>,
    /// How items relate: it changes `==` and `+`.
    pub kind: ListKind,
}

/// What `x-kubernetes-list-type` says of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListKind {
    /// Items have places.
    Atomic,
    /// Items are there or not.
    Set,
    /// Items have these fields as their key.
    Map(Arc<[String]>),
}

/// A map or an object.
#[derive(Clone, Debug)]
pub struct MapValue {
    /// The entries, ordered by key.
    pub entries: BTreeMap<MapKey, Value>,
    /// The name of the type, for an object.
    pub object: Option<Arc<str>>,
}

/// What can be a key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MapKey {
    /// `true` or `false`
    Bool(bool),
    /// `1`
    Int(i64),
    /// `1u`
    Uint(u64),
    /// `'text'`
    String(Arc<str>),
}

impl MapKey {
    /// The key that a value is; nothing if it cannot be one.
    pub fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Bool(value) => Some(Self::Bool(*value)),
            Value::Int(value) => Some(Self::Int(*value)),
            Value::Uint(value) => Some(Self::Uint(*value)),
            Value::String(value) => Some(Self::String(value.clone())),
            Value::Null
            | Value::Double(_)
            | Value::Bytes(_)
            | Value::Timestamp(_)
            | Value::Duration(_)
            | Value::List(_)
            | Value::Map(_)
            | Value::Optional(_)
            | Value::Type(_)
            | Value::Opaque(_)
            | Value::Host(_) => None,
        }
    }

    /// The key as a value.
    pub fn value(&self) -> Value {
        match self {
            Self::Bool(value) => Value::Bool(*value),
            Self::Int(value) => Value::Int(*value),
            Self::Uint(value) => Value::Uint(*value),
            Self::String(value) => Value::String(value.clone()),
        }
    }
}

impl fmt::Display for MapKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => value.fmt(out),
            Self::Int(value) => value.fmt(out),
            Self::Uint(value) => value.fmt(out),
            Self::String(value) => out.write_str(value),
        }
    }
}

impl MapValue {
    /// The value at a key; numbers find each other whatever their type.
    pub fn find(&self, key: &Value) -> Option<&Value> {
        let number = |value: i128| {
            let signed =
                i64::try_from(value).ok().and_then(|key| self.entries.get(&MapKey::Int(key)));
            signed.or_else(|| {
                let key = u64::try_from(value).ok()?;
                self.entries.get(&MapKey::Uint(key))
            })
        };
        match key {
            Value::Int(key) => number(i128::from(*key)),
            Value::Uint(key) => number(i128::from(*key)),
            Value::Double(key) if key.fract() == 0.0 && key.abs() < 1.9e19 => number(*key as i128),
            other => self.entries.get(&MapKey::from_value(other)?),
        }
    }

    /// The value of a field.
    pub fn field(&self, name: &str) -> Option<&Value> {
        self.entries.get(&MapKey::String(name.into()))
    }
}

impl ListValue {
    /// Whether two lists are equal; the first one's kind decides.
    pub(super) fn equals(&self, other: &Self) -> bool {
        if self.items.len() != other.items.len() {
            return false;
        }
        match &self.kind {
            ListKind::Atomic => {
                self.items.iter().zip(&other.items).all(|(left, right)| equal(left, right))
            }
            ListKind::Set => {
                other.items.iter().all(|item| self.items.iter().any(|mine| equal(mine, item)))
            }
            ListKind::Map(keys) => other.items.iter().all(|item| {
                self.items
                    .iter()
                    .find(|mine| same_key(mine, item, keys))
                    .is_some_and(|mine| equal(mine, item))
            }),
        }
    }

    /// This list and the items of another, as `+` has it.
    pub(crate) fn plus(&self, other: &Self) -> Self {
        let mut items = self.items.clone();
        match &self.kind {
            ListKind::Atomic => items.extend(other.items.iter().cloned()),
            ListKind::Set => {
                for item in &other.items {
                    if !items.iter().any(|mine| equal(mine, item)) {
                        items.push(item.clone());
                    }
                }
            }
            ListKind::Map(keys) => {
                for item in &other.items {
                    match items.iter_mut().find(|mine| same_key(mine, item, keys)) {
                        Some(mine) => *mine = item.clone(),
                        None => items.push(item.clone()),
                    }
                }
            }
        }
        Self { items, kind: self.kind.clone() }
    }
}

fn same_key(left: &Value, right: &Value, keys: &[String]) -> bool {
    let (Value::Map(left), Value::Map(right)) = (left, right) else { return false };
    keys.iter().all(|key| match (left.field(key), right.field(key)) {
        (Some(left), Some(right)) => equal(left, right),
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    })
}
