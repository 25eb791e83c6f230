//! A snapshot of a running controller, for terminals, rehearsals and metrics.

mod metrics_snapshot;
mod operators;

use jiff::Timestamp;
use plimsoll_api::progress::ImpliedCapability;
use plimsoll_api::{Condition, ObjectKey, Reason};
use plimsoll_plan::capabilities::Capabilities;
use plimsoll_plan::plan::mode::Mode;
use plimsoll_plan::progress::ProblemState;
use plimsoll_plan::reconciler::levels::{LevelView, levels};
use plimsoll_plan::reconciler::status_report::StatusContext;

pub use metrics_snapshot::MetricsSnapshot;
pub use operators::{ActionEnds, Durations, OperatorView, OperatorsView, WaitingActions};

/// The state of a controller at one moment.
#[derive(Debug, Clone, Default)]
pub struct View {
    /// Version that is being applied.
    pub version: String,
    /// The mode of the plan; `None` before there is one.
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
    /// The capabilities that updates enabled, and why.
    pub implied: Vec<ImpliedCapability>,
    /// Whether the statuses cannot be written: the process works blindly and is not ready.
    pub is_status_unwritable: bool,
    /// What metrics report beyond this; `None` while another controller is the leader.
    pub metrics: Option<MetricsSnapshot>,
}

/// A step that waits or failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitView {
    /// Its object.
    pub object: ObjectKey,
    /// Why it waits or failed.
    pub reason: Reason,
    /// What it waits for or what failed, and what would help.
    pub message: String,
    /// Since when it waits or fails.
    pub since: Timestamp,
    /// Whether it failed; otherwise it waits.
    pub failed: bool,
}

impl View {
    /// The state of a plan under way, with the conditions as last computed.
    pub(crate) fn of(context: &StatusContext<'_>, conditions: &[Condition]) -> Self {
        let progress = context.progress;
        let plan = progress.plan();
        let done = progress.done();
        let waits = context.problems().into_iter().map(|problem| WaitView {
            object: plan.steps[problem.step].manifest.key.clone(),
            reason: problem.reason,
            message: problem.message,
            since: problem.since,
            failed: problem.state == ProblemState::Failed,
        });
        Self {
            version: plan.release.version.clone(),
            mode: Some(progress.mode()),
            done: done.len(),
            total: plan.release_steps,
            levels: levels(progress, &done),
            waits: waits.collect(),
            conditions: conditions.to_vec(),
            completed: progress.passes() > 0,
            ..Self::default()
        }
    }
}
