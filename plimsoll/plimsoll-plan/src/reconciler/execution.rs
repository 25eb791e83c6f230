//! One plan under way: what watches and executions report goes in, what to execute, watch and
//! discover comes out.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use plimsoll_api::progress::CompletedJob;
use plimsoll_api::{GroupKind, ObjectKey, Verdict};
use serde_json::Value;

use super::Uptime;
use super::cluster_operators::{LiveOperator, LiveOperators};
use super::counters::Counters;
use super::discovery::{DiscoveryPoller, GroupVersion};
use super::removals::Removals;
use super::watches::{Watch, WatchPlan};
use crate::plan::mode::Mode;
use crate::plan::{Action, GroupVersionKind, Plan, is_cluster_operator};
use crate::progress::pause::Pause;
use crate::progress::{Event, Mark, NamespaceState, Progress, Scope, StepOutcome, World};
use crate::removal::Terminating;

/// What a watch of the plan's objects showed.
#[derive(Debug, Clone, PartialEq)]
pub enum Observation {
    /// An object of the plan.
    Object {
        /// The object.
        key: ObjectKey,
        /// Its revision, and what of it is ours.
        mark: Mark,
        /// Its health; `None` where none is awaited.
        health: Option<Verdict>,
        /// Since when it is terminating, and why it still exists; `None` when it is not.
        terminating: Option<Terminating>,
    },
    /// All objects of a kind that exist have been shown.
    Listed(GroupKind),
    /// The watch of a kind ended, as when its connection is lost: its objects are going to be listed
    /// again.
    Interrupted(GroupKind),
    /// A list was of an earlier state than was known; see [`revisions`](super::revisions).
    RolledBack,
    /// A definition changed, in the plan or not.
    Definition {
        /// API group of the kind that it defines.
        group: String,
        /// Plural name of the kind that it defines.
        plural: String,
    },
    /// A namespace changed, in the plan or not.
    Namespace {
        /// Its name.
        name: String,
        /// Its state; `None` when it is gone.
        state: Option<NamespaceState>,
    },
    /// A ClusterOperator changed, in the plan or not.
    Operator {
        /// Its name.
        name: String,
        /// Its resourceVersion, or that of its deletion.
        revision: u64,
        /// The whole object; `None` when it is gone.
        object: Option<Value>,
    },
}

/// What happened to a plan under way.
#[derive(Debug, Clone, PartialEq)]
pub enum ExecutionEvent {
    /// A watch showed something.
    Observed(Observation),
    /// An execution of a step ended.
    Executed(usize, StepOutcome),
    /// Discovery of a group version was answered, failed or timed out; the kinds found.
    Discovered(GroupVersion, Vec<(GroupVersionKind, Scope)>),
}

/// What to do for a plan under way.
#[derive(Debug, Clone, PartialEq)]
pub enum ExecutionEffect {
    /// Execute a step.
    Execute {
        /// Index of the step in the plan.
        step: usize,
        /// Fill in the related objects of a ClusterOperator once it is applied: no watch has
        /// shown it yet.
        fills_related_objects: bool,
    },
    /// Start a watch.
    Watch(Watch),
}

/// An object that was repaired after another client had changed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drift {
    /// The object.
    pub key: ObjectKey,
    /// Whether it had been deleted rather than changed.
    pub is_deleted: bool,
}

/// A plan under way.
#[derive(Debug, Clone)]
pub struct PlanExecution {
    progress: Progress,
    removals: Removals,
    operators: LiveOperators,
    counters: Arc<Counters>,
    watches: WatchPlan,
    poller: DiscoveryPoller,
    drifted: Vec<Drift>,
    /// A list was of an earlier state than was known.
    is_rolled_back: bool,
    /// Nothing is started until the status names the release.
    is_held: bool,
    /// The mode in which ClusterOperators were judged last.
    judged_in: Mode,
}

impl PlanExecution {
    /// Begins a plan on a cluster that serves some kinds; the watches to start.
    pub fn new(
        plan: Arc<Plan>,
        served: impl IntoIterator<Item = (GroupVersionKind, Scope)>,
        removals: Removals,
        now: Timestamp,
    ) -> (Self, Vec<ExecutionEffect>) {
        let mut world = World::default();
        world.await_namespaces();
        for (kind, scope) in served {
            world.serve(kind, scope);
        }
        let judged_in = plan.mode;
        let mut execution = Self {
            progress: Progress::new(plan, world, now),
            removals,
            operators: LiveOperators::default(),
            counters: Arc::default(),
            watches: WatchPlan::default(),
            poller: DiscoveryPoller::default(),
            drifted: Vec::new(),
            is_rolled_back: false,
            is_held: false,
            judged_in,
        };
        execution.normalize_removals();
        execution.progress.retry_deletions(&execution.removals.refused());
        let world = execution.progress.world();
        execution.removals.discovered(|kind| world.serves(kind), now);
        let mut effects = Vec::new();
        execution.start_watches(now, &mut effects);
        (execution, effects)
    }

    /// Identifies what is removed and left behind as the server does.
    fn normalize_removals(&mut self) {
        let cluster_kinds = self.progress.world().cluster_kinds();
        self.removals.normalize_keys(self.progress.plan(), &cluster_kinds);
    }

    /// Takes up the Jobs that an earlier process recorded as completed, whatever its plan was.
    pub fn recall(&mut self, jobs: &[CompletedJob], now: Timestamp) {
        self.progress = self.progress.clone().recall(jobs, now);
    }

    /// Resumes a plan that an earlier process began: these steps are done.
    pub fn resume(&mut self, done: &[usize], now: Timestamp) {
        self.progress = self.progress.clone().resume(done, now);
        self.progress.retry_deletions(&self.removals.refused());
    }

    /// Follows another plan of the same process: what is done and unchanged stays done. The
    /// removals were handed over when the plan was made.
    pub fn succeed(&mut self, before: &mut Self, now: Timestamp) {
        self.progress = self.progress.clone().succeed(&before.progress, now);
        self.counters = std::mem::take(&mut before.counters);
        self.drifted = std::mem::take(&mut before.drifted);
        self.operators = std::mem::take(&mut before.operators);
        self.judge_operators(now);
    }

    /// Takes the removals out, for the plan that follows this one.
    pub fn take_removals(&mut self) -> Removals {
        std::mem::take(&mut self.removals)
    }

    /// How far the plan has come.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Whether the API server's storage went back to an earlier state: what is known of the cluster is
    /// of no use then.
    pub fn is_rolled_back(&self) -> bool {
        self.is_rolled_back || self.progress.is_rolled_back()
    }

    /// Deletions and orphans.
    pub fn removals(&self) -> &Removals {
        &self.removals
    }

    /// Deletions and orphans, to be changed by what the ClusterVersion says of them.
    pub fn removals_mut(&mut self) -> &mut Removals {
        &mut self.removals
    }

    /// The ClusterOperators as last seen.
    pub fn operators(&self) -> &LiveOperators {
        &self.operators
    }

    /// What happened since the process started.
    pub fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// The objects that were repaired since the last call.
    pub fn take_drifted(&mut self) -> Vec<Drift> {
        std::mem::take(&mut self.drifted)
    }

    /// Pauses the update before a run level, or resumes it.
    pub fn set_pause(&mut self, pause: Option<Pause>, now: Timestamp) {
        self.progress.set_pause(pause, now);
    }

    /// Starts no step until [`Self::release`].
    pub fn hold(&mut self) {
        self.is_held = true;
    }

    /// Lets steps be started.
    pub fn release(&mut self) {
        self.is_held = false;
    }

    /// Leaves out the migrations of the plan, whose objects are going to be deleted.
    pub fn skip_migrations(&mut self) {
        self.progress.skip_migrations();
    }

    /// Whether no step is started.
    pub fn is_held(&self) -> bool {
        self.is_held
    }

    /// When to call [`Self::start_due`] if nothing happens before; `None` while held, since then
    /// it waits for the status and not for a time.
    pub fn wake_at(&self) -> Option<Timestamp> {
        self.progress.wake_at().filter(|_| !self.is_held)
    }

    /// When to call [`Self::next_discovery`]; `None` when nothing is waited for.
    pub fn discover_at(&self) -> Option<Uptime> {
        self.poller.wake_at()
    }

    /// The group version to discover now.
    pub fn next_discovery(&mut self, uptime: Uptime) -> Option<GroupVersion> {
        self.poller.next_request(uptime)
    }

    /// The steps that are due now.
    pub fn start_due(&mut self, now: Timestamp) -> Vec<ExecutionEffect> {
        let mut effects = Vec::new();
        self.start_steps(now, &mut effects);
        effects
    }

    /// Applies everything once more.
    pub fn sweep(&mut self, now: Timestamp) -> Vec<ExecutionEffect> {
        self.progress.handle(Event::Sweep, now);
        self.start_due(now)
    }

    /// An execution ended while the plan was being drained: nothing follows it.
    pub fn drained(&mut self, step: usize, outcome: StepOutcome, now: Timestamp) {
        self.removals.executed(&self.progress, step, &outcome, now);
        self.progress.handle(Event::Executed { step, outcome }, now);
        self.remember_drift();
    }

    /// Something happened; what to do next.
    pub fn handle(
        &mut self,
        event: ExecutionEvent,
        now: Timestamp,
        uptime: Uptime,
    ) -> Vec<ExecutionEffect> {
        let mut effects = Vec::new();
        match event {
            ExecutionEvent::Executed(step, outcome) => self.executed(step, outcome, now),
            ExecutionEvent::Observed(observation) => self.observed(observation, now, uptime),
            ExecutionEvent::Discovered(version, found) => {
                self.poller.answered(&version, uptime);
                for (kind, scope) in found {
                    if self.progress.world().scope(&kind).is_none() {
                        self.progress.handle(Event::KindServed(kind, scope), now);
                    }
                }
                self.normalize_removals();
                self.start_watches(now, &mut effects);
            }
        }
        self.remember_drift();
        // Once the plan is complete, other rules apply to ClusterOperators.
        let mode = self.progress.mode();
        if std::mem::replace(&mut self.judged_in, mode) != mode {
            self.judge_operators(now);
        }
        self.start_steps(now, &mut effects);
        if !self.watches.is_complete() && self.progress.is_quiet(now) {
            self.start_watches(now, &mut effects);
        }
        let wanted: BTreeSet<GroupVersion> = self
            .progress
            .wanted_kinds()
            .into_iter()
            .map(|kind| (kind.group, kind.version))
            .collect();
        self.poller.want(&wanted, uptime);
        effects
    }

    fn executed(&mut self, step: usize, outcome: StepOutcome, now: Timestamp) {
        let plan = Arc::clone(self.progress.plan());
        let (action, key) = (&plan.steps[step].action, &plan.steps[step].manifest.key);
        if matches!(outcome, StepOutcome::Applied(_))
            && key.group.is_empty()
            && key.kind == "Namespace"
        {
            // The watch of namespaces may lag.
            let state = Some(NamespaceState::Active);
            self.progress.handle(Event::Namespace(key.name.clone(), state), now);
        }
        Arc::make_mut(&mut self.counters).executed(action, &plan.release.version, &outcome);
        self.removals.executed(&self.progress, step, &outcome, now);
        // Drift that a watch showed while the step was executed is found now.
        self.progress.handle(Event::Executed { step, outcome }, now);
    }

    fn observed(&mut self, observation: Observation, now: Timestamp, uptime: Uptime) {
        match observation {
            Observation::Object { key, mark, health, terminating } => {
                self.removals.observed(&key, mark, terminating.as_ref(), now);
                if let Some(verdict) = health {
                    let revision = mark.revision;
                    let event = Event::Health { key: key.clone(), revision, verdict };
                    self.progress.handle(event, now);
                }
                self.progress.handle(Event::Observed { key, mark }, now);
            }
            Observation::Definition { group, .. } => self.poller.definition_changed(&group, uptime),
            Observation::Interrupted(kind) => {
                self.progress.handle(Event::ListExpected(kind), now);
            }
            Observation::RolledBack => self.is_rolled_back = true,
            Observation::Listed(kind) => {
                self.removals.listed(&kind, now);
                self.progress.handle(Event::Listed(kind), now);
            }
            Observation::Namespace { name, state } => {
                self.progress.handle(Event::Namespace(name, state), now);
            }
            Observation::Operator { name, revision, object } => {
                Arc::make_mut(&mut self.counters).operator(&name, object.as_ref());
                self.judge_operator(&name, revision, object.as_ref(), now);
                let operator = object.map(|object| LiveOperator { revision, object });
                self.operators.observed(&name, operator);
            }
        }
    }

    /// Remembers the objects whose repair was counted.
    fn remember_drift(&mut self) {
        for step in self.progress.take_repaired() {
            let key = self.progress.plan().steps[step].manifest.key.clone();
            self.drifted.push(Drift { key, is_deleted: self.progress.is_missing(step) });
        }
    }

    fn judge_operators(&mut self, now: Timestamp) {
        let operators = std::mem::take(&mut self.operators);
        for (name, operator) in operators.iter() {
            self.judge_operator(name, operator.revision, Some(&operator.object), now);
        }
        self.operators = operators;
    }

    /// Judges a ClusterOperator at the gates of the plan; `None` when it is gone.
    fn judge_operator(
        &mut self,
        name: &str,
        revision: u64,
        object: Option<&Value>,
        now: Timestamp,
    ) {
        let plan = Arc::clone(self.progress.plan());
        for step in plan.steps.iter().filter(|step| step.action == Action::Gate) {
            if step.manifest.key.name == name {
                let verdict = LiveOperators::verdict(step, object, self.progress.mode());
                let key = step.manifest.key.clone();
                self.progress.handle(Event::Health { key, revision, verdict }, now);
            }
        }
    }

    fn start_steps(&mut self, now: Timestamp, effects: &mut Vec<ExecutionEffect>) {
        if self.is_held {
            return;
        }
        let plan = Arc::clone(self.progress.plan());
        loop {
            let due = self.progress.start(now);
            if due.is_empty() {
                return;
            }
            effects.extend(due.into_iter().map(|index| {
                let step = &plan.steps[index];
                let is_seen = self.operators.contains(&step.manifest.key.name);
                let is_operator = step.action == Action::Gate
                    || (step.action == Action::Apply && is_cluster_operator(&step.manifest.key));
                ExecutionEffect::Execute {
                    step: index,
                    fills_related_objects: is_operator && !is_seen,
                }
            }));
        }
    }

    fn start_watches(&mut self, now: Timestamp, effects: &mut Vec<ExecutionEffect>) {
        let (plan, world) = (self.progress.plan(), self.progress.world());
        let steps = plan.steps.iter().map(|step| (step.kind(), &step.manifest.key));
        let orphans = self.removals.orphans().iter().map(|orphan| {
            let kind = GroupVersionKind {
                group: orphan.object.group.clone(),
                version: orphan.api_version.clone(),
                kind: orphan.object.kind.clone(),
            };
            (world.served_version(kind), &orphan.object)
        });
        let planned = plan.steps.iter().map(|step| step.manifest.key.group_kind());
        let gated = plan.steps.iter().filter(|step| step.ready_when().is_some());
        self.watches.gate(gated.map(|step| step.manifest.key.group_kind()));
        let is_quiet = self.progress.is_quiet(now);
        let watches = self.watches.start(steps.chain(orphans), planned, world, is_quiet);
        for watch in &watches {
            let kind = GroupKind::new(&watch.kind.group, &watch.kind.kind);
            self.progress.handle(Event::ListExpected(kind), now);
        }
        effects.extend(watches.into_iter().map(ExecutionEffect::Watch));
    }
}

#[cfg(test)]
mod tests;
