//! What a person at a terminal wants to see of a controller at work.

use jiff::Timestamp;
use plimsoll_api::Condition;
use plimsoll_api::progress::ImpliedCapability;
use plimsoll_plan::capabilities::Capabilities;
use plimsoll_plan::mode::Mode;
use plimsoll_plan::progress::{ProblemState, Progress};

use crate::metrics::MetricsSnapshot;

/// A picture of the work at one moment.
#[derive(Debug, Clone, Default)]
pub struct View {
    /// Version that is being applied.
    pub version: String,
    /// The rules it follows.
    pub mode: Option<Mode>,
    /// Steps done.
    pub done: usize,
    /// Steps of the plan.
    pub total: usize,
    /// Run levels in order.
    pub levels: Vec<LevelView>,
    /// What waits or failed.
    pub waits: Vec<WaitView>,
    /// The ClusterVersion's conditions as last computed.
    pub conditions: Vec<Condition>,
    /// Whether this release has been completed.
    pub completed: bool,
    /// The capabilities in force.
    pub capabilities: Capabilities,
    /// The capabilities that updates made necessary, and what did.
    pub implied: Vec<ImpliedCapability>,
    /// What metrics tell beyond this; `None` while another controller is at work.
    pub metrics: Option<MetricsSnapshot>,
}

/// A run level: manifests between which there is no order but that of their lanes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LevelView {
    /// Its number; `None` for files that name none.
    pub level: Option<u32>,
    /// Steps done.
    pub done: usize,
    /// Steps.
    pub total: usize,
    /// Components that are not done.
    pub lanes: Vec<String>,
}

/// A step that waits or failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitView {
    /// Its object.
    pub object: String,
    /// Why.
    pub reason: &'static str,
    /// The whole story.
    pub message: String,
    /// Since when.
    pub since: Timestamp,
    /// Whether it failed.
    pub failed: bool,
}

impl View {
    /// Takes a picture.
    pub(crate) fn of(progress: &Progress, conditions: &[Condition], now: Timestamp) -> Self {
        let plan = progress.plan();
        let done = progress.done();
        let waits = progress.problems(now).into_iter().map(|problem| WaitView {
            object: plan.steps[problem.step].manifest.key.to_string(),
            reason: problem.reason.as_str(),
            message: problem.message,
            since: problem.since,
            failed: problem.state == ProblemState::Failed,
        });
        Self {
            version: plan.release.version.clone(),
            mode: Some(progress.mode()),
            done: done.len(),
            total: plan.steps.len(),
            levels: levels(progress, &done),
            waits: waits.collect(),
            conditions: conditions.to_vec(),
            completed: progress.passes() > 0,
            ..Self::default()
        }
    }
}

pub(crate) fn levels(progress: &Progress, done: &[usize]) -> Vec<LevelView> {
    let mut levels: std::collections::BTreeMap<Option<u32>, LevelView> =
        std::collections::BTreeMap::new();
    for (index, step) in progress.plan().steps.iter().enumerate() {
        let position = plimsoll_plan::graph::position(&step.manifest.file);
        let level = position.as_ref().map(|position| position.level);
        let view = levels.entry(level).or_insert_with(|| LevelView {
            level,
            done: 0,
            total: 0,
            lanes: Vec::new(),
        });
        view.total += 1;
        if done.binary_search(&index).is_ok() {
            view.done += 1;
        } else if let Some(position) = position
            && !view.lanes.iter().any(|lane| lane == position.component)
        {
            view.lanes.push(position.component.to_owned());
        }
    }
    levels.into_values().collect()
}
