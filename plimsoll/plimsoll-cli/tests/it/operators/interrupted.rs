//! A controller that is killed at any write of an Action: the next one ends the Action, and nothing
//! is done twice.

mod cut_off;
mod every_step;
mod parts;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Method, Request, Response};
use k8s_testkit::ClusterKind;
use kube::Client;
use kube::client::Body;
use plimsoll_controller::actions::ActionSettings;
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use tower::{Service, service_fn};

use super::{AddOns, Fixture, Named};
use crate::harness::{on_any_cluster, on_each_cluster, until};

/// The fate of the write at which a controller is killed.
#[derive(Debug, Clone, Copy, PartialEq)]
enum LastWrite {
    /// The server never has it.
    Lost,
    /// The server carries it out, and the response is lost.
    Applied,
}

/// Mixtures of requests that are played.
const SEEDS: u64 = 6;

#[derive(Default)]
struct Record {
    /// How many writes are let pass, and what becomes of the next one; `None` for nothing.
    kill: Option<(usize, LastWrite)>,
    /// How often each step of an Action was tried, if the controller is killed at the first two
    /// attempts at each; `None` if it is not.
    steps: Option<BTreeMap<String, usize>>,
    /// Whether the controller does not return from a write.
    is_ending: bool,
    /// How often each change was carried out: a deletion with the uid of the Operator, a creation
    /// with its name and the uid of the Action, an update with its mark.
    done: BTreeMap<String, usize>,
    /// The status of an Action that was written last.
    status: Value,
}

impl Record {
    /// Returns what becomes of a write if the controller does not return from it; `None` if it
    /// does.
    fn fate(&mut self, write: &ActionWrite) -> Option<LastWrite> {
        let fate = match (&mut self.steps, self.kill.take()) {
            (Some(steps), _) => {
                let count = steps.entry(write.step.clone()).or_default();
                *count += 1;
                [LastWrite::Lost, LastWrite::Applied].get(*count - 1).copied()
            }
            (None, Some((0, last))) => Some(last),
            (None, Some((left, last))) => {
                self.kill = Some((left - 1, last));
                None
            }
            (None, None) => None,
        };
        self.is_ending |= fate.is_some();
        fate
    }

    /// Records a write that was carried out.
    fn carried_out(&mut self, write: ActionWrite) {
        let ActionWrite { step, is_change, status } = write;
        if is_change {
            *self.done.entry(step).or_default() += 1;
        }
        if let Some(status) = status {
            self.status = status;
        }
    }
}

/// A client that counts what Actions write, and does not return from one of the writes.
#[derive(Clone)]
struct Interrupted {
    client: Client,
    record: Arc<Mutex<Record>>,
    killed: Arc<Notify>,
    /// Whether a controller that was cut off at a write goes on; `None` if it never does.
    resumed: Option<watch::Receiver<bool>>,
}

impl Interrupted {
    fn new(client: &Client) -> Self {
        Self {
            client: client.clone(),
            record: Arc::default(),
            killed: Arc::default(),
            resumed: None,
        }
    }

    fn client(&self) -> Client {
        Client::new(self.clone(), "default")
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().expect("no thread panics")
    }

    /// Waits until the controller may go on.
    async fn resumed(&self) {
        match self.resumed.clone() {
            Some(mut resumed) => drop(resumed.wait_for(|it| *it).await.expect("a test resumes it")),
            None => std::future::pending().await,
        }
    }
}

/// A write of a controller that executes Actions.
struct ActionWrite {
    /// What it does, however often that is tried.
    step: String,
    /// Whether it makes a change of a plan.
    is_change: bool,
    /// The status of the Action; `None` if it writes something else.
    status: Option<Value>,
}

impl ActionWrite {
    /// Reads a request; returns `None` if it is no write of an Action.
    fn read(method: &Method, path: &str, body: &[u8]) -> Option<Self> {
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let change = |step: String| Some(Self { step, is_change: true, status: None });
        let other = |step: String| Some(Self { step, is_change: false, status: None });
        let is_of_operator = path.starts_with("/apis/olm.io/v1/operators");
        let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str);
        let text = |pointer: &str| text(pointer).unwrap_or_default();
        if is_of_operator && *method == Method::POST {
            let action = text("/metadata/annotations/olm.io~1created-by-action");
            return change(format!("create {} for {action}", text("/metadata/name")));
        }
        if is_of_operator && *method == Method::DELETE {
            return change(format!("delete {}", text("/preconditions/uid")));
        }
        let annotation = |name: &str| format!("/metadata/annotations/olm.io~1{name}");
        if let Some(mark) = patched(&body, "add", &annotation("changed-by-action")) {
            return change(format!("update {}", mark.as_str().unwrap_or_default()));
        }
        if is_of_operator && patched(&body, "remove", &annotation("change-set")).is_some() {
            return other(format!("leave {path}"));
        }
        if !path.contains("/actions/") || *method == Method::GET {
            return None;
        }
        if let Some(status) = patched(&body, "add", "/status") {
            let plan = status["plan"].as_array().into_iter().flatten();
            let states: Vec<&str> = plan.filter_map(|it| it["state"].as_str()).collect();
            let step = format!("report {} of {}", states.join(" "), status["state"]);
            return Some(Self { step, is_change: false, status: Some(status.clone()) });
        }
        let finalizers = patched(&body, "add", "/metadata/finalizers");
        other(format!("{method} {path} {}", finalizers.unwrap_or(&Value::Null)))
    }
}

/// Returns the value of an operation of a JSON Patch; null if it has none, `None` if there is no
/// such operation.
fn patched<'a>(body: &'a Value, operation: &str, path: &str) -> Option<&'a Value> {
    let mut operations = body.as_array()?.iter();
    let found = operations.find(|it| it["op"] == *operation && it["path"] == *path)?;
    Some(&found["value"])
}

impl Service<Request<Body>> for Interrupted {
    type Response = Response<Body>;
    type Error = tower::BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let this = self.clone();
        async move {
            if this.resumed.is_some() && this.record().is_ending {
                this.resumed().await;
            }
            if *request.method() == Method::GET {
                return Ok(this.client.send(request).await?);
            }
            let (parts, body) = request.into_parts();
            let bytes = body.collect_bytes().await?;
            let write = ActionWrite::read(&parts.method, parts.uri.path(), &bytes);
            let request = Request::from_parts(parts, Body::from(bytes));
            let Some(write) = write else { return Ok(this.client.send(request).await?) };
            let fate = this.record().fate(&write);
            if fate == Some(LastWrite::Lost) {
                this.killed.notify_one();
                this.resumed().await;
            }
            let answer = this.client.send(request).await?;
            if answer.status().is_success() {
                this.record().carried_out(write);
            }
            if fate == Some(LastWrite::Applied) {
                this.killed.notify_one();
                this.resumed().await;
            }
            Ok(answer)
        }
        .boxed()
    }
}

impl AddOns {
    /// Requests an Action and waits until it succeeded; returns whether the controller was killed
    /// meanwhile.
    async fn interrupted(&mut self, client: &Interrupted, name: &str, spec: Value) -> bool {
        let mut spec = spec;
        spec["requester"] = requester();
        let named = self.request_action(name, spec).await;
        let (action, was_killed) = self.ended(client, &named).await;
        let status = &action["status"];
        assert_eq!(status["state"], "Succeeded", "{status:#}");
        let plan = status["plan"].as_array().expect("it has a plan");
        assert!(plan.iter().all(|it| it["state"] == "Completed"), "{status:#}");
        was_killed
    }

    pub(super) async fn request_action(&self, name: &str, spec: Value) -> Named {
        let metadata = json!({ "name": name, "namespace": "default" });
        self.apply(json!({
            "apiVersion": "olm.io/v1", "kind": "Action", "metadata": metadata, "spec": spec,
        }))
        .await;
        Named::parse(&format!("olm.io/v1 Action default/{name}"))
    }

    /// Waits until an Action ends, with another controller after each that is killed; returns the
    /// Action, and whether one was killed.
    async fn ended(&mut self, client: &Interrupted, named: &Named) -> (Value, bool) {
        let what = format!("Action {} ends", named.name);
        let mut was_killed = false;
        loop {
            let action = || async { self.object(named).await };
            let ended = until(&what, action, |it| it["status"]["completionTime"].is_string());
            tokio::select! {
                () = client.killed.notified() => was_killed = true,
                action = ended => return (action, was_killed),
            }
            self.kill().await;
            self.control_with(client.client());
        }
    }
}

/// Starts a cluster whose controller can be killed at a write, with packages in its catalog.
async fn start(kind: ClusterKind, packages: &[(&str, &str)]) -> (AddOns, Interrupted) {
    let mut add_ons = AddOns::without_catalog(kind, "[]").await;
    add_ons.actions = Some(ActionSettings::default());
    let client = Interrupted::new(&add_ons.harness.client);
    let path = add_ons.catalog.path().to_owned();
    for (package, version) in packages {
        Fixture::publish(&path, package, version);
    }
    add_ons.control_with(client.client());
    add_ons.add_catalog("fixture", &path).await;
    let catalog = Named::parse("olm.io/v1 Catalog fixture");
    let status = || async { add_ons.object(&catalog).await["status"]["bundles"].clone() };
    // The fixture has one bundle itself.
    let bundles = packages.len() + 1;
    until("the catalog is read", status, |it| *it == bundles).await;
    (add_ons, client)
}

/// Returns an administrator as the requester of an Action.
pub(super) fn requester() -> Value {
    json!({ "username": "admin", "groups": ["system:masters"] })
}

#[test]
fn a_controller_ends_while_an_action_is_decided() {
    on_any_cluster(|kind| async move {
        let mut add_ons = AddOns::without_catalog(kind, "[]").await;
        add_ons.actions = Some(ActionSettings::default());
        let (asked, stopped) = (Arc::new(Notify::new()), CancellationToken::new());
        // What a requester may do is answered once the controller is to end.
        let held = {
            let (client, asked, stopped) =
                (add_ons.harness.client.clone(), Arc::clone(&asked), stopped.clone());
            service_fn(move |request: Request<Body>| {
                let (client, asked, stopped) =
                    (client.clone(), Arc::clone(&asked), stopped.clone());
                async move {
                    if request.uri().path().ends_with("/subjectaccessreviews") {
                        asked.notify_one();
                        stopped.cancelled().await;
                    }
                    client.send(request).await.map_err(tower::BoxError::from)
                }
            })
        };
        add_ons.control_with(Client::new(held, "default"));
        let spec = json!({ "actionClass": "autoremove", "requester": requester() });
        add_ons.request_action("late", spec).await;
        asked.notified().await;
        stopped.cancel();
        add_ons.stop().await;
    });
}

#[test]
fn an_action_that_is_interrupted_at_any_write_is_executed_once() {
    on_any_cluster(|kind| async move {
        let (mut add_ons, client) = start(kind, &[("foo", "1.2.3"), ("bar", "1.2.5")]).await;
        let install = json!({
            "actionClass": "operator-install", "package": "foo", "installDependencies": true,
        });
        let delete = json!({
            "actionClass": "operator-delete", "package": "foo", "parameters": { "cascade": true },
        });
        for last in [LastWrite::Lost, LastWrite::Applied] {
            for at in 0.. {
                let mut was_killed = false;
                for (what, spec) in [("install", &install), ("delete", &delete)] {
                    *client.record() = Record { kill: Some((at, last)), ..Record::default() };
                    let name = format!("{what}-{at}-{last:?}").to_lowercase();
                    was_killed |= add_ons.interrupted(&client, &name, spec.clone()).await;
                    let done = client.record().done.clone();
                    let counts: Vec<usize> = done.values().copied().collect();
                    assert_eq!(counts, [1, 1], "{name}: {done:?}");
                }
                if !was_killed {
                    assert!(at > 4, "there are more writes than {at}");
                    break;
                }
            }
        }
        add_ons.stop().await;
    });
}

/// Requests that seeds mix.
fn requests() -> Vec<Value> {
    let of = |class: &str, package: &str, parameters: Value| {
        let mut spec = json!({ "actionClass": class, "requester": requester() });
        if !package.is_empty() {
            spec["package"] = package.into();
        }
        if !parameters.is_null() {
            spec["parameters"] = parameters;
        }
        if class == "operator-install" {
            spec["installDependencies"] = true.into();
        }
        spec
    };
    let nothing = || Value::Null;
    vec![
        of("operator-install", "foo", nothing()),
        of("operator-install", "bar", nothing()),
        of("operator-install", "fiz", nothing()),
        of("operator-update", "", json!({ "latest": true, "together": true })),
        of("operator-delete", "foo", json!({ "cascade": true })),
        of("operator-delete", "fiz", nothing()),
        of("autoremove", "", nothing()),
    ]
}

/// The changes of Actions that have ended.
#[derive(Default)]
struct Changes {
    /// Those that were made, each once.
    made: BTreeMap<String, usize>,
    /// Those that may have been made.
    possible: Vec<String>,
}

impl Changes {
    fn add(&mut self, action: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        for change in action["status"]["plan"].as_array().into_iter().flatten() {
            let of = match change["operation"].as_str() {
                Some("Create") => {
                    let uid = text(&action["metadata"]["uid"]);
                    format!("create {} for {uid}", text(&change["operator"]))
                }
                Some("Delete") => format!("delete {}", text(&change["uid"])),
                _ => continue,
            };
            match change["state"].as_str() {
                Some("Completed") => drop(self.made.insert(of, 1)),
                _ => self.possible.push(of),
            }
        }
    }
}

#[test]
fn concurrent_actions_are_executed_once_despite_interruptions() {
    on_each_cluster(|kind| async move {
        let packages = [("foo", "1.2.3"), ("bar", "1.2.5"), ("fiz", "2.9.2")];
        let (mut add_ons, client) = start(kind, &packages).await;
        let mut count = 0;
        for seed in 0..SEEDS {
            let mut random = fastrand::Rng::with_seed(seed);
            client.record().done.clear();
            let mut requested = Vec::new();
            for at in 0..5 {
                let requests = requests();
                let spec = requests[random.usize(..requests.len())].clone();
                requested.push(add_ons.request_action(&format!("mixed-{seed}-{at}"), spec).await);
            }
            for _ in 0..4 {
                let last = if random.bool() { LastWrite::Lost } else { LastWrite::Applied };
                client.record().kill = Some((random.usize(..6), last));
                let patience = std::time::Duration::from_secs(2);
                if tokio::time::timeout(patience, client.killed.notified()).await.is_ok() {
                    add_ons.kill().await;
                    add_ons.control_with(client.client());
                }
            }
            client.record().kill = None;
            let mut changes = Changes::default();
            for named in &requested {
                // The last write that was to be a process's end may have come late.
                let (action, _) = add_ons.ended(&client, named).await;
                changes.add(&action);
            }
            // What is said to be done was done, once; what was done is said, and once.
            let mut done = client.record().done.clone();
            assert!(done.values().all(|it| *it == 1), "seed {seed}: {done:?}");
            // An update that is there already is said to be done without a write.
            done.retain(|change, _| {
                !change.starts_with("update ") && !changes.possible.contains(change)
            });
            assert_eq!(done, changes.made, "seed {seed}");
            count += done.len();
        }
        assert!(count > 6, "only {count} changes were made");
        add_ons.stop().await;
    });
}
