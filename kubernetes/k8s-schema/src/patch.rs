//! The three patch formats besides server-side apply.
//!
//! Upstream: k8s.io/apiserver/pkg/endpoints/handlers/patch.go: patchMechanism

mod json;
mod strategic;
#[cfg(test)]
mod tests;

use serde_json::Value;

pub use json::{COPIED_LEN_MAX, DEPTH_MAX, JsonPatcher, OPERATIONS_MAX, json_patch};
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
    /// The copies of a JSON patch have this length, more than [`COPIED_LEN_MAX`].
    #[error(
        "Unable to complete the copy, the accumulated size increase of copy is {0}, exceeding the \
         limit {COPIED_LEN_MAX}"
    )]
    CopiesTooMuch(usize),
    /// The patch makes kube-apiserver fail, with this text and without a reason.
    #[error("{0}")]
    Internal(String),
    /// The patch does not fit the object: a failed test, a missing path.
    #[error("{0}")]
    Failed(String),
}

/// Applies a JSON merge patch (RFC 7396); nulls inside what is new vanish, in lists too.
pub fn merge_patch(object: &Value, patch: &Value) -> Value {
    let Value::Object(patch) = patch else { return patch.clone() };
    let mut out = object.as_object().cloned().unwrap_or_default();
    for (key, value) in patch {
        if value.is_null() {
            out.remove(key);
            continue;
        }
        let merged = match (out.get(key), value) {
            (Some(old @ Value::Object(_)), Value::Object(_)) => merge_patch(old, value),
            (Some(Value::Object(_)), _) => value.clone(),
            _ => without_nulls(value),
        };
        out.insert(key.clone(), merged);
    }
    Value::Object(out)
}

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        Value::Object(entries) => entries
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(key, value)| (key.clone(), without_nulls(value)))
            .collect(),
        other => other.clone(),
    }
}
