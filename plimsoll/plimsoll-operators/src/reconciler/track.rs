//! State of an Operator: its object, its revisions, and its preparation, rollout and removal.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use plimsoll_api::config::{MetaCondition, UpdateState};
use plimsoll_api::olm::{
    BundleReference, CHANGE_SET_ANNOTATION, DELETION_FINALIZER, INSTALLED_AS_DEPENDENCY,
    INSTALLED_AS_LABEL, OperatorHistory, OperatorRevisionSpec, OperatorSpec, OperatorStatus,
    RollbackPolicy,
};
use plimsoll_plan::plan::GroupVersionKind;
use plimsoll_plan::reconciler::Uptime;
use plimsoll_plan::reconciler::execution::PlanExecution;
use serde::Deserialize;
use serde_json::Value;

use super::parse::{self, InvalidSpec};
use super::removal::Removal;
use super::revision::{KeptRevision, RevisionDraft};
use super::{Moment, OperatorReconciler};
use crate::{
    InstalledOperator, OperatorAction, OperatorBlock, OperatorDecision, RequestedOperator,
};

/// The number of entries of a history that are kept.
const HISTORY_KEPT: usize = 10;

/// An Operator as a watch showed it.
#[derive(Debug, Clone, Default)]
pub(super) struct OperatorObject {
    pub(super) uid: String,
    /// The resourceVersion.
    pub(super) revision: String,
    pub(super) generation: i64,
    pub(super) finalizers: Vec<String>,
    /// The time at which the deletion was requested; `None` if it was not.
    pub(super) deleted: Option<Timestamp>,
    /// The requested spec; while `invalid` is set, the last valid one, or a paused one if there was none.
    pub(super) spec: OperatorSpec,
    /// The progress deadline of rollouts; `None` for none.
    pub(super) deadline: Option<Duration>,
    /// The reason that the spec cannot be read; `None` if it can.
    pub(super) invalid: Option<InvalidSpec>,
}

impl OperatorObject {
    pub(super) fn has_finalizer(&self) -> bool {
        self.finalizers.iter().any(|it| it == DELETION_FINALIZER)
    }
}

/// The inputs of a new revision.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RevisionInputs {
    pub(super) bundle: BundleReference,
    pub(super) config: Option<Value>,
    pub(super) namespace: String,
    /// The unmet constraints that the policy overrides, as sentences.
    pub(super) risks: Vec<String>,
    /// The generation of the spec that requests it.
    pub(super) generation: i64,
}

impl RevisionInputs {
    /// Returns whether both result in the same revision.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.bundle == other.bundle
            && self.config == other.config
            && self.namespace == other.namespace
    }
}

/// The progress of preparing a revision.
#[derive(Debug, Clone)]
pub(super) enum Preparation {
    /// The bundle is being read.
    Reading { ticket: u64, wanted: RevisionInputs },
    /// The objects that it would apply are being inspected.
    Inspecting { ticket: u64, wanted: RevisionInputs, draft: Box<RevisionDraft> },
    /// Its OperatorRevisions are being written.
    Writing { ticket: u64, wanted: RevisionInputs, number: u32, revision: Box<KeptRevision> },
    /// The preparation is blocked.
    Failed { wanted: RevisionInputs, block: OperatorBlock, is_bundle: bool, retry_at: Uptime },
}

impl Preparation {
    pub(super) fn wanted(&self) -> &RevisionInputs {
        match self {
            Self::Reading { wanted, .. }
            | Self::Inspecting { wanted, .. }
            | Self::Writing { wanted, .. }
            | Self::Failed { wanted, .. } => wanted,
        }
    }
}

/// The rollout of a revision, in progress or complete.
#[derive(Debug, Clone)]
pub(super) struct OperatorRollout {
    pub(super) run: u64,
    /// The number of the revision.
    pub(super) number: u32,
    /// The generation of the spec at the start.
    pub(super) generation: i64,
    pub(super) execution: PlanExecution,
    /// The namespaces of its objects.
    pub(super) namespaces: BTreeSet<String>,
    /// The kinds of its objects, and those that they define.
    pub(super) kinds: BTreeSet<GroupVersionKind>,
    /// The start time, for the deadline.
    pub(super) began: Timestamp,
    pub(super) is_complete: bool,
    /// The reason that it counts as failed although it continues; `None` if it does not.
    pub(super) overdue: Option<String>,
    /// Whether objects that only earlier revisions have are deleted.
    pub(super) is_tidy: bool,
}

/// An OperatorRevision that the cluster has.
#[derive(Debug, Clone)]
pub(super) struct WrittenRevision {
    /// The name of its Operator, which may be deleted.
    operator: String,
    /// The number of its revision.
    number: u32,
}

/// The state of an Operator.
#[derive(Debug, Clone, Default)]
pub(super) struct TrackedOperator {
    pub(super) object: OperatorObject,
    pub(super) revisions: BTreeMap<u32, KeptRevision>,
    /// The OperatorRevisions that are not usable, by name, each with its number and the reason.
    pub(super) unusable: BTreeMap<String, (u32, String)>,
    /// The number of the revision that was completed last; `None` before the first.
    pub(super) installed: Option<u32>,
    /// The history, newest first.
    pub(super) history: Vec<OperatorHistory>,
    pub(super) decision: Option<OperatorDecision>,
    pub(super) preparation: Option<Preparation>,
    /// The block of the last attempt while it is retried, and whether it is due to the bundle.
    pub(super) last_block: Option<(OperatorBlock, bool)>,
    pub(super) rollout: Option<OperatorRollout>,
    pub(super) removal: Option<Removal>,
    /// Whether the finalizer is being written.
    pub(super) is_finalizer_write_pending: bool,
    /// The time at which a failed write of the finalizer is retried; `None` if none failed.
    pub(super) finalizer_at: Option<Uptime>,
    /// The status as the cluster has it.
    pub(super) reported: OperatorStatus,
    /// Whether a status is being written.
    pub(super) is_status_write_pending: bool,
    /// The earliest time of the next status; `None` for any time.
    pub(super) status_at: Option<Uptime>,
    /// The conditions that events were emitted for.
    pub(super) reported_conditions: Vec<MetaCondition>,
}

impl TrackedOperator {
    /// Drops the preparation and the block of the last attempt.
    pub(super) fn forget_preparation(&mut self) {
        self.preparation = None;
        self.last_block = None;
    }

    /// Returns the installed revision, with its number; `None` if it is not complete.
    pub(super) fn installed_revision(&self) -> Option<(u32, &KeptRevision)> {
        let number = self.installed?;
        Some((number, self.revisions.get(&number).filter(|it| it.is_complete())?))
    }

    /// Returns the revision whose rollout is in progress, by the history.
    pub(super) fn begun(&self) -> Option<u32> {
        let newest = self.history.first().filter(|it| it.state == UpdateState::Partial)?;
        let is_kept = self.revisions.get(&newest.revision).is_some_and(KeptRevision::is_complete);
        is_kept.then_some(newest.revision)
    }

    /// Returns the revisions whose objects it has or is about to have, by number: the installed one, the one
    /// that is rolled out, and the one that is being written.
    pub(super) fn held(&self) -> impl Iterator<Item = (u32, &KeptRevision)> {
        let rollout = self.rollout.as_ref().map(|it| it.number);
        let numbers = self.installed.into_iter().chain(rollout);
        let kept = numbers.filter_map(|number| Some((number, self.revisions.get(&number)?)));
        let written = match &self.preparation {
            Some(Preparation::Writing { number, revision, .. }) => Some((*number, &**revision)),
            _ => None,
        };
        kept.chain(written)
    }

    /// Adds those entries of the reported history that are older than the known ones: all of it at first, and
    /// entries that were written back when the deletion of the Operator was aborted.
    fn take_earlier_history(&mut self) {
        let oldest = self.history.last().map(|it| it.started_time.as_second());
        let is_earlier = |it: &&OperatorHistory| {
            oldest.is_none_or(|oldest| it.started_time.as_second() < oldest)
        };
        self.history.extend(self.reported.history.iter().filter(is_earlier).cloned());
        self.history.truncate(HISTORY_KEPT);
    }

    /// Records the start of the rollout of a revision.
    pub(super) fn record_begin(&mut self, number: u32, risks: &[String], now: Timestamp) {
        if self
            .history
            .first()
            .is_some_and(|it| it.revision == number && it.state == UpdateState::Partial)
        {
            return;
        }
        let Some(revision) = self.revisions.get(&number) else { return };
        let entry = OperatorHistory {
            state: UpdateState::Partial,
            started_time: now,
            completion_time: None,
            revision: number,
            bundle: revision.bundle.name.clone(),
            version: revision.bundle.version.clone(),
            accepted_risks: risks.join("; "),
        };
        self.history.insert(0, entry);
        self.history.truncate(HISTORY_KEPT);
    }

    /// Records the return to a revision that was complete before.
    pub(super) fn record_return(&mut self, number: u32, now: Timestamp) {
        let Some(revision) = self.revisions.get(&number) else { return };
        let entry = OperatorHistory {
            state: UpdateState::Completed,
            started_time: now,
            completion_time: Some(now),
            revision: number,
            bundle: revision.bundle.name.clone(),
            version: revision.bundle.version.clone(),
            accepted_risks: String::new(),
        };
        self.history.insert(0, entry);
        self.history.truncate(HISTORY_KEPT);
    }

    /// Returns whether a bundle was rolled back, so that it is not tried again automatically.
    pub(super) fn was_rolled_back(&self, bundle: &str) -> bool {
        let mut completed = self.history.iter().skip_while(|it| it.bundle == bundle);
        self.object.spec.rollback == RollbackPolicy::Automatic
            && self.history.first().is_some_and(|it| it.state == UpdateState::Completed)
            && completed.any(|it| it.bundle == bundle && it.state == UpdateState::Partial)
    }

    /// Returns when the next decision is due; `None` if only an event causes one.
    pub(super) fn wake_at(&self, moment: Moment) -> Option<Uptime> {
        let after = |at: Timestamp| {
            let delay = at.duration_since(moment.steady);
            moment.uptime + Duration::try_from(delay).unwrap_or_default()
        };
        let rollout = self.rollout.as_ref();
        let execution = rollout.and_then(|it| it.execution.wake_at());
        let deadline =
            rollout.filter(|it| !it.is_complete && it.overdue.is_none()).and_then(|it| {
                let limit = SignedDuration::try_from(self.object.deadline?).ok()?;
                it.began.saturating_add(limit).ok()
            });
        let retry = match &self.preparation {
            Some(Preparation::Failed { retry_at, .. }) => Some(*retry_at),
            _ => None,
        };
        let removal = self.removal.as_ref().and_then(|it| it.wake_at());
        // The response to the last write comes first.
        let status = self.status_at.filter(|_| !self.is_status_write_pending);
        let times = [execution, deadline].into_iter().flatten().map(after);
        let is_paused =
            matches!(self.decision.as_ref().map(|it| &it.action), Some(OperatorAction::Paused));
        match is_paused {
            true => status,
            false => {
                let others = [retry, removal, status, self.finalizer_at];
                times.chain(others.into_iter().flatten()).min()
            }
        }
    }

    /// Clears the times that have come.
    pub(super) fn woken(&mut self, moment: Moment) {
        let is_over = |at: &Uptime| *at <= moment.uptime;
        if self.status_at.as_ref().is_some_and(is_over) {
            self.status_at = None;
        }
        if self.finalizer_at.as_ref().is_some_and(is_over) {
            self.finalizer_at = None;
        }
        if let Some(removal) = &mut self.removal {
            removal.woken(moment.uptime);
        }
    }
}

impl OperatorReconciler {
    /// Handles an Operator that a watch showed; `None` if it was deleted.
    pub(super) fn operator_changed(&mut self, name: &str, object: Option<&Value>, moment: Moment) {
        let Some(value) = object else {
            self.operators.remove(name);
            if let Some(request) = self.requested.remove(name) {
                self.installed.remove(name, &request);
                self.undecided_with(&request);
            }
            self.mark_affected_undecided(name);
            self.unsettled.insert(name.to_owned());
            return;
        };
        let parsed = parse::operator(value);
        let status = OperatorStatus::deserialize(&value["status"]).unwrap_or_default();
        let metadata = &value["metadata"];
        let text = |field: &str| metadata[field].as_str().unwrap_or_default().to_owned();
        let time = |field: &str| metadata[field].as_str().and_then(|it| it.parse().ok());
        let finalizers = metadata["finalizers"].as_array().map(Vec::as_slice).unwrap_or_default();
        let seen = OperatorObject {
            uid: text("uid"),
            revision: text("resourceVersion"),
            generation: metadata["generation"].as_i64().unwrap_or_default(),
            finalizers: finalizers.iter().filter_map(|it| Some(it.as_str()?.to_owned())).collect(),
            deleted: time("deletionTimestamp"),
            ..OperatorObject::default()
        };
        if self.operators.get(name).is_some_and(|known| known.object.uid != seen.uid) {
            // The Operator was deleted and created again.
            self.operators.remove(name);
        }
        let seen = match (parsed, self.operators.get(name).map(|it| &it.object)) {
            (Ok((spec, deadline)), _) => OperatorObject { spec, deadline, ..seen },
            (Err(invalid), Some(OperatorObject { spec, deadline, .. })) => {
                let (spec, deadline) = (spec.clone(), *deadline);
                OperatorObject { spec, deadline, invalid: Some(invalid), ..seen }
            }
            (Err(invalid), None) => {
                let spec = OperatorSpec { paused: true, ..OperatorSpec::default() };
                OperatorObject { spec, invalid: Some(invalid), ..seen }
            }
        };
        let is_new = !self.operators.contains_key(name);
        let annotation = metadata["annotations"][CHANGE_SET_ANNOTATION].as_str();
        let mut before = self.requested.remove(name);
        let (installed, owned) = before
            .as_mut()
            .map(|it| (it.installed.take(), std::mem::take(&mut it.owned)))
            .unwrap_or_default();
        let request = RequestedOperator {
            spec: seen.spec.clone(),
            created: time("creationTimestamp").unwrap_or(moment.time),
            is_dependency: metadata["labels"][INSTALLED_AS_LABEL] == INSTALLED_AS_DEPENDENCY,
            change_set: annotation.map(str::to_owned),
            is_deleting: seen.deleted.is_some(),
            installed,
            owned,
        };
        let operator = self.operators.entry(name.to_owned()).or_default();
        operator.object = seen;
        if operator.object.has_finalizer() {
            operator.is_finalizer_write_pending = false;
        }
        operator.reported = status;
        if is_new {
            operator.installed = operator.reported.revision;
            operator.reported_conditions = operator.reported.conditions.clone();
        }
        operator.take_earlier_history();
        self.requested.insert(name.to_owned(), request);
        if is_new {
            self.adopt_revisions(name);
        }
        self.refresh_request(name);
        let after = self.requested.get(name);
        let is_changed = before.as_ref().zip(after).is_none_or(|(before, after)| {
            before.spec != after.spec
                || before.change_set != after.change_set
                || before.is_dependency != after.is_dependency
                || before.is_deleting != after.is_deleting
        });
        if is_changed {
            if let Some(before) = before {
                self.undecided_with(&before);
            }
            self.undecided.insert(name.to_owned());
            self.mark_affected_undecided(name);
        }
        self.unsettled.insert(name.to_owned());
    }

    /// Handles an OperatorRevision that a watch showed; `None` if it was deleted.
    pub(super) fn revision_changed(&mut self, name: &str, object: Option<&Value>, moment: Moment) {
        let Some(value) = object else {
            self.written_revisions.remove(name);
            self.unclaimed.remove(name);
            let mut affected = Vec::new();
            for (operator, tracked) in &mut self.operators {
                tracked.unusable.remove(name);
                let count = tracked.revisions.len();
                tracked.revisions.retain(|_, revision| !revision.forget(name));
                if tracked.revisions.len() != count {
                    affected.push(operator.clone());
                }
            }
            for operator in affected {
                self.reindex(&operator, moment);
                self.refresh_request(&operator);
                self.undecided.insert(operator);
            }
            return;
        };
        let spec = match OperatorRevisionSpec::deserialize(&value["spec"]) {
            Ok(spec) => spec,
            Err(_) => return,
        };
        let owner = controller(&value["metadata"]);
        let written = WrittenRevision { operator: spec.operator.clone(), number: spec.revision };
        self.written_revisions.insert(name.to_owned(), written);
        let operator = self.operators.get_mut(&spec.operator);
        let Some(operator) = operator.filter(|it| it.object.uid == owner) else {
            // Either its Operator was deleted, and it will be as well, or its Operator is new and was not
            // shown yet.
            self.unclaimed.insert(name.to_owned(), (owner.to_owned(), spec));
            return;
        };
        operator.add_revision(name, &spec);
        let operator = spec.operator;
        self.reindex(&operator, moment);
        self.refresh_request(&operator);
        self.undecided.insert(operator);
    }

    /// Adds the revisions that were shown before their Operator.
    fn adopt_revisions(&mut self, name: &str) {
        let Some(operator) = self.operators.get_mut(name) else { return };
        let uid = operator.object.uid.clone();
        let is_of = |_: &String, (owner, spec): &mut (String, OperatorRevisionSpec)| {
            spec.operator == name && *owner == uid
        };
        for (revision, (_, spec)) in self.unclaimed.extract_if(.., is_of) {
            operator.add_revision(&revision, &spec);
        }
    }

    /// Returns the number of the next revision of an Operator: one that no OperatorRevision of an Operator
    /// with this name has, even if that was deleted.
    pub(super) fn next_revision(&self, name: &str) -> u32 {
        let written = self.written_revisions.values().filter(|it| it.operator == name);
        let operator = self.operators.get(name);
        let history = operator.into_iter().flat_map(|it| &it.history).map(|it| it.revision);
        let kept = operator.into_iter().flat_map(|it| it.revisions.keys().copied());
        let known = written.map(|it| it.number).chain(history).chain(kept);
        known.max().unwrap_or_default() + 1
    }

    /// Returns the reason, as a sentence, that blocks other minor and major versions of an Operator: that of
    /// its ClusterOperator, else objects that its last update has not deleted.
    pub(super) fn upgrade_block(&self, name: &str) -> Option<String> {
        let removal = self.operators.get(name).and_then(|it| it.removal.as_ref());
        self.observed.upgrade_block(name).or_else(|| removal?.leftovers())
    }

    /// Updates the inputs of decisions to what is installed. If they change, the Operators that this affects
    /// are decided on again.
    pub(super) fn refresh_request(&mut self, name: &str) {
        let Some(operator) = self.operators.get(name) else { return };
        let numbers = operator.installed.into_iter().chain(operator.begun());
        let owned = numbers.filter_map(|number| operator.revisions.get(&number));
        let owned = owned.flat_map(KeptRevision::defined).collect();
        let upgrade_block = self.upgrade_block(name);
        let Some(request) = self.requested.get_mut(name) else { return };
        let installed = operator.installed_revision().map(|(number, revision)| InstalledOperator {
            reference: revision.bundle.clone(),
            bundle: revision.resolver_bundle(name),
            revision: number,
            upgrade_block,
        });
        if request.owned == owned && request.installed == installed {
            return;
        }
        self.installed.remove(name, request);
        (request.owned, request.installed) = (owned, installed);
        self.installed.insert(name, request);
        self.mark_affected_undecided(name);
    }
}

/// Returns the uid of the controlling owner of an object; empty without one.
fn controller(metadata: &Value) -> &str {
    let owners = metadata["ownerReferences"].as_array().map(Vec::as_slice).unwrap_or_default();
    let controller = owners.iter().find(|it| it["controller"] == true);
    controller.and_then(|it| it["uid"].as_str()).unwrap_or_default()
}

impl TrackedOperator {
    fn add_revision(&mut self, name: &str, spec: &OperatorRevisionSpec) {
        match KeptRevision::read(name, spec) {
            Ok(revision) => {
                self.unusable.remove(name);
                match self.revisions.get_mut(&spec.revision) {
                    Some(known) => known.merge(revision),
                    None => {
                        self.revisions.insert(spec.revision, revision);
                    }
                }
            }
            Err(error) => {
                self.unusable.insert(name.to_owned(), (spec.revision, error));
            }
        }
    }
}
