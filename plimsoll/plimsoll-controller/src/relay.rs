//! The relay of watch events: the objects that exist, those that are gone, and the end of a list.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::runtime::watcher::{self, Event};
use plimsoll_plan::reconciler::revisions::{KnownObjects, StorageRollback};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::observe::{ListingWatch, WatchedObject, revision};

/// The namespace of an object, empty if it is cluster-scoped, and its name.
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

/// The channel that watches send their observations to.
#[derive(Debug)]
pub(crate) struct Relay<T> {
    pub(crate) sender: mpsc::Sender<T>,
    /// Cancelled if the storage of the API server was restored to an earlier state.
    pub(crate) restored: CancellationToken,
}

impl<T> Clone for Relay<T> {
    fn clone(&self) -> Self {
        Self { sender: self.sender.clone(), restored: self.restored.clone() }
    }
}

impl<T> Relay<T> {
    /// Sends what a watch observes until the receiver is dropped. `shown` is called with each
    /// object that exists, and with `None` for an object that was deleted or is missing from a new
    /// list; `listed` is called at the end of a list.
    pub(crate) async fn follow<K>(
        &self,
        watched: ListingWatch<K>,
        shown: impl Fn(Option<K>, Id, u64) -> Vec<T>,
        listed: impl Fn() -> T,
    ) where
        K: WatchedObject + kube::Resource + Clone + DeserializeOwned + fmt::Debug + Send + 'static,
    {
        let refused = |_: &watcher::Error| None;
        self.follow_unless_refused(watched, shown, listed, refused).await;
    }

    /// Does the same as [`Self::follow`], and ends if the API server refuses the watch. Returns the
    /// reason for the refusal, which is empty if the receiver was dropped or the storage was
    /// restored.
    pub(crate) async fn follow_unless_refused<K>(
        &self,
        mut watched: ListingWatch<K>,
        shown: impl Fn(Option<K>, Id, u64) -> Vec<T>,
        listed: impl Fn() -> T,
        refused: impl Fn(&watcher::Error) -> Option<String>,
    ) -> String
    where
        K: WatchedObject + kube::Resource + Clone + DeserializeOwned + fmt::Debug + Send + 'static,
    {
        let mut known: KnownObjects<Id> = KnownObjects::default();
        loop {
            let events = match watched.next().await {
                Ok(Event::Init) => {
                    known.list_begins();
                    continue;
                }
                Ok(Event::InitApply(object) | Event::Apply(object)) => {
                    let (id, revision) = (Id::of(object.metadata()), revision(object.metadata()));
                    if let Some(StorageRollback { seen, now }) = known.shown(&id, revision) {
                        let Id { namespace, name } = &id;
                        tracing::warn!(
                            namespace,
                            name,
                            seen,
                            now,
                            "an object is listed at an earlier revision"
                        );
                        self.restored.cancel();
                        return String::new();
                    }
                    shown(Some(object), id, revision)
                }
                Ok(Event::Delete(object)) => {
                    let (id, revision) = (Id::of(object.metadata()), revision(object.metadata()));
                    known.gone(&id, revision, false);
                    shown(None, id, revision)
                }
                Ok(Event::InitDone) => {
                    let mut events = Vec::new();
                    for (id, revision) in known.listed() {
                        known.gone(&id, revision, false);
                        events.extend(shown(None, id, revision + 1));
                    }
                    events.push(listed());
                    events
                }
                Err(error) => {
                    if let Some(refusal) = refused(&error) {
                        return refusal;
                    }
                    tracing::debug!(%error, "watching failed; trying again");
                    continue;
                }
            };
            for event in events {
                if self.sender.send(event).await.is_err() {
                    return String::new();
                }
            }
        }
    }
}
