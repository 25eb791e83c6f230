//! The relay of watch events: the objects that exist, those that are gone, and the end of a list.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::runtime::watcher::{self, Event};
use plimsoll_api::NamespacedName;
use plimsoll_plan::reconciler::revisions::{KnownObjects, StorageRollback};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::listing_watch::{ListingWatch, WatchedObject, revision};

/// The events that a watch is turned into.
pub(crate) trait Observer<K> {
    /// An event.
    type Event;

    /// Returns the events for an object at a revision; the object is `None` if it was deleted or is
    /// missing from a new list.
    fn shown(&self, object: Option<K>, name: NamespacedName, revision: u64) -> Vec<Self::Event>;

    /// Returns the event for the end of a list.
    fn listed(&self) -> Self::Event;

    /// Returns the event for the beginning of a list after the connection was lost; `None` for no
    /// event.
    fn interrupted(&self) -> Option<Self::Event> {
        None
    }

    /// Returns whether the revision of an object is remembered while it exists, to notice a storage
    /// that was restored to an earlier state.
    fn is_remembered(&self, _name: &NamespacedName) -> bool {
        true
    }

    /// Returns whether an object that was deleted may be created again by this program, so that its
    /// revision is remembered.
    fn may_return(&self, _name: &NamespacedName) -> bool {
        false
    }

    /// Returns the reason to end a watch that failed; `None` to try again.
    fn refusal(&self, _error: &watcher::Error) -> Option<String> {
        None
    }
}

/// An observer that consists of functions.
struct Functions<S, L, R> {
    shown: S,
    listed: L,
    refusal: R,
}

impl<K, T, S, L, R> Observer<K> for Functions<S, L, R>
where
    S: Fn(Option<K>, NamespacedName, u64) -> Vec<T>,
    L: Fn() -> T,
    R: Fn(&watcher::Error) -> Option<String>,
{
    type Event = T;

    fn shown(&self, object: Option<K>, name: NamespacedName, revision: u64) -> Vec<T> {
        (self.shown)(object, name, revision)
    }

    fn listed(&self) -> T {
        (self.listed)()
    }

    fn refusal(&self, error: &watcher::Error) -> Option<String> {
        (self.refusal)(error)
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
        shown: impl Fn(Option<K>, NamespacedName, u64) -> Vec<T>,
        listed: impl Fn() -> T,
    ) where
        K: WatchedObject + kube::Resource + Clone + DeserializeOwned + fmt::Debug + Send + 'static,
    {
        self.follow_unless_refused(watched, shown, listed, |_| None).await;
    }

    /// Does the same as [`Self::follow`], and ends if the API server refuses the watch, for which
    /// `refusal` returns the reason. Returns the reason, which is empty if the receiver was dropped or
    /// the storage was restored.
    pub(crate) async fn follow_unless_refused<K>(
        &self,
        watched: ListingWatch<K>,
        shown: impl Fn(Option<K>, NamespacedName, u64) -> Vec<T>,
        listed: impl Fn() -> T,
        refusal: impl Fn(&watcher::Error) -> Option<String>,
    ) -> String
    where
        K: WatchedObject + kube::Resource + Clone + DeserializeOwned + fmt::Debug + Send + 'static,
    {
        self.observe(watched, &Functions { shown, listed, refusal }).await
    }

    /// Sends what an observer makes of a watch until the receiver is dropped, the storage of the API
    /// server was restored, or the watch is refused. Returns the reason for the refusal, which is
    /// empty in the other cases.
    pub(crate) async fn observe<K>(
        &self,
        watched: ListingWatch<K>,
        observer: &impl Observer<K, Event = T>,
    ) -> String
    where
        K: WatchedObject + kube::Resource + Clone + DeserializeOwned + fmt::Debug + Send + 'static,
    {
        let mut known = KnownObjects::default();
        self.observe_until(watched, observer, &mut known, &CancellationToken::new()).await
    }

    /// Does the same as [`Self::observe`], after a watch that has shown the `known` objects, and until `end` is
    /// cancelled. Another watch that continues with the known objects misses nothing.
    pub(crate) async fn observe_until<K>(
        &self,
        mut watched: ListingWatch<K>,
        observer: &impl Observer<K, Event = T>,
        known: &mut KnownObjects,
        end: &CancellationToken,
    ) -> String
    where
        K: WatchedObject + kube::Resource + Clone + DeserializeOwned + fmt::Debug + Send + 'static,
    {
        loop {
            let next = tokio::select! {
                // Branches are polled in order, so that simulations are repeatable.
                biased;
                () = end.cancelled() => return String::new(),
                next = watched.next() => next,
            };
            let events = match next {
                Ok(Event::Init) => {
                    known.list_begins();
                    let interrupted = watched.lists_again().then(|| observer.interrupted());
                    interrupted.flatten().into_iter().collect()
                }
                Ok(Event::InitApply(object) | Event::Apply(object)) => {
                    let (name, revision) = identity(object.metadata());
                    if observer.is_remembered(&name)
                        && let Some(StorageRollback { seen, now }) = known.shown(&name, revision)
                    {
                        let NamespacedName { namespace, name } = &name;
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
                    observer.shown(Some(object), name, revision)
                }
                Ok(Event::Delete(object)) => {
                    let (name, revision) = identity(object.metadata());
                    known.gone(&name, revision, observer.may_return(&name));
                    observer.shown(None, name, revision)
                }
                Ok(Event::InitDone) => {
                    let mut events = Vec::new();
                    for (name, revision) in known.listed() {
                        known.gone(&name, revision, observer.may_return(&name));
                        events.extend(observer.shown(None, name, revision + 1));
                    }
                    events.push(observer.listed());
                    events
                }
                Err(error) => {
                    if let Some(refusal) = observer.refusal(&error) {
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

/// Returns the name and the revision of an object.
fn identity(metadata: &ObjectMeta) -> (NamespacedName, u64) {
    let namespace = metadata.namespace.clone().unwrap_or_default();
    let name = metadata.name.clone().unwrap_or_default();
    (NamespacedName { namespace, name }, revision(metadata))
}
