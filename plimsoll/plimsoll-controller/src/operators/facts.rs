//! The facts of the cluster that bundles can depend on.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kube::api::ListParams;
use kube::core::DynamicObject;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client, ResourceExt as _};
use plimsoll_api::config::ClusterVersionStatus;
use plimsoll_api::{CLUSTER_VERSION, CLUSTER_VERSION_NAME, read_usable};
use plimsoll_operators::reconciler::OperatorEvent;
use plimsoll_resolve::ClusterFacts;
use plimsoll_resolve::version::parse_tolerant;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

use crate::listing_watch::ListingWatch;
use crate::observe::{self};
use crate::resources::api_resource;

/// The name of the definition of ClusterVersions.
const CLUSTER_VERSION_DEFINITION: &str = "clusterversions.config.openshift.io";
/// The delay before facts that could not be read are read again.
const RETRY: Duration = Duration::from_secs(5);
/// The number of changes that can be queued.
const CHANGES_QUEUED: usize = 16;
/// The number of nodes per page. A page is large, since each node lists its images.
const PAGE_SIZE: u32 = 100;

/// A change of the facts.
enum FactChange {
    /// The architectures of the nodes.
    Architectures(BTreeSet<String>),
    /// Whether ClusterVersions are served.
    ClusterVersionServed(bool),
    /// The current ClusterVersion; `None` if there is none.
    ClusterVersion(Option<Box<DynamicObject>>),
}

/// Sends the facts of the cluster, and again whenever they change, until the receiver is dropped.
pub(super) async fn watch(client: Client, sender: mpsc::Sender<OperatorEvent>) {
    let mut facts = retried(|| read(&client)).await;
    if sender.send(OperatorEvent::Facts(Box::new(facts.clone()))).await.is_err() {
        return;
    }
    let (changed, mut changes) = mpsc::channel(CHANGES_QUEUED);
    let mut watches = JoinSet::new();
    watches.spawn(watch_nodes(client.clone(), changed.clone()));
    let served = FactChange::ClusterVersionServed;
    let definition = CLUSTER_VERSION_DEFINITION;
    watches.spawn(observe::watch_definition(client.clone(), definition, served, changed.clone()));
    let mut cluster_version: Option<AbortHandle> = None;
    while let Some(change) = changes.recv().await {
        let before = facts.clone();
        match change {
            FactChange::Architectures(found) => facts.architectures = Vec::from_iter(found),
            FactChange::ClusterVersion(object) => {
                let status = object.and_then(|it| status(&it));
                of_release(&mut facts, status.as_ref());
            }
            FactChange::ClusterVersionServed(is_served) => {
                match (is_served, &cluster_version) {
                    (true, None) => {
                        cluster_version = Some(watches.spawn(observe::watch_named(
                            client.clone(),
                            CLUSTER_VERSION,
                            CLUSTER_VERSION_NAME,
                            FactChange::ClusterVersion,
                            None,
                            changed.clone(),
                        )));
                    }
                    (false, _) => {
                        if let Some(watch) = cluster_version.take() {
                            watch.abort();
                        }
                        of_release(&mut facts, None);
                    }
                    (true, Some(_)) => {}
                }
                // When a newer API server replaces the present one, its watches end and this one is
                // listed again: a good time to read the version again.
                let version = retried(|| client.apiserver_version()).await;
                facts.kubernetes = parse_tolerant(&version.git_version).ok();
            }
        }
        let is_changed = facts != before;
        if is_changed && sender.send(OperatorEvent::Facts(Box::new(facts.clone()))).await.is_err() {
            return;
        }
    }
}

/// Watches the architectures of the nodes until the receiver is dropped.
async fn watch_nodes(client: Client, sender: mpsc::Sender<FactChange>) {
    let config = watcher::Config::default().page_size(PAGE_SIZE);
    let mut events = ListingWatch::new(Api::<Node>::all(client), config);
    let mut nodes: BTreeMap<String, Option<String>> = BTreeMap::new();
    let mut listed = BTreeMap::new();
    loop {
        match events.next().await {
            Ok(Event::Init) => {
                listed.clear();
                continue;
            }
            Ok(Event::InitApply(node)) => {
                listed.insert(node.name_any(), architecture(node));
                continue;
            }
            Ok(Event::InitDone) => nodes = std::mem::take(&mut listed),
            Ok(Event::Apply(node)) => {
                let (name, architecture) = (node.name_any(), architecture(node));
                if nodes.insert(name, architecture.clone()) == Some(architecture) {
                    continue;
                }
            }
            Ok(Event::Delete(node)) => {
                nodes.remove(&node.name_any());
            }
            Err(error) => {
                tracing::debug!(%error, "watching nodes failed; trying again");
                continue;
            }
        }
        let architectures = nodes.values().flatten().cloned().collect();
        if sender.send(FactChange::Architectures(architectures)).await.is_err() {
            return;
        }
    }
}

/// Reads the version of Kubernetes, the architectures of the nodes, and the release and the
/// capabilities that the ClusterVersion reports.
///
/// # Errors
///
/// When the server does not answer. Facts that do not exist or may not be read are left out.
pub async fn read(client: &Client) -> Result<ClusterFacts, kube::Error> {
    let nodes: Api<Node> = Api::all(client.clone());
    let nodes = allowed(nodes.list(&ListParams::default()).await)?;
    let architectures: BTreeSet<String> =
        nodes.into_iter().flat_map(|list| list.items).filter_map(architecture).collect();
    let versions: Api<DynamicObject> =
        Api::all_with(client.clone(), &api_resource(CLUSTER_VERSION));
    let found = allowed(versions.get_opt(CLUSTER_VERSION_NAME).await)?.flatten();
    let mut facts = ClusterFacts {
        kubernetes: parse_tolerant(&client.apiserver_version().await?.git_version).ok(),
        architectures: architectures.into_iter().collect(),
        ..ClusterFacts::default()
    };
    of_release(&mut facts, found.as_ref().and_then(status).as_ref());
    Ok(facts)
}

/// Returns the architecture of a node, as Go names it; `None` if the node has not reported it yet.
fn architecture(node: Node) -> Option<String> {
    Some(node.status?.node_info?.architecture)
}

/// Sets the facts that a ClusterVersion reports.
fn of_release(facts: &mut ClusterFacts, status: Option<&ClusterVersionStatus>) {
    facts.openshift = status.and_then(|it| parse_tolerant(&it.desired.version).ok());
    facts.capabilities = status.map(|it| it.capabilities.enabled_capabilities.clone());
}

fn status(cluster_version: &DynamicObject) -> Option<ClusterVersionStatus> {
    cluster_version.data.get("status").map(read_usable)
}

/// Returns the object that was read; `None` if it does not exist or may not be read.
fn allowed<T>(read: Result<T, kube::Error>) -> Result<Option<T>, kube::Error> {
    match read {
        Err(kube::Error::Api(status)) if matches!(status.code, 403 | 404) => Ok(None),
        other => other.map(Some),
    }
}

/// Repeats a read until it succeeds.
async fn retried<T, F: Future<Output = Result<T, kube::Error>>>(read: impl Fn() -> F) -> T {
    loop {
        match read().await {
            Ok(found) => return found,
            Err(error) => {
                tracing::debug!(%error, "could not read the facts of the cluster");
                tokio::time::sleep(RETRY).await;
            }
        }
    }
}
