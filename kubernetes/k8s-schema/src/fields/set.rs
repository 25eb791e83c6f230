//! The set itself: a tree of sorted vectors, so that unions and differences are linear.
//!
//! Upstream: sigs.k8s.io/structured-merge-diff/v6/fieldpath/set.go: Set
//! Upstream: sigs.k8s.io/structured-merge-diff/v6/fieldpath/serialize.go: ToJSON
use std::cmp::Ordering;
use std::fmt;

use serde_json::{Map, Value};

use super::{FieldsError, PathElement, path_text};

/// A set of fields of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet {
    /// Sorted by element; a node that is no member has children.
    pub(crate) nodes: Vec<FieldNode>,
}

/// One element of a set and what lies below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FieldNode {
    pub(crate) element: PathElement,
    pub(crate) member: bool,
    pub(crate) children: FieldSet,
}

impl FieldNode {
    fn is_empty(&self) -> bool {
        !self.member && self.children.is_empty()
    }
}

/// What two sets hold at one element.
enum Pair<'a> {
    Left(&'a FieldNode),
    Right(&'a FieldNode),
    Both(&'a FieldNode, &'a FieldNode),
}

impl FieldSet {
    /// A set of these paths.
    pub fn from_paths<'a>(paths: impl IntoIterator<Item = &'a [PathElement]>) -> Self {
        let mut set = Self::default();
        for path in paths {
            set.insert(path);
        }
        set
    }

    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Adds one field; its parents are not added. The empty path has no owner and is ignored.
    pub fn insert(&mut self, path: &[PathElement]) {
        let Some((first, rest)) = path.split_first() else { return };
        let node = self.entry(first);
        if rest.is_empty() {
            node.member = true;
        } else {
            node.children.insert(rest);
        }
    }

    /// A set of these elements with what lies below them, in any order.
    pub(crate) fn from_nodes(mut nodes: Vec<FieldNode>) -> Self {
        nodes.retain(|node| !node.is_empty());
        // Inserting one by one in another order would be quadratic.
        nodes.sort_by(|left, right| left.element.cmp(&right.element));
        let mut set = Self { nodes: Vec::with_capacity(nodes.len()) };
        for FieldNode { element, member, children } in nodes {
            set.add(element, member, children);
        }
        set
    }

    /// The fields in any of some sets.
    #[must_use]
    pub(crate) fn union_of(mut sets: Vec<Self>) -> Self {
        // In pairs, so that no field is copied more often than the logarithm of their number.
        while sets.len() > 1 {
            sets = sets
                .chunks(2)
                .map(|pair| match pair {
                    [left, right] => left.union(right),
                    rest => rest.first().cloned().unwrap_or_default(),
                })
                .collect();
        }
        sets.pop().unwrap_or_default()
    }

    /// Adds the element with what lies below it, in one go.
    pub(crate) fn add(&mut self, element: PathElement, member: bool, children: Self) {
        if !member && children.is_empty() {
            return;
        }
        let in_order = self.nodes.last().is_none_or(|last| last.element < element);
        if in_order {
            self.nodes.push(FieldNode { element, member, children });
            return;
        }
        let node = self.entry(&element);
        node.member |= member;
        node.children =
            if node.children.is_empty() { children } else { node.children.union(&children) };
    }

    fn entry(&mut self, element: &PathElement) -> &mut FieldNode {
        let index = match self.nodes.binary_search_by(|node| node.element.cmp(element)) {
            Ok(index) => index,
            Err(index) => {
                self.nodes.insert(
                    index,
                    FieldNode {
                        element: element.clone(),
                        member: false,
                        children: Self::default(),
                    },
                );
                index
            }
        };
        &mut self.nodes[index]
    }

    pub(crate) fn node(&self, element: &PathElement) -> Option<&FieldNode> {
        self.nodes
            .binary_search_by(|node| node.element.cmp(element))
            .ok()
            .map(|index| &self.nodes[index])
    }

    /// Whether the field at `path` is in the set.
    pub fn contains(&self, path: &[PathElement]) -> bool {
        let Some((first, rest)) = path.split_first() else { return false };
        match self.node(first) {
            None => false,
            Some(node) if rest.is_empty() => node.member,
            Some(node) => node.children.contains(rest),
        }
    }

    /// Whether all its fields are in `other`.
    pub fn is_subset(&self, other: &Self) -> bool {
        self.nodes.iter().all(|node| match other.node(&node.element) {
            Some(there) => {
                (!node.member || there.member) && node.children.is_subset(&there.children)
            }
            None => false,
        })
    }

    /// The fields in either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        self.combine(other, |pair| match pair {
            Pair::Left(node) | Pair::Right(node) => Some(node.clone()),
            Pair::Both(left, right) => Some(FieldNode {
                element: left.element.clone(),
                member: left.member || right.member,
                children: left.children.union(&right.children),
            }),
        })
    }

    /// The fields in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        self.combine(other, |pair| match pair {
            Pair::Left(_) | Pair::Right(_) => None,
            Pair::Both(left, right) => Some(FieldNode {
                element: left.element.clone(),
                member: left.member && right.member,
                children: left.children.intersection(&right.children),
            }),
        })
    }

    /// The fields in this set that are not in `other`; nested fields are compared on their own.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        self.combine(other, |pair| match pair {
            Pair::Left(node) => Some(node.clone()),
            Pair::Right(_) => None,
            Pair::Both(left, right) => Some(FieldNode {
                element: left.element.clone(),
                member: left.member && !right.member,
                children: left.children.difference(&right.children),
            }),
        })
    }

    /// The fields in this set that are neither in `other` nor below a field of it.
    #[must_use]
    pub fn recursive_difference(&self, other: &Self) -> Self {
        self.combine(other, |pair| match pair {
            Pair::Left(node) => Some(node.clone()),
            Pair::Right(_) => None,
            Pair::Both(_, right) if right.member => None,
            Pair::Both(left, right) => Some(FieldNode {
                element: left.element.clone(),
                member: left.member,
                children: left.children.recursive_difference(&right.children),
            }),
        })
    }

    fn combine(&self, other: &Self, mut choose: impl FnMut(Pair<'_>) -> Option<FieldNode>) -> Self {
        let mut nodes = Vec::with_capacity(self.nodes.len());
        let (mut left, mut right) = (self.nodes.iter().peekable(), other.nodes.iter().peekable());
        loop {
            let order = match (left.peek(), right.peek()) {
                (None, None) => break,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(left), Some(right)) => left.element.cmp(&right.element),
            };
            let pair = match order {
                Ordering::Less => left.next().map(Pair::Left),
                Ordering::Greater => right.next().map(Pair::Right),
                Ordering::Equal => left.next().zip(right.next()).map(|(l, r)| Pair::Both(l, r)),
            };
            nodes.extend(pair.and_then(&mut choose).filter(|node| !node.is_empty()));
        }
        Self { nodes }
    }

    /// Every field of the set, fields of one level before those below them.
    pub fn paths(&self) -> Vec<Vec<PathElement>> {
        let mut out = Vec::new();
        self.collect(&mut Vec::new(), &mut out);
        out
    }

    fn collect(&self, prefix: &mut Vec<PathElement>, out: &mut Vec<Vec<PathElement>>) {
        for node in self.nodes.iter().filter(|node| node.member) {
            let mut path = prefix.clone();
            path.push(node.element.clone());
            out.push(path);
        }
        for node in &self.nodes {
            prefix.push(node.element.clone());
            node.children.collect(prefix, out);
            prefix.pop();
        }
    }

    /// Reads `FieldsV1`.
    ///
    /// # Errors
    /// When the document does not follow the format.
    pub fn from_fields_v1(value: &Value) -> Result<Self, FieldsError> {
        let Some(map) = value.as_object() else {
            return Err(FieldsError::NotAnObject { key: String::new() });
        };
        let mut nodes = Vec::with_capacity(map.len());
        for (key, below) in map.iter().filter(|(key, _)| *key != ".") {
            // A version to come may have kinds of elements that this one does not.
            let Some(element) = PathElement::parse(key)? else { continue };
            let Some(inner) = below.as_object() else {
                return Err(FieldsError::NotAnObject { key: key.clone() });
            };
            let member = inner.is_empty() || inner.contains_key(".");
            let children = Self::from_fields_v1(below)?;
            nodes.push(FieldNode { element, member, children });
        }
        Ok(Self::from_nodes(nodes))
    }

    /// Writes `FieldsV1`.
    pub fn to_fields_v1(&self) -> Value {
        let mut map = Map::new();
        for node in &self.nodes {
            let mut below = node.children.to_fields_v1();
            if node.member
                && !node.children.is_empty()
                && let Some(below) = below.as_object_mut()
            {
                below.insert(".".to_owned(), Value::Object(Map::new()));
            }
            map.insert(node.element.to_key(), below);
        }
        Value::Object(map)
    }
}

impl fmt::Display for FieldSet {
    /// One path per line.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, path) in self.paths().iter().enumerate() {
            let newline = if index > 0 { "\n" } else { "" };
            write!(out, "{newline}{}", path_text(path))?;
        }
        Ok(())
    }
}
