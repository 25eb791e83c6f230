//! Runs the simulator against a cluster: watches in, writes out. It decides nothing.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use jiff::Timestamp;
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::{Api, Client};
use plimsoll_api::config::ClusterOperatorStatus;
use plimsoll_api::{CLUSTER_OPERATOR, CLUSTER_VERSION, CLUSTER_VERSION_NAME, ObjectKey};
use plimsoll_controller::{SharedClock, api_resource};
use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::MANAGER;
use super::fixtures::{Fixtures, create_fixtures};
use super::simulator::{ClusterEvent, Simulator, SimulatorAction};
use super::template_fingerprint::TemplateFingerprint;
use super::watches::{WatchEvent, served, watch};
use super::workload::{WorkloadKind, rolled_out, simulated_status};

/// Writes at the same time: as many as a payload has Deployments, no more than a server minds.
const WRITES_MAX: usize = 64;
/// Events that may be queued; watches pause beyond that.
const EVENTS_MAX: usize = 256;
/// Attempts at one write before it is left to the next change of the object.
const ATTEMPTS_MAX: u32 = 6;
/// Pause after the first attempt; it doubles with each.
const ATTEMPT_PAUSE: Duration = Duration::from_millis(50);
/// How often the status of one generation of a workload is written before it counts as
/// managed by another controller: once, and again after a conflict or two.
const WRITES_PER_GENERATION_MAX: u32 = 4;

/// Which watch an event comes from.
#[derive(Debug, Clone, Copy)]
enum WatchSource {
    Workloads(WorkloadKind),
    Operators,
    Versions,
}

/// The result of a write.
enum WriteResult {
    Report { name: String, status: Option<ClusterOperatorStatus> },
    Fixtures(Result<(), kube::Error>),
    Other,
}

/// The running simulation.
pub(super) struct Runner {
    client: Client,
    simulator: Simulator,
    fixtures: Fixtures,
    clock: SharedClock,
    start: Instant,
    writes: JoinSet<WriteResult>,
    permits: Arc<Semaphore>,
    /// Writes to each workload: for which generation, and how many.
    writes_by_workload: BTreeMap<ObjectKey, (i64, u32)>,
}

impl Runner {
    pub(super) fn new(
        client: Client,
        simulator: Simulator,
        fixtures: Fixtures,
        clock: SharedClock,
    ) -> Self {
        Self {
            client,
            simulator,
            fixtures,
            clock,
            start: Instant::now(),
            writes: JoinSet::new(),
            permits: Arc::new(Semaphore::new(WRITES_MAX)),
            writes_by_workload: BTreeMap::new(),
        }
    }

    /// Runs until `stop` is cancelled.
    pub(super) async fn run(mut self, stop: &CancellationToken) {
        let (sender, mut events) = mpsc::channel(EVENTS_MAX);
        let _watches = self.watches(&sender);
        loop {
            let now = self.start.elapsed();
            for action in self.simulator.actions(now, self.time()) {
                self.execute(action);
            }
            let due = self.simulator.next_due(now).map(|due| self.start + due);
            tokio::select! {
                () = stop.cancelled() => return,
                Some((source, event)) = events.recv() => {
                    self.observe(source, event);
                    // What is there already is observed before anything is reported.
                    while let Ok((source, event)) = events.try_recv() {
                        self.observe(source, event);
                    }
                }
                Some(result) = self.writes.join_next() => {
                    self.end_write(result.unwrap_or(WriteResult::Other));
                }
                () = until(due) => {}
            }
        }
    }

    /// Begins all watches; they end when what is returned is dropped.
    fn watches(&self, sender: &mpsc::Sender<(WatchSource, WatchEvent)>) -> JoinSet<()> {
        let mut watches = JoinSet::new();
        for kind in WorkloadKind::ALL {
            let resource = workload_resource(kind);
            let ready = std::future::ready(());
            let source = WatchSource::Workloads(kind);
            watches.spawn(relay(self.client.clone(), resource, ready, source, sender.clone()));
        }
        for (kind, source) in
            [(CLUSTER_OPERATOR, WatchSource::Operators), (CLUSTER_VERSION, WatchSource::Versions)]
        {
            let ready = served(self.client.clone(), kind);
            let resource = api_resource(kind);
            watches.spawn(relay(self.client.clone(), resource, ready, source, sender.clone()));
        }
        watches
    }

    fn time(&self) -> Timestamp {
        let now = self.clock.now();
        // Kubernetes keeps whole seconds.
        Timestamp::from_second(now.as_second()).unwrap_or(now)
    }

    fn observe(&mut self, source: WatchSource, event: WatchEvent) {
        let event = match (source, event) {
            (WatchSource::Workloads(kind), WatchEvent::Applied(object)) => {
                self.observe_workload(kind, &object)
            }
            (WatchSource::Workloads(kind), WatchEvent::Deleted(object)) => {
                let key = workload_key(kind, &object);
                self.writes_by_workload.remove(&key);
                ClusterEvent::WorkloadGone(key)
            }
            (WatchSource::Workloads(_), WatchEvent::Listed(_)) => return,
            (WatchSource::Operators, WatchEvent::Applied(object)) => ClusterEvent::Operator {
                name: object.metadata.name.clone().unwrap_or_default(),
                status: status_of(&object),
            },
            (WatchSource::Operators, WatchEvent::Deleted(object)) => {
                ClusterEvent::OperatorGone(object.metadata.name.unwrap_or_default())
            }
            (WatchSource::Operators, WatchEvent::Listed(names)) => {
                ClusterEvent::OperatorsListed(names)
            }
            (WatchSource::Versions, WatchEvent::Applied(object)) => {
                if object.metadata.name.as_deref() != Some(CLUSTER_VERSION_NAME) {
                    return;
                }
                let version = object.data["status"]["desired"]["version"].as_str();
                ClusterEvent::Desired(version.map(str::to_owned))
            }
            (WatchSource::Versions, WatchEvent::Deleted(_)) => ClusterEvent::Desired(None),
            (WatchSource::Versions, WatchEvent::Listed(names)) => {
                if names.iter().any(|name| name == CLUSTER_VERSION_NAME) {
                    return;
                }
                ClusterEvent::Desired(None)
            }
        };
        self.simulator.observe(event, self.start.elapsed());
    }

    fn observe_workload(&mut self, kind: WorkloadKind, object: &DynamicObject) -> ClusterEvent {
        let key = workload_key(kind, object);
        let value = whole(object);
        if let Some(patch) = simulated_status(kind, &value, self.time())
            && self.may_write(&key, &value)
        {
            let api = api_in(&self.client, &key.namespace, &workload_resource(kind));
            let name = key.name.clone();
            self.write(async move {
                patch_status(&api, &name, &patch).await;
                WriteResult::Other
            });
        }
        ClusterEvent::Workload {
            template: TemplateFingerprint::of(&value),
            rolled_out: rolled_out(kind, &value),
            key,
        }
    }

    /// Counts a write to a workload; false when somebody keeps undoing ours.
    fn may_write(&mut self, key: &ObjectKey, object: &Value) -> bool {
        let generation = object["metadata"]["generation"].as_i64().unwrap_or(0);
        let entry = self.writes_by_workload.entry(key.clone()).or_insert((generation, 0));
        if entry.0 != generation {
            *entry = (generation, 0);
        }
        entry.1 += 1;
        if entry.1 == WRITES_PER_GENERATION_MAX + 1 {
            tracing::warn!(object = %key, "another controller writes its status; no longer simulated");
        }
        entry.1 <= WRITES_PER_GENERATION_MAX
    }

    fn execute(&mut self, action: SimulatorAction) {
        match action {
            SimulatorAction::Report { name, create, status } => {
                tracing::info!(operator = name, "{}", summary(&status));
                let api: Api<DynamicObject> =
                    Api::all_with(self.client.clone(), &api_resource(CLUSTER_OPERATOR));
                self.write(async move {
                    if create {
                        create_operator(&api, &name).await;
                    }
                    let patch = json!({ "status": status });
                    let status = patch_status(&api, &name, &patch).await.map(|it| status_of(&it));
                    WriteResult::Report { name, status }
                });
            }
            SimulatorAction::CreateFixtures => {
                let created = create_fixtures(self.client.clone(), self.fixtures.clone());
                self.write(async move { WriteResult::Fixtures(created.await) });
            }
        }
    }

    fn write(&mut self, work: impl Future<Output = WriteResult> + Send + 'static) {
        let permits = Arc::clone(&self.permits);
        self.writes.spawn(async move {
            // Never closed; without a permit it would only be less orderly.
            let _permit = permits.acquire().await;
            work.await
        });
    }

    fn end_write(&mut self, result: WriteResult) {
        match result {
            WriteResult::Report { name, status } => {
                let event = ClusterEvent::Reported { name, status };
                self.simulator.observe(event, self.start.elapsed());
            }
            WriteResult::Fixtures(Err(error)) => {
                tracing::warn!(%error, "failed to create what no manifest creates, trying again");
                let (client, fixtures) = (self.client.clone(), self.fixtures.clone());
                self.write(async move {
                    tokio::time::sleep(FIXTURES_PAUSE).await;
                    WriteResult::Fixtures(create_fixtures(client, fixtures).await)
                });
            }
            WriteResult::Fixtures(Ok(())) | WriteResult::Other => {}
        }
    }
}

/// Pause before what could not be created is tried again.
const FIXTURES_PAUSE: Duration = Duration::from_secs(1);

/// Forwards the events of a watch, once the resource is served.
async fn relay(
    client: Client,
    resource: ApiResource,
    ready: impl Future<Output = ()>,
    source: WatchSource,
    sender: mpsc::Sender<(WatchSource, WatchEvent)>,
) {
    ready.await;
    let mut events = std::pin::pin!(watch(client, &resource));
    while let Some(event) = events.next().await {
        if sender.send((source, event)).await.is_err() {
            return;
        }
    }
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

/// Patches the status of an object and returns the object; `None` if it is gone or cannot be
/// written, which is logged.
async fn patch_status(
    api: &Api<DynamicObject>,
    name: &str,
    patch: &Value,
) -> Option<DynamicObject> {
    let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
    let mut pause = ATTEMPT_PAUSE;
    for attempt in 1..=ATTEMPTS_MAX {
        let error = match api.patch_status(name, &params, &Patch::Merge(patch)).await {
            Ok(object) => return Some(object),
            Err(error) => error,
        };
        let code = if let kube::Error::Api(status) = &error { status.code } else { 0 };
        if code == NOT_FOUND {
            return None;
        }
        if code == INVALID || attempt == ATTEMPTS_MAX {
            tracing::warn!(name, %error, "failed to write a status");
            return None;
        }
        tokio::time::sleep(pause).await;
        pause *= 2;
    }
    None
}

/// HTTP status of a write to what is not there.
const NOT_FOUND: u16 = 404;
/// HTTP status of a write that will never be accepted.
const INVALID: u16 = 422;

/// Creates a ClusterOperator, as its operator does when it finds none; whether that works shows
/// when its status is written.
async fn create_operator(api: &Api<DynamicObject>, name: &str) {
    let object =
        DynamicObject::new(name, &api_resource(CLUSTER_OPERATOR)).data(json!({ "spec": {} }));
    let params = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
    if let Err(error) = api.create(&params, &object).await {
        tracing::debug!(name, %error, "did not create a clusteroperator");
    }
}

fn workload_resource(kind: WorkloadKind) -> ApiResource {
    let (group, version, kind) = kind.names();
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
}

fn api_in(client: &Client, namespace: &str, resource: &ApiResource) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), namespace, resource)
}

fn workload_key(kind: WorkloadKind, object: &DynamicObject) -> ObjectKey {
    let (group, _, kind) = kind.names();
    ObjectKey {
        group: group.to_owned(),
        kind: kind.to_owned(),
        namespace: object.metadata.namespace.clone().unwrap_or_default(),
        name: object.metadata.name.clone().unwrap_or_default(),
    }
}

/// The parts of an object that are looked at, as one value.
fn whole(object: &DynamicObject) -> Value {
    json!({
        "metadata": {
            "name": object.metadata.name,
            "generation": object.metadata.generation,
            "deletionTimestamp": object.metadata.deletion_timestamp,
        },
        "spec": object.data["spec"],
        "status": object.data["status"],
    })
}

/// What a ClusterOperator reports; what cannot be read counts as not reported.
fn status_of(object: &DynamicObject) -> ClusterOperatorStatus {
    serde_json::from_value(object.data["status"].clone()).unwrap_or_default()
}

/// What a report comes down to, for the log.
fn summary(status: &ClusterOperatorStatus) -> String {
    let trouble = status.conditions.iter().find(|it| it.reason != "AsExpected");
    let version = status.versions.iter().find(|it| it.name == "operator");
    match (trouble, version) {
        (Some(condition), _) => condition.message.clone(),
        (None, Some(version)) => format!("At v{}", version.version),
        (None, None) => "All is well".to_owned(),
    }
}
