//! What changed from one value to another.
//!
//! Upstream: sigs.k8s.io/structured-merge-diff/v6/typed/compare.go: compareWalker
use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::keys::list_elements;
use crate::Schema;
use crate::fields::{FieldSet, PathElement, values_equal};
use crate::schema::node::{Edge, ListType, MapType, Relationship, Shape};

/// The fields that differ; each is in one set only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Comparison {
    pub(crate) added: FieldSet,
    pub(crate) modified: FieldSet,
    pub(crate) removed: FieldSet,
}

impl Comparison {
    /// Without the fields in `fields` and below them.
    pub(crate) fn without(self, fields: &FieldSet) -> Self {
        if fields.is_empty() {
            return self;
        }
        Self {
            added: self.added.recursive_difference(fields),
            modified: self.modified.recursive_difference(fields),
            removed: self.removed.recursive_difference(fields),
        }
    }
}

/// Compares two objects.
pub(crate) fn compare(schema: &Schema, left: &Value, right: &Value) -> Comparison {
    let mut comparer = Comparer { schema, path: Vec::new(), out: Comparison::default() };
    if left == right {
        return comparer.out;
    }
    comparer.pair(&schema.root_edge(), Some(left), Some(right));
    comparer.out
}

struct Comparer<'a> {
    schema: &'a Schema,
    path: Vec<PathElement>,
    out: Comparison,
}

impl Comparer<'_> {
    /// Callers do not come here with equal values: nothing below those differs.
    fn pair(&mut self, edge: &Edge, left: Option<&Value>, right: Option<&Value>) {
        let left_shape = self.schema.shape(edge, left);
        let right_shape = self.schema.shape(edge, right);
        let leaf = if right.is_none() {
            self.shaped(left_shape, left, right)
        } else {
            if left.is_some() && !left_shape.same(right_shape) {
                self.shaped(left_shape, left, right);
            }
            self.shaped(right_shape, left, right)
        };
        if !leaf {
            if left.is_none() {
                self.out.added.insert(&self.path);
            } else if right.is_none() {
                self.out.removed.insert(&self.path);
            }
        }
    }

    /// Compares as one shape; whether that is a leaf.
    fn shaped(&mut self, shape: Shape<'_>, left: Option<&Value>, right: Option<&Value>) -> bool {
        match shape {
            Shape::Nothing => false,
            Shape::Scalar(_) => self.leaf(left, right),
            Shape::Map(map, atomic) => {
                let (left_map, right_map) = (object(left), object(right));
                let empty = is_empty(left_map.map(Map::len)) && is_empty(right_map.map(Map::len));
                if atomic || empty {
                    return self.leaf(left, right);
                }
                self.entries(map, left_map, right_map);
                false
            }
            Shape::List(list) => {
                let (left_list, right_list) = (array(left), array(right));
                let empty = is_empty(left_list) && is_empty(right_list);
                if list.relationship == Relationship::Atomic || empty {
                    return self.leaf(left, right);
                }
                self.items(list, left, right);
                false
            }
        }
    }

    fn leaf(&mut self, left: Option<&Value>, right: Option<&Value>) -> bool {
        match (left, right) {
            (None, _) => self.out.added.insert(&self.path),
            (_, None) => self.out.removed.insert(&self.path),
            (Some(left), Some(right)) if !values_equal(left, right) => {
                self.out.modified.insert(&self.path);
            }
            _ => {}
        }
        true
    }

    fn entries(
        &mut self,
        map: &MapType,
        left: Option<&Map<String, Value>>,
        right: Option<&Map<String, Value>>,
    ) {
        let only_left = |key: &String| left.is_some_and(|left| left.contains_key(key));
        for (key, value) in left.into_iter().flatten() {
            self.entry(map, key, Some(value), right.and_then(|right| right.get(key)));
        }
        for (key, value) in right.into_iter().flatten().filter(|(key, _)| !only_left(key)) {
            self.entry(map, key, None, Some(value));
        }
    }

    fn entry(&mut self, map: &MapType, key: &str, left: Option<&Value>, right: Option<&Value>) {
        if left == right {
            return;
        }
        let Some(edge) = map.value(key) else { return };
        self.path.push(PathElement::Field(key.to_owned()));
        self.pair(edge, left, right);
        self.path.pop();
    }

    fn items(&mut self, list: &ListType, left: Option<&Value>, right: Option<&Value>) {
        let mut all: BTreeMap<PathElement, (Vec<&Value>, Vec<&Value>)> = BTreeMap::new();
        for (element, item) in list_elements(self.schema, list, left) {
            all.entry(element).or_default().0.push(item);
        }
        for (element, item) in list_elements(self.schema, list, right) {
            all.entry(element).or_default().1.push(item);
        }
        for (element, (left, right)) in all {
            self.path.push(element);
            match (left.as_slice(), right.as_slice()) {
                ([] | [_], [] | [_]) if left == right => {}
                ([] | [_], [] | [_]) => {
                    self.pair(&list.items, left.first().copied(), right.first().copied());
                }
                // Items that share a key are one value, however many they are.
                ([_, _, ..], [_, _, ..]) => {
                    let same = left.len() == right.len()
                        && left.iter().zip(&right).all(|(left, right)| values_equal(left, right));
                    if !same {
                        self.out.modified.insert(&self.path);
                    }
                }
                ([_, _, ..], rest) => {
                    if let Some(item) = rest.first() {
                        self.pair(&list.items, None, Some(item));
                    }
                    self.out.removed.insert(&self.path);
                }
                (rest, [_, _, ..]) => {
                    if let Some(item) = rest.first() {
                        self.pair(&list.items, Some(item), None);
                    }
                    self.out.added.insert(&self.path);
                }
            }
            self.path.pop();
        }
    }
}

fn object(value: Option<&Value>) -> Option<&Map<String, Value>> {
    value.and_then(Value::as_object)
}

fn array(value: Option<&Value>) -> Option<usize> {
    value.and_then(Value::as_array).map(Vec::len)
}

fn is_empty(length: Option<usize>) -> bool {
    length.is_none_or(|length| length == 0)
}
