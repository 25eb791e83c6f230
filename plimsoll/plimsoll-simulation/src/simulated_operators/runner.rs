//! The loop that runs the simulator against a cluster: watches in, writes out. It decides nothing.

mod observe;
mod writes;

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use jiff::Timestamp;
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::{Api, Client};
use plimsoll_api::config::ClusterOperatorStatus;
use plimsoll_api::olm::OPERATOR_LABEL;
use plimsoll_api::{CLUSTER_OPERATOR, CLUSTER_VERSION, GroupKind, ObjectKey, whole_seconds};
use plimsoll_controller::{SharedClock, api_resource};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::fixtures::{Fixtures, create_fixtures};
use super::packages::Packages;
use super::simulator::{ClusterEvent, Simulator};
use super::watches::{WatchEvent, served, watch};
use super::workload::WorkloadKind;

/// The maximum number of concurrent writes: that of the Deployments of a payload.
const WRITES_MAX: usize = 64;
/// The maximum number of queued events; watches pause beyond that.
const EVENTS_MAX: usize = 256;
/// The pause before fixtures that could not be created are tried again.
const FIXTURES_PAUSE: Duration = Duration::from_secs(1);

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
                // Branches are polled in order, so that simulations are repeatable.
                biased;
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
            let labels = if kind == WorkloadKind::ApiService { OPERATOR_LABEL } else { "" };
            self.begin_watch(workload_resource(kind), labels, std::future::ready(()), source);
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

/// Returns the parts of an object that matter to the simulation, as one value.
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

/// Returns the status of a ClusterOperator; one that cannot be read counts as empty.
fn status_of(object: &DynamicObject) -> ClusterOperatorStatus {
    Deserialize::deserialize(&object.data["status"]).unwrap_or_default()
}
