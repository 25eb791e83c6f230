//! The control loop of Actions. It updates its caches with what watches deliver, and takes one
//! Action after the other a step further, in the order of their creation.
//! [`plimsoll_operators::actions`] decides what the step is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kube::core::DynamicObject;
use kube::runtime::watcher::Config;
use kube::{Api, Client};
use plimsoll_api::config::{ClusterVersionStatus, UpdateState};
use plimsoll_api::olm::action::{
    ActionRequester, ActionState, ActionStatus, ChangeOperation, ChangeState, EventSourceKind,
    PlannedChange, SelectedObjects,
};
use plimsoll_api::{
    ACTION, ACTION_CLASS, ACTION_POLICY, ApiKind, CLUSTER_VERSION, CLUSTER_VERSION_NAME,
    NamespacedName, OPERATOR, ObjectKey, Reason,
};
use plimsoll_content::expressions::Cel;
use plimsoll_operators::actions::ActionFailure;
use plimsoll_operators::actions::attributes::{EffectiveAction, NamedClass};
use plimsoll_operators::actions::execution::{
    deadline, is_untouched, next_write, observe, outcome,
};
use plimsoll_operators::actions::lifecycle::{
    ActionDecision, ActionObject, NextStep, PlanDecision, Report, active, give_up, next_step,
    waits_for,
};
use plimsoll_operators::actions::plan::ActionPlan;
use plimsoll_operators::actions::planning;
use plimsoll_operators::actions::policy::NamedPolicy;
use plimsoll_operators::observed::ObservedOperator;
use plimsoll_operators::reconciler::OperatorKind;
use plimsoll_plan::reconciler::events::{EventDraft, Severity};
use serde::Deserialize as _;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::access::{Access, named};
use super::execute::{ChangeWriter, Written};
use super::inventory::{AddOnChange, CatalogInventory, InventoryClient};
use super::makers::{self, EventContent, Maker};
use super::review::AdmissionRules;
use super::selection::{self, Selection, SelectionChange, SelectionWatch};
use crate::clock::{SharedClock, Stopwatch, run_beside};
use crate::events::Recorder;
use crate::observe::{ListingWatch, WatchedObject as _, watch_named};
use crate::relay::Relay;
use crate::resources::api_resource;
use crate::view::OperatorsView;
use crate::workloads::workloads;
use crate::write::{Writer, chain};

/// The number of observations that can be queued.
const EVENTS_QUEUED: usize = 1024;
/// The delay before a request that failed is sent again.
const RETRY_INTERVAL: Duration = Duration::from_secs(2);
/// The interval after which a change of the system clock is noticed at the latest.
const CLOCK_INTERVAL: Duration = Duration::from_secs(60);
/// The smallest step back of the system clock that makes all timers due. Smaller steps are ignored:
/// time synchronization corrects the clock all the time.
const SET_BACK_MIN: SignedDuration = SignedDuration::from_secs(1);
/// The maximum number of plans that a decision about an Action makes. It plans again if another
/// policy than before grants the plan.
const PLANS_MAX: usize = 4;
/// The maximum number of attempts to write a status while other clients change the object.
const CONFLICTS_MAX: usize = 5;

/// The prefix of digests.
const DIGEST_PREFIX: &str = "sha256:";

/// The content of the selected objects by name, or the reason why it is not known.
type SelectedContent<'a> = Result<&'a BTreeMap<String, String>, String>;

/// A message from a watch.
enum Observation {
    /// The current state of an object; `None` if it was deleted.
    Object(ApiKind, NamespacedName, Option<Box<Value>>),
    /// All objects of a kind have been listed.
    Listed(ApiKind),
    /// The current ClusterVersion; `None` if there is none.
    ClusterVersion(Option<Box<DynamicObject>>),
    /// A change of the objects that an EventAction selects.
    Selected(Box<Selection>, SelectionChange),
}

/// An item of work: an Action, in the order of creation, or an object that makes Actions.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Action(Timestamp, NamespacedName),
    Maker(&'static str, NamespacedName),
}

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
    actions: BTreeMap<NamespacedName, ActionObject>,
    /// The Actions that an object made, by the uid of that object.
    made: BTreeMap<String, BTreeSet<NamespacedName>>,
    makers: BTreeMap<(&'static str, NamespacedName), Maker>,
    selections: BTreeMap<Selection, SelectionWatch>,
    /// The channel for the watches of selections.
    relay: Relay<Observation>,
    classes: Arc<Vec<NamedClass>>,
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
    due: BTreeSet<Due>,
    /// Items that become due at a time of the system clock.
    timers: BTreeSet<(Timestamp, Due)>,
    stopwatch: Stopwatch,
    /// By how much the clock was ahead of the stopwatch when it was last checked.
    clock_ahead: SignedDuration,
    /// Items that are tried again. Changes of the system clock do not affect them.
    retries: BTreeMap<Due, Instant>,
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
        for kind in [ACTION_CLASS, ACTION_POLICY, ACTION].into_iter().chain(makers::KINDS) {
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
            client,
            clock,
            writer,
            recorder,
            inventory,
            observations,
            _watches: watches,
            actions: BTreeMap::new(),
            made: BTreeMap::new(),
            makers: BTreeMap::new(),
            selections: BTreeMap::new(),
            relay,
            classes: Arc::default(),
            policies: Vec::new(),
            operators: BTreeMap::new(),
            catalogs: BTreeMap::new(),
            release: None,
            listed: BTreeSet::new(),
            unsaved: BTreeSet::new(),
            due: BTreeSet::new(),
            timers: BTreeSet::new(),
            stopwatch: Stopwatch::start(now),
            clock_ahead: SignedDuration::ZERO,
            retries: BTreeMap::new(),
            rules,
            guarded,
            view,
        }
    }

    /// Runs the loop until it is stopped.
    pub(super) async fn run(mut self, stop: &CancellationToken) {
        loop {
            let wake_at = self.wake_at();
            tokio::select! {
                // Branches are polled in order, so that simulations are repeatable.
                biased;
                () = stop.cancelled() => return,
                Some(change) = self.inventory.changes.recv() => self.add_ons_changed(change),
                Some(observation) = self.observations.recv() => self.observed(observation),
                () = sleep_until(wake_at.unwrap_or_else(Instant::now)), if wake_at.is_some() => {}
            }
            self.drain();
            self.wake();
            while self.is_informed() && !stop.is_cancelled() {
                let Some(due) = self.due.pop_first() else { break };
                match due {
                    Due::Action(_, id) => self.act(&id).await,
                    Due::Maker(kind, id) => self.make(kind, &id).await,
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

    /// Returns the time to wake up at the latest; `None` if nothing waits for a time.
    fn wake_at(&self) -> Option<Instant> {
        let timer = self.timers.first().map(|(at, _)| {
            let wait = at.duration_since(self.clock.now()).try_into().unwrap_or(Duration::ZERO);
            // The system clock may be changed in the meantime.
            Instant::now() + CLOCK_INTERVAL.min(wait)
        });
        self.retries.values().copied().chain(timer).min()
    }

    /// Makes the items due whose time has come. If the system clock was set back, that is all of
    /// them, since their times may have been computed from the earlier clock.
    fn wake(&mut self) {
        let now = self.clock.now();
        let ahead = now.duration_since(self.stopwatch.steady_time());
        if ahead < self.clock_ahead - SET_BACK_MIN {
            self.due.extend(std::mem::take(&mut self.timers).into_iter().map(|(_, due)| due));
        }
        self.clock_ahead = ahead;
        while let Some((at, due)) = self.timers.pop_first() {
            if at > now {
                self.timers.insert((at, due));
                break;
            }
            self.due.insert(due);
        }
        let now = Instant::now();
        self.due.extend(self.retries.extract_if(.., |_, at| *at <= now).map(|(due, _)| due));
    }

    /// Returns whether all kinds have been listed.
    fn is_informed(&self) -> bool {
        let kinds = [ACTION, ACTION_CLASS, ACTION_POLICY, OPERATOR];
        kinds.iter().chain(&makers::KINDS).all(|kind| self.listed.contains(kind.kind))
    }

    fn add_ons_changed(&mut self, change: AddOnChange) {
        match change {
            AddOnChange::Operator(name, object) => {
                let before = self.operators.get(&name).map(|it| it.version().to_owned());
                match object {
                    Some(object) => self.operators.insert(name.clone(), *object),
                    None => self.operators.remove(&name),
                };
                if before.as_deref() != self.operators.get(&name).map(ObservedOperator::version) {
                    self.makers_due(|it| it.looks_for(EventSourceKind::Operator));
                }
                let concerns = |it: &ActionObject| {
                    it.status.state == ActionState::Running
                        && it.status.plan.iter().any(|change| change.operator == name)
                };
                self.actions_due(concerns);
            }
            AddOnChange::Catalog(name, digest) => {
                match digest {
                    Some(digest) if digest.is_empty() => {}
                    Some(digest) => drop(self.catalogs.insert(name, digest)),
                    None => drop(self.catalogs.remove(&name)),
                }
                self.makers_due(|it| it.looks_for(EventSourceKind::Catalog));
            }
            AddOnChange::Listed(OperatorKind::Operator) => drop(self.listed.insert(OPERATOR.kind)),
            AddOnChange::Listed(OperatorKind::Catalog) => {
                self.listed.insert("Catalog");
                self.makers_due(|it| it.looks_for(EventSourceKind::Catalog));
            }
            AddOnChange::Listed(OperatorKind::Revision) => {}
        }
    }

    fn observed(&mut self, observation: Observation) {
        match observation {
            Observation::Object(ACTION, id, object) => self.action_observed(&id, object.as_deref()),
            Observation::Object(ACTION_CLASS, id, object) => {
                let class =
                    object.and_then(|it| named(&it).map(|(name, spec)| NamedClass { name, spec }));
                let classes = Arc::make_mut(&mut self.classes);
                classes.retain(|it| it.name != id.name);
                classes.extend(class);
                classes.sort_by(|a, b| a.name.cmp(&b.name));
                self.rules_changed();
            }
            Observation::Object(ACTION_POLICY, id, object) => {
                let policy =
                    object.and_then(|it| named(&it).map(|(name, spec)| NamedPolicy { name, spec }));
                self.policies.retain(|it| it.name != id.name);
                self.policies.extend(policy);
                self.rules_changed();
            }
            Observation::Object(kind, id, object) => {
                self.maker_observed(kind, id, object.as_deref())
            }
            Observation::Listed(kind) => {
                self.listed.insert(kind.kind);
            }
            Observation::Selected(selection, change) => {
                let watched = self.selections.get_mut(&selection);
                if watched.is_some_and(|it| it.observe(change)) {
                    self.makers_due(|it| it.selection.as_ref() == Some(&*selection));
                }
            }
            Observation::ClusterVersion(object) => {
                let status = object.map(|it| it.data["status"].clone()).unwrap_or_default();
                let status = ClusterVersionStatus::deserialize(&status).unwrap_or_default();
                let mut completed =
                    status.history.iter().filter(|it| it.state == UpdateState::Completed);
                self.release =
                    Some(completed.next().map(|it| it.version.clone()).unwrap_or_default());
                self.makers_due(|it| it.looks_for(EventSourceKind::ClusterVersion));
                let concerns = |it: &ActionObject| {
                    it.status.state == ActionState::Running
                        && it.status.plan.iter().any(PlannedChange::is_release)
                };
                self.actions_due(concerns);
            }
        }
    }

    fn action_observed(&mut self, id: &NamespacedName, object: Option<&Value>) {
        let before = self.actions.remove(id);
        if let Some(before) = &before
            && let Some(made) = self.made.get_mut(&before.owner)
        {
            made.remove(id);
            if made.is_empty() {
                self.made.remove(&before.owner);
            }
        }
        let read = object.map(ActionObject::read).transpose();
        let mut owner = before.as_ref().map(|it| it.owner.clone()).unwrap_or_default();
        match read {
            Ok(Some(mut action)) => {
                owner.clone_from(&action.owner);
                let mut is_due = action.status.state == ActionState::Running;
                match before.filter(|it| it.uid == action.uid) {
                    Some(before) if !is_newer(&action.revision, &before.revision) => {
                        (action, is_due) = (before, false);
                    }
                    Some(before) => {
                        is_due |= before.spec != action.spec;
                        if self.unsaved.contains(id) {
                            action.status = before.status;
                        }
                    }
                    None => is_due = true,
                }
                if !action.owner.is_empty() {
                    self.made.entry(action.owner.clone()).or_default().insert(id.clone());
                }
                if is_due && !action.status.state.is_final() {
                    self.due.insert(Due::Action(action.created, id.clone()));
                }
                self.actions.insert(id.clone(), action);
            }
            Ok(None) => {
                self.unsaved.remove(id);
                // Actions that waited for this one can continue.
                self.actions_due(|it| it.status.state == ActionState::Pending);
            }
            Err(error) => tracing::warn!(
                namespace = id.namespace,
                name = id.name,
                error,
                "an Action cannot be read"
            ),
        }
        if !owner.is_empty() {
            self.makers_due(|it| it.uid == owner);
        }
    }

    fn maker_observed(&mut self, kind: ApiKind, id: NamespacedName, object: Option<&Value>) {
        let key = (kind.kind, id);
        let before = self.makers.get(&key);
        let selected = before.and_then(|it| it.selection.clone());
        match object.map(|it| Maker::read(kind, it)).transpose() {
            Ok(Some(maker)) => {
                let is_known = |before: &Maker| {
                    before.uid == maker.uid && !is_newer(&maker.revision, &before.revision)
                };
                if !before.is_some_and(is_known) {
                    let selects = maker.selection.clone();
                    self.due.insert(Due::Maker(key.0, key.1.clone()));
                    self.makers.insert(key, maker);
                    self.select(selected, selects);
                }
            }
            Ok(None) => {
                self.makers.remove(&key);
                self.select(selected, None);
            }
            Err(error) => {
                tracing::warn!(kind = key.0, name = key.1.name, error, "an object cannot be read");
            }
        }
    }

    /// Starts a watch for a new selection, and ends the watch of one that no object has any more.
    fn select(&mut self, before: Option<Selection>, after: Option<Selection>) {
        if before == after {
            return;
        }
        if let Some(before) = before
            && !self.makers.values().any(|it| it.selection.as_ref() == Some(&before))
        {
            self.selections.remove(&before);
        }
        if let Some(after) = after
            && !self.selections.contains_key(&after)
        {
            let selection = Box::new(after.clone());
            let observed = move |change| Observation::Selected(selection.clone(), change);
            let (client, relay) = (self.client.clone(), self.relay.clone());
            let watch = SelectionWatch::begin(client, after.clone(), observed, relay);
            self.selections.insert(after, watch);
        }
    }

    /// Returns the content of the objects that an EventAction selects, or a message if its
    /// requester may not watch them; `None` if it selects no objects or they have not been listed
    /// yet.
    ///
    /// # Errors
    ///
    /// When the API server does not answer.
    async fn selected(&self, maker: &Maker) -> Result<Option<SelectedContent<'_>>, kube::Error> {
        let Some(selection) = &maker.selection else { return Ok(None) };
        let Some(watched) = self.selections.get(selection) else { return Ok(None) };
        let (Some(content), Some(access)) =
            (watched.content(), watched.access(&selection.namespace))
        else {
            return Ok(watched.content());
        };
        let Some(ActionRequester { username, groups }) = maker.requester() else { return Ok(None) };
        let is_allowed = self.writer.is_allowed(username, groups, access).await?;
        let SelectedObjects { api_version, kind, .. } = &selection.objects;
        let denied = || format!("{username} may not watch {kind} of {api_version}");
        Ok(Some(if is_allowed { content } else { Err(denied()) }))
    }

    /// Makes pending Actions due after a change of classes or policies, and publishes the guarded
    /// classes.
    fn rules_changed(&mut self) {
        self.actions_due(|it| it.status.state == ActionState::Pending);
        let classes = self.classes.iter();
        let guarded = classes.filter(|class| {
            let named =
                |policy: &NamedPolicy| policy.spec.classes.iter().any(|it| class.goes_by(it));
            self.policies.iter().any(named)
        });
        let names = guarded.flat_map(|it| it.spec.aliases.iter().chain([&it.name])).cloned();
        let names: BTreeSet<String> = names.collect();
        self.guarded.send_if_modified(|before| {
            let is_changed = *before != names;
            *before = names;
            is_changed
        });
    }

    fn actions_due(&mut self, which: impl Fn(&ActionObject) -> bool) {
        let due = self.actions.iter().filter(|(_, it)| !it.status.state.is_final() && which(it));
        self.due.extend(due.map(|(id, it)| Due::Action(it.created, id.clone())));
    }

    fn makers_due(&mut self, which: impl Fn(&Maker) -> bool) {
        let due = self.makers.iter().filter(|(_, it)| which(it));
        self.due.extend(due.map(|((kind, id), _)| Due::Maker(kind, id.clone())));
    }

    fn act_later(&mut self, action: &ActionObject, at: Timestamp) {
        self.timers.insert((at, Due::Action(action.created, id_of(action))));
    }

    /// Schedules a retry of an Action.
    fn act_again(&mut self, action: &ActionObject) {
        self.retry(Due::Action(action.created, id_of(action)), RETRY_INTERVAL);
    }

    fn retry(&mut self, due: Due, after: Duration) {
        let at = Instant::now() + after;
        self.retries.entry(due).and_modify(|it| *it = at.min(*it)).or_insert(at);
    }

    /// Takes the next step of an Action.
    async fn act(&mut self, id: &NamespacedName) {
        let Some(action) = self.actions.get(id).cloned() else { return };
        let classes = Arc::clone(&self.classes);
        match next_step(&action, &classes) {
            NextStep::Nothing => {}
            NextStep::Report(report) => self.report(&action, *report).await,
            NextStep::Decide(class) => self.decide(&action, class).await,
            NextStep::Execute(class) => self.execute(action, class).await,
        }
    }

    /// Evaluates the policies for an Action, and plans it.
    async fn decide(&mut self, action: &ActionObject, class: &NamedClass) {
        let requester = action.spec.requester.as_ref();
        let Access { by_hand, policies } =
            match Access::ask(&self.client, &self.writer, requester).await {
                Ok(access) => access,
                Err(error) => {
                    tracing::debug!(error = chain(&error), "cannot ask what a requester may do");
                    return self.act_again(action);
                }
            };
        let active = active(action, self.actions.values());
        let now = self.clock.now();
        let decision = ActionDecision { action, class, policies: &policies, active, by_hand, now };
        let mut attributes = match decision.admit() {
            Ok(attributes) => attributes,
            Err(report) => return self.report(action, *report).await,
        };
        for _ in 0..PLANS_MAX {
            let Some(inventory) = self.inventory.ask().await else {
                if action.status.conditions.is_empty() {
                    let message = "the catalogs and Operators of the cluster are being read";
                    let status = action.status.clone();
                    let report = Report::pending(status, Reason::InventoryUnavailable, message);
                    self.report(action, report).await;
                }
                return self.act_again(action);
            };
            // Observations that are older than the inventory may still be queued.
            self.drain();
            let plan = match self.plan(&attributes, inventory).await {
                Ok(plan) => plan,
                Err(error) => {
                    tracing::debug!(error, "cannot plan an Action; trying again");
                    return self.act_again(action);
                }
            };
            let result = match &plan {
                Ok(plan) => plan.result.clone(),
                Err(failure) => failure.message.clone(),
            };
            let others = |plan: &ActionPlan| waits_for(action, plan, self.actions.values());
            match decision.decide(&attributes, plan, others) {
                PlanDecision::Report(report) => {
                    let digest = report.status.result_digest.clone();
                    self.report(action, *report).await;
                    let reported = self.actions.get(&id_of(action));
                    let is_reported = reported.is_some_and(|it| it.status.result_digest == digest);
                    // The status has only a part of a long result.
                    if is_reported && !digest.is_empty() {
                        let ActionObject { namespace, name, .. } = action;
                        tracing::info!(namespace, name, digest, result, "an Action is answered");
                    }
                    return;
                }
                PlanDecision::PlanAgain(again) => attributes = *again,
            }
        }
        let failure = ActionFailure::new(
            Reason::PolicyDenied,
            "each of several ActionPolicies allows only what another one asks for: give the \
             attributes that they default",
        );
        self.report(action, Report::failed(ActionStatus::default(), failure)).await;
    }

    /// Plans an Action with its effective attributes.
    ///
    /// # Errors
    ///
    /// When the API server does not answer.
    async fn plan(
        &self,
        attributes: &EffectiveAction,
        content: CatalogInventory,
    ) -> Result<Result<ActionPlan, ActionFailure>, String> {
        let mut content = content;
        content.inventory.observed.clone_from(&self.operators);
        let mut counted = BTreeMap::new();
        for name in planning::deleted(attributes, &content.inventory) {
            let Some(operator) = self.operators.get(&name) else { continue };
            let found = workloads(&self.client, &operator.status).await;
            counted.insert(name, found.map_err(|error| chain(&error))?);
        }
        let attributes = attributes.clone();
        let release = match planning::is_of_release(&attributes.class) {
            true => self.changes.read_release().await.map_err(|error| chain(&error))?,
            false => None,
        };
        let planned = run_beside(&*self.clock, move || {
            let parts = content.parts(planning::packages(&attributes, &content.inventory));
            let (inventory, release) = (&content.inventory, release.as_ref());
            let planned = planning::plan(&attributes, inventory, release, &counted, &parts, &Cel);
            planned.map(|mut plan| {
                for change in plan.changes.iter_mut().filter(|it| !it.bundle.is_empty()) {
                    change.image = content.image(change).unwrap_or_default();
                }
                plan
            })
        });
        planned.await.map_err(|error| error.to_string())
    }

    /// Marks changes as written that the API server has although it did not respond to the write;
    /// returns false if it does not answer now either.
    async fn find_written(&self, action: &mut ActionObject) -> bool {
        for at in 0..action.status.plan.len() {
            let change = &action.status.plan[at];
            if change.state != ChangeState::Planned || change.operation == ChangeOperation::Await {
                continue;
            }
            match self.changes.is_written(action, change).await {
                Ok(true) => action.status.plan[at].state = ChangeState::Written,
                Ok(false) => {}
                Err(error) => {
                    tracing::debug!(error = chain(&error), "cannot ask what was written");
                    return false;
                }
            }
        }
        true
    }

    /// Executes the plan of an Action as far as is possible now.
    async fn execute(&mut self, mut action: ActionObject, class: &NamedClass) {
        let before = action.status.clone();
        if !self.observe(&mut action).await {
            return self.act_again(&action);
        }
        if next_write(&action.status).is_some()
            && outcome(&action.spec, &action.status, self.clock.now()).is_none()
        {
            if let Err(failure) = self.write(&mut action, class).await {
                if is_untouched(&action.status) && failure.reason == Reason::PlanChanged {
                    // Nothing was written yet, so the Action is planned again.
                    let message = failure.message;
                    let status = ActionStatus::default();
                    let report = Report::pending(status, Reason::PlanChanged, message);
                    self.report(&action, report).await;
                    return self.act_again(&action);
                }
                if !self.find_written(&mut action).await {
                    return self.act_again(&action);
                }
                give_up(&mut action.status, &failure);
            }
            if !self.observe(&mut action).await {
                return self.act_again(&action);
            }
        }
        let now = self.clock.now();
        let Some(outcome) = outcome(&action.spec, &action.status, now) else {
            if action.status != before || self.unsaved.contains(&id_of(&action)) {
                self.save(&mut action, Reason::ActionRunning).await;
            }
            if let Some(at) = deadline(&action.spec, &action.status) {
                self.act_later(&action, at);
            }
            return;
        };
        // A request that was withdrawn looks like one that was not observed yet, so the refusal is
        // recorded first.
        if action.status.plan.iter().any(is_refused)
            && action.status.plan != before.plan
            && !self.save(&mut action, Reason::ActionRunning).await
        {
            return;
        }
        if outcome.is_err() && !self.find_written(&mut action).await {
            return self.act_again(&action);
        }
        if !self.take_back(&action).await {
            return self.act_again(&action);
        }
        let status = action.status.clone();
        let report = match outcome {
            Ok(()) => Report {
                status,
                state: ActionState::Succeeded,
                reason: Reason::ActionSucceeded,
                message: "all changes were made".to_owned(),
            },
            Err(failure) => Report::failed(status, failure),
        };
        self.finish(action, report).await;
    }

    /// Updates the progress of the plan of an Action; returns false if the API server does not
    /// answer.
    async fn observe(&self, action: &mut ActionObject) -> bool {
        let plan = &mut action.status.plan;
        let release = match plan.iter().any(PlannedChange::is_release) {
            true => self.changes.read_release().await,
            false => Ok(None),
        };
        match release {
            Ok(release) => {
                observe(plan, &self.operators, release.as_ref());
                true
            }
            Err(error) => {
                tracing::debug!(error = chain(&error), "cannot read the ClusterVersion");
                false
            }
        }
    }

    /// Writes the changes that are due, as long as policies still allow it.
    ///
    /// # Errors
    ///
    /// When the remaining changes must not be written.
    async fn write(
        &mut self,
        action: &mut ActionObject,
        class: &NamedClass,
    ) -> Result<(), ActionFailure> {
        let requester = action.spec.requester.as_ref();
        let Ok(Access { by_hand, policies }) =
            Access::ask(&self.client, &self.writer, requester).await
        else {
            self.act_again(action);
            return Ok(());
        };
        let now = self.clock.now();
        ActionDecision { action, class, policies: &policies, active: 0, by_hand, now }
            .admit_further()?;
        // Any change of a catalog that holds the content of its bundles changes the digest. That
        // does not stop a plan that has begun.
        let is_begun = !is_untouched(&action.status);
        let is_compared = |it: &&PlannedChange| {
            it.state == ChangeState::Planned
                && !it.image.is_empty()
                && !(is_begun && it.image.starts_with(DIGEST_PREFIX))
        };
        if action.status.plan.iter().any(|it| is_compared(&it)) {
            let Some(inventory) = self.inventory.ask().await else {
                self.act_again(action);
                return Ok(());
            };
            for change in action.status.plan.iter().filter(is_compared) {
                // A catalog that cannot be read now is no evidence of another bundle.
                if inventory.image(change).is_some_and(|it| it != change.image) {
                    let PlannedChange { bundle, catalog, .. } = change;
                    return Err(ActionFailure::new(
                        Reason::PlanChanged,
                        format!("catalog {catalog} has another bundle {bundle} than was planned"),
                    ));
                }
            }
        }
        while let Some(at) = next_write(&action.status) {
            match self.changes.write(action, &action.status.plan[at]).await {
                Written::Done => {
                    action.status.plan[at].state = ChangeState::Written;
                    self.announce(action, at);
                    // The next write begins only after this one is recorded.
                    if !self.save(action, Reason::ActionRunning).await {
                        return Ok(());
                    }
                }
                Written::Stale(message) => {
                    return Err(ActionFailure::new(Reason::PlanChanged, message));
                }
                Written::Rejected(message) => {
                    return Err(ActionFailure::new(Reason::InstallationFailed, message));
                }
                Written::Failed(message) => {
                    tracing::debug!(message, "a change could not be written; trying again");
                    self.act_again(action);
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Removes Operators from the change set that an Action has put them in, and withdraws the
    /// request for a release if it was refused; returns false if that has to be tried again.
    async fn take_back(&self, action: &ActionObject) -> bool {
        for change in &action.status.plan {
            let done = if is_refused(change) {
                self.changes.withdraw(change).await
            } else if !change.change_set.is_empty() {
                self.changes.leave(change).await
            } else {
                Ok(())
            };
            if let Err(error) = done {
                tracing::debug!(error = chain(&error), "a request stays; trying again");
                return false;
            }
        }
        true
    }

    /// Writes the status of an Action, unless it is unchanged or the Action was changed in the
    /// meantime.
    async fn report(&mut self, action: &ActionObject, report: Report) {
        let status = action.reported(report, self.clock.now());
        if status == action.status {
            return;
        }
        match self.write_status(action, &status).await {
            Ok(written) => self.written(action, written),
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {
                // The watch delivers the change. If it has already, the retry makes the Action due.
                self.act_again(action);
            }
            Err(error) => {
                tracing::debug!(
                    error = chain(&error),
                    "a status could not be written; trying again"
                );
                self.act_again(action);
            }
        }
    }

    /// Records the progress of a plan, even if the Action was changed in the meantime; returns
    /// false if the status could not be written.
    async fn save(&mut self, action: &mut ActionObject, reason: Reason) -> bool {
        let report = Report {
            status: action.status.clone(),
            state: ActionState::Running,
            reason,
            message: "the plan is executed".to_owned(),
        };
        self.finish(action.clone(), report).await;
        let id = id_of(action);
        if let Some(kept) = self.actions.get(&id).filter(|it| it.uid == action.uid) {
            *action = kept.clone();
        }
        !self.unsaved.contains(&id)
    }

    /// Records the result of a plan, even if the Action was changed in the meantime. If the status
    /// cannot be written, the progress is kept and written later.
    async fn finish(&mut self, mut action: ActionObject, report: Report) {
        let id = id_of(&action);
        let status = action.reported(report, self.clock.now());
        for _ in 0..CONFLICTS_MAX {
            match self.write_status(&action, &status).await {
                Ok(written) => {
                    self.unsaved.remove(&id);
                    return self.written(&action, written);
                }
                Err(kube::Error::Api(error)) if error.code == 409 => {
                    let resource = api_resource(ACTION);
                    let api: Api<DynamicObject> =
                        Api::namespaced_with(self.client.clone(), &id.namespace, &resource);
                    let found = api.get_opt(&id.name).await.ok().flatten();
                    let found = found.and_then(|it| ActionObject::read(&it.into_value()).ok());
                    match found.filter(|it| it.uid == action.uid) {
                        Some(found) => action.revision = found.revision,
                        None => break,
                    }
                }
                Err(error) => {
                    tracing::debug!(error = chain(&error), "a status could not be written");
                    break;
                }
            }
        }
        if let Some(kept) = self.actions.get_mut(&id).filter(|it| it.uid == action.uid) {
            // Only the progress is kept: whether the plan has ended is decided again.
            kept.status.plan.clone_from(&status.plan);
            self.unsaved.insert(id);
            self.act_again(&action);
        }
    }

    async fn write_status(
        &self,
        action: &ActionObject,
        status: &ActionStatus,
    ) -> Result<DynamicObject, kube::Error> {
        let (resource, status) = (api_resource(ACTION), json!(status));
        let ActionObject { namespace, name, revision, .. } = action;
        self.writer.write_status_in(namespace, &resource, name, &status, revision).await
    }

    /// Handles a status that was written: emits an event if the state or the reason changed, and
    /// makes pending Actions due if the Action has ended.
    fn written(&mut self, before: &ActionObject, object: DynamicObject) {
        let value = object.into_value();
        self.action_observed(&id_of(before), Some(&value));
        let Ok(after) = ActionObject::read(&value) else { return };
        let (from, to) = (before.status.state, after.status.state);
        let reason_of =
            |it: &ActionObject| it.status.conditions.first().map(|it| it.reason.clone());
        if from != to || reason_of(before) != reason_of(&after) {
            self.announce_state(&after);
        }
        if to.is_final() {
            self.actions_due(|it| it.status.state == ActionState::Pending);
        }
    }

    /// Emits an event about the state of an Action.
    fn announce_state(&self, action: &ActionObject) {
        let Some(condition) = action.status.conditions.first() else { return };
        let known = Reason::ALL.iter().find(|it| it.as_str() == condition.reason);
        let state = action.status.state;
        let severity = match state {
            ActionState::Failed => Severity::Warning,
            _ => Severity::Normal,
        };
        let draft = EventDraft {
            severity,
            reason: known.copied().unwrap_or(Reason::InvalidAction),
            action: "Execute",
            note: format!("{}: {}", state.as_str(), condition.message),
            related: None,
        };
        let ActionObject { namespace, name, uid, .. } = action;
        self.recorder.emit_about_in(namespace, ACTION, name, uid, draft);
        if state == ActionState::Failed {
            let failed = (action.spec.action_class.clone(), condition.reason.clone());
            self.view.send_modify(|view| *view.actions_failed.entry(failed).or_default() += 1);
        }
    }

    /// Emits an event about what an Action changes.
    fn announce(&self, action: &ActionObject, at: usize) {
        let change = &action.status.plan[at];
        let uid = self.operators.get(&change.operator).map(|it| it.uid.as_str());
        let what = match change.operation {
            ChangeOperation::Create => "creates it".to_owned(),
            ChangeOperation::Update => "requests another version of it".to_owned(),
            ChangeOperation::Delete => "deletes it".to_owned(),
            ChangeOperation::UpdateRelease => format!("requests release {}", change.requested),
            ChangeOperation::EnableCapability => {
                format!("requests capability {}", change.capability)
            }
            ChangeOperation::Await => return,
        };
        let requester = action.spec.requester.as_ref().map_or("", |it| it.username.as_str());
        let ActionObject { namespace, name, .. } = action;
        let draft = EventDraft {
            severity: Severity::Normal,
            reason: Reason::ActionRunning,
            action: "Execute",
            note: format!("Action {namespace}/{name} of {requester} {what}"),
            related: Some(ObjectKey {
                group: ACTION.group.to_owned(),
                kind: ACTION.kind.to_owned(),
                namespace: namespace.clone(),
                name: name.clone(),
            }),
        };
        let (kind, name, uid) = match change.is_release() {
            true => (CLUSTER_VERSION, CLUSTER_VERSION_NAME, change.uid.as_str()),
            false => (OPERATOR, change.operator.as_str(), uid.unwrap_or_default()),
        };
        self.recorder.emit_about(kind, name, uid, draft);
    }

    /// Makes, cancels and deletes the Actions of an object that makes Actions.
    async fn make(&mut self, kind: &'static str, id: &NamespacedName) {
        let key = (kind, id.clone());
        let Some(maker) = self.makers.get(&key) else { return };
        let made = self.made.get(&maker.uid).into_iter().flatten();
        let made: Vec<&ActionObject> = made.filter_map(|id| self.actions.get(id)).collect();
        let versions = || {
            let operators = self.operators.iter().filter(|(_, it)| !it.version().is_empty());
            operators.map(|(name, it)| (name.clone(), it.version().to_owned())).collect()
        };
        let release = |version: &String| {
            let known = Some(version.clone()).filter(|it| !it.is_empty());
            known.map(|it| (CLUSTER_VERSION_NAME.to_owned(), it)).into_iter().collect()
        };
        let selected = match self.selected(maker).await {
            Ok(selected) => selected,
            Err(error) => {
                tracing::debug!(error = chain(&error), "cannot ask what a requester may see");
                return self.retry(Due::Maker(kind, id.clone()), RETRY_INTERVAL);
            }
        };
        let content = EventContent {
            selected,
            catalogs: self.listed.contains("Catalog").then_some(&self.catalogs),
            operators: maker.looks_for(EventSourceKind::Operator).then(versions),
            release: self.release.as_ref().map(release),
        };
        let is_denied = matches!(content.selected, Some(Err(_)));
        let decision = maker.decide(&made, &content, self.clock.now());
        let uids: BTreeMap<&str, &str> =
            made.iter().map(|it| (it.name.as_str(), it.uid.as_str())).collect();
        let done = self.carry_out(maker, &decision, &uids).await;
        let wake_at = decision.wake_at;
        match done {
            Ok(Some(written)) => {
                // The next decision has to be based on the status that was just written.
                self.maker_observed(maker.kind, id.clone(), Some(&written.into_value()));
            }
            Ok(None) => {}
            Err(error) => {
                tracing::debug!(error = chain(&error), kind, name = id.name, "trying again");
                self.retry(Due::Maker(kind, id.clone()), RETRY_INTERVAL);
            }
        }
        if let Some(at) = wake_at {
            self.timers.insert((at, Due::Maker(kind, id.clone())));
        }
        if is_denied {
            self.retry(Due::Maker(kind, id.clone()), selection::RETRY_INTERVAL);
        }
    }

    /// Carries out a decision about an object that makes Actions; returns the object if its status
    /// was written.
    async fn carry_out(
        &self,
        maker: &Maker,
        decision: &makers::MakerDecision,
        uids: &BTreeMap<&str, &str>,
    ) -> Result<Option<DynamicObject>, kube::Error> {
        let resource = api_resource(ACTION);
        let namespace = &maker.namespace;
        if let Some(name) = &decision.make {
            // If an Action of that name exists, it was made before.
            self.writer.create_new(namespace, &resource, &maker.action(name)).await?;
        }
        for name in &decision.cancel {
            self.writer.cancel_action(namespace, name).await?;
        }
        for name in &decision.delete {
            let uid = uids.get(name.as_str()).copied().unwrap_or_default();
            self.writer.delete_uid(namespace, &resource, name, uid).await?;
        }
        let Some(status) = &decision.status else { return Ok(None) };
        let resource = api_resource(maker.kind);
        let (name, revision) = (&maker.name, &maker.revision);
        self.writer.write_status_in(namespace, &resource, name, status, revision).await.map(Some)
    }

    /// Publishes the rules for admission, and the state that metrics report.
    fn publish(&self) {
        let mut states: BTreeMap<&'static str, usize> = BTreeMap::new();
        let mut active: BTreeMap<String, usize> = BTreeMap::new();
        for action in self.actions.values() {
            *states.entry(action.status.state.as_str()).or_default() += 1;
            if !action.status.state.is_final() {
                *active.entry(action.namespace.clone()).or_default() += 1;
            }
        }
        let rules = AdmissionRules { classes: Arc::clone(&self.classes), active };
        self.rules.send_replace(rules);
        self.view.send_if_modified(|view| {
            let is_changed = view.actions != states;
            view.actions = states;
            is_changed
        });
    }
}

/// Watches the objects of a kind until the receiver is dropped.
async fn watch_objects(client: Client, kind: ApiKind, relay: Relay<Observation>) {
    let api: Api<DynamicObject> = Api::all_with(client, &api_resource(kind));
    let shown = |object: Option<DynamicObject>, id: NamespacedName, _: u64| {
        vec![Observation::Object(kind, id, object.map(|it| Box::new(it.into_value())))]
    };
    let listed = || Observation::Listed(kind);
    relay.follow(ListingWatch::new(api, Config::default()), shown, listed).await;
}

/// Returns whether a change requested a release and the request was refused.
fn is_refused(change: &PlannedChange) -> bool {
    change.operation == ChangeOperation::UpdateRelease && change.state == ChangeState::Failed
}

/// Returns whether a resourceVersion is newer than another one. They are compared as numbers.
fn is_newer(revision: &str, other: &str) -> bool {
    let number = |text: &str| text.parse::<u64>().unwrap_or_default();
    number(revision) > number(other)
}

fn id_of(action: &ActionObject) -> NamespacedName {
    NamespacedName { namespace: action.namespace.clone(), name: action.name.clone() }
}
