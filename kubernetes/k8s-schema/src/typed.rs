//! Values under their types: which fields a value mentions, how two values merge and differ, and
//! what removing fields leaves. The rules are those of structured-merge-diff.
//!
//! Live objects are taken as they are: a field that the type no longer declares is passed over, as
//! if it had been pruned on reading. Only what a client applies is checked ([`check`]).
//!
//! Upstream: sigs.k8s.io/structured-merge-diff/v6/typed/typed.go: TypedValue

mod check;
mod compare;
mod configuration;
mod keys;
mod merge;
mod reconcile;
mod remove;

pub(crate) use check::{check, check_live, defect_list};
pub(crate) use compare::{Comparison, compare};
pub use configuration::{ConfigurationError, merge_configuration};
pub(crate) use merge::merge;
pub(crate) use reconcile::reconcile;
pub(crate) use remove::{name_declared, remove};

use serde_json::Value;

use crate::Schema;
use crate::fields::{FieldNode, FieldSet, PathElement};
use crate::schema::node::{Edge, ListType, Relationship, Shape};
use keys::list_elements;

/// Every leaf field and every item that `value` mentions.
pub(crate) fn field_set(schema: &Schema, value: &Value) -> FieldSet {
    let mut set = FieldSet::default();
    collect(schema, &schema.root_edge(), value, &mut set);
    set
}

/// Puts the fields below `value` into `set`; returns whether the value itself is a leaf.
fn collect(schema: &Schema, edge: &Edge, value: &Value, set: &mut FieldSet) -> bool {
    match schema.shape(edge, Some(value)) {
        Shape::Nothing => false,
        Shape::Scalar(_) => true,
        Shape::Map(_, true) => true,
        Shape::Map(map, false) => {
            for (key, value) in value.as_object().into_iter().flatten() {
                let Some(edge) = map.value(key) else { continue };
                let mut below = FieldSet::default();
                let leaf = collect(schema, edge, value, &mut below);
                let empty = value.is_null() || value.as_object().is_some_and(|map| map.is_empty());
                let member = leaf || empty || !map.fields.contains_key(key);
                set.add(PathElement::Field(key.clone()), member, below);
            }
            false
        }
        Shape::List(ListType { relationship: Relationship::Atomic, .. }) => true,
        Shape::List(list) => {
            collect_items(schema, list, value, set);
            false
        }
    }
}

fn collect_items(schema: &Schema, list: &ListType, value: &Value, set: &mut FieldSet) {
    let elements = list_elements(schema, list, Some(value));
    let mut sorted: Vec<&PathElement> = elements.iter().map(|(element, _)| element).collect();
    sorted.sort_unstable();
    let mut nodes = Vec::with_capacity(elements.len());
    for (element, item) in &elements {
        let end = sorted.partition_point(|other| *other <= element);
        let start = sorted.partition_point(|other| *other < element);
        let mut below = FieldSet::default();
        // Items that share a key are owned together, without their fields.
        if end - start == 1 {
            collect(schema, &list.items, item, &mut below);
        }
        nodes.push(FieldNode { element: element.clone(), member: true, children: below });
    }
    *set = FieldSet::from_nodes(nodes);
}
