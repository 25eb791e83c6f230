//! Defaults that a schema declares.
use serde_json::Value;

use crate::Schema;

/// Fills in what the schema declares as defaults.
pub fn apply_defaults(_schema: &Schema, _value: &mut Value) {}
