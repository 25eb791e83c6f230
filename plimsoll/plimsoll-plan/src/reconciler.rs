//! What the controller decides, as state machines without a client: what happened goes in, what to
//! do comes out.
//!
//! The controller turns watches, timers and answers into calls of these machines and carries out
//! what they return. Time comes in as a value: [`Timestamp`] where the time of day matters, because
//! it is written into objects or compared with what they say, and [`Uptime`] where only a distance
//! does, so that an adjusted clock neither hurries nor stalls a retry. The time of a plan under way
//! ([`execution`]) is steady: the time of day when the process started, and what has passed since.
//!
//! | machine | decides |
//! |---|---|
//! | [`startup`] | how a process starts with what an earlier one left |
//! | [`desired`] | what the cluster is to be brought to, and when another plan is due |
//! | [`updates`] | which release is requested, and whether it may be applied |
//! | [`execution`] | which steps, watches and discovery requests are due for the plan under way |
//! | [`revisions`] | whether the API server was restored from a backup |
//! | [`removals`] | which objects are orphans, and how far deletions have come |
//! | [`status_report`] | when the statuses are computed and written |
//! | [`events`] | which events are emitted |
//! | [`timers`] | when to do something although nothing happened |

pub mod cluster_operators;
pub mod counters;
pub mod desired;
pub mod discovery;
pub mod events;
pub mod execution;
pub mod levels;
pub mod pausing;
pub mod refusal;
pub mod rejected_capabilities;
pub mod removals;
pub mod revisions;
pub mod startup;
pub mod status_report;
#[cfg(test)]
pub(crate) mod testing;
pub mod timers;
pub mod updates;
pub mod watches;

use jiff::Timestamp;
use plimsoll_api::progress::{AnnotationRecord, BegunPlanRecord};

use crate::status::Limits;
use desired::DesiredState;
use events::ReportedEvents;
use execution::PlanExecution;
use pausing::PauseRequest;
use status_report::StatusContext;
use timers::Timers;
use updates::UpdateRequests;

pub use crate::uptime::Uptime;

/// The decisions of a controller that outlive a plan.
#[derive(Debug, Clone)]
pub struct Reconciler {
    /// What the cluster is to be brought to.
    pub desired: DesiredState,
    /// Which release is requested.
    pub requests: UpdateRequests,
    /// Where the update pauses.
    pub pause: PauseRequest,
    /// What events have been emitted about.
    pub events: ReportedEvents,
    /// When to do something although nothing happened.
    pub timers: Timers,
    /// `metadata.generation` of the ClusterVersion.
    pub generation: i64,
    /// Why the spec of the ClusterVersion cannot be read, so that an earlier one stays in force; `None` if it
    /// can.
    pub unreadable_spec: Option<String>,
    /// The annotations of the ClusterVersion that the controller follows.
    pub annotations: Vec<AnnotationRecord>,
    /// Another plan, which an earlier process had begun: what it found done counts once that plan
    /// begins again; `None` if there is none.
    pub begun: Option<BegunPlanRecord>,
    /// How long things may take before they are reported as slow or failed.
    pub limits: Limits,
}

impl Reconciler {
    /// What the statuses are computed from, with a plan under way. `steady_now` is the present in
    /// the plan's time.
    pub fn status_context<'a>(
        &'a self,
        execution: &'a PlanExecution,
        now: Timestamp,
        steady_now: Timestamp,
    ) -> StatusContext<'a> {
        StatusContext {
            progress: execution.progress(),
            release: self.desired.release(),
            spec: self.desired.spec(),
            generation: self.generation,
            unreadable_spec: self.unreadable_spec.as_deref(),
            annotations: &self.annotations,
            capabilities: self.desired.capabilities(),
            implied: self.desired.implied(),
            objections: execution.operators().objections(),
            load: self.requests.load(),
            updates: self.requests.updates(),
            verified: self.desired.is_verified(),
            accepted_risks: self.desired.accepted_risks(),
            unhealthy: execution.operators().unhealthy(),
            removals: execution.removals(),
            overrides: self.desired.overrides(),
            feature_set: self.desired.features().fixed_set(),
            begun: self.begun.as_ref(),
            limits: &self.limits,
            now,
            steady_now,
        }
    }
}
