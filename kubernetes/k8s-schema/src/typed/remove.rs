//! Removing fields from values.
//!
//! Upstream: sigs.k8s.io/structured-merge-diff/v6/typed/remove.go: removingWalker
use serde_json::{Map, Value};

use super::keys::item_element;
use crate::Schema;
use crate::fields::{FieldNode, FieldSet, PathElement};
use crate::schema::node::{Edge, Relationship, Shape};

/// `value` without the fields of `set`.
pub(crate) fn remove(schema: &Schema, value: &Value, set: &FieldSet) -> Value {
    below(schema, &schema.root_edge(), value, set).unwrap_or(Value::Null)
}

/// What is left of `value`; nothing where a container has become empty.
fn below(schema: &Schema, edge: &Edge, value: &Value, set: &FieldSet) -> Option<Value> {
    match schema.shape(edge, Some(value)) {
        Shape::Scalar(_) => Some(value.clone()),
        Shape::Map(map, false) => {
            let mut out = Map::new();
            for (key, value) in value.as_object()? {
                let Some(edge) = map.value(key) else { continue };
                match set.node(&PathElement::Field(key.clone())) {
                    None => {
                        out.insert(key.clone(), value.clone());
                    }
                    Some(node) if node.member => {}
                    Some(node) => match below(schema, edge, value, &node.children) {
                        Some(rest) => {
                            out.insert(key.clone(), rest);
                        }
                        // An empty item may have been written on purpose.
                        None => {
                            out.insert(key.clone(), Value::Null);
                        }
                    },
                }
            }
            (!out.is_empty()).then_some(Value::Object(out))
        }
        Shape::List(list) if list.relationship != Relationship::Atomic => {
            let mut out = Vec::new();
            for item in value.as_array()? {
                let node =
                    item_element(schema, list, item).ok().and_then(|element| set.node(&element));
                match node {
                    None => out.push(item.clone()),
                    Some(node) if node.member => {}
                    Some(node) => {
                        out.push(
                            below(schema, &list.items, item, &node.children).unwrap_or_default(),
                        );
                    }
                }
            }
            (!out.is_empty()).then_some(Value::Array(out))
        }
        Shape::Nothing | Shape::Map(_, true) | Shape::List(_) => None,
    }
}

/// The set with the declared fields that have members below them made members too: owning
/// `.spec.replicas` says that `.spec` is there.
pub(crate) fn name_declared(schema: &Schema, set: &FieldSet) -> FieldSet {
    named(schema, Some(&schema.root_edge()), set)
}

fn named(schema: &Schema, edge: Option<&Edge>, set: &FieldSet) -> FieldSet {
    let node = edge.map(|edge| schema.node(edge.node));
    let map = node.and_then(|node| node.map.as_ref());
    let list = node.and_then(|node| node.list.as_ref());
    let nodes = set.nodes.iter().map(|entry| {
        let (declared, edge) = match &entry.element {
            PathElement::Field(name) => (
                map.is_some_and(|map| map.fields.contains_key(name)),
                map.and_then(|map| map.value(name)),
            ),
            PathElement::Key(_) => (false, list.map(|list| &list.items)),
            PathElement::Value(_) | PathElement::Index(_) => (false, None),
        };
        FieldNode {
            element: entry.element.clone(),
            member: entry.member || (declared && !entry.children.is_empty()),
            children: named(schema, edge, &entry.children),
        }
    });
    FieldSet { nodes: nodes.collect() }
}
