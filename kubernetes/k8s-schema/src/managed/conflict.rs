//! Conflicts of an apply, and how they are reported.
//!
//! Upstream: sigs.k8s.io/structured-merge-diff/v6/merge/conflict.go: Conflicts
//! Upstream: k8s.io/apimachinery/pkg/util/managedfields/internal/conflict.go: NewConflictError
use std::fmt;

use super::entry::Operation;
use crate::fields::PathElement;

/// A field that another manager owns with another value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The name of the field manager that owns the field.
    pub manager: String,
    /// The owner's `apiVersion`.
    pub api_version: String,
    /// The owner's operation.
    pub operation: Operation,
    /// The subresource that the owner wrote to; empty for the object itself.
    pub subresource: String,
    /// The RFC 3339 time of the owner's last write; absent in entries without one. Messages do not
    /// show it.
    pub time: Option<String>,
    /// The field: `.spec.replicas`.
    pub path: String,
}

impl Conflict {
    /// The owner as Kubernetes names it: `"kubectl" using apps/v1`.
    pub fn owner(&self) -> String {
        let mut out = format!("{:?}", self.manager);
        if !self.subresource.is_empty() {
            out.push_str(&format!(" with subresource {:?}", self.subresource));
        }
        if self.operation == Operation::Update {
            out.push_str(&format!(" using {}", self.api_version));
        }
        out
    }

    /// The message of the `Status` cause for it; the cause's field is [`Conflict::path`] and its
    /// reason `FieldManagerConflict`.
    pub fn cause(&self) -> String {
        format!("conflict with {}", self.owner())
    }
}

/// A conflict with the path of its field.
pub(super) type LocatedConflict = (Conflict, Vec<PathElement>);

/// Prints conflicts grouped by owner, owners sorted.
pub(super) struct ConflictList<'a>(pub(super) &'a [Conflict]);

impl fmt::Display for ConflictList<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [only] = self.0 {
            return write!(out, "Apply failed with 1 conflict: {}: {}", only.cause(), only.path);
        }
        write!(out, "Apply failed with {} conflicts: ", self.0.len())?;
        let mut owner = String::new();
        for (index, conflict) in self.0.iter().enumerate() {
            if conflict.owner() != owner {
                owner = conflict.owner();
                let newline = if index > 0 { "\n" } else { "" };
                write!(out, "{newline}conflicts with {owner}:")?;
            }
            write!(out, "\n- {}", conflict.path)?;
        }
        Ok(())
    }
}
