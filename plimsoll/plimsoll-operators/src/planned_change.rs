//! Changes of Operators, as Actions have them and as all plans of changes are shown.

use plimsoll_api::olm::action::{ChangeOperation, ChangeState, PlannedChange};
use plimsoll_content::hash::sha256;

use crate::deletion_plan::PlannedDeletion;
use crate::manifest::{ChangeSetEdit, OperatorManifest};
use crate::observed::ObservedOperator;

/// Returns the digest of changes, regardless of their progress, of what they rely on, and of the names of workloads.
pub fn digest(changes: &[PlannedChange]) -> String {
    let mut planned = without_progress(changes);
    for change in &mut planned {
        change.relies_on.clear();
        change.workloads.iter_mut().for_each(|it| it.names.clear());
    }
    let text = serde_json::to_vec(&planned).expect("its keys are strings");
    sha256([text.as_slice()])
}

/// Returns changes as they were planned, without their progress.
pub fn without_progress(changes: &[PlannedChange]) -> Vec<PlannedChange> {
    let planned = changes.iter().map(|it| PlannedChange {
        state: ChangeState::default(),
        unwritten: false,
        reason: String::new(),
        message: String::new(),
        ..it.clone()
    });
    planned.collect()
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
        becomes_requested: manifest.becomes_requested,
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
            leaves_change_set: match manifest.change_set {
                ChangeSetEdit::Keep => String::new(),
                ChangeSetEdit::Remove | ChangeSetEdit::Set(_) => {
                    let set = there.change_set.clone().unwrap_or_default();
                    if set == change.change_set { String::new() } else { set }
                }
            },
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
        definitions: it.deleted_definitions().map(str::to_owned).collect(),
        ..PlannedChange::default()
    }
}

/// Returns the wait for a version of an Operator that is requested already.
pub(crate) fn awaited(
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
