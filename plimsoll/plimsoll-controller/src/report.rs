//! Tells the cluster how it stands: when to write status, and what of it changed.
//!
//! The status itself is computed by the pure `plimsoll_plan::status`. What is here: it is computed
//! anew at most every [`COMPUTE_INTERVAL`], written at once when a condition changes its status,
//! and at most every [`WRITE_INTERVAL`] when only numbers and texts do. ReleaseProgress is written
//! first, so that a process that dies in between resumes no later than the status says.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use plimsoll_api::config::{ClusterVersionSpec, ClusterVersionStatus, Release};
use plimsoll_api::progress::{
    CapabilitiesProgress, ImpliedCapability, OperatorsProgress, Orphan, ReleaseProgressStatus,
    StepProgress,
};
use plimsoll_api::{CLUSTER_VERSION, CLUSTER_VERSION_NAME, RELEASE_PROGRESS};
use plimsoll_api::{Condition, ConditionStatus, ObjectKey, Reason};
use plimsoll_plan::capabilities::Capabilities;
use plimsoll_plan::failure::Failure;
use plimsoll_plan::overrides::Overrides;
use plimsoll_plan::plan::Action;
use plimsoll_plan::progress::{Problem, Progress, format_ranges};
use plimsoll_plan::status::{Limits, LoadStatus, StatusInput, Updates, cluster_version_status};
use plimsoll_plan::timeline::{LevelCount, Seen, Timeline};
use plimsoll_plan::upgradeable::NotUpgradeable;
use plimsoll_plan::validate;
use serde_json::Value;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::metrics::{Counters, MetricsSnapshot, StepCounts};
use crate::rejected_capabilities::{self, RejectedCapabilities};
use crate::removals::Removals;
use crate::versioned_status::{StatusWriteError, VersionedStatus};
use crate::view;

/// Least time between two computations: nobody sees more, and a burst of events costs one.
const COMPUTE_INTERVAL: Duration = Duration::from_millis(50);
/// Least time between two writes of mere progress.
const WRITE_INTERVAL: Duration = Duration::from_secs(1);
/// How often the status is computed anew while something waits, although nothing happens: some
/// conditions change by the passing of time.
const WAITING_INTERVAL: Duration = Duration::from_secs(1);

/// All that is to be told.
pub(crate) struct StatusContext<'a> {
    pub(crate) progress: &'a Progress,
    pub(crate) release: &'a Release,
    pub(crate) spec: &'a ClusterVersionSpec,
    pub(crate) generation: i64,
    pub(crate) capabilities: &'a Capabilities,
    pub(crate) implied: &'a [ImpliedCapability],
    pub(crate) objections: Vec<NotUpgradeable>,
    /// How far the release that is asked for has been accepted.
    pub(crate) load: &'a LoadStatus,
    pub(crate) updates: &'a Updates,
    pub(crate) verified: bool,
    pub(crate) accepted_risks: &'a str,
    /// ClusterOperators that are unavailable, and those that are degraded.
    pub(crate) unhealthy: (Vec<String>, Vec<String>),
    pub(crate) removals: &'a Removals,
    pub(crate) overrides: &'a Overrides,
    pub(crate) limits: &'a Limits,
    pub(crate) now: Timestamp,
}

/// What a write has brought about.
struct WriteOutcome {
    /// How both objects were left, as far as that is known.
    seen: (VersionedStatus, VersionedStatus),
    /// Both statuses, with the names that are withheld.
    outcome: Result<((Value, Value), RejectedCapabilities), StatusWriteError>,
}

/// Writes the ClusterVersion's status without some names, and without those that the server
/// refuses; returns all that are left out.
async fn write_cluster_version(
    client: &Client,
    seen: &mut VersionedStatus,
    status: &Value,
    mut left_out: BTreeSet<String>,
) -> Result<BTreeSet<String>, StatusWriteError> {
    loop {
        let offered = rejected_capabilities::without(status, &left_out);
        let error = match seen.replace(client, CLUSTER_VERSION, &offered).await {
            Ok(()) => return Ok(left_out),
            Err(StatusWriteError::Failed(error)) => error,
            Err(refusal) => return Err(refusal),
        };
        let before = left_out.len();
        left_out.extend(rejected_capabilities::refused(&error, &offered));
        if left_out.len() == before {
            return Err(error.into());
        }
    }
}

/// Writes status.
pub(crate) struct Reporter {
    client: Client,
    status: ClusterVersionStatus,
    /// The ClusterVersion and ReleaseProgress as they were last seen.
    seen: (VersionedStatus, VersionedStatus),
    /// Somebody else wrote after this process had read; see [`Self::is_outdated`].
    outdated: bool,
    /// Both statuses as they are to be written, and as the cluster has them, as far as writes
    /// succeeded.
    wanted: (Value, Value),
    written: (Value, Value),
    /// Whether the two differ.
    unwritten: bool,
    /// Versions that were completed before this process: they need not be completed again.
    completed: Option<String>,
    timeline: Timeline,
    writing: Option<JoinHandle<WriteOutcome>>,
    /// Capabilities that the status cannot name.
    withheld: RejectedCapabilities,
    /// Something happened since the last computation.
    stale: bool,
    compute_at: Instant,
    write_at: Instant,
    waiting: bool,
}

impl Reporter {
    /// Begins with the status of the ClusterVersion, and both objects as they were read.
    pub(crate) fn new(
        client: Client,
        status: ClusterVersionStatus,
        seen: (VersionedStatus, VersionedStatus),
    ) -> Self {
        let newest = status.history.first();
        let written = serde_json::to_value(&status).unwrap_or_default();
        let completed = newest
            .filter(|entry| entry.state == plimsoll_api::config::UpdateState::Completed)
            .map(|entry| entry.image.clone());
        Self {
            client,
            status,
            seen,
            outdated: false,
            wanted: (Value::Null, Value::Null),
            written: (written, Value::Null),
            unwritten: false,
            completed,
            timeline: Timeline::default(),
            writing: None,
            withheld: RejectedCapabilities::new(BTreeSet::new(), Instant::now()),
            stale: true,
            compute_at: Instant::now(),
            write_at: Instant::now(),
            waiting: false,
        }
    }

    /// Takes note of what an earlier process recorded.
    pub(crate) fn remember(&mut self, recorded: &ReleaseProgressStatus) {
        let withheld = recorded.capabilities.withheld.iter().cloned().collect();
        self.withheld = RejectedCapabilities::new(withheld, Instant::now());
        self.written.1 = serde_json::to_value(recorded).unwrap_or_default();
        self.timeline = Timeline::recorded(recorded);
    }

    /// The status as it was last computed.
    pub(crate) fn status(&self) -> &ClusterVersionStatus {
        &self.status
    }

    /// Brings the status up to date now.
    pub(crate) fn settle(&mut self, context: &StatusContext<'_>) {
        self.compute(context);
    }

    /// Another release is to be applied: even one that was completed before has to be anew.
    pub(crate) fn superseded(&mut self) {
        self.completed = None;
        self.stale = true;
    }

    /// Something happened that the status may have to tell.
    pub(crate) fn touch(&mut self) {
        self.stale = true;
    }

    /// The definition of ClusterVersion may have changed.
    pub(crate) fn definition_changed(&mut self) {
        self.withheld.retry_soon(Instant::now());
    }

    /// When [`Self::report`] should be called next although nothing happens.
    pub(crate) fn due_at(&self) -> Instant {
        let far = Instant::now() + Duration::from_secs(3600);
        let compute = match (self.stale, self.waiting) {
            (true, _) => self.compute_at,
            (false, true) => self.compute_at.max(Instant::now() + WAITING_INTERVAL),
            (false, false) => far,
        };
        let write = match (&self.writing, self.unwritten) {
            (Some(_), _) => far,
            (None, true) => self.write_at,
            (None, false) => self.withheld.retry_at().unwrap_or(far),
        };
        compute.min(write)
    }

    /// Computes the status if it is time, and starts writing it if there is something new.
    /// Returns the conditions when they were computed.
    pub(crate) fn report(&mut self, context: &StatusContext<'_>) -> Option<Vec<Condition>> {
        let now = Instant::now();
        let mut edge = false;
        let computed = (self.stale || self.waiting) && now >= self.compute_at;
        if computed {
            edge = self.compute(context);
            self.stale = false;
            self.compute_at = now + COMPUTE_INTERVAL;
        }
        let offer = self.withheld.retry_at().is_some_and(|at| now >= at);
        let due = self.unwritten && (edge || now >= self.write_at);
        if self.writing.is_none() && (due || offer) {
            self.write_at = now + WRITE_INTERVAL;
            self.writing = Some(self.start_writing());
        }
        computed.then(|| self.status.conditions.clone())
    }

    /// The metrics of a moment.
    pub(crate) fn metrics(
        &self,
        context: &StatusContext<'_>,
        counts: &Arc<Counters>,
        created: [Option<Timestamp>; 2],
    ) -> MetricsSnapshot {
        MetricsSnapshot {
            spec: context.spec.clone(),
            status: self.status.clone(),
            created: created[0],
            payload_created: created[1],
            steps: StepCounts::of(context.progress, context.now),
            deletions_unfinished: context.removals.ledger.unfinished().count(),
            orphans: context.removals.orphans.len(),
            overrides: context.overrides.progress(context.now),
            drift_repairs: context.progress.repairs(),
            counts: Arc::clone(counts),
        }
    }

    /// Waits for the end of a write under way; forever when there is none.
    pub(crate) async fn written(&mut self) {
        let Some(writing) = &mut self.writing else {
            return std::future::pending().await;
        };
        let result = writing.await;
        self.writing = None;
        let outcome = match result {
            Ok(WriteOutcome { seen, outcome }) => {
                self.seen = seen;
                outcome
            }
            Err(error) => {
                tracing::warn!(%error, "writing status was interrupted");
                return;
            }
        };
        match outcome {
            Ok((statuses, withheld)) => {
                self.written = statuses;
                self.unwritten = self.wanted != self.written;
                // What is withheld has to be told, and no longer once it is not.
                self.stale |= self.withheld.names != withheld.names;
                self.withheld = withheld;
            }
            Err(StatusWriteError::Outdated) => self.outdated = true,
            Err(StatusWriteError::Failed(error)) => {
                tracing::warn!(%error, "could not write status; trying again");
            }
        }
    }

    /// Whether the cluster's status tells that a release is being applied, or has been, and that
    /// these capabilities are enabled.
    pub(crate) fn has_written(&self, release: &Release, enabled: &BTreeSet<String>) -> bool {
        let status = &self.written.0;
        let image = release.image.as_str();
        let told = status["capabilities"]["enabledCapabilities"].as_array();
        let is_status_written =
            |name: &String| told.is_some_and(|told| told.iter().any(|it| it == name));
        // A release without an image leaves no trace.
        let is_release_told = image.is_empty()
            || (status["desired"]["image"] == image && status["history"][0]["image"] == image);
        is_release_told && enabled.iter().all(is_status_written)
    }

    /// Whether the cluster's ReleaseProgress lists these orphans and no others.
    pub(crate) fn has_written_orphans(&self, orphans: &[Orphan]) -> bool {
        let told = &self.written.1["orphans"];
        told.as_array().map_or(0, Vec::len) == orphans.len()
            && (orphans.is_empty() || serde_json::to_value(orphans).is_ok_and(|it| it == *told))
    }

    /// Whether somebody else, as a leader whose last write came in late, wrote the status after
    /// this process had read it and before it wrote any: what is there now has to be begun with.
    pub(crate) fn is_outdated(&self) -> bool {
        self.outdated
    }

    /// Writes the status now and waits for the end of it; whether all of it was written.
    pub(crate) async fn persist(&mut self, context: &StatusContext<'_>) -> bool {
        self.finish(context).await;
        if self.stale {
            self.stale = false;
            self.finish(context).await;
        }
        !self.unwritten
    }

    /// Writes the last status before the process ends.
    pub(crate) async fn finish(&mut self, context: &StatusContext<'_>) {
        if self.writing.is_some() {
            self.written().await;
        }
        self.compute(context);
        if self.unwritten {
            self.writing = Some(self.start_writing());
            self.written().await;
        }
    }

    fn start_writing(&self) -> JoinHandle<WriteOutcome> {
        let client = self.client.clone();
        let (status, progress) = self.wanted.clone();
        let before = self.written.clone();
        let mut withheld = self.withheld.clone();
        let mut seen = self.seen.clone();
        tokio::spawn(async move {
            let (cluster_version, release_progress) = (&mut seen.0, &mut seen.1);
            let write = async {
                if progress != before.1 {
                    release_progress.replace(&client, RELEASE_PROGRESS, &progress).await?;
                }
                let offered = withheld.retry_at().is_some_and(|at| Instant::now() >= at);
                if status != before.0 || offered {
                    let left_out = withheld.left_out(Instant::now());
                    let names =
                        write_cluster_version(&client, cluster_version, &status, left_out).await?;
                    if offered || names != withheld.names {
                        withheld = RejectedCapabilities::new(names, Instant::now());
                    }
                }
                Ok(((status, progress), withheld))
            };
            let outcome = write.await;
            WriteOutcome { seen, outcome }
        })
    }

    /// Computes both statuses; true when something changed that should not wait.
    fn compute(&mut self, context: &StatusContext<'_>) -> bool {
        let problems = context.progress.problems(context.now);
        self.waiting = !problems.is_empty() || context.progress.passes() == 0;
        let before = statuses(&self.status);
        let completed = self.is_completed(context);
        self.status = self.cluster_version(context, &problems, completed);
        self.wanted = (
            serde_json::to_value(&self.status).unwrap_or_default(),
            serde_json::to_value(self.release_progress(context, &problems)).unwrap_or_default(),
        );
        self.unwritten = self.wanted != self.written;
        before != statuses(&self.status)
    }

    fn is_completed(&self, context: &StatusContext<'_>) -> bool {
        context.progress.passes() > 0
            || self.completed.as_deref() == Some(context.release.image.as_str())
    }

    fn cluster_version(
        &self,
        context: &StatusContext<'_>,
        problems: &[Problem],
        completed: bool,
    ) -> ClusterVersionStatus {
        let plan = context.progress.plan();
        let failures: Vec<Failure> =
            problems.iter().filter_map(|problem| failure(context.progress, problem)).collect();
        let known = ClusterVersionStatus {
            available_updates: context.updates.available.clone(),
            desired: context.release.clone(),
            ..self.status.clone()
        };
        let updates =
            Updates { paused_before: context.progress.paused_at(), ..context.updates.clone() };
        let invalid: Vec<String> =
            validate::cluster_version(CLUSTER_VERSION_NAME, context.spec, &known)
                .iter()
                .map(ToString::to_string)
                .chain(context.capabilities.refused.iter().map(ToString::to_string))
                .chain(context.overrides.problems.iter().cloned())
                .collect();
        let deletions: Vec<ObjectKey> = context.removals.ledger.unfinished().cloned().collect();
        cluster_version_status(&StatusInput {
            now: context.now,
            limits: context.limits,
            previous: &self.status,
            generation: context.generation,
            release: context.release,
            manifest_hash: &plan.hash,
            mode: context.progress.mode(),
            done: context.progress.done().len(),
            total: plan.steps.len(),
            failures: &failures,
            completed,
            invalid: &invalid,
            load: Some(context.load),
            capabilities: context.capabilities,
            overrides: context.overrides.told(context.now).as_deref(),
            not_upgradeable: &context.objections,
            deletions: &deletions,
            updates: &updates,
            verified: context.verified,
            accepted_risks: context.accepted_risks,
        })
    }

    /// What goes beyond the ClusterVersion: steps, times, operators.
    fn release_progress(
        &mut self,
        context: &StatusContext<'_>,
        problems: &[Problem],
    ) -> ReleaseProgressStatus {
        let progress = context.progress;
        let plan = progress.plan();
        let done = progress.done();
        let mut levels: Vec<LevelCount> = view::levels(progress, &done)
            .iter()
            .map(|it| LevelCount { level: it.level, done: it.done, total: it.total })
            .collect();
        levels.sort_by_key(|count| count.level.is_none());
        let seen = Seen {
            history: &self.status.history,
            levels: &levels,
            paused_before: progress.paused_at(),
        };
        self.timeline.observe(&seen, context.now);
        ReleaseProgressStatus {
            version: context.release.version.clone(),
            image: context.release.image.clone(),
            plan_hash: plan.hash.clone(),
            mode: progress.mode().as_str().to_owned(),
            total: plan.steps.len(),
            done: done.len(),
            done_steps: format_ranges(&done),
            steps: problems.iter().map(|problem| step_progress(progress, problem)).collect(),
            update: self.timeline.update().cloned(),
            completed_updates: self.timeline.completed().to_vec(),
            operators: Some(operators(context, &done, problems)),
            deletions: context.removals.ledger.deletions().cloned().collect(),
            orphans: context.removals.orphans.clone(),
            capabilities: CapabilitiesProgress {
                implied: context.implied.to_vec(),
                withheld: self.withheld.names.iter().cloned().collect(),
                reason: if self.withheld.names.is_empty() {
                    String::new()
                } else {
                    Reason::CapabilityNameRefused.to_string()
                },
                message: self.withheld.message(),
            },
            overrides: context.overrides.progress(context.now),
        }
    }
}

/// Type and status of each condition, and how far the history is: what should not wait.
fn statuses(status: &ClusterVersionStatus) -> (BTreeMap<String, ConditionStatus>, usize) {
    let conditions =
        status.conditions.iter().map(|condition| (condition.type_.clone(), condition.status));
    let completed = status.history.iter().filter(|entry| entry.completion_time.is_some()).count();
    (conditions.collect(), status.history.len() + completed)
}

/// A problem as conditions tell it; none while it is too young for that.
fn failure(progress: &Progress, problem: &Problem) -> Option<Failure> {
    let effect = Some(problem.effect?);
    let step = &progress.plan().steps[problem.step];
    let failure = match progress.cluster_operator(problem.step) {
        Some(name) => Failure::of_cluster_operator(name, problem.reason, effect, &problem.message),
        None => Failure::of_object(step.describe(), problem.reason, effect, &problem.message),
    };
    Some(failure.since(problem.since))
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

/// The ClusterOperators of the release: how many are at it, and how they are.
fn operators(
    context: &StatusContext<'_>,
    done: &[usize],
    problems: &[Problem],
) -> OperatorsProgress {
    let steps = &context.progress.plan().steps;
    let is_gate = |step: usize| steps[step].action == Action::Gate;
    let gates = (0..steps.len()).filter(|&step| is_gate(step));
    let updating = problems
        .iter()
        .filter(|problem| is_gate(problem.step) && done.binary_search(&problem.step).is_err());
    let (unavailable, degraded) = context.unhealthy.clone();
    OperatorsProgress {
        total: gates.count(),
        updated: done.iter().filter(|&&step| is_gate(step)).count(),
        updating: updating.map(|problem| steps[problem.step].manifest.key.name.clone()).collect(),
        unavailable,
        degraded,
    }
}

fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}
