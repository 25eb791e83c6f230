//! The handle to a type.
use serde_json::Value;

use crate::FieldError;

/// A handle to a type of the Kubernetes API; cheap to clone.
#[derive(Clone, Debug)]
pub struct Schema;

impl Schema {
    /// No schema: every field is kept, and types are deduced (atomic lists, granular maps).
    pub fn untyped() -> Self {
        Self
    }

    /// The type that a CRD version's `schema.openAPIV3Schema` declares.
    ///
    /// # Errors
    /// When the schema is not structural.
    pub fn from_crd(
        _open_api_v3_schema: &Value,
        _preserve_unknown_fields: bool,
    ) -> Result<Self, Vec<FieldError>> {
        Ok(Self)
    }
}
