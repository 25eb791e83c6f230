//! Merging what is applied into what is there.
//!
//! Upstream: sigs.k8s.io/structured-merge-diff/v6/typed/merge.go: mergingWalker
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::keys::list_elements;
use crate::Schema;
use crate::fields::PathElement;
use crate::schema::node::{Edge, ListType, MapType, Relationship, Shape};

/// `right` merged into `left`: leaves of `right` win, nothing is removed. The items of a list keep
/// the order of `right` where it says something about them.
pub(crate) fn merge(schema: &Schema, left: &Value, right: &Value) -> Value {
    pair(schema, &schema.root_edge(), Some(left), Some(right)).unwrap_or(Value::Null)
}

fn pair(
    schema: &Schema,
    edge: &Edge,
    left: Option<&Value>,
    right: Option<&Value>,
) -> Option<Value> {
    let (Some(left_value), Some(right_value)) = (left, right) else {
        return only(schema, edge, left.or(right)?);
    };
    // Where the two have different shapes the applied one counts, and finds nothing to merge with.
    match schema.shape(edge, Some(right_value)) {
        Shape::Nothing => None,
        Shape::Scalar(_) => Some(right_value.clone()),
        Shape::Map(map, atomic) => {
            let (left, right) = (left_value.as_object(), right_value.as_object());
            let empty = left.is_none_or(Map::is_empty) && right.is_none_or(Map::is_empty);
            if atomic || empty {
                return Some(right_value.clone());
            }
            entries(schema, map, left, right)
        }
        Shape::List(list) => {
            let (left, right) = (left_value.as_array(), right_value.as_array());
            let empty = left.is_none_or(Vec::is_empty) && right.is_none_or(Vec::is_empty);
            if list.relationship == Relationship::Atomic || empty {
                return Some(right_value.clone());
            }
            items(schema, list, left_value, right_value)
        }
    }
}

/// A value that only one side has, without what its type does not declare.
fn only(schema: &Schema, edge: &Edge, value: &Value) -> Option<Value> {
    match schema.shape(edge, Some(value)) {
        Shape::Nothing => None,
        Shape::Scalar(_) => Some(value.clone()),
        Shape::Map(map, atomic) => match value.as_object() {
            Some(inner) if !atomic && !inner.is_empty() => entries(schema, map, Some(inner), None),
            _ => Some(value.clone()),
        },
        Shape::List(list) => match value.as_array() {
            Some(inner) if list.relationship != Relationship::Atomic && !inner.is_empty() => {
                let out: Vec<Value> =
                    inner.iter().filter_map(|item| only(schema, &list.items, item)).collect();
                (!out.is_empty()).then_some(Value::Array(out))
            }
            _ => Some(value.clone()),
        },
    }
}

fn entries(
    schema: &Schema,
    map: &MapType,
    left: Option<&Map<String, Value>>,
    right: Option<&Map<String, Value>>,
) -> Option<Value> {
    let mut out = Map::new();
    let mut put = |key: &String, left: Option<&Value>, right: Option<&Value>| {
        let merged = map.value(key).and_then(|edge| pair(schema, edge, left, right));
        if let Some(merged) = merged {
            out.insert(key.clone(), merged);
        }
    };
    for (key, value) in left.into_iter().flatten() {
        put(key, Some(value), right.and_then(|right| right.get(key)));
    }
    for (key, value) in right.into_iter().flatten() {
        if left.is_none_or(|left| !left.contains_key(key)) {
            put(key, None, Some(value));
        }
    }
    (!out.is_empty()).then_some(Value::Object(out))
}

/// One side of a list merge.
struct Side<'a> {
    items: Vec<(PathElement, &'a Value)>,
    /// The item of each element; nothing where several share it.
    by_element: BTreeMap<PathElement, Option<&'a Value>>,
}

impl<'a> Side<'a> {
    fn new(schema: &Schema, list: &ListType, value: &'a Value) -> Self {
        let items = list_elements(schema, list, Some(value));
        let mut by_element: BTreeMap<PathElement, Option<&'a Value>> = BTreeMap::new();
        for (element, item) in &items {
            by_element
                .entry(element.clone())
                .and_modify(|known| *known = None)
                .or_insert(Some(item));
        }
        Self { items, by_element }
    }

    fn has(&self, element: &PathElement) -> bool {
        self.by_element.contains_key(element)
    }

    fn item(&self, element: &PathElement) -> Option<&'a Value> {
        self.by_element.get(element).copied().flatten()
    }
}

/// Walks both lists at once. Items of both follow the order of the right; items of the left alone
/// stay where they stand between them.
fn items(schema: &Schema, list: &ListType, left: &Value, right: &Value) -> Option<Value> {
    let left = Side::new(schema, list, left);
    let right = Side::new(schema, list, right);
    let mut shared = right.items.iter().map(|(element, _)| element).filter(|e| left.has(e));
    let mut next_shared = shared.next();
    let mut merged: BTreeSet<&PathElement> = BTreeSet::new();
    let mut out = Vec::with_capacity(left.items.len().max(right.items.len()));
    let (mut l, mut r) = (0, 0);
    while l < left.items.len() || r < right.items.len() {
        let here = left.items.get(l);
        if let (Some((element, _)), Some((other, _))) = (here, right.items.get(r)) {
            if element == other {
                merged.insert(other);
                out.extend(pair(schema, &list.items, left.item(element), right.item(element)));
                (l, r) = (l + 1, r + 1);
                next_shared = shared.next();
                continue;
            }
            if right.has(element) && next_shared.is_some_and(|next| next != element) {
                l += 1;
                continue;
            }
        }
        if let Some((element, item)) = here {
            if !right.has(element) {
                out.extend(pair(schema, &list.items, Some(item), None));
                l += 1;
                continue;
            }
            if merged.contains(element) {
                l += 1;
            }
        }
        if let Some((element, _)) = right.items.get(r) {
            merged.insert(element);
            out.extend(pair(schema, &list.items, left.item(element), right.item(element)));
            r += 1;
            if next_shared == Some(element) {
                next_shared = shared.next();
            }
        }
    }
    (!out.is_empty()).then_some(Value::Array(out))
}
