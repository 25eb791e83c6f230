//! Unknown fields: finding and dropping them.
use serde_json::Value;

use crate::Schema;

/// Drops the fields that `schema` does not know and returns their paths (`spec.foo[0].bar`).
pub fn prune(_schema: &Schema, _value: &mut Value) -> Vec<String> {
    Vec::new()
}

/// The paths of the fields that [`prune`] would drop.
pub fn unknown_fields(_schema: &Schema, _value: &Value) -> Vec<String> {
    Vec::new()
}
