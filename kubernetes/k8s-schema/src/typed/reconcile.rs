//! Field sets that were written under an older schema.
//!
//! Upstream: sigs.k8s.io/structured-merge-diff/v6/typed/reconcile_schema.go: ReconcileFieldSetWithSchema
use crate::Schema;
use crate::fields::{FieldSet, PathElement};
use crate::schema::node::{DEDUCED, Edge, MapType, Relationship, UNTYPED_ATOMIC};

/// The set under the present schema: where a list or map has become atomic, owning some of it is
/// owning it.
pub(crate) fn reconcile(schema: &Schema, set: &FieldSet) -> FieldSet {
    let mut out = FieldSet::default();
    children(schema, Some(&schema.root_edge()), set, &mut out);
    out
}

fn children(schema: &Schema, edge: Option<&Edge>, set: &FieldSet, out: &mut FieldSet) {
    let node = edge.map(|edge| schema.node(edge.node));
    let map = node.and_then(|node| node.map.as_ref());
    let list = node.and_then(|node| node.list.as_ref());
    for entry in &set.nodes {
        let below = match &entry.element {
            PathElement::Field(name) => map.and_then(|map| map.value(name)),
            PathElement::Key(_) | PathElement::Value(_) => list.map(|list| &list.items),
            PathElement::Index(_) => None,
        };
        if !entry.children.is_empty() && below.is_some_and(|below| is_atomic(schema, below)) {
            out.add(entry.element.clone(), true, FieldSet::default());
            continue;
        }
        let mut inner = FieldSet::default();
        if entry.children.is_empty() {
            // Nothing below to look at.
        } else if below.is_some() {
            children(schema, below, &entry.children, &mut inner);
        } else {
            inner = entry.children.clone();
        }
        out.add(entry.element.clone(), entry.member, inner);
    }
}

fn is_atomic(schema: &Schema, edge: &Edge) -> bool {
    let node = schema.node(edge.node);
    if edge.node == DEDUCED || edge.node == UNTYPED_ATOMIC {
        return false;
    }
    match (&node.map, node.scalar, &node.list) {
        (Some(map), _, _) => edge.atomic.unwrap_or(map.atomic) && !is_deduced(map),
        (None, None, Some(list)) => list.relationship == Relationship::Atomic,
        (None, ..) => false,
    }
}

/// A map of anything, whose ownership cannot be declared.
fn is_deduced(map: &MapType) -> bool {
    map.fields.is_empty() && map.element().is_some_and(|edge| edge.node == DEDUCED)
}
