//! One plan under way: carries out the effects of [`PlanExecution`], and reports the results to it.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use plimsoll_plan::plan::{GroupVersionKind, Plan};
use plimsoll_plan::progress::{Progress, Scope, StepBlocker, StepOutcome};
use plimsoll_plan::reconciler::discovery::GroupVersion;
use plimsoll_plan::reconciler::execution::{
    ExecutionEffect, ExecutionEvent, Observation, PlanExecution,
};
use plimsoll_plan::reconciler::removals::Removals;
use plimsoll_plan::reconciler::watches::Watch;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};
use tracing::{Instrument as _, Span};

use crate::clock::Stopwatch;
use crate::observe::{self, OBSERVATIONS_QUEUED};
use crate::resources::Resources;
use crate::spans::{self, Spans};
use crate::write::Writer;

/// How long the response to a discovery request may take: a server that does not answer holds up
/// no other request for longer than that.
const DISCOVERY_TIME_MAX: Duration = Duration::from_secs(10);

/// A plan under way, with its watches and its executions in flight.
pub(crate) struct Session {
    client: Client,
    writer: Writer,
    stopwatch: Stopwatch,
    pub(crate) execution: PlanExecution,
    resources: Resources,
    watches: JoinSet<()>,
    sender: mpsc::Sender<Observation>,
    observations: mpsc::Receiver<Observation>,
    executing: JoinSet<(usize, StepOutcome)>,
    discovering: JoinSet<(GroupVersion, Resources)>,
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
        let (sender, observations) = mpsc::channel(OBSERVATIONS_QUEUED);
        let spans = Spans::begin(&plan);
        let (execution, effects) = PlanExecution::new(plan, resources.scopes(), removals, now);
        let mut session = Self {
            writer: Writer::new(client.clone()),
            client,
            stopwatch,
            execution,
            resources,
            watches: JoinSet::new(),
            sender,
            observations,
            executing: JoinSet::new(),
            discovering: JoinSet::new(),
            spans,
        };
        session.carry_out(effects);
        session
    }

    /// What discovery has shown, for the session after this one.
    pub(crate) fn resources(&self) -> &Resources {
        &self.resources
    }

    /// How far the plan has come.
    pub(crate) fn progress(&self) -> &Progress {
        self.execution.progress()
    }

    /// Waits for the executions in flight, at most for a while: their results are not lost.
    pub(crate) async fn drain(&mut self, time_max: Duration, now: Timestamp) {
        let drained = async {
            while let Some(result) = self.executing.join_next().await {
                if let Ok((step, outcome)) = result {
                    self.execution.drained(step, outcome, now);
                }
            }
        };
        // What does not end in time is found by the next process.
        let _ = timeout(time_max, drained).await;
        self.watches.abort_all();
    }

    /// Waits for the next thing to happen to this plan.
    pub(crate) async fn next(&mut self) -> ExecutionEvent {
        loop {
            let discover_at = self.execution.discover_at().map(|at| self.stopwatch.instant(at));
            tokio::select! {
                biased;
                Some(Ok((step, outcome))) = self.executing.join_next(),
                    if !self.executing.is_empty() => return ExecutionEvent::Executed(step, outcome),
                Some(observation) = self.observations.recv() => {
                    return ExecutionEvent::Observed(observation);
                }
                Some(Ok((version, found))) = self.discovering.join_next(),
                    if !self.discovering.is_empty() =>
                {
                    let kinds: Vec<(GroupVersionKind, Scope)> = found.scopes().collect();
                    self.resources.extend(found);
                    return ExecutionEvent::Discovered(version, kinds);
                }
                () = sleep_until(discover_at.unwrap_or_else(Instant::now)),
                    if discover_at.is_some() => self.discover(),
            }
        }
    }

    /// Tells the plan what happened, and carries out what follows.
    pub(crate) fn handle(&mut self, event: ExecutionEvent, now: Timestamp) {
        let effects = self.execution.handle(event, now, self.stopwatch.uptime());
        self.carry_out(effects);
        self.spans.settle(self.execution.progress());
    }

    /// Starts what is due now.
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
        let step = &plan.steps[index];
        let Some(served) = self.resources.get(&step.kind()).cloned() else {
            // Steps start once discovery has found their kind: this one was withdrawn since.
            let blocker = StepBlocker::KindNotServed(step.kind());
            self.executing.spawn(async move { (index, StepOutcome::Blocked(blocker)) });
            return;
        };
        let writer = self.writer.clone();
        let span = self.spans.step(&plan, index);
        let execution = async move {
            let step = &plan.steps[index];
            let outcome = writer.execute(step, &served).await;
            if fills_related_objects && matches!(outcome, StepOutcome::Applied(_)) {
                writer.fast_fill(step, &served).await;
            }
            spans::ended(&Span::current(), &outcome);
            (index, outcome)
        };
        self.executing.spawn(execution.instrument(span));
    }

    fn watch(&mut self, watch: Watch) {
        // Watches start for kinds that discovery has found.
        let Some(served) = self.resources.get(&watch.kind) else { return };
        self.watches.spawn(observe::watch_kind(
            self.client.clone(),
            served.resource.clone(),
            watch.scope,
            Arc::new(watch.objects),
            self.sender.clone(),
        ));
    }

    fn discover(&mut self) {
        if let Some(version) = self.execution.next_discovery(self.stopwatch.uptime()) {
            let client = self.client.clone();
            self.discovering.spawn(async move {
                let found = Resources::discover_version(&client, &version.0, &version.1);
                // A request that fails is repeated like one that finds nothing.
                let found = timeout(DISCOVERY_TIME_MAX, found).await.ok().and_then(Result::ok);
                (version, found.unwrap_or_default())
            });
        }
    }
}
