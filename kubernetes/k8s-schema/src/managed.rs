//! `metadata.managedFields`: who set which field, and server-side apply.
//!
//! Two ways to write exist. [`server_side_apply`] merges what a manager declares into the live
//! object, and conflicts where that changes what others own. [`track_update`] takes a finished
//! object and works out which fields its writer changed. Both return the object to store; when a
//! write changes nothing, that is exactly the live object, times included.
//!
//! What was written in another version of the kind is compared in that version ([`VersionedKind`]);
//! entries of versions that exist no more are dropped.
//!
//! Upstream: k8s.io/apimachinery/pkg/util/managedfields/internal/fieldmanager.go: FieldManager

mod apply;
mod conflict;
mod entry;
mod kind;
mod last_applied;
#[cfg(test)]
mod laws;
#[cfg(test)]
mod tests;
mod update;

use crate::typed::defect_list;

pub use apply::server_side_apply;
pub use conflict::Conflict;
pub use entry::{Operation, is_same_but_times};
pub use kind::{Convert, VersionedKind};
pub use update::track_update;

/// Who writes, through what, and when: what an entry of `managedFields` records of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ManagerInfo<'a> {
    /// Field manager's name.
    pub manager: &'a str,
    /// `apiVersion` of the request's object.
    pub api_version: &'a str,
    /// Subresource that is written to; empty for the object itself.
    pub subresource: &'a str,
    /// RFC 3339 time in whole seconds, in UTC.
    pub now: &'a str,
    /// Fields that this endpoint resets: paths such as `status` or `metadata.labels`. No manager comes
    /// to own them through it, and in an object that exists they stay as they are.
    pub reset_fields: &'a [&'a str],
}

impl ManagerInfo<'_> {
    /// The name that ownership is recorded under.
    fn name(&self) -> &str {
        if self.manager.is_empty() { "unknown" } else { self.manager }
    }
}

/// Why an apply was rejected. The texts are those of kube-apiserver, since clients parse them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// Others own fields that the applied object would change.
    #[error("{}", conflict::ConflictList(.0))]
    Conflicts(Vec<Conflict>),
    /// The applied object does not fit its schema; one text for each defect, such as
    /// `.userNames: field not declared in schema`.
    #[error("{}", defect_list(.0))]
    Typed(Vec<String>),
    /// The live object does not fit its schema.
    #[error("{}", defect_list(.0))]
    TypedLive(Vec<String>),
    /// The object cannot be compared in the version of another manager.
    #[error("{0}")]
    Version(String),
    /// The applied object carries `metadata.managedFields`.
    #[error("metadata.managedFields must be nil")]
    ManagedFieldsInApply,
}
