//! The repair of objects that the controller installs at its start (definitions, admission
//! policies, classes) after another client has changed or deleted them.

use std::collections::BTreeSet;
use std::time::Duration;

use kube::core::{ApiResource, DynamicObject, PartialObjectMeta};
use kube::runtime::watcher::Config;
use kube::{Api, Client};
use plimsoll_api::{ApiKind, NamespacedName, policies};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::bootstrap::retry_until_ok;
use crate::error::Error;
use crate::listing_watch::ListingWatch;
use crate::relay::{Observer, Relay};
use crate::resources::api_resource;
use crate::write::chain;

/// The interval at which all objects are applied without an observed change, while a kind cannot be
/// watched.
const CHECK_INTERVAL: Duration = Duration::from_secs(10 * 60);
/// The pause after applying. It limits the number of requests if another client changes an object
/// every time.
const PAUSE: Duration = Duration::from_secs(1);
/// The number of changes that can be queued.
const CHANGES_QUEUED: usize = 64;

/// The installed objects of a kind.
#[derive(Debug, Clone)]
pub(crate) struct Installed {
    /// The resource of the kind.
    pub(crate) resource: ApiResource,
    /// The names of the objects.
    pub(crate) names: BTreeSet<String>,
}

impl Installed {
    /// Returns a kind and the names of some objects, which must be of that kind.
    pub(crate) fn new(resource: ApiResource, objects: &[Value]) -> Self {
        let name = |object: &Value| object["metadata"]["name"].as_str().map(str::to_owned);
        Self { resource, names: objects.iter().filter_map(name).collect() }
    }

    /// Returns the kinds and the names of admission policies and their bindings.
    pub(crate) fn policies(objects: &[Value]) -> Vec<Self> {
        let of_kind = |kind: ApiKind| {
            let named = objects.iter().filter_map(policies::kind_and_name);
            let named = named.filter(|(it, _)| *it == kind);
            let names = named.map(|(_, name)| name.to_owned()).collect();
            Self { resource: api_resource(kind), names }
        };
        let kinds = policies::KINDS.into_iter().map(of_kind);
        // API servers do not have to serve the kinds of what is not installed.
        kinds.filter(|kind| !kind.names.is_empty()).collect()
    }
}

/// Calls `install` whenever one of the objects was changed or deleted, until `stop` is cancelled.
pub(crate) async fn keep<F: Future<Output = Result<(), Error>>>(
    client: &Client,
    installed: Vec<Installed>,
    install: impl Fn() -> F,
    stop: &CancellationToken,
) {
    let (sender, mut changes) = mpsc::channel(CHANGES_QUEUED);
    let relay = Relay { sender, restored: CancellationToken::new() };
    let mut watches = JoinSet::new();
    let mut unwatched: BTreeSet<String> =
        installed.iter().map(|kind| kind.resource.plural.clone()).collect();
    for kind in installed {
        watches.spawn(watch(client.clone(), kind, relay.clone()));
    }
    loop {
        tokio::select! {
            // Branches are polled in order, so that simulations are repeatable.
            biased;
            () = stop.cancelled() => return,
            Some(change) = changes.recv() => watched(&mut unwatched, change),
            () = sleep(CHECK_INTERVAL), if !unwatched.is_empty() => {}
        }
        while let Ok(change) = changes.try_recv() {
            watched(&mut unwatched, change);
        }
        match retry_until_ok(stop, &install).await {
            Ok(()) => {}
            Err(Error::Stopped) => return,
            Err(error) => {
                tracing::warn!(error = chain(&error), "could not install again; trying again");
            }
        }
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = sleep(PAUSE) => {}
        }
    }
}

/// A message from a watch.
enum Change {
    /// One of the objects was changed or deleted.
    Object,
    /// All objects of a resource have been listed. Some may have been deleted before the watch
    /// started.
    Listed(String),
}

fn watched(unwatched: &mut BTreeSet<String>, change: Change) {
    if let Change::Listed(plural) = change {
        unwatched.remove(&plural);
    }
}

/// Sends each change of the objects until the receiver is dropped.
async fn watch(client: Client, installed: Installed, relay: Relay<Change>) {
    let Installed { resource, names } = installed;
    let api: Api<PartialObjectMeta<DynamicObject>> = Api::all_with(client, &resource);
    let observer = InstalledObserver { plural: resource.plural, names };
    relay.observe(ListingWatch::new(api, Config::default()), &observer).await;
}

/// The observer of the installed objects of a kind.
struct InstalledObserver {
    plural: String,
    names: BTreeSet<String>,
}

impl<K> Observer<K> for InstalledObserver {
    type Event = Change;

    fn shown(&self, _: Option<K>, name: NamespacedName, _: u64) -> Vec<Change> {
        self.names.get(&name.name).map(|_| Change::Object).into_iter().collect()
    }

    fn listed(&self) -> Change {
        Change::Listed(self.plural.clone())
    }

    /// Returns false: everything is applied again after each list, also of a storage that was restored.
    fn is_remembered(&self, _: &NamespacedName) -> bool {
        false
    }
}
