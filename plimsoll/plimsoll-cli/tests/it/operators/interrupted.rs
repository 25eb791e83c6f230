//! A controller that is killed at any write of an Action: the next one ends the Action, and nothing is done
//! twice.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Method, Request, Response};
use k8s_testkit::ClusterKind;
use kube::Client;
use kube::client::Body;
use plimsoll_controller::actions::ActionSettings;
use serde_json::{Value, json};
use tokio::sync::Notify;
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
    /// How often each change of Operators was carried out: a deletion with the uid of the Operator, a
    /// creation with its name and the uid of the Action.
    done: BTreeMap<String, usize>,
}

/// A client that counts what Actions write, and does not return from one of the writes.
#[derive(Clone)]
struct Interrupted {
    client: Client,
    record: Arc<Mutex<Record>>,
    killed: Arc<Notify>,
}

impl Interrupted {
    fn client(&self) -> Client {
        Client::new(self.clone(), "default")
    }
}

/// Returns whether a request creates or deletes an Operator.
fn is_change(request: &Request<Body>) -> bool {
    request.uri().path().starts_with("/apis/olm.io/v1/operators")
        && matches!(*request.method(), Method::POST | Method::DELETE)
}

/// The change of an Operator that a request makes, by its body.
fn change(is_creation: bool, body: &[u8]) -> String {
    let body: Value = serde_json::from_slice(body).expect("it is JSON");
    let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    match is_creation {
        true => {
            let action = text("/metadata/annotations/olm.io~1created-by-action");
            format!("create {} for {action}", text("/metadata/name"))
        }
        false => format!("delete {}", text("/preconditions/uid")),
    }
}

impl Service<Request<Body>> for Interrupted {
    type Response = Response<Body>;
    type Error = tower::BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let is_write = !matches!(*request.method(), Method::GET);
        let is_change = is_change(&request);
        let is_of_action = request.uri().path().contains("/actions/") || is_change;
        let mut fate = None;
        if is_write && is_of_action {
            let mut record = self.record.lock().expect("no thread panics");
            match record.kill.take() {
                Some((0, last)) => fate = Some(last),
                Some((left, last)) => record.kill = Some((left - 1, last)),
                None => {}
            }
        }
        let Self { client, record, killed } = self.clone();
        async move {
            if fate == Some(LastWrite::Lost) {
                killed.notify_one();
                return std::future::pending().await;
            }
            let (parts, body) = request.into_parts();
            let is_creation = parts.method == Method::POST;
            let bytes = body.collect_bytes().await?;
            let request = Request::from_parts(parts, Body::from(bytes.clone()));
            if !is_change {
                return finish(client.send(request).await?, fate, &killed).await;
            }
            let answer = client.send(request).await?;
            if answer.status().is_success() {
                let change = change(is_creation, &bytes);
                *record.lock().expect("no thread panics").done.entry(change).or_default() += 1;
            }
            finish(answer, fate, &killed).await
        }
        .boxed()
    }
}

/// Answers, unless the controller is killed before it learns of it.
async fn finish(
    answer: Response<Body>,
    fate: Option<LastWrite>,
    killed: &Notify,
) -> Result<Response<Body>, tower::BoxError> {
    if fate == Some(LastWrite::Applied) {
        killed.notify_one();
        return std::future::pending().await;
    }
    Ok(answer)
}

impl AddOns {
    /// Requests an Action and waits until it succeeded; returns whether the controller was killed meanwhile.
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

    async fn request_action(&self, name: &str, spec: Value) -> Named {
        let metadata = json!({ "name": name, "namespace": "default" });
        self.apply(json!({
            "apiVersion": "olm.io/v1", "kind": "Action", "metadata": metadata, "spec": spec,
        }))
        .await;
        Named::parse(&format!("olm.io/v1 Action default/{name}"))
    }

    /// Waits until an Action ends, with another controller after each that is killed; returns the Action,
    /// and whether one was killed.
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
    let client = Interrupted {
        client: add_ons.harness.client.clone(),
        record: Arc::default(),
        killed: Arc::default(),
    };
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

fn requester() -> Value {
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
                    {
                        let mut record = client.record.lock().expect("no thread panics");
                        *record = Record { kill: Some((at, last)), done: BTreeMap::new() };
                    }
                    let name = format!("{what}-{at}-{last:?}").to_lowercase();
                    was_killed |= add_ons.interrupted(&client, &name, spec.clone()).await;
                    let record = client.record.lock().expect("no thread panics");
                    let counts: Vec<usize> = record.done.values().copied().collect();
                    assert_eq!(counts, [1, 1], "{name}: {:?}", record.done);
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
            client.record.lock().expect("no thread panics").done.clear();
            let mut requested = Vec::new();
            for at in 0..5 {
                let requests = requests();
                let spec = requests[random.usize(..requests.len())].clone();
                requested.push(add_ons.request_action(&format!("mixed-{seed}-{at}"), spec).await);
            }
            for _ in 0..4 {
                let last = if random.bool() { LastWrite::Lost } else { LastWrite::Applied };
                client.record.lock().expect("no thread panics").kill =
                    Some((random.usize(..6), last));
                let patience = std::time::Duration::from_secs(2);
                if tokio::time::timeout(patience, client.killed.notified()).await.is_ok() {
                    add_ons.kill().await;
                    add_ons.control_with(client.client());
                }
            }
            client.record.lock().expect("no thread panics").kill = None;
            let mut changes = Changes::default();
            for named in &requested {
                // The last write that was to be a process's end may have come late.
                let (action, _) = add_ons.ended(&client, named).await;
                changes.add(&action);
            }
            // What is said to be done was done, once; what was done is said, and once.
            let mut done = client.record.lock().expect("no thread panics").done.clone();
            done.retain(|change, count| !(changes.possible.contains(change) && *count == 1));
            assert_eq!(done, changes.made, "seed {seed}");
            count += done.len();
        }
        assert!(count > 6, "only {count} changes were made");
        add_ons.stop().await;
    });
}
