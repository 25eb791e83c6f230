//! How a process starts with what an earlier one left: in which mode, with which steps done, paused
//! where.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use plimsoll_api::ObjectKey;
use plimsoll_api::config::{CapabilitiesStatus, ClusterVersionStatus, UpdateHistory};
use plimsoll_api::progress::{BegunPlanRecord, ReleaseProgressStatus};

use super::desired::DesiredState;
use super::refusal::{self, ReleaseRefusal};
use super::removals::{InheritedObjects, Removals};
use crate::plan::Plan;
use crate::plan::mode::{self, Mode};
use crate::progress::parse_ranges;
use crate::progress::pause::Pause;

/// The capabilities that an earlier process left enabled. The status does not name those that the
/// definition of ClusterVersion rejects, nor those of a release that was about to begin.
pub fn enabled_before(
    status: &ClusterVersionStatus,
    recorded: &ReleaseProgressStatus,
) -> BTreeSet<String> {
    let implied = recorded.capabilities.implied.iter().map(|implied| &implied.capability);
    let named = status.capabilities.enabled_capabilities.iter();
    named.chain(&recorded.capabilities.withheld).chain(implied).cloned().collect()
}

/// The status to start from, and whether it is not that of the ClusterVersion but what ReleaseProgress
/// recorded of an earlier one: a ClusterVersion that was deleted and made again has no history, while
/// the cluster does.
pub fn starting_status(
    status: ClusterVersionStatus,
    recorded: &ReleaseProgressStatus,
) -> (ClusterVersionStatus, bool) {
    let is_blank = status.history.is_empty();
    let record = recorded.cluster_version.as_ref();
    let Some(record) = record.filter(|record| is_blank && !record.history.is_empty()) else {
        return (status, false);
    };
    let restored = ClusterVersionStatus {
        desired: record.desired.clone(),
        history: record.history.clone(),
        capabilities: CapabilitiesStatus {
            enabled_capabilities: record.enabled_capabilities.clone(),
            ..status.capabilities
        },
        ..status
    };
    (restored, true)
}

/// Whether an earlier process applied another release, so that the capabilities which this one
/// makes necessary have to be found from the objects of the cluster.
pub fn is_other_release(recorded: &ReleaseProgressStatus, image: &str) -> bool {
    !recorded.image.is_empty() && recorded.image != image
}

/// A start that is being decided: its plan, before the objects of an earlier plan are known.
#[derive(Debug, Clone)]
pub struct Startup<'a> {
    desired: &'a DesiredState,
    recorded: &'a ReleaseProgressStatus,
    mode: Mode,
    plan: Plan,
}

/// How a process starts.
#[derive(Debug, Clone)]
pub struct Start {
    /// The plan.
    pub plan: Arc<Plan>,
    /// Deletions and orphans.
    pub removals: Removals,
    /// The steps that an earlier process has done.
    pub done: Vec<usize>,
    /// Where the update pauses; `None` if it does not.
    pub pause: Option<Pause>,
    /// Another plan, which an earlier process had begun; `None` if it had not.
    pub begun: Option<BegunPlanRecord>,
}

/// The plan that an earlier process recorded in ReleaseProgress before it ended, and that is not the one
/// that this process starts with: the status of the ClusterVersion does not name its release yet, since
/// the update was accepted, and will be again. A process may end more than once before that, so each
/// hands it on.
fn begun_before(recorded: &ReleaseProgressStatus, plan: &Plan) -> Option<BegunPlanRecord> {
    let is_this =
        |begun: &BegunPlanRecord| begun.image == plan.release.image && begun.plan_hash == plan.hash;
    let is_begun = !recorded.plan_hash.is_empty() && recorded.mode == Mode::Updating.as_str();
    let latest = is_begun.then(|| BegunPlanRecord {
        image: recorded.image.clone(),
        plan_hash: recorded.plan_hash.clone(),
        done_steps: recorded.done_steps.clone(),
    });
    let of_other = latest.clone().filter(|begun| begun.image != plan.release.image);
    of_other.or_else(|| recorded.begun_plan.clone()).or(latest).filter(|begun| !is_this(begun))
}

/// The steps of `plan` that were done when it was begun before; none if it is another plan. Nothing of
/// it had been applied, so they are among those that are as in the plan that it follows.
pub fn done_of_begun(begun: &BegunPlanRecord, plan: &Plan, outgoing: &Plan) -> Vec<usize> {
    if begun.image != plan.release.image || begun.plan_hash != plan.hash {
        return Vec::new();
    }
    let unchanged: BTreeSet<usize> =
        plan.steps_like(outgoing, &Vec::from_iter(0..outgoing.release_steps)).into_iter().collect();
    let done = parse_ranges(&begun.done_steps, plan.release_steps);
    done.into_iter().filter(|step| unchanged.contains(step)).collect()
}

impl<'a> Startup<'a> {
    /// Plans the release in the mode that the cluster's history and the record ask for.
    pub fn new(
        desired: &'a DesiredState,
        history: &[UpdateHistory],
        recorded: &'a ReleaseProgressStatus,
    ) -> Self {
        let image = &desired.release().image;
        let mode = match mode::choose(history, image) {
            // Other capabilities or overrides were being applied, which the history does not show.
            Mode::Reconciling
                if recorded.image == *image && recorded.mode == Mode::Updating.as_str() =>
            {
                Mode::Updating
            }
            mode => mode,
        };
        Self { desired, recorded, mode, plan: desired.plan(mode) }
    }

    /// Whether an earlier process carried out another plan, of another release or of this one with
    /// other features: its objects have to be looked for.
    pub fn needs_inventory(&self) -> bool {
        !self.recorded.plan_hash.is_empty() && self.recorded.plan_hash != self.plan.hash
    }

    /// Why the release is not begun; `None` if it may be. `inherited` are the objects of an earlier
    /// plan, if there was another.
    pub fn refusal(
        &self,
        history: &[UpdateHistory],
        inherited: Option<&InheritedObjects>,
    ) -> Option<ReleaseRefusal> {
        let payload = self.desired.payload();
        let of_other_product = |it: &InheritedObjects| {
            let ours: Vec<&ObjectKey> = it.ours.keys().collect();
            refusal::of_other_product(&ours, &it.version, &self.plan, &it.cluster_kinds)
        };
        refusal::nothing_included(payload, &self.desired.context(payload))
            .or_else(|| refusal::goes_back(history, self.desired.release()))
            .or_else(|| inherited.and_then(of_other_product))
    }

    /// Decides the rest. `inherited` are the objects of an earlier plan, if there was another;
    /// `prune` and `pause` are annotations of the ClusterVersion.
    pub fn finish(
        self,
        inherited: Option<&InheritedObjects>,
        prune: Option<String>,
        pause: Option<&str>,
        now: Timestamp,
    ) -> Start {
        let Self { desired, recorded, mut mode, mut plan } = self;
        let mut removals = Removals::recorded(recorded, prune);
        removals.started(&plan, inherited, now);
        if mode == Mode::Reconciling && removals.is_pruning_due() {
            mode = Mode::Updating;
            plan = desired.plan(mode);
        }
        let plan = removals.and_prune(plan);
        let is_same = recorded.image == desired.release().image && recorded.plan_hash == plan.hash;
        let mut done = match &recorded.begun_plan {
            _ if is_same => parse_ranges(&recorded.done_steps, plan.release_steps),
            // The ClusterVersion names it by now: a late write of the process that began it.
            Some(begun) if begun.image == plan.release.image && begun.plan_hash == plan.hash => {
                parse_ranges(&begun.done_steps, plan.release_steps)
            }
            _ => done_before(desired, recorded, &plan, now),
        };
        if mode == Mode::Reconciling {
            // All else is applied once more; a Job would run again.
            done.retain(|step| plan.steps[*step].runs_once());
        }
        let paused_before = recorded.update.as_ref().and_then(|update| update.paused_before);
        let pause = match (Pause::parse(pause), paused_before) {
            // "next" means what it meant to the earlier process.
            (Some(Pause::Next), Some(level)) if is_same => Some(Pause::Before(level)),
            (pause, _) => pause,
        };
        let begun = begun_before(recorded, &plan);
        Start { plan: Arc::new(plan), removals, done, pause, begun }
    }
}

/// The steps of `plan` that an earlier process had done of another plan of the same release, with
/// other overrides or capabilities. That plan is made again from what ClusterVersion held then;
/// none if that does not give it.
fn done_before(
    desired: &DesiredState,
    recorded: &ReleaseProgressStatus,
    plan: &Plan,
    now: Timestamp,
) -> Vec<usize> {
    let Some(record) = recorded.cluster_version.as_ref() else { return Vec::new() };
    if recorded.image != desired.release().image {
        return Vec::new();
    }
    let before = desired.plan_as_recorded(record, plan.mode, now);
    if before.hash != recorded.plan_hash {
        return Vec::new();
    }
    plan.steps_like(&before, &parse_ranges(&recorded.done_steps, before.release_steps))
}

#[cfg(test)]
mod tests;
