//! State of an Operator: its object, its revisions, and its preparation, rollout and removal.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use plimsoll_api::GroupKind;
use plimsoll_api::config::{MetaCondition, UpdateState};
use plimsoll_api::olm::{
    BundleReference, CertificateProvider, DELETION_FINALIZER, OperatorHistory,
    OperatorRevisionSpec, OperatorSpec, OperatorStatus, ReadinessRule,
};
use plimsoll_plan::plan::{Action, GroupVersionKind};
use plimsoll_plan::reconciler::Uptime;
use plimsoll_plan::reconciler::execution::PlanExecution;
use serde_json::Value;

use super::events::{Findings, Moment};
use super::observed::Observed;
use super::parse::InvalidSpec;
use super::removal::Removal;
use super::revision::{KeptRevision, RevisionDraft};
use crate::inspected::Inspection;
use crate::{OperatorAction, OperatorBlock, OperatorDecision};

/// The delay before a failed write of a status is retried.
pub(super) const STATUS_RETRY: Duration = Duration::from_secs(2);

/// An Operator as a watch showed it.
#[derive(Debug, Clone, Default)]
pub(super) struct OperatorObject {
    pub(super) uid: String,
    pub(super) resource_version: String,
    pub(super) generation: i64,
    pub(super) finalizers: Vec<String>,
    /// The time at which the deletion was requested; `None` if it was not.
    pub(super) deleted: Option<Timestamp>,
    /// Whether the deletion was requested with `--cascade=orphan`, so that all objects are kept.
    pub(super) is_orphaning: bool,
    /// The requested spec; while `invalid` is set, the last valid one, or a paused one if there was none.
    pub(super) spec: OperatorSpec,
    /// What was inspected before it was requested; `None` for nothing.
    pub(super) inspected: Option<Inspection>,
    /// The progress deadline of rollouts; `None` for none.
    pub(super) deadline: Option<Duration>,
    /// The reason that the spec cannot be read; `None` if it can.
    pub(super) invalid: Option<InvalidSpec>,
    /// Whether `spec` was requested, now or before; it is not if none could be read yet.
    pub(super) is_spec_known: bool,
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
    pub(super) certificates: CertificateProvider,
    pub(super) ready_when: Vec<ReadinessRule>,
    pub(super) namespace: String,
    /// What may be installed; `None` for what the catalog has.
    pub(super) inspected: Option<Inspection>,
    /// The unmet constraints that the policy overrides, as sentences.
    pub(super) risks: Vec<String>,
    /// The generation of the spec that requests it.
    pub(super) generation: i64,
}

impl RevisionInputs {
    /// Returns why the content of a bundle may not be installed; `None` if it may.
    pub(super) fn uninspected(&self, bundle: &BundleReference) -> Option<String> {
        self.inspected.as_ref()?.problem(bundle)
    }

    /// Returns whether both result in the same revision.
    pub(super) fn has_same_result(&self, other: &Self) -> bool {
        self.bundle == other.bundle
            && self.config == other.config
            && self.certificates == other.certificates
            && self.ready_when == other.ready_when
            && self.namespace == other.namespace
            && self.inspected == other.inspected
    }
}

/// The cause of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BlockCause {
    /// The bundle: it cannot be read, or is invalid.
    Bundle,
    /// The cluster: an object is in the way, or a request failed.
    Cluster,
    /// An object that another Operator of the same change set has before it moves.
    Member,
}

/// The progress of preparing a revision.
#[derive(Debug, Clone)]
pub(super) enum Preparation {
    /// The bundle is being read.
    Reading { ticket: u64, wanted: RevisionInputs },
    /// The objects that it would apply are being inspected. `kept` is its number if it is a kept revision;
    /// `None` for a new one. `found` has the findings while other members of the change set are being read,
    /// which may bring kinds that are not served.
    Inspecting {
        ticket: u64,
        wanted: RevisionInputs,
        draft: Box<RevisionDraft>,
        kept: Option<u32>,
        found: Option<Box<Findings>>,
    },
    /// Its OperatorRevisions are being written.
    Writing { ticket: u64, wanted: RevisionInputs, number: u32, revision: Box<KeptRevision> },
    /// The preparation is blocked.
    Failed { wanted: RevisionInputs, block: OperatorBlock, cause: BlockCause, retry_at: Uptime },
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

    /// Returns whether it is a preparation of these inputs to wait for. A failed one is over after a while, and
    /// at once if another spec may remove the blocker.
    pub(super) fn is_awaited(&self, wanted: &RevisionInputs, now: Uptime) -> bool {
        let is_over = matches!(self, Self::Failed { retry_at, wanted: failed, .. }
            if *retry_at <= now || failed.generation != wanted.generation);
        self.wanted().has_same_result(wanted) && !is_over
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
    /// Whether everything was applied and ready once, by which the deadline is met. Objects may still have to
    /// be migrated, which takes longer the more there are.
    pub(super) has_met_deadline: bool,
    pub(super) is_complete: bool,
    /// The reason that it counts as failed although it continues; `None` if it does not.
    pub(super) overdue: Option<String>,
    /// Whether the objects that only earlier revisions have were deleted.
    pub(super) is_cleaned_up: bool,
}

impl OperatorRollout {
    /// Notes whether everything is applied and ready, but for migrations.
    pub(super) fn note_readiness(&mut self) {
        let progress = self.execution.progress();
        let mut steps = progress.plan().steps.iter().enumerate();
        self.has_met_deadline |=
            steps.all(|(index, step)| step.action == Action::Migrate || progress.is_done(index));
    }

    /// Returns whether it waits for the list of a kind: that of one of its objects, or of namespaces.
    pub(super) fn has_kind(&self, kind: &GroupKind) -> bool {
        let steps = &self.execution.progress().plan().steps;
        kind.kind == "Namespace" || steps.iter().any(|step| step.manifest.key.group_kind() == *kind)
    }
}

/// The state of an Operator.
#[derive(Debug, Clone, Default)]
pub(super) struct TrackedOperator {
    pub(super) object: OperatorObject,
    pub(super) revisions: BTreeMap<u32, KeptRevision>,
    /// The OperatorRevisions that are not usable, by name, each with the reason as a clause.
    pub(super) unusable: BTreeMap<String, String>,
    /// The number of the revision that was completed last; `None` before the first.
    pub(super) installed: Option<u32>,
    /// The history, newest first.
    pub(super) history: Vec<OperatorHistory>,
    pub(super) decision: Option<OperatorDecision>,
    pub(super) preparation: Option<Preparation>,
    /// The number of the revision whose objects were inspected last; `None` once it is rolled out.
    pub(super) inspected: Option<u32>,
    /// The groups of the kinds that are not served and that the last attempt lacked.
    pub(super) unserved: BTreeSet<String>,
    /// The block of the last attempt while it is retried, with its cause.
    pub(super) last_block: Option<(OperatorBlock, BlockCause)>,
    /// The revision that is prepared and waits for the other Operators of the change set, by number.
    pub(super) waiting: Option<u32>,
    /// The Operators of the change set that are refused; `None` if none is.
    pub(super) set_block: Option<OperatorBlock>,
    pub(super) rollout: Option<OperatorRollout>,
    /// The steps that are being executed, each with its run, including those of abandoned rollouts.
    pub(super) executing: BTreeSet<(u64, usize)>,
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
        self.inspected = None;
        self.last_block = None;
    }

    /// Drops the preparation, and keeps the block of the last attempt until it is known whether the next one
    /// fails, too.
    pub(super) fn begin_preparation(&mut self) {
        self.last_block = match self.preparation.take() {
            Some(Preparation::Failed { block, cause, .. }) => Some((block, cause)),
            _ => None,
        };
    }

    /// Returns whether it takes OperatorRevisions that were made for the Operator with a uid: itself, or one whose
    /// deletion was aborted.
    pub(super) fn takes(&self, made_for: &str) -> bool {
        self.object.uid == made_for || self.reported.predecessors.iter().any(|it| it == made_for)
    }

    /// Returns the installed revision, with its number; `None` if it is not complete.
    pub(super) fn installed_revision(&self) -> Option<(u32, &KeptRevision)> {
        let number = self.installed?;
        Some((number, self.revisions.get(&number).filter(|it| it.is_complete())?))
    }

    /// Returns the reason, as a sentence, that blocks other minor and major versions: that of its
    /// ClusterOperator, else objects that its last update has not deleted; `None` if nothing does.
    pub(super) fn upgrade_block(&self, name: &str, observed: &Observed) -> Option<String> {
        observed.upgrade_block(name).or_else(|| self.removal.as_ref()?.leftovers())
    }

    /// Returns the revision whose rollout is in progress, by the history.
    pub(super) fn begun(&self) -> Option<u32> {
        let newest = self.history.first().filter(|it| it.state == UpdateState::Partial)?;
        let is_kept = self.revisions.get(&newest.revision).is_some_and(KeptRevision::is_complete);
        is_kept.then_some(newest.revision)
    }

    /// Returns the revisions whose objects it has or is about to have, by number: the installed one, the one
    /// that is rolled out, the one that waits for its change set, and the one that is being written.
    pub(super) fn held(&self) -> impl Iterator<Item = (u32, &KeptRevision)> {
        let rollout = self.rollout.as_ref().map(|it| it.number);
        let numbers = self.installed.into_iter().chain(rollout).chain(self.waiting);
        let kept = numbers.filter_map(|number| Some((number, self.revisions.get(&number)?)));
        let written = match &self.preparation {
            Some(Preparation::Writing { number, revision, .. }) => Some((*number, &**revision)),
            _ => None,
        };
        kept.chain(written)
    }

    /// Returns when the next decision is due; `None` if only an event causes one.
    pub(super) fn wake_at(&self, moment: Moment) -> Option<Uptime> {
        let after = |at: Timestamp| {
            let delay = at.duration_since(moment.steady);
            moment.uptime + Duration::try_from(delay).unwrap_or_default()
        };
        let rollout = self.rollout.as_ref();
        let execution = rollout.and_then(|it| it.execution.wake_at());
        // A rollout does not fail by its deadline once the deletion was requested.
        let waits = |it: &&OperatorRollout| {
            let is_limited = !it.is_complete && !it.has_met_deadline;
            is_limited && it.overdue.is_none() && self.object.deleted.is_none()
        };
        let deadline = rollout.filter(waits).and_then(|it| {
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
        match is_paused || self.is_deletion_held() {
            true => status,
            false => {
                let others = [retry, removal, status, self.finalizer_at];
                times.chain(others.into_iter().flatten()).min()
            }
        }
    }

    /// Clears the times that have come.
    pub(super) fn clear_due_times(&mut self, now: Uptime) {
        self.status_at = self.status_at.filter(|at| *at > now);
        self.finalizer_at = self.finalizer_at.filter(|at| *at > now);
        if let Some(removal) = &mut self.removal {
            removal.clear_due_time(now);
        }
    }

    /// Adds an OperatorRevision, or the reason that it is not usable.
    pub(super) fn add_revision(&mut self, name: &str, spec: &Result<OperatorRevisionSpec, String>) {
        let read = match spec {
            Ok(spec) => KeptRevision::read(name, spec).map(|it| (spec, it)),
            Err(error) => Err(error.clone()),
        };
        match read {
            Ok((spec, revision)) => {
                self.unusable.remove(name);
                match self.revisions.get_mut(&spec.revision) {
                    Some(known) => known.merge(revision),
                    None => {
                        self.revisions.insert(spec.revision, revision);
                    }
                }
            }
            Err(error) => {
                self.unusable.insert(name.to_owned(), error);
            }
        }
    }
}
