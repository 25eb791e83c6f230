//! The plan of a release under way: carries out the effects of [`PlanExecution`], and reports the
//! results to it.

use std::sync::Arc;

use jiff::Timestamp;
use kube::Client;
use plimsoll_api::OPERATOR;
use plimsoll_plan::plan::{GroupVersionKind, Plan};
use plimsoll_plan::progress::{Progress, Scope, StepOutcome};
use plimsoll_plan::reconciler::discovery::GroupVersion;
use plimsoll_plan::reconciler::execution::{
    ExecutionEffect, ExecutionEvent, Observation, PlanExecution,
};
use plimsoll_plan::reconciler::removals::Removals;
use plimsoll_plan::reconciler::watches::Watch;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::clock::Stopwatch;
use crate::host::{Host, HostEvent, StepExecution};
use crate::observe;
use crate::resources::{Resources, api_resource};
use crate::spans::Spans;
use crate::write::Writer;

impl HostEvent for ExecutionEvent {
    fn discovered(version: GroupVersion, kinds: Vec<(GroupVersionKind, Scope)>) -> Self {
        Self::Discovered(version, kinds)
    }
}

/// The plan of a release under way.
pub(crate) struct Session {
    host: Host<ExecutionEvent>,
    stopwatch: Stopwatch,
    pub(crate) execution: PlanExecution,
    restored: CancellationToken,
    spans: Spans,
}

impl Session {
    pub(crate) fn new(
        client: Client,
        plan: Arc<Plan>,
        resources: Resources,
        removals: Removals,
        stopwatch: Stopwatch,
        now: Timestamp,
    ) -> Self {
        let spans = Spans::begin(&plan);
        let (execution, effects) = PlanExecution::new(plan, resources.scopes(), removals, now);
        let (writer, restored) =
            (Writer::new(client.clone()).of_release(), CancellationToken::new());
        let host = Host::new(client, writer, resources, restored.clone());
        let mut session = Self { host, stopwatch, execution, restored, spans };
        session.carry_out(effects);
        session
    }

    /// Returns the kinds that discovery has found, for the session after this one.
    pub(crate) fn resources(&self) -> &Resources {
        &self.host.resources
    }

    /// Returns the progress of the plan.
    pub(crate) fn progress(&self) -> &Progress {
        self.execution.progress()
    }

    /// Waits for the executions in flight, at most for a while: their results are not lost.
    pub(crate) async fn drain(&mut self, now: Timestamp) {
        let execution = &mut self.execution;
        let drained = |event| {
            if let ExecutionEvent::Executed(step, outcome) = event {
                execution.drained(step, outcome, now);
            }
        };
        self.host.drain(drained).await;
    }

    /// Waits for the next event of the plan.
    pub(crate) async fn next(&mut self) -> ExecutionEvent {
        loop {
            let discover_at = self.execution.discover_at().map(|at| self.stopwatch.instant(at));
            tokio::select! {
                biased;
                () = self.restored.cancelled() => {
                    return ExecutionEvent::Observed(Observation::RolledBack);
                }
                event = self.host.next() => return event,
                () = sleep_until(discover_at.unwrap_or_else(Instant::now)),
                    if discover_at.is_some() =>
                {
                    if let Some(version) = self.execution.next_discovery(self.stopwatch.uptime()) {
                        self.host.discover(version);
                    }
                }
            }
        }
    }

    /// The kind of Operators is served: objects of the release may be theirs.
    pub(crate) fn operators_defined(&mut self) {
        self.host.resources.insert(api_resource(OPERATOR), Scope::Cluster);
    }

    /// Passes an event to the plan, and carries out what follows.
    pub(crate) fn handle(&mut self, event: ExecutionEvent, now: Timestamp) {
        let effects = self.execution.handle(event, now, self.stopwatch.uptime());
        self.carry_out(effects);
        self.spans.end_completed(self.execution.progress());
    }

    /// Starts the steps that are due.
    pub(crate) fn start_due(&mut self, now: Timestamp) {
        let effects = self.execution.start_due(now);
        self.carry_out(effects);
    }

    /// Applies everything once more.
    pub(crate) fn sweep(&mut self, now: Timestamp) {
        let effects = self.execution.sweep(now);
        self.carry_out(effects);
    }

    fn carry_out(&mut self, effects: Vec<ExecutionEffect>) {
        for effect in effects {
            match effect {
                ExecutionEffect::Execute { step, fills_related_objects } => {
                    self.execute(step, fills_related_objects);
                }
                ExecutionEffect::Watch(watch) => self.watch(watch),
            }
        }
    }

    fn execute(&mut self, index: usize, fills_related_objects: bool) {
        let plan = Arc::clone(self.execution.progress().plan());
        let span = self.spans.step(&plan, index);
        // No Operator takes over what is shown as the release's; of all else it is read whose it is.
        let is_ours = self.execution.progress().is_shown_as_ours(index);
        let has_operators = !is_ours && self.host.resources.serves(OPERATOR);
        let carry_out = move |writer: Writer, execution: StepExecution, served| async move {
            let writer = writer.beside_operators(has_operators);
            let outcome = writer.execute(execution.step(), &served).await;
            if fills_related_objects && matches!(outcome, StepOutcome::Applied(_)) {
                writer.fast_fill(execution.step(), &served).await;
            }
            outcome
        };
        let ended = move |outcome| ExecutionEvent::Executed(index, outcome);
        self.host.execute(StepExecution { plan, index, span }, carry_out, ended);
    }

    fn watch(&mut self, watch: Watch) {
        let Watch { kind, scope, objects } = watch;
        // Watches start for kinds that discovery has found.
        let Some(served) = self.host.resources.get(&kind) else { return };
        let (client, resource) = (self.host.client.clone(), served.resource.clone());
        let relay = self.host.relay();
        self.host.watch(observe::watch_kind(client, resource, scope, objects, relay));
    }
}
