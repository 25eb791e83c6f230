//! The record of an abort: what has to be written again, kept in the cluster until that is done. If the process is
//! killed on the way, the next abort goes on with it.
//!
//! It consists of OperatorRevisions, since whoever aborts a deletion may write these anyway. They are not signed and
//! name an Operator that does not exist, so the controller leaves them alone.

use std::collections::BTreeSet;

use anyhow::{Context as _, bail};
use json_patch::jsonptr::PointerBuf;
use json_patch::{PatchOperation, ReplaceOperation};
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PostParams};
use kube::{Api, Client, Error, ResourceExt};
use plimsoll_api::OPERATOR_REVISION;
use plimsoll_api::olm::ABORT_OF_ANNOTATION;
use plimsoll_simulation::cluster_state::api;
use serde_json::{Value, json};

use crate::commands::operator::{FIELD_MANAGER, patch_parameters};

/// The record of the abort of a deletion.
pub(super) struct AbortRecord {
    api: Api<DynamicObject>,
    /// The Operator as it was.
    pub(super) operator: DynamicObject,
    /// The names of its OperatorRevisions that are kept.
    pub(super) revisions: BTreeSet<String>,
    /// Those that were being deleted, as they were.
    pub(super) terminating: Vec<DynamicObject>,
}

impl AbortRecord {
    /// Reads the record of an abort that was interrupted; `None` if there is none.
    ///
    /// # Errors
    ///
    /// When the request fails, or the record was changed.
    pub(super) async fn read(client: &Client, name: &str) -> Result<Option<Self>, anyhow::Error> {
        let api = api(client, OPERATOR_REVISION);
        let found = api.list(&ListParams::default()).await;
        let found = found.context("failed to list OperatorRevisions")?.items;
        let record = recorded_name(name);
        let is_of = |it: &&DynamicObject| it.data["spec"]["operator"] == record.as_str();
        let (mut main, mut terminating) = (None, Vec::new());
        for object in found.iter().filter(is_of) {
            let config = &object.data["spec"]["config"];
            if object.name_any() == record {
                main = Some(config);
            } else {
                terminating.push(kept(&config["revision"], &object.name_any())?);
            }
        }
        let Some(config) = main else { return Ok(None) };
        let operator = kept(&config["operator"], &record)?;
        let names = config["revisions"].as_array().into_iter().flatten();
        let revisions = names.filter_map(|it| Some(it.as_str()?.to_owned())).collect();
        Ok(Some(Self { api, operator, revisions, terminating }))
    }

    /// Writes the record of an Operator and its OperatorRevisions, in place of an earlier one.
    ///
    /// # Errors
    ///
    /// When a request fails.
    pub(super) async fn write(
        client: &Client,
        operator: &DynamicObject,
        revisions: BTreeSet<String>,
        terminating: Vec<DynamicObject>,
        earlier: Option<Self>,
    ) -> Result<Self, anyhow::Error> {
        let api = api(client, OPERATOR_REVISION);
        let record = recorded_name(&operator.name_any());
        let config = json!({ "operator": without_managers(operator), "revisions": revisions });
        let (is_known, copied) = match earlier {
            Some(earlier) => (true, earlier.terminating),
            None => (false, Vec::new()),
        };
        let written = match is_known {
            true => {
                let path = PointerBuf::from_tokens(["spec", "config"]);
                let replaced = PatchOperation::Replace(ReplaceOperation { path, value: config });
                let patch = Patch::<()>::Json(json_patch::Patch(vec![replaced]));
                api.patch_metadata(&record, &patch_parameters(false), &patch).await.map(|_| ())
            }
            false => create(&api, &record, &record, config).await,
        };
        written.with_context(|| format!("failed to write OperatorRevision `{record}`"))?;
        let mut written = Self { api, operator: operator.clone(), revisions, terminating: copied };
        for revision in terminating {
            let name = revision.name_any();
            if written.terminating.iter().any(|it| it.name_any() == name) {
                continue;
            }
            let config = json!({ "revision": without_managers(&revision) });
            let copied = create(&written.api, &recorded_name(&name), &record, config).await;
            copied.with_context(|| format!("failed to copy OperatorRevision `{name}`"))?;
            written.terminating.push(revision);
        }
        Ok(written)
    }

    /// Returns the uid of the Operator.
    pub(super) fn uid(&self) -> &str {
        self.operator.metadata.uid.as_deref().unwrap_or_default()
    }

    /// Returns whether the record is that of an Operator, or of its predecessor: an abort that was interrupted has
    /// created it again, and it is being deleted before it is complete.
    pub(super) fn is_continued_by(&self, operator: &DynamicObject) -> bool {
        let abort_of = operator.annotations().get(ABORT_OF_ANNOTATION);
        operator.metadata.uid.as_deref() == Some(self.uid())
            || abort_of.is_some_and(|it| it == self.uid()) && !self.is_done(operator)
    }

    /// Returns whether nothing is left to do: its successor is complete.
    pub(super) fn is_done(&self, successor: &DynamicObject) -> bool {
        is_complete(successor, self.uid())
    }

    /// Fails if an Operator was not created again by the abort.
    ///
    /// # Errors
    ///
    /// When it was not: another client has created it meanwhile.
    pub(super) fn require_successor(&self, there: &DynamicObject) -> Result<(), anyhow::Error> {
        let abort_of = there.annotations().get(ABORT_OF_ANNOTATION);
        if abort_of.is_some_and(|it| it == self.uid()) {
            return Ok(());
        }
        let (name, record) = (there.name_any(), recorded_name(&there.name_any()));
        let kept: String = self.revisions.iter().map(|it| format!(", {it}")).collect();
        bail!(
            "another client has created Operator `{name}` since the abort of its deletion was interrupted; \
             `kubectl get operatorrevision {record} -o yaml` shows the Operator as it was. Delete {record}{kept} and \
             the OperatorRevisions with the spec.operator {record} once they are not needed"
        );
    }

    /// Deletes the record.
    ///
    /// # Errors
    ///
    /// When a request fails.
    pub(super) async fn forget(&self) -> Result<(), anyhow::Error> {
        // What the copies belong to goes last.
        let copies = self.terminating.iter().map(ResourceExt::name_any);
        for name in copies.chain([self.operator.name_any()]) {
            let record = recorded_name(&name);
            match self.api.delete(&record, &DeleteParams::default()).await {
                Err(Error::Api(status)) if status.code == 404 => {}
                deleted => drop(deleted.with_context(|| {
                    format!(
                        "failed to delete OperatorRevision `{record}`, which is not needed any more"
                    )
                })?),
            }
        }
        Ok(())
    }
}

/// Returns whether the successor of the Operator with a uid has its history, and is not held for the abort any more:
/// the last step resumes it, and so may a person.
fn is_complete(successor: &DynamicObject, uid: &str) -> bool {
    let predecessors = successor.data["status"]["predecessors"].as_array();
    let has_history = predecessors.into_iter().flatten().any(|it| it == uid);
    let is_paused = successor.data["spec"]["paused"] == true;
    has_history && !(is_paused && successor.annotations().contains_key(ABORT_OF_ANNOTATION))
}

/// Returns the name of the OperatorRevision that records an Operator, or has a copy of another OperatorRevision.
fn recorded_name(name: &str) -> String {
    format!("{name}.aborting")
}

/// Returns an object without the managers of its fields, which are as large as itself.
fn without_managers(object: &DynamicObject) -> DynamicObject {
    let mut object = object.clone();
    object.metadata.managed_fields = None;
    object
}

/// Reads an object that is kept in a record.
fn kept(object: &Value, record: &str) -> Result<DynamicObject, anyhow::Error> {
    let object: Result<DynamicObject, _> = serde_json::from_value(object.clone());
    object.with_context(|| {
        format!(
            "OperatorRevision `{record}` is no record of an abort: another client has changed it"
        )
    })
}

/// Creates a part of a record.
async fn create(
    api: &Api<DynamicObject>,
    name: &str,
    record: &str,
    config: Value,
) -> Result<(), Error> {
    let object = json!({
        "apiVersion": OPERATOR_REVISION.api_version(),
        "kind": OPERATOR_REVISION.kind,
        "metadata": { "name": name },
        "spec": {
            "operator": record,
            "revision": 1,
            "part": { "number": 1, "of": 1 },
            "digest": "",
            "bundle": { "name": "", "version": "" },
            "namespace": "",
            "config": config,
            "objects": [],
        },
    });
    let object: DynamicObject = serde_json::from_value(object).map_err(Error::SerdeError)?;
    let parameters =
        PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
    api.create(&parameters, &object).await.map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_successor_is_complete_once_it_has_its_history_and_is_resumed() {
        for (annotations, is_paused, predecessors, expected) in [
            (json!({ "olm.io/abort-of": "1" }), true, json!([]), false),
            (json!({ "olm.io/abort-of": "1" }), false, json!([]), false),
            (json!({ "olm.io/abort-of": "1" }), true, json!(["1"]), false),
            (json!({ "olm.io/abort-of": "1" }), false, json!(["1"]), true),
            (json!({}), true, json!(["1"]), true),
            (json!({}), false, json!(["0"]), false),
        ] {
            let object = json!({
                "apiVersion": "olm.io/v1", "kind": "Operator",
                "metadata": { "name": "bar", "uid": "2", "annotations": annotations },
                "spec": { "paused": is_paused },
                "status": { "predecessors": predecessors },
            });
            let successor: DynamicObject = serde_json::from_value(object).expect("an object");
            assert_eq!(is_complete(&successor, "1"), expected, "{successor:?}");
        }
    }
}
