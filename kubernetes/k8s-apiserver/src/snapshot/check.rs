//! Checks of the objects of a snapshot: that a server can have stored them.
//!
//! A server that reads an object from etcd decodes it, and does not validate it again: an object may
//! have been valid under older rules. So does this.
use std::sync::Arc;

use k8s_schema as schema;
use k8s_schema::names;
use serde_json::{Value, json};

use super::SnapshotProblem;
use crate::request::strict;
use crate::semantics::convert;
use crate::semantics::registry::{ApiResource, Registry, Scope};
use crate::storage::{StorageId, Stored};

/// Checks the metadata that a server gives every object; returns the revision of the object.
///
/// # Errors
/// When a field is missing or invalid, or the revision is later than that of the snapshot.
pub(super) fn metadata(metadata: &Value, newest: u64) -> Result<u64, SnapshotProblem> {
    let text = |field: &str| metadata[field].as_str().unwrap_or_default();
    for name in [text("name"), text("namespace")] {
        if !names::path_segment(name).is_empty() {
            return Err(SnapshotProblem::Name(name.to_owned()));
        }
    }
    if text("uid").is_empty() {
        return Err(SnapshotProblem::Missing("uid"));
    }
    let found = text("resourceVersion");
    found
        .parse()
        .ok()
        .filter(|revision| (1..=newest).contains(revision))
        .ok_or_else(|| SnapshotProblem::Revision { found: found.to_owned(), newest })
}

/// Checks that each field of an object is there once, and that it has no type.
///
/// # Errors
/// When a field is there twice, or `apiVersion` or `kind` is there.
pub(super) fn fields(json: &str, object: &Value) -> Result<(), SnapshotProblem> {
    if let Some(duplicate) = strict::duplicate_fields(json.as_bytes()).into_iter().next() {
        return Err(SnapshotProblem::Ambiguous(duplicate));
    }
    match ["apiVersion", "kind"].into_iter().find(|field| object.get(field).is_some()) {
        Some(field) => Err(SnapshotProblem::Typed(field)),
        None => Ok(()),
    }
}

/// The resource of a stored object; of a built-in one in the version that is stored.
pub(super) fn resource_of<'a>(
    registry: &'a Registry,
    storage: &StorageId,
    stored: &Stored,
) -> Option<&'a Arc<ApiResource>> {
    registry
        .all()
        .filter(|resource| resource.storage == *storage)
        .find(|resource| resource.custom().is_some() || convert::is_verbatim(resource, stored))
}

/// Checks that an object has a namespace if its resource is namespaced, and that its values have the
/// types of their fields. Of a custom object only the metadata has types: its schema may have
/// changed since it was stored.
///
/// # Errors
/// When a server could not have stored it.
pub(super) fn object(resource: &ApiResource, stored: &Stored) -> Result<(), SnapshotProblem> {
    let namespace = &stored.key.namespace;
    match resource.scope {
        Scope::Namespaced if namespace.is_empty() => {
            return Err(SnapshotProblem::Missing("namespace"));
        }
        Scope::Cluster if !namespace.is_empty() => {
            return Err(SnapshotProblem::Namespace(namespace.to_string()));
        }
        Scope::Namespaced | Scope::Cluster => {}
    }
    let mut object = stored.decode();
    let undecodable = if resource.custom().is_some() {
        let metadata = json!({"metadata": object["metadata"].take()});
        schema::malformed_metadata(resource.schema(), &metadata)
    } else {
        schema::decoding_error(resource.schema(), &object)
            .or_else(|| schema::canonicalize(resource.schema(), &mut object).err())
    };
    undecodable.map_or(Ok(()), |why| Err(SnapshotProblem::Undecodable(why)))
}
