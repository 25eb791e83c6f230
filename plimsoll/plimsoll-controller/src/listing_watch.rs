//! A watch that lists objects again when its connection was lost.

use std::fmt;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::core::{DynamicObject, PartialObjectMeta};
use kube::runtime::utils::Backoff as _;
use kube::runtime::watcher::{self, Event};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A watch that lists anew when its connection was lost: the server that answers then may have been
/// restored from a backup, and a watch of it that continues where this one was would show nothing of
/// that. Whoever follows it learns right before such a list is asked for, to know what that has to show:
/// what was written since the connection was lost too.
pub(crate) struct ListingWatch<K> {
    api: Api<K>,
    config: watcher::Config,
    events: BoxStream<'static, watcher::Result<Event<K>>>,
    backoff: watcher::DefaultBackoff,
    /// How long to wait before the next request; `None` if the last one did not fail.
    delay: Option<Duration>,
    /// Whether the list is complete, so that changes are watched.
    is_listed: bool,
    /// Whether the last event was the end of a watch of changes, so that a list follows.
    is_interrupted: bool,
    /// Whether a request failed since the last list was asked for.
    has_failed: bool,
    /// Whether the last event was the beginning of a list after a failure.
    lists_again: bool,
}

impl<K> ListingWatch<K>
where
    K: kube::Resource + Clone + DeserializeOwned + fmt::Debug + Send + 'static,
{
    /// Begins with a list.
    pub(crate) fn new(api: Api<K>, config: watcher::Config) -> Self {
        let events = watcher::watcher(api.clone(), config.clone()).boxed();
        Self {
            api,
            config,
            events,
            backoff: watcher::DefaultBackoff::default(),
            delay: None,
            is_listed: false,
            is_interrupted: false,
            has_failed: false,
            lists_again: false,
        }
    }

    /// The next event; such watches never end.
    pub(crate) async fn next(&mut self) -> watcher::Result<Event<K>> {
        if let Some(delay) = self.delay.take() {
            tokio::time::sleep(delay).await;
        }
        let Some(event) = self.events.next().await else { return std::future::pending().await };
        (self.is_interrupted, self.lists_again) = (false, false);
        match &event {
            Ok(Event::Init) => {
                self.is_listed = false;
                self.lists_again = std::mem::take(&mut self.has_failed);
            }
            Ok(Event::InitApply(_)) => {}
            Ok(Event::InitDone) => self.is_listed = true,
            // A list that is answered does not show that watching works.
            Ok(Event::Apply(_) | Event::Delete(_)) => self.backoff.reset(),
            Err(error) => {
                self.delay = self.backoff.next();
                self.has_failed = true;
                self.is_interrupted = self.is_listed && lists_again(error);
                if self.is_interrupted {
                    self.is_listed = false;
                    self.events = watcher::watcher(self.api.clone(), self.config.clone()).boxed();
                }
            }
        }
        event
    }

    /// Returns whether the last event was the end of a watch of changes: a list follows.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.is_interrupted
    }

    /// Returns whether the last event was the beginning of a list after a failure.
    pub(crate) fn lists_again(&self) -> bool {
        self.lists_again
    }
}

/// An object as a watch brings it, whole or metadata alone.
pub(crate) trait WatchedObject {
    fn metadata(&self) -> &ObjectMeta;
    fn into_value(self) -> Value;
}

impl WatchedObject for DynamicObject {
    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn into_value(mut self) -> Value {
        self.metadata.managed_fields = None;
        serde_json::to_value(self).unwrap_or_default()
    }
}

impl WatchedObject for PartialObjectMeta<DynamicObject> {
    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn into_value(self) -> Value {
        Value::Null
    }
}

/// Returns whether objects have to be listed again: the connection was lost or could not be made, or the
/// server does not have the changes any more. Otherwise it answered with an error.
fn lists_again(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => !matches!(error, kube::Error::Api(_)),
        watcher::Error::WatchError(status) => status.code == 410,
        watcher::Error::NoResourceVersion => true,
    }
}

/// The revision of an object: resourceVersions are comparable numbers.
pub(crate) fn revision(metadata: &ObjectMeta) -> u64 {
    metadata.resource_version.as_deref().and_then(|text| text.parse().ok()).unwrap_or_default()
}
