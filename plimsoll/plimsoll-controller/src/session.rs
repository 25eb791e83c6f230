//! One plan under way: its progress, its watches, its executions in flight.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use plimsoll_api::{GroupKind, ObjectKey};
use plimsoll_plan::gate;
use plimsoll_plan::mode::Mode;
use plimsoll_plan::parse;
use plimsoll_plan::plan::{Action, GroupVersionKind, Plan};
use plimsoll_plan::progress::{Event, NamespaceState, Outcome, Progress, Scope, Trace, World};
use plimsoll_plan::upgradeable::{self, NotUpgradeable};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};
use tracing::{Instrument as _, Span};

use crate::discovery_poller::{DiscoveryPoller, GroupVersion};
use crate::metrics::Counters;
use crate::observe::{self, OBSERVATIONS_QUEUED, Observation, WatchScope, WatchedObjects};
use crate::removals::Removals;
use crate::resources::Resources;
use crate::spans::{self, Spans};
use crate::write::Writer;

/// How long the answer may take to the question whether a kind is served.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// A plan under way.
pub(crate) struct Session {
    client: Client,
    writer: Writer,
    owner: Arc<str>,
    pub(crate) progress: Progress,
    resources: Resources,
    /// Live ClusterOperators, of the plan or not.
    operators: BTreeMap<String, (u64, Value)>,
    watched: BTreeSet<GroupKind>,
    /// Every kind of the plan is watched.
    watching_all: bool,
    watches: JoinSet<()>,
    sender: mpsc::Sender<Observation>,
    pub(crate) observations: mpsc::Receiver<Observation>,
    executing: JoinSet<(usize, Outcome)>,
    spans: Spans,
    poller: DiscoveryPoller,
    asking: JoinSet<(GroupVersion, Resources)>,
    /// What releases deleted, and how far that has come.
    pub(crate) removals: Removals,
    /// Objects that are put right, and whether they were gone, since that was last told.
    pub(crate) drifted: Vec<(ObjectKey, bool)>,
    /// What happened since the process began.
    pub(crate) counts: Arc<Counters>,
    /// Nothing is started yet.
    held: bool,
    /// The rules by which ClusterOperators were judged.
    judged_in: Mode,
}

/// What a session was told.
pub(crate) enum SessionEvent {
    /// A watch showed something.
    Observed(Observation),
    /// An execution ended.
    Executed(usize, Outcome),
    /// Something was asked again; nothing else to do.
    Discovered,
}

impl Session {
    pub(crate) fn new(
        client: Client,
        owner: Arc<str>,
        plan: Arc<Plan>,
        resources: Resources,
        removals: Removals,
        now: Timestamp,
    ) -> Self {
        let mut world = World::default();
        world.await_namespaces();
        for (kind, served) in resources.iter() {
            world.serve(kind.clone(), served.scope);
        }
        let (sender, observations) = mpsc::channel(OBSERVATIONS_QUEUED);
        let spans = Spans::begin(&plan);
        let judged_in = plan.mode;
        let mut session = Self {
            writer: Writer::new(client.clone()),
            client,
            owner,
            progress: Progress::new(plan, world, now),
            resources,
            operators: BTreeMap::new(),
            watched: BTreeSet::new(),
            watching_all: false,
            watches: JoinSet::new(),
            sender,
            observations,
            executing: JoinSet::new(),
            spans,
            poller: DiscoveryPoller::default(),
            asking: JoinSet::new(),
            removals,
            drifted: Vec::new(),
            counts: Arc::default(),
            held: false,
            judged_in,
        };
        session.removals.discovered(&session.resources, now);
        session.watch_served(now);
        session
    }

    /// What was found out about the API server, for the session after this one.
    pub(crate) fn resources(&self) -> &Resources {
        &self.resources
    }

    /// Takes up where the session before ended: what is done and unchanged stays done.
    pub(crate) fn take_over(&mut self, before: &mut Self, now: Timestamp) {
        self.progress = self.progress.clone().succeed(&before.progress, now);
        self.counts = std::mem::take(&mut before.counts);
        self.drifted = std::mem::take(&mut before.drifted);
        for (name, (revision, object)) in std::mem::take(&mut before.operators) {
            self.operator(name, revision, Some(object), now);
        }
    }

    /// The ClusterOperators of the cluster that object to another minor version.
    pub(crate) fn objections(&self) -> Vec<NotUpgradeable> {
        let operators = self.operators.values();
        operators.filter_map(|(_, operator)| upgradeable::objection_of(operator)).collect()
    }

    /// ClusterOperators of the cluster that say that they are not available, and those that say
    /// that they are available but degraded.
    pub(crate) fn unhealthy(&self) -> (Vec<String>, Vec<String>) {
        let says = |operator: &Value, type_: &str, status: &str| {
            parse::condition(operator, type_).is_some_and(|it| it.status == status)
        };
        let (mut unavailable, mut degraded) = (Vec::new(), Vec::new());
        for (name, (_, operator)) in &self.operators {
            if says(operator, "Available", "False") {
                unavailable.push(name.clone());
            } else if says(operator, "Degraded", "True") {
                degraded.push(name.clone());
            }
        }
        (unavailable, degraded)
    }

    /// Waits for the executions in flight, at most for a while: their results are not lost.
    pub(crate) async fn drain(&mut self, patience: Duration, now: Timestamp) {
        let drained = async {
            while let Some(result) = self.executing.join_next().await {
                if let Ok((step, outcome)) = result {
                    self.removals.executed(&self.progress, step, &outcome, now);
                    self.progress.handle(Event::Executed { step, outcome }, now);
                }
            }
        };
        // What does not end in time is found by the next process.
        let _ = timeout(patience, drained).await;
        self.watches.abort_all();
    }

    /// Waits for the next thing to happen to this plan.
    pub(crate) async fn next(&mut self) -> SessionEvent {
        loop {
            let ask_at = self.poller.next_at();
            tokio::select! {
                biased;
                Some(Ok((step, outcome))) = self.executing.join_next(),
                    if !self.executing.is_empty() => return SessionEvent::Executed(step, outcome),
                Some(observation) = self.observations.recv() => {
                    return SessionEvent::Observed(observation);
                }
                Some(Ok((version, found))) = self.asking.join_next(), if !self.asking.is_empty() => {
                    self.poller.answered(&version, Instant::now());
                    self.resources.extend(found);
                    return SessionEvent::Discovered;
                }
                () = sleep_until(ask_at.unwrap_or_else(Instant::now)), if ask_at.is_some() => {
                    self.ask();
                }
            }
        }
    }

    /// Takes note of what happened, and starts what is due.
    pub(crate) fn handle(&mut self, turn: SessionEvent, now: Timestamp) {
        match turn {
            SessionEvent::Executed(step, outcome) => {
                let plan = self.progress.plan();
                let (action, version) = (&plan.steps[step].action, &plan.release.version);
                Arc::make_mut(&mut self.counts).executed(action, version, &outcome);
                self.removals.executed(&self.progress, step, &outcome, now);
                // What happened in the meantime is found out now.
                let key = plan.steps[step].manifest.key.clone();
                let event = Event::Executed { step, outcome };
                self.handle_drift(event, key, |progress| progress.is_gone(step), now);
            }
            SessionEvent::Observed(observation) => self.observe(observation, now),
            SessionEvent::Discovered => {
                let served: Vec<(GroupVersionKind, Scope)> =
                    self.resources.iter().map(|(kind, s)| (kind.clone(), s.scope)).collect();
                for (kind, scope) in served {
                    if self.progress.world().scope(&kind).is_none() {
                        self.progress.handle(Event::KindServed(kind, scope), now);
                    }
                }
                self.watch_served(now);
            }
        }
        self.judge_again(now);
        self.start_due(now);
        self.spans.settle(&self.progress);
        if !self.watching_all && self.progress.is_quiet(now) {
            self.watch_served(now);
        }
        let wanted =
            self.progress.wanted_kinds().into_iter().map(|kind| (kind.group, kind.version));
        self.poller.want(&wanted.collect(), Instant::now());
    }

    /// Starts nothing until it may.
    pub(crate) fn hold(&mut self) {
        self.held = true;
    }

    /// Lets what is due be started.
    pub(crate) fn release(&mut self) {
        self.held = false;
    }

    /// Whether nothing is started yet.
    pub(crate) fn is_held(&self) -> bool {
        self.held
    }

    /// Starts what is due now.
    pub(crate) fn start_due(&mut self, now: Timestamp) {
        if self.held {
            return;
        }
        loop {
            let due = self.progress.start(now);
            if due.is_empty() {
                break;
            }
            for index in due {
                self.execute(index);
            }
        }
    }

    /// Judges the ClusterOperators that were seen again if other rules are in force now.
    fn judge_again(&mut self, now: Timestamp) {
        let mode = self.progress.mode();
        if std::mem::replace(&mut self.judged_in, mode) != mode {
            for (name, (revision, object)) in std::mem::take(&mut self.operators) {
                self.operator(name, revision, Some(object), now);
            }
        }
    }

    fn execute(&mut self, index: usize) {
        let plan = Arc::clone(self.progress.plan());
        let step = &plan.steps[index];
        let Some(served) = self.resources.get(&step.kind()).cloned() else {
            // The world only knows kinds that discovery found, so this is a kind withdrawn since.
            let obstacle = plimsoll_plan::progress::Obstacle::KindNotServed(step.kind());
            self.executing.spawn(async move { (index, Outcome::Obstacle(obstacle)) });
            return;
        };
        let fresh =
            step.action == Action::Gate && !self.operators.contains_key(&step.manifest.key.name);
        let (writer, owner, plan) =
            (self.writer.clone(), Arc::clone(&self.owner), Arc::clone(&plan));
        let span = self.spans.step(&plan, index);
        let execution = async move {
            let step = &plan.steps[index];
            let outcome = writer.execute(step, &served, &owner).await;
            if fresh && matches!(outcome, Outcome::Applied(_)) {
                writer.fast_fill(step, &served).await;
            }
            spans::ended(&Span::current(), &outcome);
            (index, outcome)
        };
        self.executing.spawn(execution.instrument(span));
    }

    /// Takes note of something about an object, and of whether it has to be put right.
    fn handle_drift(
        &mut self,
        event: Event,
        key: ObjectKey,
        is_gone: impl Fn(&Progress) -> bool,
        now: Timestamp,
    ) {
        let repairs = self.progress.repairs();
        self.progress.handle(event, now);
        if self.progress.repairs() > repairs {
            self.drifted.push((key, is_gone(&self.progress)));
        }
    }

    fn observe(&mut self, observation: Observation, now: Timestamp) {
        match observation {
            Observation::Object { key, mark, health, terminating } => {
                self.removals.observed(&key, mark, terminating.as_ref(), now);
                if let Some(verdict) = health {
                    let revision = mark.revision;
                    let event = Event::Health { key: key.clone(), revision, verdict };
                    self.progress.handle(event, now);
                }
                let object = key.clone();
                let is_gone = mark.trace == Trace::Gone;
                self.handle_drift(Event::Observed { key, mark }, object, |_| is_gone, now);
            }
            Observation::Definition { group, .. } => self.poller.hint(&group, Instant::now()),
            Observation::Listed(kind) => {
                self.removals.listed(&kind, now);
                self.progress.handle(Event::Listed(kind), now);
            }
            Observation::Namespace { name, state } => {
                self.progress.handle(Event::Namespace(name, state), now);
            }
            Observation::Operator { name, revision, object } => {
                self.operator(name, revision, object, now);
            }
            Observation::ClusterVersion(_)
            | Observation::FeatureGate(_)
            | Observation::ConfigMap { .. } => {}
        }
    }

    /// Judges a ClusterOperator at the gates of the plan.
    fn operator(&mut self, name: String, revision: u64, object: Option<Value>, now: Timestamp) {
        Arc::make_mut(&mut self.counts).operator(&name, object.as_ref());
        let plan = Arc::clone(self.progress.plan());
        for step in plan.steps.iter().filter(|step| step.action == Action::Gate) {
            if step.manifest.key.name == name {
                let verdict = gate::cluster_operator(
                    &step.manifest.object(),
                    object.as_ref(),
                    self.progress.mode(),
                );
                let key = step.manifest.key.clone();
                self.progress.handle(Event::Health { key, revision, verdict }, now);
            }
        }
        match object {
            Some(object) => self.operators.insert(name, (revision, object)),
            None => self.operators.remove(&name),
        };
    }

    /// Tells the progress about a namespace that a step of ours just made: its watch may lag.
    pub(crate) fn namespace_applied(&mut self, step: usize, now: Timestamp) {
        let key = &self.progress.plan().steps[step].manifest.key;
        if key.group.is_empty() && key.kind == "Namespace" {
            let name = key.name.clone();
            let state = Some(NamespaceState::Active);
            self.progress.handle(Event::Namespace(name, state), now);
        }
    }

    /// Watches every kind of the plan that is served and not watched yet, all namespaces and all
    /// definitions.
    ///
    /// What only shows drift is watched from the first quiet moment on: until then it would load a
    /// server that is busy serving new kinds, and nothing is missed, since a watch begins with
    /// what is there.
    fn watch_served(&mut self, now: Timestamp) {
        let plan = Arc::clone(self.progress.plan());
        let quiet = self.progress.is_quiet(now);
        let mut interests: BTreeMap<GroupKind, BTreeMap<(String, String), ObjectKey>> =
            BTreeMap::new();
        let mut served = BTreeMap::new();
        // What others make of these may be what a step waits for.
        for (group, kind) in [("", "Namespace"), ("apiextensions.k8s.io", DEFINITION)] {
            let version = GroupVersionKind {
                group: group.to_owned(),
                version: "v1".to_owned(),
                kind: kind.to_owned(),
            };
            if let Some(found) = self.resources.get(&version) {
                let kind = GroupKind::new(group, kind);
                served.insert(kind.clone(), found.clone());
                interests.entry(kind).or_default();
            }
        }
        let steps = plan.steps.iter().map(|step| (step.kind(), &step.manifest.key));
        let orphans = self.removals.orphans.iter().map(|orphan| {
            let kind = GroupVersionKind {
                group: orphan.object.group.clone(),
                version: orphan.api_version.clone(),
                kind: orphan.object.kind.clone(),
            };
            (self.resources.in_served_version(kind), &orphan.object)
        });
        for (version, key) in steps.chain(orphans) {
            let kind = key.group_kind();
            if self.watched.contains(&kind) || !(quiet || is_watched_early(&kind)) {
                continue;
            }
            let Some(found) = self.resources.get(&version) else {
                continue;
            };
            let namespace = match found.scope {
                Scope::Namespaced => key.namespace.clone(),
                Scope::Cluster => String::new(),
            };
            served.entry(kind.clone()).or_insert_with(|| found.clone());
            interests.entry(kind).or_default().insert((namespace, key.name.clone()), key.clone());
        }
        self.watching_all = plan
            .steps
            .iter()
            .map(|step| step.manifest.key.group_kind())
            .all(|kind| self.watched.contains(&kind) || served.contains_key(&kind));
        for (kind, found) in served {
            if !self.watched.insert(kind.clone()) {
                continue;
            }
            let interest: WatchedObjects = Arc::new(interests.remove(&kind).unwrap_or_default());
            self.watches.spawn(observe::watch_kind(
                self.client.clone(),
                found.resource,
                depth(&kind),
                interest,
                self.sender.clone(),
            ));
        }
    }

    /// Asks about the group version whose time has come.
    fn ask(&mut self) {
        if let Some(version) = self.poller.due(Instant::now()) {
            let client = self.client.clone();
            self.asking.spawn(async move {
                let found = Resources::discover_version(&client, &version.0, &version.1);
                // A server in trouble is asked again, and one that does not answer holds up no
                // other question for longer than that.
                let found = timeout(ANSWER_WITHIN, found).await.ok().and_then(Result::ok);
                (version, found.unwrap_or_default())
            });
        }
    }
}

const DEFINITION: &str = "CustomResourceDefinition";

/// Kinds whose events something waits for.
fn is_watched_early(kind: &GroupKind) -> bool {
    depth(kind) != WatchScope::Metadata
}

fn depth(kind: &GroupKind) -> WatchScope {
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Namespace") => WatchScope::Namespaces,
        ("apps", "Deployment" | "DaemonSet" | "StatefulSet") | ("batch", "Job") => {
            WatchScope::Workloads
        }
        ("apiextensions.k8s.io", DEFINITION) => WatchScope::Definitions,
        ("config.openshift.io", "ClusterOperator") => WatchScope::Operators,
        _ => WatchScope::Metadata,
    }
}
