//! Sets of fields: which fields of an object a manager owns, and their `FieldsV1` form.
//!
//! A set is a tree of path elements. A node that is a *member* stands for the field itself; its
//! children stand for the fields below it. Neither implies the other: owning
//! `.spec.containers[name="x"]` is not owning its image.
//!
//! Upstream: sigs.k8s.io/structured-merge-diff/v6/fieldpath/set.go: Set

mod element;
mod set;
#[cfg(test)]
mod tests;

pub(crate) use element::values_equal;
pub use element::{PathElement, PathValue};
pub(crate) use set::FieldNode;
pub use set::FieldSet;

/// Why a `FieldsV1` document could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldsError {
    /// A key does not follow the format.
    #[error("field key {key:?} is not f:, k:, v:, i: or \".\"")]
    Key {
        /// The key.
        key: String,
    },
    /// A value is not an object.
    #[error("field {key:?} does not hold an object")]
    NotAnObject {
        /// The key above it.
        key: String,
    },
}

/// A path as people read it: `.spec.containers[name="x"].image`.
pub fn path_text(path: &[PathElement]) -> String {
    path.iter().map(ToString::to_string).collect()
}
