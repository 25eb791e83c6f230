//! OperatorRevisions that outlive their Operator: its successor takes them over.

use anyhow::Context as _;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{DynamicObject, Patch};
use kube::{Api, Client};
use plimsoll_api::{Operator, OperatorRevision};
use serde_json::json;

use crate::commands::operator::patch_parameters;
use crate::commands::operator::state::revisions;

/// The OperatorRevisions of an Operator, without it as their owner.
pub(super) struct KeptRevisions {
    api: Api<OperatorRevision>,
    /// The uid of the Operator.
    owner: String,
    /// The OperatorRevisions as they were.
    before: Vec<OperatorRevision>,
}

impl KeptRevisions {
    /// Removes an Operator from the owners of its OperatorRevisions, so that the API server does not
    /// delete them with it.
    ///
    /// # Errors
    ///
    /// When a request fails; the owners of those before it are set back.
    pub(super) async fn take(
        client: &Client,
        operator: &DynamicObject,
    ) -> Result<Self, anyhow::Error> {
        let owner = operator.metadata.uid.clone().unwrap_or_default();
        let is_of = |it: &OperatorRevision| {
            let mut owners = it.metadata.owner_references.iter().flatten();
            it.metadata.deletion_timestamp.is_none() && owners.any(|it| it.uid == owner)
        };
        let before = revisions(client).await?.into_iter().filter(is_of).collect();
        let kept = Self { api: Api::all(client.clone()), owner, before };
        if let Err(error) = kept.set_owners(|it| (it.uid != kept.owner).then(|| it.clone())).await {
            kept.give_back().await?;
            return Err(error);
        }
        Ok(kept)
    }

    /// Sets the owners back.
    ///
    /// # Errors
    ///
    /// When a request fails.
    pub(super) async fn give_back(&self) -> Result<(), anyhow::Error> {
        self.set_owners(|it| Some(it.clone())).await
    }

    /// Makes the successor of the Operator the owner.
    ///
    /// # Errors
    ///
    /// When a request fails.
    pub(super) async fn give_to(&self, successor: &str) -> Result<(), anyhow::Error> {
        self.set_owners(|it| {
            let uid = if it.uid == self.owner { successor.to_owned() } else { it.uid.clone() };
            Some(OwnerReference { uid, ..it.clone() })
        })
        .await
    }

    /// Writes the history of the Operator to its successor, and which revision is installed unless none is
    /// kept. Returns whether one is.
    ///
    /// # Errors
    ///
    /// When the request fails.
    pub(super) async fn write_status(
        &self,
        operators: &Api<Operator>,
        name: &str,
        operator: &DynamicObject,
        successor: &DynamicObject,
    ) -> Result<bool, anyhow::Error> {
        let before = &operator.data["status"];
        let is_kept = self.before.iter().any(|it| before["revision"] == it.spec.revision);
        let mut status = json!({ "observedGeneration": 0, "history": before["history"] });
        if is_kept {
            status["revision"] = before["revision"].clone();
        }
        // There is no other copy of the history.
        let patch = json!({ "metadata": { "uid": successor.metadata.uid }, "status": status });
        operators
            .patch_status(name, &patch_parameters(false), &Patch::Merge(patch))
            .await
            .with_context(|| format!("failed to write the history of Operator `{name}` back"))?;
        Ok(is_kept)
    }

    /// Sets the owners of all OperatorRevisions to what `owner` makes of each of their former ones.
    async fn set_owners(
        &self,
        owner: impl Fn(&OwnerReference) -> Option<OwnerReference>,
    ) -> Result<(), anyhow::Error> {
        for revision in &self.before {
            let name = revision.metadata.name.as_deref().unwrap_or_default();
            let owners = revision.metadata.owner_references.iter().flatten();
            let owners: Vec<OwnerReference> = owners.filter_map(&owner).collect();
            let patch = json!({
                "metadata": { "uid": revision.metadata.uid, "ownerReferences": owners },
            });
            self.api
                .patch_metadata(name, &patch_parameters(false), &Patch::Merge(patch))
                .await
                .with_context(|| format!("failed to keep OperatorRevision `{name}`"))?;
        }
        Ok(())
    }
}
