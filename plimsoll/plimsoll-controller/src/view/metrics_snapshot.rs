//! Inputs of metrics: the state of the cluster as last computed, and what happened
//! since the process started.

use std::sync::Arc;

use jiff::Timestamp;
use plimsoll_api::config::{ClusterVersionSpec, ClusterVersionStatus};
use plimsoll_api::progress::OverrideProgress;
use plimsoll_plan::reconciler::counters::{Counters, StepCounts};

/// What metrics report beyond the rest of a [`View`](crate::View).
#[derive(Debug, Clone, Default)]
pub struct MetricsSnapshot {
    /// The spec of the ClusterVersion.
    pub spec: ClusterVersionSpec,
    /// Its status as last computed.
    pub status: ClusterVersionStatus,
    /// When the ClusterVersion was created; `None` while it is not known.
    pub created: Option<Timestamp>,
    /// When the payload was built; `None` if it does not say.
    pub payload_created: Option<Timestamp>,
    /// The steps of the plan.
    pub steps: StepCounts,
    /// Deletions that are under way.
    pub deletions_unfinished: usize,
    /// Objects that earlier releases applied and this one does not mention.
    pub orphans: usize,
    /// Objects that an administrator took out of management.
    pub overrides: Vec<OverrideProgress>,
    /// Objects repaired after other clients had changed them, since the process started.
    pub drift_repairs: u64,
    /// What happened since the process started.
    pub counters: Arc<Counters>,
}
