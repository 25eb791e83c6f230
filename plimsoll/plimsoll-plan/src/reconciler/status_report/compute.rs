//! What both statuses say, from the state of the controller.

use jiff::Timestamp;
use plimsoll_api::config::{ClusterVersionSpec, ClusterVersionStatus, Release, UpdateHistory};
use plimsoll_api::progress::{
    AnnotationRecord, BegunPlanRecord, CapabilitiesProgress, ClusterVersionRecord,
    ImpliedCapability, OperatorsProgress, ReleaseProgressStatus, StepProgress,
};
use plimsoll_api::whole_seconds;
use plimsoll_api::{CLUSTER_VERSION_NAME, Effect, ObjectKey, Reason};

use super::super::cluster_operators::UnhealthyOperators;
use super::super::counters::StepCounts;
use super::super::levels::levels;
use super::super::rejected_capabilities::RejectedCapabilities;
use super::super::removals::Removals;
use crate::capabilities::Capabilities;
use crate::health::failure::Failure;
use crate::plan::Action;
use crate::progress::timeline::{LevelCount, Timeline, UpdateObservation};
use crate::progress::{Problem, Progress, format_ranges};
use crate::spec::overrides::Overrides;
use crate::spec::validate;
use crate::status::history::is_same;
use crate::status::{Limits, StatusInput, Surface, Surfacing, Updates, cluster_version_status};
use crate::update::acceptance::LoadStatus;
use crate::update::upgradeable::NotUpgradeable;

/// The state of the controller at one moment, as far as the statuses report it.
#[derive(Debug, Clone)]
pub struct StatusContext<'a> {
    /// How far the plan has come.
    pub progress: &'a Progress,
    /// The release that is applied.
    pub release: &'a Release,
    /// The spec of the ClusterVersion.
    pub spec: &'a ClusterVersionSpec,
    /// `metadata.generation` of the ClusterVersion that the spec is of.
    pub generation: i64,
    /// Why the present spec of the ClusterVersion cannot be read, and an earlier one is in force; `None` if it
    /// can.
    pub unreadable_spec: Option<&'a str>,
    /// The annotations of the ClusterVersion that the controller follows.
    pub annotations: &'a [AnnotationRecord],
    /// The capabilities in force.
    pub capabilities: &'a Capabilities,
    /// The capabilities that updates enabled, and why.
    pub implied: &'a [ImpliedCapability],
    /// The ClusterOperators that object to an update to another minor version.
    pub objections: Vec<NotUpgradeable>,
    /// How far the requested release has been accepted.
    pub load: &'a LoadStatus,
    /// The available updates, and what holds up an update.
    pub updates: &'a Updates,
    /// Whether the signature of the release was verified.
    pub verified: bool,
    /// The risks that were accepted with the release; empty if there were none.
    pub accepted_risks: &'a str,
    /// The ClusterOperators that report trouble.
    pub unhealthy: UnhealthyOperators,
    /// Deletions and orphans.
    pub removals: &'a Removals,
    /// Objects that are out of management.
    pub overrides: &'a Overrides,
    /// The feature set that the controller was started with; `None` if it follows the FeatureGate.
    pub feature_set: Option<&'a str>,
    /// Another plan, which an earlier process had begun; `None` if there is none.
    pub begun: Option<&'a BegunPlanRecord>,
    /// How long things may take.
    pub limits: &'a Limits,
    /// The time of day.
    pub now: Timestamp,
    /// The same moment in the plan's time, which no adjustment of the clock moves.
    pub steady_now: Timestamp,
}

impl StatusContext<'_> {
    /// Everything that waits or failed; since when is a time of day.
    pub fn problems(&self) -> Vec<Problem> {
        let problems = self.progress.problems(self.steady_now).into_iter();
        let since = |problem: &Problem| self.now - self.steady_now.duration_since(problem.since);
        problems.map(|problem| Problem { since: since(&problem), ..problem }).collect()
    }

    /// The steps by state: those failed are what makes the ClusterVersion failing.
    pub fn step_counts(&self) -> StepCounts {
        let plan = self.progress.plan();
        let total = plan.steps.len();
        let surfacing = Surfacing {
            mode: self.progress.mode(),
            is_all_done: self.progress.done().len() >= plan.release_steps,
            limits: self.limits,
            now: self.now,
        };
        let done = (0..total).filter(|&step| self.progress.is_done(step)).count();
        let mut counts = StepCounts { done, ..StepCounts::default() };
        for problem in self.problems() {
            let failure = failure(self.progress, &problem, &self.unhealthy);
            let is_failing = failure.is_some_and(|it| surfacing.of(&it) == Surface::Failing);
            let is_done = self.progress.is_done(problem.step);
            match (is_failing, is_done) {
                (true, _) => {
                    counts.failed += 1;
                    counts.done -= usize::from(is_done);
                }
                (false, true) => {}
                (false, false) => counts.waiting += 1,
            }
        }
        counts.pending = total - counts.done - counts.waiting - counts.failed;
        counts
    }

    /// The status of the ClusterVersion.
    pub(super) fn cluster_version(
        &self,
        previous: &ClusterVersionStatus,
        problems: &[Problem],
        is_completed: bool,
        timeline: &Timeline,
    ) -> ClusterVersionStatus {
        let plan = self.progress.plan();
        let done = self.progress.done().len();
        let newest = previous.history.first();
        let is_recorded = newest.is_some_and(|newest| is_same(newest, self.release));
        let failures: Vec<Failure> = problems
            .iter()
            .filter_map(|problem| failure(self.progress, problem, &self.unhealthy))
            .collect();
        let known = ClusterVersionStatus {
            available_updates: self.updates.available.clone(),
            desired: self.release.clone(),
            ..previous.clone()
        };
        let updates = Updates { paused_before: self.progress.paused_at(), ..self.updates.clone() };
        let unreadable = self.unreadable_spec.map(|why| {
            format!(
                "{why}; the last spec that could be read stays in force until this is corrected"
            )
        });
        let invalid: Vec<String> = unreadable
            .into_iter()
            .chain(
                validate::cluster_version(CLUSTER_VERSION_NAME, self.spec, &known)
                    .iter()
                    .map(ToString::to_string),
            )
            .chain(self.capabilities.unavailable.iter().map(ToString::to_string))
            .chain(self.overrides.problems.iter().cloned())
            .collect();
        let deletions: Vec<ObjectKey> = self.removals.tracker().unfinished().cloned().collect();
        cluster_version_status(&StatusInput {
            now: self.now,
            limits: self.limits,
            previous,
            generation: self.generation,
            release: self.release,
            manifest_hash: &plan.hash,
            mode: self.progress.mode(),
            done,
            unchanged: timeline.unchanged(newest, is_recorded, done),
            total: plan.release_steps,
            failures: &failures,
            completed: is_completed,
            invalid: &invalid,
            load: Some(self.load),
            capabilities: self.capabilities,
            overrides: self.overrides.reported(self.now).as_deref(),
            not_upgradeable: &self.objections,
            deletions: &deletions,
            updates: &updates,
            verified: self.verified,
            accepted_risks: self.accepted_risks,
        })
    }

    /// The status of ReleaseProgress: steps, times, operators. `history` is that of the
    /// ClusterVersion's status.
    pub(super) fn release_progress(
        &self,
        history: &[UpdateHistory],
        problems: &[Problem],
        timeline: &mut Timeline,
        rejected: &RejectedCapabilities,
    ) -> ReleaseProgressStatus {
        let progress = self.progress;
        let plan = progress.plan();
        let done = progress.done();
        let mut levels: Vec<LevelCount> = levels(progress, &done)
            .iter()
            .map(|it| LevelCount { level: it.level, done: it.done, total: it.total })
            .collect();
        levels.sort_by_key(|count| count.level.is_none());
        let seen = UpdateObservation {
            history,
            levels: &levels,
            paused_before: progress.paused_at(),
            steady_now: self.steady_now,
        };
        timeline.observe(&seen, self.now);
        let reason = match rejected.names().is_empty() {
            true => String::new(),
            false => Reason::CapabilityNameRefused.to_string(),
        };
        ReleaseProgressStatus {
            version: self.release.version.clone(),
            image: self.release.image.clone(),
            plan_hash: plan.hash.clone(),
            mode: progress.mode().as_str().to_owned(),
            feature_set: self.feature_set.map(str::to_owned),
            total: plan.release_steps,
            done: done.len(),
            done_steps: format_ranges(&done),
            steps: problems.iter().map(|problem| step_progress(progress, problem)).collect(),
            update: timeline.update().cloned(),
            completed_updates: timeline.completed().to_vec(),
            operators: Some(self.operators(&done, problems)),
            inventory: plan.inventory(),
            completed_jobs: progress.completed_jobs().to_vec(),
            deletions: self.removals.tracker().deletions().cloned().collect(),
            orphans: self.removals.orphans().to_vec(),
            capabilities: CapabilitiesProgress {
                implied: self.implied.to_vec(),
                withheld: rejected.names().iter().cloned().collect(),
                reason,
                message: rejected.message(),
            },
            overrides: self.overrides.progress(self.now),
            cluster_version: Some(ClusterVersionRecord {
                annotations: self.annotations.to_vec(),
                spec: self.spec.clone(),
                desired: self.release.clone(),
                history: history.to_vec(),
                enabled_capabilities: self.capabilities.enabled.iter().cloned().collect(),
            }),
            begun_plan: self.begun.cloned(),
        }
    }

    /// The ClusterOperators of the release: how many have reached it, and which report trouble.
    fn operators(&self, done: &[usize], problems: &[Problem]) -> OperatorsProgress {
        let steps = &self.progress.plan().steps;
        let is_gate = |step: usize| steps[step].action == Action::Gate;
        let gates = (0..steps.len()).filter(|&step| is_gate(step));
        let updating = problems
            .iter()
            .filter(|problem| is_gate(problem.step) && done.binary_search(&problem.step).is_err());
        let UnhealthyOperators { unavailable, degraded, troubles: _, existing } =
            self.unhealthy.clone();
        let name = |step: usize| steps[step].manifest.key.name.clone();
        // What is done was seen, by an earlier process if not by this one.
        let missing = gates.clone().filter(|step| done.binary_search(step).is_err()).map(name);
        OperatorsProgress {
            total: gates.count(),
            updated: done.iter().filter(|&&step| is_gate(step)).count(),
            updating: updating.map(|problem| name(problem.step)).collect(),
            missing: missing.filter(|name| !existing.contains(name)).collect(),
            unavailable,
            degraded,
        }
    }
}

/// A problem as conditions report it; `None` while it is too recent for that.
fn failure(
    progress: &Progress,
    problem: &Problem,
    unhealthy: &UnhealthyOperators,
) -> Option<Failure> {
    let effect = Some(problem.effect?);
    let step = &progress.plan().steps[problem.step];
    let failure = match progress.cluster_operator(problem.step) {
        Some(name) => Failure {
            trouble: match problem.reason {
                Reason::ClusterOperatorUpdating => unhealthy.troubles.get(name).cloned(),
                _ => None,
            },
            ..Failure::of_cluster_operator(name, problem.reason, effect, &problem.message)
        },
        None => Failure::of_object(step.describe(), problem.reason, effect, &problem.message),
    };
    // A degraded operator has its time to recover from when it became so.
    let since = match effect {
        Some(Effect::FailAfterInterval) => problem.reason_since,
        Some(Effect::None | Effect::Fail | Effect::Report) | None => problem.since,
    };
    Some(failure.since(since))
}

fn step_progress(progress: &Progress, problem: &Problem) -> StepProgress {
    let manifest = &progress.plan().steps[problem.step].manifest;
    StepProgress {
        file: manifest.file.to_string(),
        document: manifest.document,
        object: manifest.key.to_string(),
        state: problem.state.as_str().to_owned(),
        reason: problem.reason.as_str().to_owned(),
        message: problem.message.clone(),
        attempts: problem.attempts,
        since: whole_seconds(problem.since),
    }
}
