//! Writes of status that overwrite nothing unseen.
//!
//! A process starts with the status that it reads. Until its own first write a write of the leader
//! before it may still come in; what it says happened then would be lost if ours, computed without
//! it, took its place. So every write names the revision that it replaces. On a conflict the object
//! is read again: when only something else of it changed, such as its spec, the write is tried anew.
//! When its status did, a process that has written nothing yet has to start again with the current
//! one; a process that has written before is the leader, and overwrites it.

use kube::core::DynamicObject;
use kube::{Api, Client};
use plimsoll_api::{ApiKind, CLUSTER_VERSION_NAME};
use serde_json::Value;

use crate::resources::api_resource;
use crate::write::Writer;

/// How often in a row a write that meets conflicts is tried: others change an object rarely.
const CONFLICTS_MAX: usize = 5;

/// The status of an object as it was last seen in the cluster.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct VersionedStatus {
    revision: String,
    status: Value,
    /// What a write that was not answered may have left.
    attempted: Option<Value>,
    /// Whether this process has written it.
    is_ours: bool,
}

/// Why a status was not written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StatusWriteError {
    /// Another client wrote it after this process read it and before it wrote anything.
    #[error("the status changed after it was read")]
    Outdated,
    /// There is no such object.
    #[error("the object does not exist")]
    Missing,
    /// What the server or the client said.
    #[error(transparent)]
    Failed(#[from] kube::Error),
}

impl VersionedStatus {
    /// Returns the status of an object that was just read.
    pub(crate) fn of(object: &DynamicObject) -> Self {
        Self {
            revision: object.metadata.resource_version.clone().unwrap_or_default(),
            status: object.data.get("status").cloned().unwrap_or_default(),
            attempted: None,
            is_ours: false,
        }
    }

    /// The revision that it was last seen at; 0 if that is no number.
    pub(crate) fn revision(&self) -> u64 {
        self.revision.parse().unwrap_or_default()
    }

    /// Returns the status of an object that this process has made again after it was deleted.
    pub(crate) fn made_again(object: &DynamicObject) -> Self {
        Self { is_ours: true, ..Self::of(object) }
    }

    /// Replaces the status of the one object of a kind.
    ///
    /// # Errors
    ///
    /// When the server does not answer or rejects the write, or another client has written the status
    /// since this process read it.
    pub(crate) async fn replace(
        &mut self,
        client: &Client,
        kind: ApiKind,
        status: &Value,
    ) -> Result<(), StatusWriteError> {
        let resource = api_resource(kind);
        let (writer, name) = (Writer::new(client.clone()), CLUSTER_VERSION_NAME);
        let mut tries = 0;
        loop {
            tries += 1;
            let error = match writer.write_status(&resource, name, status, &self.revision).await {
                Ok(object) => {
                    *self = Self { is_ours: true, ..Self::of(&object) };
                    return Ok(());
                }
                Err(error) => error,
            };
            if is_missing(&error) {
                return Err(StatusWriteError::Missing);
            }
            if !matches!(&error, kube::Error::Api(status) if status.is_conflict()) {
                self.attempted = Some(status.clone());
                return Err(error.into());
            }
            if tries == CONFLICTS_MAX {
                return Err(error.into());
            }
            let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
            match api.get(name).await {
                Ok(live) => self.reconsider(Self::of(&live))?,
                Err(error) if is_missing(&error) => return Err(StatusWriteError::Missing),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The object was read again after a conflict.
    fn reconsider(&mut self, live: Self) -> Result<(), StatusWriteError> {
        // The API server was restored from a backup: what this process knows is not what is there.
        if revision_number(&live.revision) < revision_number(&self.revision) {
            return Err(StatusWriteError::Outdated);
        }
        if live.status != self.status && self.attempted.as_ref() != Some(&live.status) {
            if !self.is_ours {
                return Err(StatusWriteError::Outdated);
            }
            tracing::warn!("another client wrote a status that is ours; it is written anew");
        }
        (self.revision, self.status) = (live.revision, live.status);
        Ok(())
    }
}

/// Revisions are comparable numbers; one that is none says nothing.
fn revision_number(text: &str) -> u64 {
    text.parse().unwrap_or(u64::MAX)
}

/// Returns whether an error says that an object or its kind does not exist.
pub(crate) fn is_missing(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

#[cfg(test)]
mod tests;
