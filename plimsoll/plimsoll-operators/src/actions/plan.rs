//! Plan of an Action, as a value: its changes and their effects.

use plimsoll_api::olm::action::{ChangeOperation, PlannedChange};
use serde_json::Value;

use crate::deletion_plan::workload_text;
use crate::planned_change::digest;
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

/// Returns the workloads that changes delete, as texts.
pub(super) fn workloads_of(changes: &[PlannedChange]) -> Vec<String> {
    let deleted = changes.iter().filter(|it| it.operation == ChangeOperation::Delete);
    let texts = deleted.flat_map(|change| {
        let texts = change.workloads.iter().map(workload_text);
        texts.map(move |text| format!("{text} of {}", change.operator))
    });
    texts.collect()
}
