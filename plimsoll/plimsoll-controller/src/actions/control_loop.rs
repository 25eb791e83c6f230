//! The control loop of Actions. It updates its caches with what watches deliver, and takes one
//! Action after the other a step further, in the order of their creation.
//! [`plimsoll_operators::actions`] decides what the step is.

mod announce;
mod collect;
mod decide;
mod execute;
mod finalize;
mod generate;
mod known;
mod observations;
mod queue;
mod status;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use plimsoll_api::{ACTION, ACTION_CLASS, ACTION_POLICY, CLUSTER_VERSION, CLUSTER_VERSION_NAME};
use plimsoll_operators::actions::attributes::NamedClass;
use plimsoll_operators::actions::policy::NamedPolicy;
use plimsoll_operators::actions::report::ActionObject;
use plimsoll_operators::observed::ObservedOperator;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use self::known::{ActionCounts, EndedActions};
use self::observations::{Observation, watch_objects};
use self::queue::{WorkItem, WorkQueue};
use super::change_writer::ChangeWriter;
use super::classes::ClassStates;
use super::generators::{ActionGenerator, GENERATORS};
use super::inventory::InventoryClient;
use super::parts::PartStore;
use super::review::AdmissionRules;
use super::selection::{Selection, SelectionWatch};
use crate::clock::SharedClock;
use crate::events::Recorder;
use crate::observe::watch_named;
use crate::relay::Relay;
use crate::view::OperatorsView;
use crate::write::Writer;
use plimsoll_api::NamespacedName;

/// The number of observations that can be queued.
const EVENTS_QUEUED: usize = 1024;
/// The delay before a request that failed is sent again.
const RETRY_INTERVAL: Duration = Duration::from_secs(2);

/// A running controller of Actions.
pub(super) struct ControlLoop {
    client: Client,
    clock: SharedClock,
    writer: Writer,
    changes: ChangeWriter,
    recorder: Recorder,
    inventory: InventoryClient,
    observations: mpsc::Receiver<Observation>,
    /// The watches of kinds, which end with the loop.
    _watches: JoinSet<()>,
    parts: PartStore,
    /// The Actions that have not ended, and those that have and whose finalizer is still to be
    /// removed.
    actions: BTreeMap<NamespacedName, ActionObject>,
    /// All other Actions.
    ended: EndedActions,
    counts: ActionCounts,
    /// Why Actions cannot be read that have not ended.
    unreadable: BTreeMap<NamespacedName, String>,
    /// The Actions whose plan is still to be read from their parts.
    unloaded: BTreeSet<NamespacedName>,
    /// The Actions that an object generated, by the uid of that object.
    generated: BTreeMap<String, BTreeSet<NamespacedName>>,
    /// The objects that generated them, by uid.
    owners: BTreeMap<String, WorkItem>,
    generators: BTreeMap<(&'static str, NamespacedName), ActionGenerator>,
    selections: BTreeMap<Selection, SelectionWatch>,
    /// The channel for the watches of selections.
    relay: Relay<Observation>,
    classes: Arc<Vec<NamedClass>>,
    class_states: ClassStates,
    policies: Vec<NamedPolicy>,
    operators: BTreeMap<String, ObservedOperator>,
    catalogs: BTreeMap<String, String>,
    /// The version of the release that was completed last; empty if none was, `None` before the
    /// ClusterVersion has been observed.
    release: Option<String>,
    /// The kinds whose objects have all been listed.
    listed: BTreeSet<&'static str>,
    /// The Actions whose status could not be written: the API server still has an earlier one.
    unsaved: BTreeSet<NamespacedName>,
    /// The Actions that this controller executes, by their uid, and `status.attempts` of each since
    /// then. A higher number there says that another controller has continued it.
    executed: BTreeMap<String, u32>,
    queue: WorkQueue,
    /// The rules that admission decisions are based on.
    rules: watch::Sender<AdmissionRules>,
    /// The names of the guarded classes, for the webhooks.
    guarded: watch::Sender<BTreeSet<String>>,
    /// The state that metrics report.
    view: watch::Sender<OperatorsView>,
}

/// The parameters of [`ControlLoop::start`].
pub(super) struct LoopSettings {
    pub(super) client: Client,
    pub(super) clock: SharedClock,
    pub(super) recorder: Recorder,
    pub(super) inventory: InventoryClient,
    pub(super) rules: watch::Sender<AdmissionRules>,
    pub(super) guarded: watch::Sender<BTreeSet<String>>,
    pub(super) view: watch::Sender<OperatorsView>,
}

impl ControlLoop {
    /// Starts the watches. They cancel `stop` if the storage of the API server was restored to an
    /// earlier state.
    pub(super) fn start(settings: LoopSettings, stop: &CancellationToken) -> Self {
        let LoopSettings { client, clock, recorder, inventory, rules, guarded, view } = settings;
        let (sender, observations) = mpsc::channel(EVENTS_QUEUED);
        let relay = Relay { sender: sender.clone(), restored: stop.clone() };
        let mut watches = JoinSet::new();
        for kind in [ACTION_CLASS, ACTION_POLICY, ACTION].into_iter().chain(GENERATORS) {
            watches.spawn(watch_objects(client.clone(), kind, relay.clone()));
        }
        watches.spawn(watch_named(
            client.clone(),
            CLUSTER_VERSION,
            CLUSTER_VERSION_NAME,
            Observation::ClusterVersion,
            None,
            sender,
        ));
        let writer = Writer::new(client.clone());
        let now = clock.now();
        Self {
            changes: ChangeWriter::new(client.clone(), writer.clone()),
            parts: PartStore::new(client.clone(), writer.clone()),
            client,
            clock,
            writer,
            recorder,
            inventory,
            observations,
            _watches: watches,
            actions: BTreeMap::new(),
            ended: EndedActions::default(),
            counts: ActionCounts::default(),
            unreadable: BTreeMap::new(),
            unloaded: BTreeSet::new(),
            generated: BTreeMap::new(),
            owners: BTreeMap::new(),
            generators: BTreeMap::new(),
            selections: BTreeMap::new(),
            relay,
            classes: Arc::default(),
            class_states: ClassStates::default(),
            policies: Vec::new(),
            operators: BTreeMap::new(),
            catalogs: BTreeMap::new(),
            release: None,
            listed: BTreeSet::new(),
            unsaved: BTreeSet::new(),
            executed: BTreeMap::new(),
            queue: WorkQueue::new(now),
            rules,
            guarded,
            view,
        }
    }

    /// Runs the loop until it is stopped.
    pub(super) async fn run(mut self, stop: &CancellationToken) {
        loop {
            let wake_at = self.queue.wake_at(self.clock.now());
            tokio::select! {
                // Branches are polled in order, so that simulations are repeatable.
                biased;
                () = stop.cancelled() => return,
                Some(change) = self.inventory.changes.recv() => self.add_ons_changed(change),
                Some(observation) = self.observations.recv() => self.observed(observation),
                () = sleep_until(wake_at.unwrap_or_else(Instant::now)), if wake_at.is_some() => {}
            }
            self.drain();
            self.queue.wake(self.clock.now());
            while self.is_informed() && !stop.is_cancelled() {
                if !self.load_plans().await {
                    break;
                }
                let Some(item) = self.queue.pop() else { break };
                match item {
                    WorkItem::Classes => self.write_class_statuses().await,
                    WorkItem::Outdated => self.delete_outdated().await,
                    WorkItem::Action(_, id) => self.act(&id).await,
                    WorkItem::Generator(kind, id) => self.generate(kind, &id).await,
                }
                self.drain();
            }
            self.publish();
        }
    }

    /// Handles the observations that are queued.
    fn drain(&mut self) {
        while let Ok(change) = self.inventory.changes.try_recv() {
            self.add_ons_changed(change);
        }
        while let Ok(observation) = self.observations.try_recv() {
            self.observed(observation);
        }
    }

    fn actions_due(&mut self, which: impl Fn(&ActionObject) -> bool) {
        let due = self.actions.values().filter(|it| !it.status.state.is_final() && which(it));
        self.queue.add(due.map(WorkItem::of));
    }

    fn generators_due(&mut self, which: impl Fn(&ActionGenerator) -> bool) {
        let due = self.generators.iter().filter(|(_, it)| which(it));
        self.queue.add(due.map(|((kind, id), _)| WorkItem::Generator(kind, id.clone())));
    }

    /// Schedules a retry of an Action.
    fn act_again(&mut self, action: &ActionObject) {
        self.queue.retry(WorkItem::of(action), RETRY_INTERVAL);
    }

    /// Publishes the rules for admission, and the state that metrics report.
    fn publish(&mut self) {
        let active = self.counts.changed_active();
        self.rules.send_if_modified(|rules| {
            let is_changed = active.is_some() || !Arc::ptr_eq(&rules.classes, &self.classes);
            if is_changed {
                rules.classes = Arc::clone(&self.classes);
            }
            if let Some(active) = active {
                rules.active = active;
            }
            is_changed
        });
        let waiting = self.counts.waiting();
        self.view.send_if_modified(|view| {
            let states = self.counts.states();
            let is_changed = view.actions != *states || view.actions_waiting != waiting;
            if is_changed {
                view.actions.clone_from(states);
                view.actions_waiting = waiting;
            }
            is_changed
        });
    }
}
