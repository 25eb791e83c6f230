//! OperatorRevisions that outlive their Operator: its successor takes them over.

use anyhow::{Context as _, bail};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{DynamicObject, ListParams, ObjectMeta, Patch, PostParams};
use kube::{Api, Client, Error};
use plimsoll_api::olm::DELETION_FINALIZER;
use plimsoll_api::{OPERATOR_REVISION, Operator};
use plimsoll_simulation::cluster_state::api;
use serde_json::{Value, json};

use super::{is_expected, is_gone};
use crate::commands::operator::{FIELD_MANAGER, patch_parameters};

/// The OperatorRevisions of an Operator, without it as their owner.
pub(super) struct KeptRevisions {
    api: Api<DynamicObject>,
    /// The uid of the Operator.
    owner: String,
    /// The OperatorRevisions as they were.
    before: Vec<DynamicObject>,
    /// Those that are being deleted, and go when the Operator does.
    terminating: Vec<DynamicObject>,
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
        let is_of = |it: &DynamicObject| {
            let mut owners = it.metadata.owner_references.iter().flatten();
            owners.any(|it| it.uid == owner)
        };
        let api = api(client, OPERATOR_REVISION);
        let found = api.list(&ListParams::default()).await;
        let found = found.context("failed to list OperatorRevisions")?.items.into_iter();
        let (terminating, before) =
            found.filter(is_of).partition(|it| it.metadata.deletion_timestamp.is_some());
        let kept = Self { api, owner, before, terminating };
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

    /// Makes the successor of the Operator the owner, and creates those again that are being deleted.
    ///
    /// # Errors
    ///
    /// When a request fails, or another client has a finalizer on one that is being deleted.
    pub(super) async fn give_to(&self, successor: &str) -> Result<(), anyhow::Error> {
        let owner = |it: &OwnerReference| {
            let uid = if it.uid == self.owner { successor.to_owned() } else { it.uid.clone() };
            Some(OwnerReference { uid, ..it.clone() })
        };
        self.set_owners(owner).await?;
        for revision in &self.terminating {
            let owners = revision.metadata.owner_references.iter().flatten();
            self.create_again(revision, owners.filter_map(owner).collect()).await?;
        }
        Ok(())
    }

    /// Lets an OperatorRevision go that is being deleted, and creates it again as it was, with its signature.
    async fn create_again(
        &self,
        revision: &DynamicObject,
        owners: Vec<OwnerReference>,
    ) -> Result<(), anyhow::Error> {
        let metadata = &revision.metadata;
        let name = metadata.name.as_deref().unwrap_or_default();
        let finalizers = metadata.finalizers.iter().flatten();
        let others: Vec<&String> = finalizers.filter(|it| !is_expected(it)).collect();
        let patch = json!({ "metadata": { "uid": metadata.uid, "finalizers": others } });
        let released =
            self.api.patch_metadata(name, &patch_parameters(false), &Patch::Merge(patch)).await;
        match released {
            // It went with the Operator.
            Err(Error::Api(status)) if matches!(status.code, 404 | 409) => {}
            other => {
                other.with_context(|| format!("failed to release OperatorRevision `{name}`"))?;
            }
        }
        if !is_gone(&self.api, name, metadata.uid.as_deref()).await {
            bail!("OperatorRevision `{name}` has other finalizers, and is still there");
        }
        let again = DynamicObject {
            types: revision.types.clone(),
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                labels: metadata.labels.clone(),
                annotations: metadata.annotations.clone(),
                finalizers: Some(vec![DELETION_FINALIZER.to_owned()]),
                owner_references: Some(owners),
                ..ObjectMeta::default()
            },
            data: revision.data.clone(),
        };
        let parameters =
            PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        let created = self.api.create(&parameters, &again).await;
        created.with_context(|| format!("failed to create OperatorRevision `{name}` again"))?;
        Ok(())
    }

    /// Writes the history of the Operator to its successor, whose OperatorRevisions it takes over, and which
    /// revision is installed unless none is kept. Returns whether one is.
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
        let mut kept = self.before.iter().chain(&self.terminating);
        let number = &before["revision"];
        let is_kept = number.is_u64() && kept.any(|it| it.data["spec"]["revision"] == *number);
        let earlier = before["predecessors"].as_array().into_iter().flatten().cloned();
        let predecessors: Vec<Value> = [json!(self.owner)].into_iter().chain(earlier).collect();
        let mut status = json!({
            "observedGeneration": 0,
            "history": before["history"],
            // The signatures of the OperatorRevisions are for these.
            "predecessors": predecessors,
        });
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
