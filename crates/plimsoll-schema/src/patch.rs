//! The three patch formats besides server-side apply.

mod json;
mod strategic;
#[cfg(test)]
mod tests;

use serde_json::Value;

pub use json::{OPERATIONS_MAX, json_patch};
pub use strategic::strategic_merge_patch;

/// Why a patch could not be applied.
#[derive(Debug, thiserror::Error)]
pub enum PatchError {
    /// The patch document is not a patch.
    #[error("{0}")]
    Malformed(String),
    /// A JSON patch has this many operations, more than [`OPERATIONS_MAX`].
    #[error("The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {0}")]
    TooMany(usize),
    /// The patch makes kube-apiserver fail, with this text and without a reason.
    #[error("{0}")]
    Internal(String),
    /// The patch does not fit the object: a failed test, a missing path.
    #[error("{0}")]
    Failed(String),
}

/// Applies a JSON merge patch (RFC 7396).
pub fn merge_patch(object: &Value, patch: &Value) -> Value {
    let mut out = object.clone();
    json_patch::merge(&mut out, patch);
    out
}
