//! Tells the cluster how it stands: when to write status, and what of it changed.
//!
//! The status itself is computed by the pure `plimsoll_plan::status`. What is here: it is computed
//! anew at most every [`COMPUTE_INTERVAL`], written at once when a condition changes its status,
//! and at most every [`WRITE_INTERVAL`] when only numbers and texts do. ReleaseProgress is written
//! first, so that a process that dies in between resumes no later than the status says.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use plimsoll_api::config::{ClusterVersionSpec, ClusterVersionStatus, Release};
use plimsoll_api::progress::{ReleaseProgressStatus, StepProgress};
use plimsoll_api::{CLUSTER_VERSION, CLUSTER_VERSION_NAME, RELEASE_PROGRESS};
use plimsoll_model::{Condition, ConditionStatus, ObjectKey};
use plimsoll_plan::capabilities::Capabilities;
use plimsoll_plan::failure::Failure;
use plimsoll_plan::progress::{Problem, Progress, format_ranges};
use plimsoll_plan::status::{LoadStatus, LoadStep, StatusInput, cluster_version_status};
use plimsoll_plan::upgradeable::NotUpgradeable;
use plimsoll_plan::validate;
use serde_json::Value;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::bootstrap::api_resource;
use crate::removals::Removals;
use crate::write::Writer;

/// Least time between two computations: nobody sees more, and a burst of events costs one.
const COMPUTE_INTERVAL: Duration = Duration::from_millis(50);
/// Least time between two writes of mere progress.
const WRITE_INTERVAL: Duration = Duration::from_secs(1);
/// How often the status is computed anew while something waits, although nothing happens: some
/// conditions change by the passing of time.
const WAITING_INTERVAL: Duration = Duration::from_secs(1);

/// All that is to be told.
pub(crate) struct Situation<'a> {
    pub(crate) progress: &'a Progress,
    pub(crate) release: &'a Release,
    pub(crate) architecture: &'a str,
    pub(crate) spec: &'a ClusterVersionSpec,
    pub(crate) generation: i64,
    pub(crate) capabilities: &'a Capabilities,
    pub(crate) objections: Vec<NotUpgradeable>,
    pub(crate) removals: &'a Removals,
    pub(crate) now: Timestamp,
}

/// Writes status.
pub(crate) struct Reporter {
    writer: Writer,
    status: ClusterVersionStatus,
    /// Both statuses as they are to be written, and as the cluster has them, as far as writes
    /// succeeded.
    wanted: (Value, Value),
    written: (Value, Value),
    /// Whether the two differ.
    unwritten: bool,
    /// Versions that were completed before this process: they need not be completed again.
    completed: Option<String>,
    writing: Option<JoinHandle<Result<(Value, Value), kube::Error>>>,
    /// Something happened since the last computation.
    stale: bool,
    compute_at: Instant,
    write_at: Instant,
    waiting: bool,
}

impl Reporter {
    pub(crate) fn new(client: Client, status: ClusterVersionStatus) -> Self {
        let newest = status.history.first();
        let written = serde_json::to_value(&status).unwrap_or_default();
        let completed = newest
            .filter(|entry| entry.state == plimsoll_api::config::UpdateState::Completed)
            .map(|entry| entry.image.clone());
        Self {
            writer: Writer::new(client),
            status,
            wanted: (Value::Null, Value::Null),
            written: (written, Value::Null),
            unwritten: false,
            completed,
            writing: None,
            stale: true,
            compute_at: Instant::now(),
            write_at: Instant::now(),
            waiting: false,
        }
    }

    /// Takes note of what an earlier process recorded.
    pub(crate) fn remember(&mut self, recorded: &ReleaseProgressStatus) {
        self.written.1 = serde_json::to_value(recorded).unwrap_or_default();
    }

    /// Something happened that the status may have to tell.
    pub(crate) fn touch(&mut self) {
        self.stale = true;
    }

    /// When [`Self::report`] should be called next although nothing happens.
    pub(crate) fn due_at(&self) -> Instant {
        let far = Instant::now() + Duration::from_secs(3600);
        let compute = match (self.stale, self.waiting) {
            (true, _) => self.compute_at,
            (false, true) => self.compute_at.max(Instant::now() + WAITING_INTERVAL),
            (false, false) => far,
        };
        let write = if self.unwritten && self.writing.is_none() { self.write_at } else { far };
        compute.min(write)
    }

    /// Computes the status if it is time, and starts writing it if there is something new.
    /// Returns the conditions when they were computed.
    pub(crate) fn report(&mut self, situation: &Situation<'_>) -> Option<Vec<Condition>> {
        let now = Instant::now();
        let mut edge = false;
        let computed = (self.stale || self.waiting) && now >= self.compute_at;
        if computed {
            edge = self.compute(situation);
            self.stale = false;
            self.compute_at = now + COMPUTE_INTERVAL;
        }
        if self.writing.is_none() && self.unwritten && (edge || now >= self.write_at) {
            self.write_at = now + WRITE_INTERVAL;
            self.writing = Some(self.start_writing());
        }
        computed.then(|| self.status.conditions.clone())
    }

    /// Waits for the end of a write under way; forever when there is none.
    pub(crate) async fn written(&mut self) {
        let Some(writing) = &mut self.writing else {
            return std::future::pending().await;
        };
        let result = writing.await;
        self.writing = None;
        match result {
            Ok(Ok(written)) => {
                self.written = written;
                self.unwritten = self.wanted != self.written;
            }
            Ok(Err(error)) => tracing::warn!(%error, "could not write status; trying again"),
            Err(error) => tracing::warn!(%error, "writing status was interrupted"),
        }
    }

    /// Writes the last status before the process ends.
    pub(crate) async fn finish(&mut self, situation: &Situation<'_>) {
        if self.writing.is_some() {
            self.written().await;
        }
        self.compute(situation);
        if self.unwritten {
            self.writing = Some(self.start_writing());
            self.written().await;
        }
    }

    fn start_writing(&self) -> JoinHandle<Result<(Value, Value), kube::Error>> {
        let writer = self.writer.clone();
        let (status, progress) = self.wanted.clone();
        let before = self.written.clone();
        tokio::spawn(async move {
            let name = CLUSTER_VERSION_NAME;
            if progress != before.1 {
                writer.write_status(&api_resource(RELEASE_PROGRESS), name, &progress).await?;
            }
            if status != before.0 {
                writer.write_status(&api_resource(CLUSTER_VERSION), name, &status).await?;
            }
            Ok((status, progress))
        })
    }

    /// Computes both statuses; true when something changed that should not wait.
    fn compute(&mut self, situation: &Situation<'_>) -> bool {
        let problems = situation.progress.problems(situation.now);
        self.waiting = !problems.is_empty() || situation.progress.passes() == 0;
        let before = statuses(&self.status);
        let completed = self.is_completed(situation);
        self.status = self.cluster_version(situation, &problems, completed);
        self.wanted = (
            serde_json::to_value(&self.status).unwrap_or_default(),
            serde_json::to_value(release_progress(situation, &problems)).unwrap_or_default(),
        );
        self.unwritten = self.wanted != self.written;
        before != statuses(&self.status)
    }

    fn is_completed(&self, situation: &Situation<'_>) -> bool {
        situation.progress.passes() > 0
            || self.completed.as_deref() == Some(situation.release.image.as_str())
    }

    fn cluster_version(
        &self,
        situation: &Situation<'_>,
        problems: &[Problem],
        completed: bool,
    ) -> ClusterVersionStatus {
        let plan = situation.progress.plan();
        let failures: Vec<Failure> =
            problems.iter().filter_map(|problem| failure(situation.progress, problem)).collect();
        let invalid: Vec<String> =
            validate::cluster_version(CLUSTER_VERSION_NAME, situation.spec, &self.status)
                .iter()
                .map(ToString::to_string)
                .collect();
        let load = load(situation);
        let deletions: Vec<ObjectKey> = situation.removals.ledger.unfinished().cloned().collect();
        cluster_version_status(&StatusInput {
            now: situation.now,
            previous: &self.status,
            generation: situation.generation,
            release: situation.release,
            manifest_hash: &plan.hash,
            mode: situation.progress.mode(),
            done: situation.progress.done().len(),
            total: plan.steps.len(),
            failures: &failures,
            completed,
            invalid: &invalid,
            load: Some(&load),
            capabilities: situation.capabilities,
            overrides_set: situation.spec.overrides.iter().any(|entry| entry.unmanaged),
            not_upgradeable: &situation.objections,
            deletions: &deletions,
            verified: false,
            accepted_risks: "",
        })
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

/// Whether the release that is asked for is the one that is applied. There is no store of other
/// payloads yet, so any other one cannot be retrieved.
fn load(situation: &Situation<'_>) -> LoadStatus {
    let release = situation.release;
    let asked = situation.spec.desired_update.as_ref().filter(|update| {
        let other_image = !update.image.is_empty() && update.image != release.image;
        let other_version = !update.version.is_empty() && update.version != release.version;
        if update.image.is_empty() { other_version } else { other_image }
    });
    match asked {
        None => LoadStatus {
            step: LoadStep::Loaded,
            version: release.version.clone(),
            image: release.image.clone(),
            architecture: situation.architecture.to_owned(),
            failure: None,
        },
        Some(update) => LoadStatus {
            step: LoadStep::Retrieve,
            version: update.version.clone(),
            image: update.image.clone(),
            architecture: String::new(),
            failure: Some(format!(
                "the controller was started with release {} and knows no other; start it with the \
                 payload of the release asked for",
                release.version
            )),
        },
    }
}

fn release_progress(situation: &Situation<'_>, problems: &[Problem]) -> ReleaseProgressStatus {
    let plan = situation.progress.plan();
    let done = situation.progress.done();
    let steps = problems.iter().map(|problem| {
        let manifest = &plan.steps[problem.step].manifest;
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
    });
    ReleaseProgressStatus {
        version: situation.release.version.clone(),
        image: situation.release.image.clone(),
        plan_hash: plan.hash.clone(),
        mode: situation.progress.mode().as_str().to_owned(),
        total: plan.steps.len(),
        done: done.len(),
        done_steps: format_ranges(&done),
        steps: steps.collect(),
        deletions: situation.removals.ledger.deletions().cloned().collect(),
        orphans: situation.removals.orphans.clone(),
    }
}

fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}
