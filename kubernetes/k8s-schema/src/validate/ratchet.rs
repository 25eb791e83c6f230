//! Which old value a new one replaces.
//!
//! Upstream: k8s.io/apiextensions-apiserver/pkg/apiserver/validation/ratcheting.go: ratchetingValueValidator
use serde_json::Value;

use crate::Schema;
use crate::schema::node::{NodeId, Relationship};

/// A value of the live object, and the type that it has there.
#[derive(Clone, Copy)]
pub(super) struct OldValue<'a> {
    pub(super) value: &'a Value,
    pub(super) node: NodeId,
}

impl<'a> OldValue<'a> {
    /// What was in a field. What an object is called never counts as unchanged: it may have been
    /// read in another version.
    pub(super) fn field(self, schema: &Schema, path: &str, key: &str) -> Option<Self> {
        if path.is_empty() && matches!(key, "apiVersion" | "kind") {
            return None;
        }
        let map = schema.node(self.node).map.as_ref()?;
        let edge = map.fields.get(key).or(map.additional.as_ref())?;
        Some(Self { value: self.value.get(key)?, node: edge.node })
    }

    /// The old item with the keys of `item`; only lists that are maps have one.
    pub(super) fn item(self, schema: &Schema, item: &Value) -> Option<Self> {
        let list = schema.node(self.node).list.as_ref()?;
        let Relationship::Map(keys) = &list.relationship else { return None };
        let old = self.value.as_array()?;
        let value = old.iter().find(|old| keys.iter().all(|key| old.get(key) == item.get(key)))?;
        Some(Self { value, node: list.items.node })
    }
}
