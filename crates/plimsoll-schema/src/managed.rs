//! `metadata.managedFields`: who set which field, and server-side apply.
use serde_json::Value;

use crate::Schema;

/// Who writes, through what, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Actor<'a> {
    /// Field manager's name.
    pub manager: &'a str,
    /// `apiVersion` of the request's object.
    pub api_version: &'a str,
    /// Subresource written to, or empty.
    pub subresource: &'a str,
    /// RFC 3339 time in whole seconds.
    pub now: &'a str,
    /// Fields that this endpoint resets and so nobody comes to own through it: paths such as
    /// `status` or `metadata.deletionTimestamp`.
    pub reset_fields: &'a [&'a str],
}

/// How a manager came to own fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// Server-side apply.
    Apply,
    /// Any other write.
    Update,
}

/// A field that somebody else owns with another value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The owner.
    pub manager: String,
    /// The owner's `apiVersion`.
    pub api_version: String,
    /// How the owner wrote it.
    pub operation: Operation,
    /// The owner's subresource, or empty.
    pub subresource: String,
    /// When the owner wrote it, if known.
    pub time: Option<String>,
    /// The field: `.spec.replicas`.
    pub path: String,
}

/// Why an apply was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// Others own fields that the applied object would change.
    #[error("apply failed with {} conflict{}", .0.len(), if .0.len() == 1 { "" } else { "s" })]
    Conflicts(Vec<Conflict>),
    /// The applied object does not fit its schema; one text for each defect, such as
    /// `.userNames: field not declared in schema`.
    #[error("{}", .0.join("; "))]
    Typed(Vec<String>),
    /// The live object does not fit its schema.
    #[error("failed to create typed live object: {}", .0.join("; "))]
    Live(Vec<String>),
    /// The applied object carries `metadata.managedFields`.
    #[error("metadata.managedFields must be nil")]
    ManagedFieldsInApply,
}

/// Merges `applied` into `live` and records what the applier owns.
///
/// Returns the whole new object including `metadata.managedFields`; a no-op returns an object equal
/// to `live`.
///
/// # Errors
/// When fields conflict and `force` is off, or when the object does not fit its schema.
pub fn server_side_apply(
    _schema: &Schema,
    _live: Option<&Value>,
    applied: &Value,
    _actor: &Actor<'_>,
    _force: bool,
) -> Result<Value, ApplyError> {
    Ok(applied.clone())
}

/// Records what a create, update or patch changed; returns `new` with its `metadata.managedFields`.
pub fn track_update(
    _schema: &Schema,
    _live: Option<&Value>,
    new: Value,
    _actor: &Actor<'_>,
) -> Value {
    new
}
