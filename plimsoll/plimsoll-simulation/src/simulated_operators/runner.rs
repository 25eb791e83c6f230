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
use plimsoll_api::olm::OPERATOR_LABEL;
use plimsoll_api::{
    CLUSTER_OPERATOR, CLUSTER_VERSION, CLUSTER_VERSION_NAME, GroupKind, ObjectKey, whole_seconds,
};
use plimsoll_controller::{SharedClock, api_resource};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::MANAGER;
use super::fixtures::{Fixtures, create_fixtures};
use super::packages::{self, Operand, PackageAction, PackageEvent, Packages};
use super::simulator::{ClusterEvent, Simulator, SimulatorAction};
use super::template_fingerprint::TemplateFingerprint;
use super::watches::{WatchEvent, is_established, served, watch};
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
#[derive(Debug, Clone)]
enum WatchSource {
    Workloads(WorkloadKind),
    Operators,
    Versions,
    /// Definitions that belong to an Operator.
    Definitions,
    /// Objects of a kind that one of them defines.
    Operands(GroupKind),
}

/// An event and the watch that it comes from.
type SourcedEvent = (WatchSource, WatchEvent);

/// A kind that belongs to an Operator.
struct WatchedKind {
    resource: ApiResource,
    watch: AbortHandle,
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
    packages: Packages,
    fixtures: Fixtures,
    clock: SharedClock,
    start: Instant,
    watches: JoinSet<()>,
    sender: mpsc::Sender<SourcedEvent>,
    events: mpsc::Receiver<SourcedEvent>,
    /// The kinds of Operators that are watched.
    watched_kinds: BTreeMap<GroupKind, WatchedKind>,
    writes: JoinSet<WriteResult>,
    permits: Arc<Semaphore>,
    /// Writes to each workload: for which generation, and how many.
    writes_by_workload: BTreeMap<ObjectKey, (i64, u32)>,
}

impl Runner {
    pub(super) fn new(
        client: Client,
        simulator: Simulator,
        packages: Packages,
        fixtures: Fixtures,
        clock: SharedClock,
    ) -> Self {
        let (sender, events) = mpsc::channel(EVENTS_MAX);
        Self {
            client,
            simulator,
            packages,
            fixtures,
            clock,
            start: Instant::now(),
            watches: JoinSet::new(),
            sender,
            events,
            watched_kinds: BTreeMap::new(),
            writes: JoinSet::new(),
            permits: Arc::new(Semaphore::new(WRITES_MAX)),
            writes_by_workload: BTreeMap::new(),
        }
    }

    /// Runs until `stop` is cancelled.
    pub(super) async fn run(mut self, stop: &CancellationToken) {
        self.begin_watches();
        loop {
            let now = self.start.elapsed();
            for action in self.simulator.actions(now, self.time()) {
                self.execute(action);
            }
            for action in self.packages.actions(now) {
                self.execute_of_package(action);
            }
            let due = [self.simulator.next_due(now), self.packages.next_due(now)];
            let due = due.into_iter().flatten().min().map(|due| self.start + due);
            tokio::select! {
                () = stop.cancelled() => return,
                Some((source, event)) = self.events.recv() => {
                    self.observe(source, event);
                    // What is there already is observed before anything is reported.
                    while let Ok((source, event)) = self.events.try_recv() {
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

    /// Begins all watches but those on kinds of Operators.
    fn begin_watches(&mut self) {
        for kind in WorkloadKind::ALL {
            let source = WatchSource::Workloads(kind);
            self.begin_watch(workload_resource(kind), "", std::future::ready(()), source);
        }
        for (kind, source) in
            [(CLUSTER_OPERATOR, WatchSource::Operators), (CLUSTER_VERSION, WatchSource::Versions)]
        {
            let ready = served(self.client.clone(), kind);
            self.begin_watch(api_resource(kind), "", ready, source);
        }
        let definitions = "CustomResourceDefinition";
        let definitions = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", definitions);
        let resource = ApiResource::from_gvk(&definitions);
        let ready = std::future::ready(());
        self.begin_watch(resource, OPERATOR_LABEL, ready, WatchSource::Definitions);
    }

    fn begin_watch(
        &mut self,
        resource: ApiResource,
        labels: &'static str,
        ready: impl Future<Output = ()> + Send + 'static,
        source: WatchSource,
    ) -> AbortHandle {
        let (client, sender) = (self.client.clone(), self.sender.clone());
        self.watches.spawn(relay(client, resource, labels, ready, source, sender))
    }

    fn time(&self) -> Timestamp {
        whole_seconds(self.clock.now())
    }

    fn observe(&mut self, source: WatchSource, event: WatchEvent) {
        let event = match (source, event) {
            (WatchSource::Workloads(kind), WatchEvent::Applied(object)) => {
                self.observe_workload(kind, &object)
            }
            (WatchSource::Workloads(kind), WatchEvent::Deleted(object)) => {
                let key = workload_key(kind, &object);
                self.writes_by_workload.remove(&key);
                self.observe_package(PackageEvent::DeploymentGone(key.clone()));
                ClusterEvent::WorkloadGone(key)
            }
            (WatchSource::Workloads(_), WatchEvent::Listed(_)) => return,
            (WatchSource::Definitions, event) => return self.observe_definition(event),
            (WatchSource::Operands(kind), event) => return self.observe_operand(&kind, event),
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
        let labels = object.metadata.labels.as_ref();
        let package = labels.and_then(|labels| labels.get(OPERATOR_LABEL));
        if let Some(package) = package.filter(|_| kind == WorkloadKind::Deployment) {
            self.observe_package(PackageEvent::Deployment {
                key: key.clone(),
                package: package.clone(),
                versions: packages::versions(&value),
                generation: object.metadata.generation.unwrap_or(0),
                rolled_out: rolled_out(kind, &value),
            });
        } else if let Some(patch) = simulated_status(kind, &value, self.time())
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

    fn observe_package(&mut self, event: PackageEvent) {
        self.packages.observe(event, self.start.elapsed());
    }

    /// Watches the objects of a kind as long as it is served.
    fn observe_definition(&mut self, event: WatchEvent) {
        match event {
            WatchEvent::Applied(definition) => {
                let Some((resource, package)) = defined(&definition) else { return };
                let kind = GroupKind { group: resource.group.clone(), kind: resource.kind.clone() };
                self.observe_package(PackageEvent::Definition { kind: kind.clone(), package });
                let watched = self.watched_kinds.get(&kind).map(|it| &it.resource.version);
                if watched == Some(&resource.version) {
                    return;
                }
                let source = WatchSource::Operands(kind.clone());
                let watch = self.begin_watch(resource.clone(), "", std::future::ready(()), source);
                let watched = self.watched_kinds.insert(kind, WatchedKind { resource, watch });
                if let Some(before) = watched {
                    before.watch.abort();
                }
            }
            WatchEvent::Deleted(definition) => {
                let names = &definition.data["spec"];
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                let kind =
                    GroupKind { group: text(&names["group"]), kind: text(&names["names"]["kind"]) };
                if let Some(watched) = self.watched_kinds.remove(&kind) {
                    watched.watch.abort();
                }
                self.observe_package(PackageEvent::DefinitionGone(kind));
            }
            WatchEvent::Listed(_) => {}
        }
    }

    fn observe_operand(&mut self, kind: &GroupKind, event: WatchEvent) {
        match event {
            WatchEvent::Applied(object) => {
                let operand = Operand {
                    resource_version: object.metadata.resource_version.clone().unwrap_or_default(),
                    is_deleting: object.metadata.deletion_timestamp.is_some(),
                    finalizers: object.metadata.finalizers.clone().unwrap_or_default(),
                };
                let key = operand_key(kind, &object);
                self.observe_package(PackageEvent::Operand { key, operand });
            }
            WatchEvent::Deleted(object) => {
                self.observe_package(PackageEvent::OperandGone(operand_key(kind, &object)));
            }
            WatchEvent::Listed(_) => {}
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

    fn execute_of_package(&mut self, action: PackageAction) {
        match action {
            PackageAction::RollOut(key) => {
                let kind = WorkloadKind::Deployment;
                let api = api_in(&self.client, &key.namespace, &workload_resource(kind));
                let time = self.time();
                self.write(async move {
                    // It may have changed since it was seen.
                    if let Ok(Some(object)) = api.get_opt(&key.name).await
                        && let Some(patch) = simulated_status(kind, &whole(&object), time)
                    {
                        patch_status(&api, &key.name, &patch).await;
                    }
                    WriteResult::Other
                });
            }
            PackageAction::SetFinalizers(key, operand) => {
                let Some(watched) = self.watched_kinds.get(&key.group_kind()) else { return };
                let api = api_in(&self.client, &key.namespace, &watched.resource);
                self.write(async move {
                    set_finalizers(&api, &key.name, &operand).await;
                    WriteResult::Other
                });
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
    labels: &str,
    ready: impl Future<Output = ()>,
    source: WatchSource,
    sender: mpsc::Sender<SourcedEvent>,
) {
    ready.await;
    let mut events = std::pin::pin!(watch(client, &resource, labels));
    while let Some(event) = events.next().await {
        if sender.send((source.clone(), event)).await.is_err() {
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

/// Replaces the finalizers of an object as it was seen; one that changed meanwhile is seen again.
async fn set_finalizers(api: &Api<DynamicObject>, name: &str, operand: &Operand) {
    let patch = json!({ "metadata": {
        "resourceVersion": operand.resource_version,
        "finalizers": operand.finalizers,
    } });
    let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
    let mut pause = ATTEMPT_PAUSE;
    for attempt in 1..=ATTEMPTS_MAX {
        let Err(error) = api.patch(name, &params, &Patch::Merge(&patch)).await else { return };
        let code = if let kube::Error::Api(status) = &error { status.code } else { 0 };
        if code == NOT_FOUND || code == CONFLICT {
            return;
        }
        if code == INVALID || attempt == ATTEMPTS_MAX {
            return tracing::warn!(name, %error, "failed to write finalizers");
        }
        tokio::time::sleep(pause).await;
        pause *= 2;
    }
}

/// HTTP status of a write to what is not there.
const NOT_FOUND: u16 = 404;
/// HTTP status of a write to what changed since it was read.
const CONFLICT: u16 = 409;
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
    if namespace.is_empty() {
        return Api::all_with(client.clone(), resource);
    }
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

fn operand_key(kind: &GroupKind, object: &DynamicObject) -> ObjectKey {
    ObjectKey {
        group: kind.group.clone(),
        kind: kind.kind.clone(),
        namespace: object.metadata.namespace.clone().unwrap_or_default(),
        name: object.metadata.name.clone().unwrap_or_default(),
    }
}

/// The kind that an established definition defines, in the version that objects are stored in, and the
/// Operator that it belongs to.
fn defined(definition: &DynamicObject) -> Option<(ApiResource, String)> {
    let package = definition.metadata.labels.as_ref()?.get(OPERATOR_LABEL)?.clone();
    let spec = &definition.data["spec"];
    let served = |it: &&Value| it["served"] == true && it["storage"] == true;
    let version = spec["versions"].as_array()?.iter().find(served)?["name"].as_str()?;
    let (group, names) = (spec["group"].as_str()?, &spec["names"]);
    let gvk = GroupVersionKind::gvk(group, version, names["kind"].as_str()?);
    let resource = ApiResource::from_gvk_with_plural(&gvk, names["plural"].as_str()?);
    is_established(Some(definition)).then_some((resource, package))
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
    Deserialize::deserialize(&object.data["status"]).unwrap_or_default()
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
