//! Plan of an Action, as a value: its changes and their effects.

use plimsoll_api::olm::RemainingObjects;
use plimsoll_api::olm::action::{ChangeOperation, ChangeState, PlannedChange};
use serde_json::{Value, json};

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

/// What Operators request exactly as it was judged, so that they do not leave what a policy allows later.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Exactness {
    /// The versions, instead of ranges.
    pub versions: bool,
    /// The catalogs.
    pub catalogs: bool,
    /// The channels.
    pub channels: bool,
    /// The content of the bundles, as it was inspected.
    pub content: bool,
}

impl ActionPlan {
    /// Returns the digest of the changes.
    pub fn digest(&self) -> String {
        digest(&self.changes)
    }

    /// Requests what a policy grants: exactly what it has judged, and no more than that.
    pub fn grant(&mut self, exact: Exactness) {
        self.request_exactly(exact);
        if !exact.content {
            // It was inspected for rules that only report.
            self.changes.iter_mut().for_each(|it| it.inspected.clear());
        }
    }

    /// Pins the Operators that are written to the planned versions, catalogs or channels, which a policy has
    /// judged, so that they do not leave what it allows later.
    fn request_exactly(&mut self, exact: Exactness) {
        for change in &mut self.changes {
            let is_requested = requests_anew(change);
            if is_requested && exact.channels && !change.channel.is_empty() {
                match &mut change.manifest {
                    Some(it) => it["spec"]["channel"] = change.channel.as_str().into(),
                    None => {
                        let fields = change.spec_fields.get_or_insert_with(|| json!({}));
                        fields["channel"] = change.channel.as_str().into();
                    }
                }
            }
            if is_requested && exact.catalogs {
                match &mut change.manifest {
                    Some(it) => it["spec"]["repository"] = change.catalog.as_str().into(),
                    None => change.repository.clone_from(&change.catalog),
                }
            }
            if is_requested && exact.versions && !is_pinned(&change.requested) {
                change.requested.clone_from(&change.version);
                if let Some(manifest) = &mut change.manifest {
                    manifest["spec"]["version"] = change.version.as_str().into();
                }
            }
        }
    }

    /// Returns whether the changes that are not written yet request exactly what a policy asks for.
    pub fn is_exact(&self, exact: Exactness) -> bool {
        let mut requested = self.clone();
        requested.request_exactly(exact);
        let mut pairs = self.changes.iter().zip(&requested.changes);
        pairs.all(|(before, after)| before.state != ChangeState::Planned || before == after)
    }

    /// Returns the plan as expressions see it: `changes`, `unsatisfied` and `orphans`.
    pub fn value(&self) -> Value {
        json!({
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

/// Returns whether a change requests other content than before: another version or range, or another catalog or channel,
/// which has other content for the same range.
pub fn requests_anew(change: &PlannedChange) -> bool {
    match change.operation {
        ChangeOperation::Create => true,
        ChangeOperation::Update => {
            let fields = change.spec_fields.as_ref();
            change.requested != change.requested_before
                || !change.repository.is_empty()
                || fields.is_some_and(|it| it.get("channel").is_some())
        }
        _ => false,
    }
}

/// Returns the workloads that changes delete, as texts.
pub(super) fn workloads_of(changes: &[PlannedChange]) -> Vec<String> {
    let deleted = changes.iter().filter(|it| it.operation == ChangeOperation::Delete);
    let texts = deleted.flat_map(|change| {
        let texts = change.workloads.iter().map(|it| (workload_text(it), named(it)));
        texts.map(move |(text, names)| format!("{text} of {}{names}", change.operator))
    });
    texts.collect()
}

/// Returns the names of workloads in parentheses; empty if they are not listed.
fn named(workloads: &RemainingObjects) -> String {
    let RemainingObjects { names, count, .. } = workloads;
    match count.saturating_sub(names.len()) {
        _ if names.is_empty() => String::new(),
        0 => format!(" ({})", names.join(", ")),
        more => format!(" ({} and {more} more)", names.join(", ")),
    }
}
