//! The host of plan executions: it carries out their steps, discovers the kinds that they wait for, and
//! runs their watches. A release is one execution, each Operator is another; what they do with the
//! events is theirs.

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use plimsoll_plan::plan::{GroupVersionKind, Plan, Step};
use plimsoll_plan::progress::{Scope, StepBlocker, StepOutcome};
use plimsoll_plan::reconciler::discovery::GroupVersion;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, Span};

use crate::relay::Relay;
use crate::resources::{Resources, Served};
use crate::spans;
use crate::write::Writer;

/// The time that requests in flight may take to end when a controller is stopped.
pub(crate) const DRAIN_TIME_MAX: Duration = Duration::from_secs(5);
/// The number of events that can be queued: a burst of a whole payload fits.
pub(crate) const EVENTS_QUEUED: usize = 1024;
/// The time that a discovery request may take. A server that does not answer holds up no other request
/// for longer than that.
const DISCOVERY_TIME_MAX: Duration = Duration::from_secs(10);

/// An event of what a host runs.
pub(crate) trait HostEvent: Send + 'static {
    /// Returns the event for the end of the discovery of a group version, with the kinds that were
    /// found.
    fn discovered(version: GroupVersion, kinds: Vec<(GroupVersionKind, Scope)>) -> Self;
}

/// A step of a plan, to be executed.
pub(crate) struct StepExecution {
    pub(crate) plan: Arc<Plan>,
    /// The index of the step in the plan.
    pub(crate) index: usize,
    /// The span of the execution.
    pub(crate) span: Span,
}

impl StepExecution {
    pub(crate) fn step(&self) -> &Step {
        &self.plan.steps[self.index]
    }
}

/// A host of plan executions whose events are of type `T`.
pub(crate) struct Host<T> {
    pub(crate) client: Client,
    pub(crate) writer: Writer,
    /// The kinds that are served, as far as they have been discovered.
    pub(crate) resources: Resources,
    relay: Relay<T>,
    events: mpsc::Receiver<T>,
    tasks: JoinSet<T>,
    discoveries: JoinSet<(GroupVersion, Resources)>,
    watches: JoinSet<()>,
}

impl<T: HostEvent> Host<T> {
    /// Creates a host. `restored` is cancelled if the storage of the API server was restored to an
    /// earlier state.
    pub(crate) fn new(
        client: Client,
        writer: Writer,
        resources: Resources,
        restored: CancellationToken,
    ) -> Self {
        let (sender, events) = mpsc::channel(EVENTS_QUEUED);
        Self {
            client,
            writer,
            resources,
            relay: Relay { sender, restored },
            events,
            tasks: JoinSet::new(),
            discoveries: JoinSet::new(),
            watches: JoinSet::new(),
        }
    }

    /// Returns the relay that watches send their events to.
    pub(crate) fn relay(&self) -> Relay<T> {
        self.relay.clone()
    }

    /// Waits for the next event.
    pub(crate) async fn next(&mut self) -> T {
        tokio::select! {
            // Branches are polled in order, so that simulations are repeatable.
            biased;
            Some(Ok(event)) = self.tasks.join_next(), if !self.tasks.is_empty() => event,
            Some(event) = self.events.recv() => event,
            Some(Ok((version, found))) = self.discoveries.join_next(),
                if !self.discoveries.is_empty() =>
            {
                let kinds: Vec<(GroupVersionKind, Scope)> = found.scopes().collect();
                self.resources.extend(found);
                T::discovered(version, kinds)
            }
        }
    }

    /// Returns the next event that a watch has sent; `None` if there is none.
    pub(crate) fn queued(&mut self) -> Option<T> {
        self.events.try_recv().ok()
    }

    /// Runs a task whose result is an event. Tasks are awaited when the host is drained.
    pub(crate) fn spawn(&mut self, task: impl Future<Output = T> + Send + 'static) {
        self.tasks.spawn(task);
    }

    /// Runs a watch, which ends with the host.
    pub(crate) fn watch(
        &mut self,
        watch: impl Future<Output = ()> + Send + 'static,
    ) -> AbortHandle {
        self.watches.spawn(watch)
    }

    /// Executes a step by `carry_out`; `ended` returns the event for its outcome.
    pub(crate) fn execute<F>(
        &mut self,
        execution: StepExecution,
        carry_out: impl FnOnce(Writer, StepExecution, Served) -> F + Send + 'static,
        ended: impl FnOnce(StepOutcome) -> T + Send + 'static,
    ) where
        F: Future<Output = StepOutcome> + Send,
    {
        let kind = execution.step().kind();
        let served = self.resources.get(&kind).cloned();
        let (writer, span) = (self.writer.clone(), execution.span.clone());
        let task = async move {
            let outcome = match served {
                Some(served) => carry_out(writer, execution, served).await,
                // Steps start once discovery has found their kind: this one was withdrawn since.
                None => StepOutcome::Blocked(StepBlocker::KindNotServed(kind)),
            };
            spans::ended(&Span::current(), &outcome);
            ended(outcome)
        };
        self.tasks.spawn(task.instrument(span));
    }

    /// Discovers the kinds of a group version.
    pub(crate) fn discover(&mut self, version: GroupVersion) {
        let client = self.client.clone();
        self.discoveries.spawn(async move {
            let found = Resources::discover_version(&client, &version.0, &version.1);
            // A request that fails is repeated, as is one that finds nothing.
            let found = timeout(DISCOVERY_TIME_MAX, found).await.ok().and_then(Result::ok);
            (version, found.unwrap_or_default())
        });
    }

    /// Ends the watches and waits for the tasks in flight, so that none is cut off halfway. The next
    /// process observes the result of a request that does not end within [`DRAIN_TIME_MAX`].
    pub(crate) async fn drain(&mut self, mut handle: impl FnMut(T)) {
        let drained = async {
            while let Some(result) = self.tasks.join_next().await {
                if let Ok(event) = result {
                    handle(event);
                }
            }
        };
        let _ = timeout(DRAIN_TIME_MAX, drained).await;
        self.watches.abort_all();
    }
}
