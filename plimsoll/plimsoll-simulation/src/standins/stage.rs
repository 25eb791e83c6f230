//! Where the play happens: watches in, writes out. It decides nothing.

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

use super::director::{Act, Director, Event};
use super::look::Look;
use super::surroundings::{Furniture, furnish};
use super::watching::{Sighting, served, watch};
use super::workload::{WorkloadKind, played, rolled_out};

/// Field manager of everything that the stand-ins write.
pub(super) const MANAGER: &str = "plimsoll-standins";
/// Writes at the same time: as many as a payload has Deployments, no more than a server minds.
const WRITES_MAX: usize = 64;
/// Sightings that may wait to be looked at; watches pause beyond that.
const SIGHTINGS_MAX: usize = 256;
/// Attempts at one write before it is left to the next change of the object.
const ATTEMPTS_MAX: u32 = 6;
/// Pause after the first attempt; it doubles with each.
const ATTEMPT_PAUSE: Duration = Duration::from_millis(50);
/// How often the status of one generation of a workload is written before we conclude that
/// somebody else looks after it: once, and again after a conflict or two.
const WRITES_PER_GENERATION_MAX: u32 = 4;

/// What a watch has to do with a sighting.
#[derive(Debug, Clone, Copy)]
enum Source {
    Workloads(WorkloadKind),
    Operators,
    Versions,
}

/// A write that has come to its end.
enum Written {
    Report { name: String, status: Option<ClusterOperatorStatus> },
    Furnished(Result<(), kube::Error>),
    Other,
}

/// The running play.
pub(super) struct Stage {
    client: Client,
    director: Director,
    furniture: Furniture,
    clock: SharedClock,
    start: Instant,
    writes: JoinSet<Written>,
    permits: Arc<Semaphore>,
    /// Writes to each workload: for which generation, and how many.
    written: BTreeMap<ObjectKey, (i64, u32)>,
}

impl Stage {
    pub(super) fn new(
        client: Client,
        director: Director,
        furniture: Furniture,
        clock: SharedClock,
    ) -> Self {
        Self {
            client,
            director,
            furniture,
            clock,
            start: Instant::now(),
            writes: JoinSet::new(),
            permits: Arc::new(Semaphore::new(WRITES_MAX)),
            written: BTreeMap::new(),
        }
    }

    /// Plays until told to stop.
    pub(super) async fn play(mut self, stop: &CancellationToken) {
        let (sender, mut sightings) = mpsc::channel(SIGHTINGS_MAX);
        let _watches = self.watches(&sender);
        loop {
            let now = self.start.elapsed();
            for act in self.director.act(now, self.time()) {
                self.perform(act);
            }
            let due = self.director.next_due(now).map(|due| self.start + due);
            tokio::select! {
                () = stop.cancelled() => return,
                Some((source, sighting)) = sightings.recv() => {
                    self.see(source, sighting);
                    // What is there already is seen before anybody acts on it.
                    while let Ok((source, sighting)) = sightings.try_recv() {
                        self.see(source, sighting);
                    }
                }
                Some(written) = self.writes.join_next() => {
                    self.end_write(written.unwrap_or(Written::Other));
                }
                () = until(due) => {}
            }
        }
    }

    /// Begins all watches; they end when what is returned is dropped.
    fn watches(&self, sender: &mpsc::Sender<(Source, Sighting)>) -> JoinSet<()> {
        let mut watches = JoinSet::new();
        for kind in WorkloadKind::ALL {
            let resource = workload_resource(kind);
            let ready = std::future::ready(());
            let source = Source::Workloads(kind);
            watches.spawn(relay(self.client.clone(), resource, ready, source, sender.clone()));
        }
        for (kind, source) in
            [(CLUSTER_OPERATOR, Source::Operators), (CLUSTER_VERSION, Source::Versions)]
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

    fn see(&mut self, source: Source, sighting: Sighting) {
        let event = match (source, sighting) {
            (Source::Workloads(kind), Sighting::There(object)) => self.see_workload(kind, &object),
            (Source::Workloads(kind), Sighting::Gone(object)) => {
                let key = workload_key(kind, &object);
                self.written.remove(&key);
                Event::WorkloadGone(key)
            }
            (Source::Workloads(_), Sighting::Listed(_)) => return,
            (Source::Operators, Sighting::There(object)) => Event::Operator {
                name: object.metadata.name.clone().unwrap_or_default(),
                status: status_of(&object),
            },
            (Source::Operators, Sighting::Gone(object)) => {
                Event::OperatorGone(object.metadata.name.unwrap_or_default())
            }
            (Source::Operators, Sighting::Listed(names)) => Event::OperatorsListed(names),
            (Source::Versions, Sighting::There(object)) => {
                if object.metadata.name.as_deref() != Some(CLUSTER_VERSION_NAME) {
                    return;
                }
                let version = object.data["status"]["desired"]["version"].as_str();
                Event::Desired(version.map(str::to_owned))
            }
            (Source::Versions, Sighting::Gone(_)) => Event::Desired(None),
            (Source::Versions, Sighting::Listed(names)) => {
                if names.iter().any(|name| name == CLUSTER_VERSION_NAME) {
                    return;
                }
                Event::Desired(None)
            }
        };
        self.director.observe(event, self.start.elapsed());
    }

    fn see_workload(&mut self, kind: WorkloadKind, object: &DynamicObject) -> Event {
        let key = workload_key(kind, object);
        let value = whole(object);
        if let Some(patch) = played(kind, &value, self.time())
            && self.may_write(&key, &value)
        {
            let api = api_in(&self.client, &key.namespace, &workload_resource(kind));
            let name = key.name.clone();
            self.write(async move {
                patch_status(&api, &name, &patch).await;
                Written::Other
            });
        }
        Event::Workload { look: Look::of(&value), rolled_out: rolled_out(kind, &value), key }
    }

    /// Counts a write to a workload; false when somebody keeps undoing ours.
    fn may_write(&mut self, key: &ObjectKey, object: &Value) -> bool {
        let generation = object["metadata"]["generation"].as_i64().unwrap_or(0);
        let entry = self.written.entry(key.clone()).or_insert((generation, 0));
        if entry.0 != generation {
            *entry = (generation, 0);
        }
        entry.1 += 1;
        if entry.1 == WRITES_PER_GENERATION_MAX + 1 {
            tracing::warn!(object = %key, "somebody else writes its status, so it is left alone");
        }
        entry.1 <= WRITES_PER_GENERATION_MAX
    }

    fn perform(&mut self, act: Act) {
        match act {
            Act::Report { name, create, status } => {
                tracing::info!(operator = name, "{}", headline(&status));
                let api: Api<DynamicObject> =
                    Api::all_with(self.client.clone(), &api_resource(CLUSTER_OPERATOR));
                self.write(async move {
                    if create {
                        create_operator(&api, &name).await;
                    }
                    let patch = json!({ "status": status });
                    let status = patch_status(&api, &name, &patch).await.map(|it| status_of(&it));
                    Written::Report { name, status }
                });
            }
            Act::Furnish => {
                let furnished = furnish(self.client.clone(), self.furniture.clone());
                self.write(async move { Written::Furnished(furnished.await) });
            }
        }
    }

    fn write(&mut self, work: impl Future<Output = Written> + Send + 'static) {
        let permits = Arc::clone(&self.permits);
        self.writes.spawn(async move {
            // Never closed; without a permit it would only be less orderly.
            let _permit = permits.acquire().await;
            work.await
        });
    }

    fn end_write(&mut self, written: Written) {
        match written {
            Written::Report { name, status } => {
                let event = Event::Reported { name, status };
                self.director.observe(event, self.start.elapsed());
            }
            Written::Furnished(Err(error)) => {
                tracing::warn!(%error, "failed to create what no manifest creates, trying again");
                let (client, furniture) = (self.client.clone(), self.furniture.clone());
                self.write(async move {
                    tokio::time::sleep(FURNISH_PAUSE).await;
                    Written::Furnished(furnish(client, furniture).await)
                });
            }
            Written::Furnished(Ok(())) | Written::Other => {}
        }
    }
}

/// Pause before what could not be created is tried again.
const FURNISH_PAUSE: Duration = Duration::from_secs(1);

/// Passes on what a watch shows, once the resource is there to be watched.
async fn relay(
    client: Client,
    resource: ApiResource,
    ready: impl Future<Output = ()>,
    source: Source,
    sender: mpsc::Sender<(Source, Sighting)>,
) {
    ready.await;
    let mut sightings = std::pin::pin!(watch(client, &resource));
    while let Some(sighting) = sightings.next().await {
        if sender.send((source, sighting)).await.is_err() {
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
fn headline(status: &ClusterOperatorStatus) -> String {
    let trouble = status.conditions.iter().find(|it| it.reason != "AsExpected");
    let version = status.versions.iter().find(|it| it.name == "operator");
    match (trouble, version) {
        (Some(condition), _) => condition.message.clone(),
        (None, Some(version)) => format!("At v{}", version.version),
        (None, None) => "All is well".to_owned(),
    }
}
