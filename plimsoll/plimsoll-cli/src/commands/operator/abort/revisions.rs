//! OperatorRevisions that outlive their Operator: its successor takes them over.

use std::collections::BTreeSet;

use anyhow::{Context as _, bail};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{DynamicObject, ListParams, ObjectMeta, Patch, PostParams};
use kube::{Api, Client, Error, ResourceExt};
use plimsoll_api::olm::DELETION_FINALIZER;
use plimsoll_api::{OPERATOR, OPERATOR_REVISION, Operator};
use plimsoll_simulation::cluster_state::api;
use serde_json::{Value, json};

use super::record::AbortRecord;
use super::{is_expected, is_gone};
use crate::commands::operator::{FIELD_MANAGER, patch_parameters};

/// The OperatorRevisions of an Operator, without it as their owner.
pub(super) struct KeptRevisions {
    api: Api<DynamicObject>,
    /// The record of them.
    pub(super) record: AbortRecord,
    /// The uid of the Operator that is let go: that of the record, or one that an abort has created again.
    going: String,
}

impl KeptRevisions {
    /// Removes an Operator from the owners of its OperatorRevisions, so that the API server does not
    /// delete them with it. They are recorded before. If an abort has created the Operator again, the record stays
    /// that of its predecessor; one of an Operator that has nothing to do with it is forgotten.
    ///
    /// # Errors
    ///
    /// When a request fails; the owners of those before it are set back.
    pub(super) async fn take(
        client: &Client,
        operator: &DynamicObject,
        earlier: Option<AbortRecord>,
    ) -> Result<Self, anyhow::Error> {
        let uid = operator.metadata.uid.as_deref().unwrap_or_default();
        let earlier = match earlier {
            Some(other) if !other.is_continued_by(operator) => {
                other.forget().await?;
                None
            }
            earlier => earlier,
        };
        let mut revisions = earlier.as_ref().map(|it| it.revisions.clone()).unwrap_or_default();
        let predecessor = earlier.as_ref().filter(|it| it.uid() != uid);
        let recorded = predecessor.map_or(operator, |it| &it.operator).clone();
        let api = api(client, OPERATOR_REVISION);
        let found = api.list(&ListParams::default()).await;
        let found = found.context("failed to list OperatorRevisions")?.items.into_iter();
        let (terminating, before): (Vec<DynamicObject>, Vec<DynamicObject>) = found
            .filter(|it| it.owner_references().iter().any(|it| it.uid == uid))
            .partition(|it| it.metadata.deletion_timestamp.is_some());
        revisions.extend(before.iter().map(ResourceExt::name_any));
        let record = AbortRecord::write(client, &recorded, revisions, terminating, earlier).await?;
        let kept = Self { api, record, going: uid.to_owned() };
        if let Err(error) = kept.give(None).await {
            kept.give_back().await?;
            return Err(error);
        }
        Ok(kept)
    }

    /// Returns the OperatorRevisions of an abort that was interrupted.
    pub(super) fn recorded(client: &Client, record: AbortRecord) -> Self {
        let going = record.uid().to_owned();
        Self { api: api(client, OPERATOR_REVISION), record, going }
    }

    /// Sets the owners back, and forgets the record, unless it is that of a predecessor: then the next abort goes on
    /// with it.
    ///
    /// # Errors
    ///
    /// When a request fails.
    pub(super) async fn give_back(&self) -> Result<(), anyhow::Error> {
        if self.going != self.record.uid() {
            return Ok(());
        }
        self.give(Some(self.record.uid())).await?;
        self.record.forget().await
    }

    /// Makes the successor of the Operator the owner, and creates those again that are being deleted. Returns the
    /// numbers of the revisions that are kept.
    ///
    /// # Errors
    ///
    /// When a request fails, or another client has a finalizer on one that is being deleted.
    pub(super) async fn give_to(&self, successor: &str) -> Result<BTreeSet<u64>, anyhow::Error> {
        let mut numbers = self.give(Some(successor)).await?;
        for revision in &self.record.terminating {
            self.restore(revision, successor).await?;
            numbers.extend(number(revision));
        }
        Ok(numbers)
    }

    /// Makes an Operator the owner of all that are kept, or removes the owner that they have. Returns their numbers.
    async fn give(&self, owner: Option<&str>) -> Result<BTreeSet<u64>, anyhow::Error> {
        let mut numbers = BTreeSet::new();
        for name in &self.record.revisions {
            let there = self.api.get_opt(name).await;
            let there =
                there.with_context(|| format!("failed to read OperatorRevision `{name}`"))?;
            if let Some(there) = there {
                self.set_owner(&there, owner).await?;
                numbers.extend(number(&there));
            }
        }
        Ok(numbers)
    }

    /// Makes an Operator the owner of an OperatorRevision instead of the one whose deletion is aborted, or removes
    /// that.
    async fn set_owner(
        &self,
        revision: &DynamicObject,
        owner: Option<&str>,
    ) -> Result<(), anyhow::Error> {
        let name = revision.name_any();
        let patch = json!({ "metadata": {
            "uid": revision.metadata.uid,
            "ownerReferences": self.owners(revision, owner),
        } });
        self.api
            .patch_metadata(&name, &patch_parameters(false), &Patch::Merge(patch))
            .await
            .with_context(|| format!("failed to keep OperatorRevision `{name}`"))?;
        Ok(())
    }

    /// Returns the owners of an OperatorRevision with an Operator instead of the one whose deletion is aborted.
    fn owners(&self, revision: &DynamicObject, owner: Option<&str>) -> Vec<OwnerReference> {
        let removed = [Some(self.record.uid()), Some(self.going.as_str()), owner];
        let is_other = |it: &&OwnerReference| !removed.contains(&Some(it.uid.as_str()));
        let mut owners: Vec<OwnerReference> =
            revision.owner_references().iter().filter(is_other).cloned().collect();
        owners.extend(owner.map(|uid| OwnerReference {
            api_version: OPERATOR.api_version(),
            kind: OPERATOR.kind.to_owned(),
            name: self.record.operator.name_any(),
            uid: uid.to_owned(),
            controller: Some(true),
            block_owner_deletion: None,
        }));
        owners
    }

    /// Lets an OperatorRevision go that is being deleted, and creates it again as it was, with its signature.
    async fn restore(
        &self,
        revision: &DynamicObject,
        successor: &str,
    ) -> Result<(), anyhow::Error> {
        let name = revision.name_any();
        let there = self.api.get_opt(&name).await;
        let there = there.with_context(|| format!("failed to read OperatorRevision `{name}`"))?;
        match there {
            // An abort that was interrupted has created it again.
            Some(there) if there.metadata.deletion_timestamp.is_none() => {
                return self.set_owner(&there, Some(successor)).await;
            }
            Some(there) => self.release(&there).await?,
            // It went with the Operator.
            None => {}
        }
        let again = DynamicObject {
            types: revision.types.clone(),
            metadata: ObjectMeta {
                name: Some(name.clone()),
                labels: revision.metadata.labels.clone(),
                annotations: revision.metadata.annotations.clone(),
                finalizers: Some(vec![DELETION_FINALIZER.to_owned()]),
                owner_references: Some(self.owners(revision, Some(successor))),
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

    /// Removes our finalizer from an OperatorRevision that is being deleted, and waits until it is gone.
    async fn release(&self, revision: &DynamicObject) -> Result<(), anyhow::Error> {
        let (name, metadata) = (revision.name_any(), &revision.metadata);
        let finalizers = metadata.finalizers.iter().flatten();
        let others: Vec<&String> = finalizers.filter(|it| !is_expected(it)).collect();
        let patch = json!({ "metadata": { "uid": metadata.uid, "finalizers": others } });
        let released =
            self.api.patch_metadata(&name, &patch_parameters(false), &Patch::Merge(patch)).await;
        match released {
            // It went with the Operator.
            Err(Error::Api(status)) if matches!(status.code, 404 | 409) => {}
            other => {
                other.with_context(|| format!("failed to release OperatorRevision `{name}`"))?;
            }
        }
        if !is_gone(&self.api, &name, metadata.uid.as_deref()).await {
            bail!("OperatorRevision `{name}` has other finalizers, and is still there");
        }
        Ok(())
    }

    /// Writes the history of the Operator to its successor, whose OperatorRevisions it takes over, and which
    /// revision is installed unless that is not among the kept ones. Returns whether it is.
    ///
    /// # Errors
    ///
    /// When the request fails.
    pub(super) async fn write_status(
        &self,
        operators: &Api<Operator>,
        successor: &DynamicObject,
        kept: &BTreeSet<u64>,
    ) -> Result<bool, anyhow::Error> {
        let (name, before) = (successor.name_any(), &self.record.operator.data["status"]);
        let is_kept = before["revision"].as_u64().is_some_and(|it| kept.contains(&it));
        let earlier = before["predecessors"].as_array().into_iter().flatten().cloned();
        // The one that was let go may have made some, too.
        let let_go = Some(&self.going).filter(|it| *it != self.record.uid());
        let let_go = let_go.map(|it| json!(it)).into_iter().chain([json!(self.record.uid())]);
        let predecessors: Vec<Value> = let_go.chain(earlier).collect();
        let mut status = json!({
            "observedGeneration": 0,
            "history": before["history"],
            // The signatures of the OperatorRevisions are for these.
            "predecessors": predecessors,
        });
        if is_kept {
            status["revision"] = before["revision"].clone();
        }
        let patch = json!({ "metadata": { "uid": successor.metadata.uid }, "status": status });
        operators
            .patch_status(&name, &patch_parameters(false), &Patch::Merge(patch))
            .await
            .with_context(|| format!("failed to write the history of Operator `{name}` back"))?;
        Ok(is_kept)
    }
}

/// Returns the number of the revision that an OperatorRevision is a part of.
fn number(revision: &DynamicObject) -> Option<u64> {
    revision.data["spec"]["revision"].as_u64()
}
