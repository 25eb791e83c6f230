//! Relays what a watch of a kind shows: what is there, what is gone, and when all was shown.

use std::collections::BTreeMap;

use futures::{Stream, StreamExt as _};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event};
use tokio::sync::mpsc;

use crate::observe::{WatchedObject, revision};

/// Namespace, empty for cluster-scoped objects, and name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Id {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Id {
    fn of(metadata: &ObjectMeta) -> Self {
        Self {
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_default(),
        }
    }
}

/// Sends what a watch shows: what is there, what is gone, and when all was shown. What a new listing
/// does not show any more is gone.
pub(crate) async fn relay<K: WatchedObject, T>(
    watched: impl Stream<Item = watcher::Result<Event<K>>> + Send,
    shown: impl Fn(Option<K>, Id, u64) -> Vec<T>,
    listed: impl Fn() -> T,
    sender: mpsc::Sender<T>,
) {
    let mut known: BTreeMap<Id, u64> = BTreeMap::new();
    let mut unseen: BTreeMap<Id, u64> = BTreeMap::new();
    let mut watched = std::pin::pin!(watched.default_backoff());
    while let Some(event) = watched.next().await {
        let events = match event {
            Ok(Event::Init) => {
                unseen.clone_from(&known);
                continue;
            }
            Ok(Event::InitApply(object) | Event::Apply(object)) => {
                let (id, revision) = (Id::of(object.metadata()), revision(object.metadata()));
                unseen.remove(&id);
                known.insert(id.clone(), revision);
                shown(Some(object), id, revision)
            }
            Ok(Event::Delete(object)) => {
                let id = Id::of(object.metadata());
                known.remove(&id);
                let revision = revision(object.metadata());
                shown(None, id, revision)
            }
            Ok(Event::InitDone) => {
                let mut events = Vec::new();
                for (id, revision) in std::mem::take(&mut unseen) {
                    known.remove(&id);
                    events.extend(shown(None, id, revision + 1));
                }
                events.push(listed());
                events
            }
            Err(error) => {
                tracing::debug!(%error, "watching failed; trying again");
                continue;
            }
        };
        for event in events {
            if sender.send(event).await.is_err() {
                return;
            }
        }
    }
}
