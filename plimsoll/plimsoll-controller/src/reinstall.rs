//! Installs again what somebody changes or deletes of the objects that the controller installs at its
//! start: definitions, admission policies, classes.

use std::collections::BTreeSet;
use std::time::Duration;

use kube::core::{ApiResource, DynamicObject, PartialObjectMeta};
use kube::runtime::watcher::Config;
use kube::{Api, Client};
use plimsoll_api::{ApiKind, policies};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::bootstrap::retry_until_ok;
use crate::error::Error;
use crate::observe::ListingWatch;
use crate::relay::{Id, Relay};
use crate::resources::api_resource;
use crate::write::chain;

/// How often everything is applied although no change was seen, where a watch is not allowed.
const CHECK_INTERVAL: Duration = Duration::from_secs(10 * 60);
/// How long to wait after applying: somebody who changes an object each time takes few requests.
const PAUSE: Duration = Duration::from_secs(1);
/// Changes that may wait to be handled.
const CHANGES_QUEUED: usize = 64;

/// The installed objects of a kind.
#[derive(Debug, Clone)]
pub(crate) struct Installed {
    /// Their kind.
    pub(crate) resource: ApiResource,
    /// Their names.
    pub(crate) names: BTreeSet<String>,
}

impl Installed {
    /// The objects, which are of the kind.
    pub(crate) fn new(resource: ApiResource, objects: &[Value]) -> Self {
        let name = |object: &Value| object["metadata"]["name"].as_str().map(str::to_owned);
        Self { resource, names: objects.iter().filter_map(name).collect() }
    }

    /// Admission policies and their bindings.
    pub(crate) fn policies(objects: &[Value]) -> Vec<Self> {
        let of_kind = |kind: ApiKind| {
            let named = objects.iter().filter_map(policies::kind_and_name);
            let named = named.filter(|(it, _)| *it == kind);
            let names = named.map(|(_, name)| name.to_owned()).collect();
            Self { resource: api_resource(kind), names }
        };
        policies::KINDS.map(of_kind).into()
    }
}

/// Calls `install` whenever one of the objects was changed or deleted, until stopped.
pub(crate) async fn keep<F: Future<Output = Result<(), Error>>>(
    client: &Client,
    installed: Vec<Installed>,
    install: impl Fn() -> F,
    stop: &CancellationToken,
) {
    let (sender, mut changes) = mpsc::channel(CHANGES_QUEUED);
    // Whatever is there is applied again: it does not matter which state the storage has.
    let relay = Relay { sender, restored: CancellationToken::new() };
    let mut watches = JoinSet::new();
    let mut unwatched: BTreeSet<String> =
        installed.iter().map(|kind| kind.resource.plural.clone()).collect();
    for kind in installed {
        watches.spawn(watch(client.clone(), kind, relay.clone()));
    }
    loop {
        tokio::select! {
            // In order, so that a simulation is repeatable.
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
            () = stop.cancelled() => return,
            () = sleep(PAUSE) => {}
        }
    }
}

/// What a watch shows.
enum Change {
    /// One of the objects was changed or deleted.
    Object,
    /// All objects of a resource have been listed. Some may have been deleted before.
    Listed(String),
}

fn watched(unwatched: &mut BTreeSet<String>, change: Change) {
    if let Change::Listed(plural) = change {
        unwatched.remove(&plural);
    }
}

/// Sends each change of the objects, until the receiver is gone.
async fn watch(client: Client, installed: Installed, relay: Relay<Change>) {
    let Installed { resource, names } = installed;
    let api: Api<PartialObjectMeta<DynamicObject>> = Api::all_with(client, &resource);
    let shown = |_: Option<PartialObjectMeta<DynamicObject>>, id: Id, _| {
        names.get(&id.name).map(|_| Change::Object).into_iter().collect()
    };
    let listed = || Change::Listed(resource.plural.clone());
    relay.follow(ListingWatch::new(api, Config::default()), shown, listed).await;
}
