//! The control loop of Actions. It updates its caches with what watches deliver, and takes one
//! Action after the other a step further, in the order of their creation.
//! [`plimsoll_operators::actions`] decides what the step is.

mod announce;
mod collect;
mod contents;
mod decide;
mod execute;
mod finalize;
mod generate;
mod known;
mod observations;
mod permissions;
mod queue;
mod status;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use plimsoll_api::{
    ACTION, ACTION_CLASS, ACTION_POLICY, CLUSTER_VERSION, CLUSTER_VERSION_NAME, MAINTENANCE_WINDOW,
};
use plimsoll_operators::actions::attributes::NamedClass;
use plimsoll_operators::actions::policy::NamedPolicy;
use plimsoll_operators::actions::report::ActionObject;
use plimsoll_operators::actions::triggers::ObjectContent;
use plimsoll_operators::observed::ObservedOperator;
use plimsoll_plan::windows::MaintenanceWindows;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use self::collect::FailedDeletions;
use self::known::{ActionCounts, EndedActions};
use self::observations::{Observation, watch_objects};
use self::queue::{WorkItem, WorkQueue};
use super::change_writer::ChangeWriter;
use super::classes::ClassStates;
use super::generators::{ActionGenerator, GENERATORS};
use super::inventory::InventoryClient;
use super::parts::PartStore;
use super::policies::PolicyStates;
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
/// The number of items of work after which rules and metrics are published at the latest. To
/// compute them takes longer the more Actions wait.
const PUBLISH_INTERVAL: usize = 16;
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
    /// The Actions that each object generated.
    generated: BTreeMap<Owner, BTreeSet<NamespacedName>>,
    /// The objects that generated them.
    owners: BTreeMap<Owner, WorkItem>,
    generators: BTreeMap<(&'static str, NamespacedName), ActionGenerator>,
    selections: BTreeMap<Selection, SelectionWatch>,
    /// The channel for the watches of selections.
    relay: Relay<Observation>,
    classes: Arc<Vec<NamedClass>>,
    class_states: ClassStates,
    policy_states: PolicyStates,
    policies: Arc<Vec<NamedPolicy>>,
    windows: MaintenanceWindows,
    operators: BTreeMap<String, ObservedOperator>,
    /// The contents of the Catalogs that have been read.
    catalogs: BTreeMap<String, ObjectContent>,
    /// The content of the ClusterVersion, if there is one; `None` before it has been observed.
    cluster_version: Option<BTreeMap<String, ObjectContent>>,
    /// The kinds whose objects have all been listed.
    listed: BTreeSet<&'static str>,
    /// The Actions whose status could not be written: the API server still has an earlier one.
    unsaved: BTreeSet<NamespacedName>,
    /// How often in a row the API server has refused the status of an Action.
    refusals: BTreeMap<NamespacedName, u32>,
    /// How often in succession the status of a class or a policy could not be written.
    refused_conditions: u32,
    /// The Actions that this controller executes, by their uid, and `status.attempts` of each since
    /// then. A higher number there says that another controller has continued it.
    executed: BTreeMap<String, u32>,
    /// The Actions that are not kept any longer and could not be deleted.
    undeleted: FailedDeletions,
    queue: WorkQueue,
    /// The rules that admission decisions are based on.
    rules: watch::Sender<AdmissionRules>,
    /// The names of the guarded classes, for the webhooks.
    guarded: watch::Sender<BTreeSet<String>>,
    /// The state that metrics report.
    view: watch::Sender<OperatorsView>,
}

/// An object that generated Actions. They are in its namespace: an owner reference from another one
/// means nothing, whatever uid it has.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Owner {
    namespace: String,
    uid: String,
}

impl Owner {
    /// Returns the owner with a uid in the namespace of an object.
    fn of(object: &NamespacedName, uid: &str) -> Self {
        Self { namespace: object.namespace.clone(), uid: uid.to_owned() }
    }
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
        let kinds = [ACTION_CLASS, ACTION_POLICY, MAINTENANCE_WINDOW, ACTION];
        for kind in kinds.into_iter().chain(GENERATORS) {
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
            policy_states: PolicyStates::default(),
            policies: Arc::default(),
            windows: MaintenanceWindows::default(),
            operators: BTreeMap::new(),
            catalogs: BTreeMap::new(),
            cluster_version: None,
            listed: BTreeSet::new(),
            unsaved: BTreeSet::new(),
            refusals: BTreeMap::new(),
            refused_conditions: 0,
            executed: BTreeMap::new(),
            undeleted: FailedDeletions::default(),
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
            self.work(stop).await;
            self.publish();
        }
    }

    /// Does what is due, until nothing is.
    async fn work(&mut self, stop: &CancellationToken) {
        let mut unpublished = 0;
        while self.is_informed() && !stop.is_cancelled() {
            // What becomes due at a time does not wait until nothing else is due.
            self.queue.wake(self.clock.now());
            if !self.load_plans().await {
                break;
            }
            let Some(item) = self.queue.pop() else { break };
            match item {
                WorkItem::Classes => self.write_accepted().await,
                WorkItem::Outdated => self.delete_outdated().await,
                WorkItem::Action(_, id) => self.act(&id).await,
                WorkItem::Generator(kind, id) => self.generate(kind, &id).await,
            }
            self.drain();
            unpublished += 1;
            if unpublished == PUBLISH_INTERVAL {
                self.publish();
                unpublished = 0;
            }
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
            let is_changed = !active.is_empty()
                || !Arc::ptr_eq(&rules.classes, &self.classes)
                || !Arc::ptr_eq(&rules.policies, &self.policies);
            rules.classes = Arc::clone(&self.classes);
            rules.policies = Arc::clone(&self.policies);
            let counts = Arc::make_mut(&mut rules.active);
            for (namespace, count) in active {
                match count {
                    0 => counts.remove(&namespace),
                    count => counts.insert(namespace, count),
                };
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

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicI64, Ordering};

    use bytes::Bytes;
    use http::{Method, Request, Response};
    use http_body_util::{BodyExt as _, Full};
    use jiff::Timestamp;
    use kube::client::Body;
    use plimsoll_api::olm::action::{ACTION_FINALIZER, PlannedChange};
    use plimsoll_api::{CRON_ACTION, OPERATOR, RETRY_ACTION};
    use serde_json::{Value, json};

    use super::*;
    use crate::actions::inventory;
    use crate::clock::Clock;

    /// A clock that is ten seconds ahead after each time it is read.
    struct Advancing(AtomicI64);

    impl Clock for Advancing {
        fn now(&self) -> Timestamp {
            Timestamp::from_second(self.0.fetch_add(10, Ordering::Relaxed)).expect("a time")
        }
    }

    /// Returns a control loop whose API server never answers.
    fn unanswered() -> ControlLoop {
        let service = tower::service_fn(|_: Request<Body>| {
            std::future::pending::<Result<Response<Body>, Infallible>>()
        });
        controller(Client::new(service, "default"))
    }

    fn controller(client: Client) -> ControlLoop {
        let stop = CancellationToken::new();
        let clock: SharedClock = Arc::new(Advancing(AtomicI64::new(1_000_000)));
        let (recorder, _) =
            Recorder::start(client.clone(), Arc::clone(&clock), "test", stop.clone());
        let settings = LoopSettings {
            client,
            clock,
            recorder,
            inventory: inventory::channel().1,
            rules: watch::channel(AdmissionRules::default()).0,
            guarded: watch::channel(BTreeSet::new()).0,
            view: watch::channel(OperatorsView::default()).0,
        };
        ControlLoop::start(settings, &stop)
    }

    fn id(namespace: &str, name: &str) -> NamespacedName {
        NamespacedName { namespace: namespace.to_owned(), name: name.to_owned() }
    }

    /// Shows the attempt `one` of a RetryAction `again` at a revision.
    fn show(controller: &mut ControlLoop, namespace: &str, revision: u64, status: &Value) {
        let object = json!({
            "metadata": {
                "namespace": namespace, "name": "one", "uid": "1",
                "resourceVersion": revision.to_string(),
                "creationTimestamp": "2026-01-01T00:00:00Z",
                "ownerReferences": [{
                    "apiVersion": RETRY_ACTION.api_version(), "kind": RETRY_ACTION.kind,
                    "name": "again", "uid": "owner", "controller": true,
                }],
            },
            "spec": { "actionClass": "resolution" },
            "status": status,
        });
        controller.action_observed(&id(namespace, "one"), Some(&object));
    }

    /// Takes all that is due.
    fn due(controller: &mut ControlLoop) -> Vec<WorkItem> {
        std::iter::from_fn(|| controller.queue.pop()).collect()
    }

    fn retry_action(namespace: &str) -> WorkItem {
        WorkItem::Generator(RETRY_ACTION.kind, id(namespace, "again"))
    }

    #[tokio::test]
    async fn what_becomes_due_meanwhile_is_done_and_what_changes_is_published() {
        let mut controller = unanswered();
        let kinds = [ACTION, ACTION_CLASS, ACTION_POLICY, MAINTENANCE_WINDOW, OPERATOR];
        let kinds = kinds.into_iter().chain(GENERATORS);
        controller.listed.extend(kinds.map(|it| it.kind));
        show(&mut controller, "a", 1, &json!({ "state": "Pending" }));
        due(&mut controller);
        let now = controller.clock.now();
        let unknown = |number: usize| WorkItem::Action(now, id("a", &format!("unknown-{number}")));
        controller.queue.add((0..PUBLISH_INTERVAL).map(unknown));
        controller.queue.add_at(WorkItem::Outdated, now + Duration::from_secs(25));
        controller.work(&CancellationToken::new()).await;
        assert_eq!(controller.queue.wake_at(now), None, "its time has come");
        assert_eq!(controller.rules.borrow().active.get("a"), Some(&1));
    }

    /// Returns the CronAction `often` at a revision.
    fn often(revision: &str, status: &Value) -> Value {
        json!({
            "apiVersion": CRON_ACTION.api_version(), "kind": CRON_ACTION.kind,
            "metadata": {
                "namespace": "a", "name": "often", "uid": "owner", "resourceVersion": revision,
            },
            "spec": {
                "schedule": "* * * * *", "template": { "actionClass": "resolution" },
                "requester": { "username": "alice" },
            },
            "status": status,
        })
    }

    /// Answers as an API server that refuses the Action of the CronAction, whether or not it exists.
    async fn refused(
        request: Request<Body>,
        exists: bool,
    ) -> Result<Response<Full<Bytes>>, Infallible> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await.expect("a body").to_bytes();
        let failed = |code: u16, reason: &str| {
            let failure = json!({
                "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code,
                "reason": reason, "message": "no quota",
            });
            (code, failure)
        };
        let (code, answer) = match parts.method {
            Method::POST => failed(403, "Forbidden"),
            Method::PATCH => {
                let patch: Value = serde_json::from_slice(&body).expect("a patch");
                (200, often("2", &patch[1]["value"]))
            }
            _ if exists => {
                let object = often("1", &Value::Null);
                let often = ActionGenerator::read(CRON_ACTION, &object).expect("a CronAction");
                (200, often.action("often-1"))
            }
            _ => failed(404, "NotFound"),
        };
        let answer = Full::new(Bytes::from(answer.to_string()));
        Ok(Response::builder().status(code).body(answer).expect("an answer"))
    }

    #[tokio::test]
    async fn an_action_that_is_refused_is_made_again_after_a_pause_unless_it_exists() {
        for exists in [false, true] {
            let service = tower::service_fn(move |request: Request<Body>| refused(request, exists));
            let mut controller = controller(Client::new(service, "default"));
            let often_id = id("a", "often");
            let object = often("1", &Value::Null);
            controller.generator_observed(CRON_ACTION, often_id.clone(), Some(&object));
            due(&mut controller);
            controller.generate(CRON_ACTION.kind, &often_id).await;
            let key = (CRON_ACTION.kind, often_id.clone());
            assert_eq!(controller.generators[&key].revision, "2", "the status is written");
            assert_eq!(due(&mut controller).is_empty(), !exists, "{exists}");
            // What remains is the pause.
            controller.queue.forget(&WorkItem::Generator(CRON_ACTION.kind, often_id));
            let wake_at = controller.queue.wake_at(Timestamp::UNIX_EPOCH);
            assert_eq!(wake_at.is_some(), !exists, "{exists}");
        }
    }

    /// Answers as an API server that has room for the status of an Action that has failed alone.
    async fn nearly_full(request: Request<Body>) -> Result<Response<Full<Bytes>>, Infallible> {
        let (parts, body) = request.into_parts();
        if parts.method != Method::PATCH {
            return std::future::pending().await;
        }
        let body = body.collect().await.expect("a body").to_bytes();
        let patch: Value = serde_json::from_slice(&body).expect("a patch");
        let status = &patch[1]["value"];
        let metadata =
            json!({ "namespace": "a", "name": "one", "uid": "1", "resourceVersion": "2" });
        let (code, answer) = match status["state"] == "Failed" {
            true => (
                200_u16,
                json!({
                    "apiVersion": ACTION.api_version(), "kind": ACTION.kind, "metadata": metadata,
                    "spec": { "actionClass": "resolution" }, "status": status,
                }),
            ),
            false => (
                413,
                json!({
                    "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 413,
                    "reason": "RequestEntityTooLarge", "message": "it is too large",
                }),
            ),
        };
        let answer = Full::new(Bytes::from(answer.to_string()));
        Ok(Response::builder().status(code).body(answer).expect("an answer"))
    }

    #[tokio::test]
    async fn an_action_whose_status_is_refused_again_fails_with_the_least_one() {
        let service = tower::service_fn(nearly_full);
        let mut controller = controller(Client::new(service, "default"));
        let one = id("a", "one");
        show(&mut controller, "a", 1, &Value::Null);
        controller.act(&one).await;
        assert_eq!(controller.refusals.get(&one), Some(&1), "it may have been by mistake");
        assert!(!controller.ended.has(&one, "1"));
        controller.act(&one).await;
        assert!(controller.ended.has(&one, "1"), "it has failed");
        assert_eq!(controller.counts.states().get("Failed"), Some(&1));
        assert!(controller.refusals.is_empty(), "another one of its name is not refused yet");
    }

    /// Answers as an API server that carries out patches, and answers nothing else.
    async fn patched(
        request: Request<Body>,
        patches: mpsc::UnboundedSender<Value>,
    ) -> Result<Response<Full<Bytes>>, Infallible> {
        let (parts, body) = request.into_parts();
        if parts.method != Method::PATCH {
            return std::future::pending().await;
        }
        let body = body.collect().await.expect("a body").to_bytes();
        patches.send(serde_json::from_slice(&body).expect("a patch")).expect("it is received");
        let answer = Full::new(Bytes::from(often("2", &Value::Null).to_string()));
        Ok(Response::builder().status(200).body(answer).expect("an answer"))
    }

    #[tokio::test]
    async fn a_finalizer_of_actions_does_not_hold_up_the_deletion_of_what_makes_them() {
        for (deleted, is_removed) in [(json!("2026-01-01T00:00:00Z"), true), (Value::Null, false)] {
            let (sender, mut patches) = mpsc::unbounded_channel();
            let service =
                tower::service_fn(move |request: Request<Body>| patched(request, sender.clone()));
            let mut controller = controller(Client::new(service, "default"));
            let often_id = id("a", "often");
            let mut object = often("1", &Value::Null);
            object["spec"]["suspend"] = json!(true);
            object["metadata"]["deletionTimestamp"] = deleted;
            object["metadata"]["finalizers"] = json!(["example.com/mine", ACTION_FINALIZER]);
            controller.generator_observed(CRON_ACTION, often_id.clone(), Some(&object));
            controller.generate(CRON_ACTION.kind, &often_id).await;
            let patch = patches.try_recv().ok().map(|it: Value| it[1]["value"].clone());
            assert_eq!(patch, is_removed.then(|| json!(["example.com/mine"])));
        }
    }

    #[tokio::test]
    async fn an_action_is_an_attempt_of_an_object_of_its_namespace_alone() {
        let mut controller = unanswered();
        for namespace in ["a", "b"] {
            show(&mut controller, namespace, 1, &json!({ "state": "Pending" }));
        }
        for namespace in ["a", "b"] {
            let made = &controller.generated[&Owner::of(&id(namespace, "again"), "owner")];
            assert_eq!(made.iter().collect::<Vec<_>>(), [&id(namespace, "one")]);
        }
        due(&mut controller);
        controller.action_gone(&id("a", "one"));
        assert_eq!(due(&mut controller), [retry_action("a")], "it has to count the attempt");
        assert_eq!(controller.generated.len(), 1);
    }

    #[tokio::test]
    async fn an_action_that_runs_goes_on_once_its_class_is_there_again() {
        let mut controller = unanswered();
        show(&mut controller, "a", 1, &json!({ "state": "Running", "attempts": 1 }));
        due(&mut controller);
        let class = json!({
            "metadata": { "name": "resolution", "resourceVersion": "2" },
            "spec": { "controller": "example.com/answers" },
        });
        let class = Some(Box::new(class));
        controller.observed(Observation::Object(ACTION_CLASS, id("", "resolution"), class));
        let action = WorkItem::of(&controller.actions[&id("a", "one")]);
        assert!(due(&mut controller).contains(&action));
    }

    #[tokio::test]
    async fn progress_that_is_not_written_gives_way_to_what_another_controller_writes() {
        for (state, attempts, is_kept) in
            [("Running", 1, true), ("Running", 2, false), ("Failed", 1, false)]
        {
            let mut controller = unanswered();
            show(&mut controller, "a", 1, &json!({ "state": "Running", "attempts": 1 }));
            let id = id("a", "one");
            let action = controller.actions.get_mut(&id).expect("it is known");
            action.status.plan.push(PlannedChange::default());
            controller.unsaved.insert(id.clone());
            show(&mut controller, "a", 2, &json!({ "state": state, "attempts": attempts }));
            assert_eq!(controller.unsaved.contains(&id), is_kept, "{state} {attempts}");
            let kept = controller.actions.get(&id).map(|it| it.status.plan.len());
            let expected = (state == "Running").then_some(usize::from(is_kept));
            assert_eq!(kept, expected, "{state} {attempts}");
        }
    }

    #[tokio::test]
    async fn an_end_that_is_written_in_several_steps_is_known_as_it_is_in_the_end() {
        let mut controller = unanswered();
        let ended = json!({ "state": "Failed", "completionTime": "2026-01-02T00:00:00Z" });
        show(&mut controller, "a", 1, &json!({ "state": "Failed" }));
        due(&mut controller);
        show(&mut controller, "a", 2, &ended);
        assert_eq!(due(&mut controller), [retry_action("a"), WorkItem::Outdated]);
        show(&mut controller, "a", 3, &ended);
        show(&mut controller, "a", 4, &json!({ "state": "Running" }));
        assert!(due(&mut controller).is_empty(), "it is known");
        let attempt = controller.ended.attempt(&id("a", "one")).expect("it is known");
        assert_eq!(attempt.status.completion_time, "2026-01-02T00:00:00Z".parse().ok());
        assert_eq!(controller.counts.states()["Failed"], 1);
    }

    #[tokio::test]
    async fn no_time_is_waited_for_once_an_action_has_ended_or_is_gone() {
        for is_gone in [false, true] {
            let mut controller = unanswered();
            show(&mut controller, "a", 1, &json!({ "state": "Running", "attempts": 1 }));
            let action = WorkItem::of(&controller.actions[&id("a", "one")]);
            let now = Timestamp::UNIX_EPOCH;
            controller.queue.add_at(action, Timestamp::MAX);
            assert!(controller.queue.wake_at(now).is_some());
            match is_gone {
                true => controller.action_gone(&id("a", "one")),
                false => show(&mut controller, "a", 2, &json!({ "state": "Failed" })),
            }
            assert_eq!(controller.queue.wake_at(now), None, "{is_gone}");
        }
    }
}
