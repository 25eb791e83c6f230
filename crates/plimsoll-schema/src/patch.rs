//! The three patch formats besides server-side apply.

mod strategic;
#[cfg(test)]
mod tests;

use serde_json::Value;

pub use strategic::strategic_merge_patch;

/// Why a patch could not be applied.
#[derive(Debug, thiserror::Error)]
pub enum PatchError {
    /// The patch document is not a patch.
    #[error("{0}")]
    Malformed(String),
    /// The patch does not fit the object: a failed test, a missing path.
    #[error("{0}")]
    Failed(String),
}

/// Applies a JSON patch (RFC 6902).
///
/// # Errors
/// When the patch is malformed, a path is missing or a test fails.
pub fn json_patch(object: &Value, patch: &Value) -> Result<Value, PatchError> {
    use serde::Deserialize as _;
    let patch = json_patch::Patch::deserialize(patch)
        .map_err(|error| PatchError::Malformed(error.to_string()))?;
    let mut out = object.clone();
    json_patch::patch(&mut out, &patch).map_err(|error| PatchError::Failed(error.to_string()))?;
    Ok(out)
}

/// Applies a JSON merge patch (RFC 7396).
pub fn merge_patch(object: &Value, patch: &Value) -> Value {
    let mut out = object.clone();
    json_patch::merge(&mut out, patch);
    out
}
