//! Plan of an Action, as a value: its changes and their effects.

use plimsoll_api::olm::action::{ChangeOperation, PlannedChange};
use plimsoll_content::hash::sha256;
use serde_json::Value;

use crate::deletion_plan::{PlannedDeletion, workload_text};
use crate::manifest::{ChangeSetEdit, OperatorManifest};
use crate::observed::ObservedOperator;
use crate::planner::is_pinned;

/// The changes that an Action makes, and their effects.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ActionPlan {
    /// The changes, in order.
    pub changes: Vec<PlannedChange>,
    /// The explanation for users, a line each.
    pub explanation: Vec<String>,
    /// The requirements that are not satisfied afterwards, as sentences.
    pub unsatisfied: Vec<String>,
    /// The Operators that were installed as dependencies and that no Operator depends on afterwards.
    pub orphans: Vec<String>,
    /// The result of a query; empty for a change.
    pub result: String,
}

impl ActionPlan {
    /// Returns the digest of the changes.
    pub fn digest(&self) -> String {
        digest(&self.changes)
    }

    /// Pins the Operators that are written to the planned `versions` or `catalogs`, which a policy has
    /// judged, so that they do not leave its range or its catalogs later.
    pub fn request_exactly(&mut self, versions: bool, catalogs: bool) {
        for change in &mut self.changes {
            let is_requested = match change.operation {
                ChangeOperation::Create => true,
                ChangeOperation::Update => change.requested != change.requested_before,
                _ => false,
            };
            if is_requested && catalogs {
                match &mut change.manifest {
                    Some(it) => it["spec"]["repository"] = change.catalog.as_str().into(),
                    None => change.repository.clone_from(&change.catalog),
                }
            }
            if is_requested && versions && !is_pinned(&change.requested) {
                change.requested.clone_from(&change.version);
                if let Some(manifest) = &mut change.manifest {
                    manifest["spec"]["version"] = change.version.as_str().into();
                }
            }
        }
    }

    /// Returns the plan as expressions see it: `changes`, `unsatisfied` and `orphans`.
    pub fn value(&self) -> Value {
        serde_json::json!({
            "changes": self.changes,
            "unsatisfied": self.unsatisfied,
            "orphans": self.orphans,
        })
    }

    /// Returns the Operators of its changes, including those that are only awaited.
    pub fn operators(&self) -> impl Iterator<Item = &str> {
        self.changes.iter().filter(|it| !it.is_release()).map(|it| it.operator.as_str())
    }
}

/// Returns the digest of changes, regardless of their progress.
pub fn digest(changes: &[PlannedChange]) -> String {
    let planned = changes.iter().map(|it| PlannedChange {
        state: Default::default(),
        reason: String::new(),
        message: String::new(),
        ..it.clone()
    });
    let planned: Vec<PlannedChange> = planned.collect();
    let text = serde_json::to_vec(&planned).expect("its keys are strings");
    sha256([text.as_slice()])
}

/// Returns the workloads that changes delete, as texts.
pub(super) fn workloads_of(changes: &[PlannedChange]) -> Vec<String> {
    let deleted = changes.iter().filter(|it| it.operation == ChangeOperation::Delete);
    let texts = deleted.flat_map(|change| {
        let texts = change.workloads.iter().map(workload_text);
        texts.map(move |text| format!("{text} of {}", change.operator))
    });
    texts.collect()
}

/// Returns the change that writes an Operator; `there` is the one that exists.
pub(crate) fn change(
    manifest: &OperatorManifest,
    there: Option<&ObservedOperator>,
    version: String,
) -> PlannedChange {
    let change = PlannedChange {
        operator: manifest.name.clone(),
        requested: manifest.version.clone(),
        version,
        dependency: manifest.is_dependency,
        change_set: manifest.change_set.value().unwrap_or_default().to_owned(),
        ..PlannedChange::default()
    };
    match there {
        None => {
            // The annotation of the change set is written when the change is made.
            let manifest = OperatorManifest { change_set: ChangeSetEdit::Keep, ..manifest.clone() };
            let (operation, manifest) = (ChangeOperation::Create, Some(manifest.object()));
            PlannedChange { operation, manifest, ..change }
        }
        Some(there) => PlannedChange {
            operation: ChangeOperation::Update,
            uid: there.uid.clone(),
            requested_before: there.spec.version.clone(),
            version_before: there.version().to_owned(),
            ..change
        },
    }
}

/// Returns the change that deletes an Operator; `there` is the one that exists.
pub(crate) fn removal(it: &PlannedDeletion, there: Option<&ObservedOperator>) -> PlannedChange {
    PlannedChange {
        operator: it.name.clone(),
        operation: ChangeOperation::Delete,
        uid: there.map(|it| it.uid.clone()).unwrap_or_default(),
        requested_before: there.map(|it| it.spec.version.clone()).unwrap_or_default(),
        version_before: it.version.clone(),
        dependency: it.as_orphan,
        workloads: if it.keeps_definitions { Vec::new() } else { it.workloads.clone() },
        ..PlannedChange::default()
    }
}

/// Returns the wait for a version of an Operator that is requested already.
pub(super) fn awaited(
    name: &str,
    there: &ObservedOperator,
    version: String,
    dependency: bool,
) -> PlannedChange {
    PlannedChange {
        operator: name.to_owned(),
        operation: ChangeOperation::Await,
        uid: there.uid.clone(),
        requested: there.spec.version.clone(),
        version,
        dependency,
        ..PlannedChange::default()
    }
}
#[cfg(test)]
mod tests;
