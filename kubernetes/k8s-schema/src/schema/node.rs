//! What is known about one type.
//!
//! Upstream: sigs.k8s.io/structured-merge-diff/v6/schema/elements.go: Atom
use std::collections::BTreeMap;
use std::sync::OnceLock;

use regex::Regex;
use serde_json::Value;

use super::Schema;

/// The number of a type in its arena.
pub(crate) type NodeId = usize;

/// The type of anything, with lists and maps that are owned as a whole.
pub(crate) const UNTYPED_ATOMIC: NodeId = 0;
/// The type of anything, with lists owned as a whole and maps owned key by key.
pub(crate) const DEDUCED: NodeId = 1;

/// The format of types that are quantities.
pub(crate) const QUANTITY: &str = "quantity";
/// The format of types that are times in microseconds.
pub(crate) const MICRO_TIME: &str = "micro-time";

/// The type of a scalar, for field ownership.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scalar {
    Numeric,
    String,
    Boolean,
    Untyped,
}

/// The `type` that a schema declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeclaredType {
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
}

/// How the items of a list relate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Relationship {
    /// The list is one value.
    Atomic,
    /// Each item is its own key.
    Set,
    /// These fields of an item are its key.
    Map(Vec<String>),
}

/// What a strategic merge patch does with a field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PatchStrategy {
    pub(crate) merge: bool,
    pub(crate) retain_keys: bool,
    pub(crate) merge_key: Option<String>,
}

/// A use of a type, with what a field, an item or a map's value adds to it.
#[derive(Clone, Debug)]
pub(crate) struct Edge {
    pub(crate) node: NodeId,
    pub(crate) default: Option<Value>,
    /// Overrides whether the map behind it is owned as a whole.
    pub(crate) atomic: Option<bool>,
    pub(crate) patch: Option<PatchStrategy>,
    /// Go writes the field whatever its value is.
    pub(crate) written: bool,
    /// Go leaves the field out at its zero value.
    pub(crate) left_out_at_zero: bool,
}

impl Edge {
    pub(crate) fn plain(node: NodeId) -> Self {
        Self {
            node,
            default: None,
            atomic: None,
            patch: None,
            written: false,
            left_out_at_zero: false,
        }
    }
}

/// A list type.
#[derive(Debug)]
pub(crate) struct ListType {
    pub(crate) items: Edge,
    pub(crate) relationship: Relationship,
}

/// An object type: declared fields, and what other keys hold.
#[derive(Debug)]
pub(crate) struct MapType {
    pub(crate) fields: BTreeMap<String, Edge>,
    /// The declared `additionalProperties`.
    pub(crate) additional: Option<Edge>,
    /// Whether ownership accepts undeclared keys where nothing else is declared.
    pub(crate) free: bool,
    pub(crate) atomic: bool,
}

/// Deduced types are shared by all maps without declared values.
static DEDUCED_EDGE: Edge = Edge {
    node: DEDUCED,
    default: None,
    atomic: None,
    patch: None,
    written: false,
    left_out_at_zero: false,
};

impl MapType {
    /// The type of the value at `key`; nothing when the key is not declared.
    pub(crate) fn value(&self, key: &str) -> Option<&Edge> {
        self.fields.get(key).or_else(|| self.element())
    }

    /// The type of values at undeclared keys.
    pub(crate) fn element(&self) -> Option<&Edge> {
        self.additional.as_ref().or_else(|| self.free.then_some(&DEDUCED_EDGE))
    }
}

/// A number in a validation, kept as written.
pub(crate) type Bound = serde_json::Number;

/// What values have to satisfy beyond their type.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    /// Names of required fields.
    pub(crate) required: Vec<String>,
    /// The values of `enum`; absent if any value is allowed.
    pub(crate) allowed: Option<Vec<Value>>,
    pub(crate) pattern: Option<String>,
    /// The compiled pattern; `None` inside if it does not compile. Compiled when first used.
    pub(crate) compiled: OnceLock<Option<Regex>>,
    pub(crate) minimum: Option<Bound>,
    pub(crate) exclusive_minimum: bool,
    pub(crate) maximum: Option<Bound>,
    pub(crate) exclusive_maximum: bool,
    pub(crate) multiple_of: Option<Bound>,
    pub(crate) min_length: Option<u64>,
    pub(crate) max_length: Option<u64>,
    pub(crate) min_items: Option<u64>,
    pub(crate) max_items: Option<u64>,
    pub(crate) unique_items: bool,
    pub(crate) min_properties: Option<u64>,
    pub(crate) max_properties: Option<u64>,
    pub(crate) all_of: Vec<NodeId>,
    pub(crate) any_of: Vec<NodeId>,
    pub(crate) one_of: Vec<NodeId>,
    pub(crate) not: Option<NodeId>,
}

/// One type. Several of `scalar`, `list` and `map` are set where a value may be either.
#[derive(Debug, Default)]
pub(crate) struct Node {
    /// The type's name in Go, such as `v1.Container`; built-in types have one.
    pub(crate) go_name: Option<String>,
    pub(crate) scalar: Option<Scalar>,
    pub(crate) list: Option<ListType>,
    pub(crate) map: Option<MapType>,
    pub(crate) declared: Option<DeclaredType>,
    pub(crate) format: Option<String>,
    pub(crate) nullable: bool,
    /// Undeclared fields survive pruning.
    pub(crate) keeps_unknown: bool,
    pub(crate) embedded: bool,
    pub(crate) int_or_string: bool,
    /// The type that objects here decode to, though nothing is declared of it.
    pub(crate) decodes_to: Option<NodeId>,
    pub(crate) rules: Option<Box<Rules>>,
}

/// The one shape that a type takes for a value.
#[derive(Clone, Copy)]
pub(crate) enum Shape<'a> {
    Map(&'a MapType, bool),
    Scalar(Scalar),
    List(&'a ListType),
    /// The type declares nothing.
    Nothing,
}

impl Shape<'_> {
    /// Whether two shapes of the same type are the same.
    pub(crate) fn same(self, other: Self) -> bool {
        matches!(
            (self, other),
            (Shape::Map(..), Shape::Map(..))
                | (Shape::Scalar(_), Shape::Scalar(_))
                | (Shape::List(_), Shape::List(_))
                | (Shape::Nothing, Shape::Nothing)
        )
    }
}

impl Schema {
    /// The shape of the type behind `edge` for `value`; null and absent values leave the choice to
    /// the type, which prefers maps to scalars to lists.
    pub(crate) fn shape(&self, edge: &Edge, value: Option<&Value>) -> Shape<'_> {
        let node = self.node(edge.node);
        let map =
            || node.map.as_ref().map(|map| Shape::Map(map, edge.atomic.unwrap_or(map.atomic)));
        let scalar = || node.scalar.map(Shape::Scalar);
        let list = || node.list.as_ref().map(Shape::List);
        let chosen = match value {
            Some(Value::Object(_)) => map(),
            Some(Value::Array(_)) => list(),
            Some(Value::String(_) | Value::Number(_) | Value::Bool(_)) => scalar(),
            Some(Value::Null) | None => None,
        };
        chosen.or_else(map).or_else(scalar).or_else(list).unwrap_or(Shape::Nothing)
    }
}
