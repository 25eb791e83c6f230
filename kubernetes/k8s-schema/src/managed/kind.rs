//! A kind in its versions, as field ownership sees it.
//!
//! Upstream: k8s.io/apimachinery/pkg/util/managedfields/internal/versionconverter.go: Convert
use serde_json::Value;

use crate::Schema;
use crate::typed::check;

/// Converts an object to another `apiVersion` of its kind; nothing where the kind has no such
/// version.
pub type Convert<'a> = dyn Fn(&Value, &str) -> Option<(Schema, Value)> + 'a;

/// The schema of a request's version, and the way to the other versions, in which other managers
/// may have written.
#[derive(Clone, Copy)]
pub struct VersionedKind<'a> {
    pub(super) schema: &'a Schema,
    convert: Option<&'a Convert<'a>>,
}

impl<'a> From<&'a Schema> for VersionedKind<'a> {
    /// A kind whose versions are all the same.
    fn from(schema: &'a Schema) -> Self {
        Self { schema, convert: None }
    }
}

impl<'a> VersionedKind<'a> {
    /// A kind whose other versions are reached by `convert`.
    pub fn new(schema: &'a Schema, convert: &'a Convert<'a>) -> Self {
        Self { schema, convert: Some(convert) }
    }

    /// The object in `wanted`, another version than the request's, with that version's schema;
    /// nothing if there is no such version.
    ///
    /// # Errors
    /// When the object has fields that the other version does not know.
    pub(super) fn at(
        &self,
        object: &Value,
        wanted: &str,
    ) -> Result<Option<(Schema, Value)>, String> {
        let Some(convert) = self.convert else {
            return Ok(Some((self.schema.clone(), object.clone())));
        };
        let Some((schema, converted)) = convert(object, wanted) else { return Ok(None) };
        let defects = check(&schema, &converted);
        if defects.is_empty() {
            return Ok(Some((schema, converted)));
        }
        Err(super::defect_list(&defects))
    }
}
