//! `metadata.managedFields`: who set which field, and server-side apply.
//!
//! Two ways to write exist. [`server_side_apply`] merges what a manager declares into the live
//! object, and conflicts where that changes what others own. [`track_update`] takes a finished
//! object and works out which fields its writer changed. Both return the object to store; when a
//! write changes nothing, that is exactly the live object, times included.
//!
//! What was written under another version of the kind is compared in that version ([`Kind`]);
//! entries of versions that exist no more are dropped.

mod apply;
mod entry;
mod kind;
mod last_applied;
#[cfg(test)]
mod laws;
#[cfg(test)]
mod tests;
mod update;

use std::fmt;

pub use apply::server_side_apply;
pub use entry::{Operation, is_same_but_times};
pub use kind::{Convert, Kind};
pub use update::track_update;

/// Who writes, through what, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Actor<'a> {
    /// Field manager's name.
    pub manager: &'a str,
    /// `apiVersion` of the request's object.
    pub api_version: &'a str,
    /// Subresource written to, or empty.
    pub subresource: &'a str,
    /// RFC 3339 time in whole seconds, in UTC.
    pub now: &'a str,
    /// Fields that this endpoint resets: paths such as `status` or `metadata.labels`. Nobody comes
    /// to own them through it, and in an object that exists they stay as they are.
    pub reset_fields: &'a [&'a str],
}

impl Actor<'_> {
    /// The name that ownership is recorded under.
    fn name(&self) -> &str {
        if self.manager.is_empty() { "unknown" } else { self.manager }
    }
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
    /// When the owner wrote it, if known; messages do not show it.
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

/// Why an apply was refused. The texts are those of kube-apiserver, since clients parse them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// Others own fields that the applied object would change.
    #[error("{}", Conflicts(.0))]
    Conflicts(Vec<Conflict>),
    /// The applied object does not fit its schema; one text for each defect, such as
    /// `.userNames: field not declared in schema`.
    #[error("{}", typed_message(.0))]
    Typed(Vec<String>),
    /// The live object does not fit its schema.
    #[error("{}", typed_message(.0))]
    TypedLive(Vec<String>),
    /// The object cannot be compared in the version of another manager.
    #[error("{0}")]
    Version(String),
    /// The applied object carries `metadata.managedFields`.
    #[error("metadata.managedFields must be nil")]
    ManagedFieldsInApply,
}

/// Prints conflicts grouped by owner, owners sorted.
struct Conflicts<'a>(&'a [Conflict]);

impl fmt::Display for Conflicts<'_> {
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

fn typed_message(errors: &[String]) -> String {
    match errors {
        [only] => only.clone(),
        all => format!("errors:\n  {}", all.join("\n  ")),
    }
}
