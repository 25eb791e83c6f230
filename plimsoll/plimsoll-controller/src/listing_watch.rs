//! A watch that lists objects again when its connection was lost.

use std::fmt;
use std::time::Duration;
use std::vec;

use futures::StreamExt;
use futures::stream::BoxStream;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::{ListParams, WatchParams};
use kube::core::{DynamicObject, PartialObjectMeta, WatchEvent};
use kube::runtime::utils::Backoff as _;
use kube::runtime::watcher::{self, Event};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

/// For how long a server is asked to send changes, in seconds, as other clients ask it.
const WATCH_SECONDS: u32 = 290;
/// How much before or after that time a watch may end that the server ends as it was asked to.
const TOLERANCE: Duration = Duration::from_secs(5);

/// A watch that lists anew when its connection was lost: the server that answers then may have been
/// restored from a backup, and a watch of it that continues where this one was would show nothing of
/// that. A watch that ends before its time counts as lost, too: a server that stops ends its watches
/// in order. Whoever follows it learns right before such a list is asked for, to know what that has to
/// show: what was written since the connection was lost too.
pub(crate) struct ListingWatch<K> {
    api: Api<K>,
    config: watcher::Config,
    state: State<K>,
    backoff: watcher::DefaultBackoff,
    /// How long to wait before the next request; `None` if the last one did not fail.
    delay: Option<Duration>,
    /// Whether the last event was the end of a watch of changes, so that a list follows.
    is_interrupted: bool,
    /// Whether a request failed or a watch was lost since the last list was asked for.
    has_failed: bool,
    /// Whether the last event was the beginning of a list after a failure.
    lists_again: bool,
}

/// What a watch does next.
enum State<K> {
    /// It begins a list.
    Unlisted,
    /// It shows the objects of a page of the list, and then continues.
    Listing { page: vec::IntoIter<K>, next: NextPage },
    /// It asks for the changes since a revision.
    Listed { revision: String },
    /// It follows the changes, which the server sends until a time.
    Watching { revision: String, changes: Changes<K>, ends_at: Instant },
}

/// How a list continues after a page.
enum NextPage {
    /// With another page; the first one has no token.
    Page(Option<String>),
    /// Not at all; the revision of the list.
    End(String),
}

type Changes<K> = BoxStream<'static, kube::Result<WatchEvent<K>>>;

impl<K> ListingWatch<K>
where
    K: kube::Resource + Clone + DeserializeOwned + fmt::Debug + Send + 'static,
{
    /// Begins with a list.
    pub(crate) fn new(api: Api<K>, config: watcher::Config) -> Self {
        Self {
            api,
            config,
            state: State::Unlisted,
            backoff: watcher::DefaultBackoff::default(),
            delay: None,
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
        let event = loop {
            if let Some(event) = self.step().await {
                break event;
            }
        };
        (self.is_interrupted, self.lists_again) = (false, false);
        match &event {
            Ok(Event::Init) => self.lists_again = std::mem::take(&mut self.has_failed),
            Ok(Event::InitApply(_) | Event::InitDone) => {}
            // A list that is answered does not show that watching works.
            Ok(Event::Apply(_) | Event::Delete(_)) => self.backoff.reset(),
            Err(error) => {
                self.delay = self.backoff.next();
                self.has_failed = true;
                let was_listed =
                    matches!(self.state, State::Listed { .. } | State::Watching { .. });
                if lists_again(error) {
                    self.is_interrupted = was_listed;
                    self.state = State::Unlisted;
                }
            }
        }
        event
    }

    /// Makes the next request, or takes the next object or change of the last one. Returns `None` if
    /// that is no event.
    async fn step(&mut self) -> Option<watcher::Result<Event<K>>> {
        match std::mem::replace(&mut self.state, State::Unlisted) {
            State::Unlisted => {
                let (page, next) = (Vec::new().into_iter(), NextPage::Page(None));
                self.state = State::Listing { page, next };
                Some(Ok(Event::Init))
            }
            State::Listing { mut page, next } => match (page.next(), next) {
                (Some(object), next) => {
                    self.state = State::Listing { page, next };
                    Some(Ok(Event::InitApply(object)))
                }
                (None, NextPage::End(revision)) => {
                    self.state = State::Listed { revision };
                    Some(Ok(Event::InitDone))
                }
                (None, NextPage::Page(token)) => self.list(token).await,
            },
            State::Listed { revision } => {
                let parameters = WatchParams {
                    label_selector: self.config.label_selector.clone(),
                    field_selector: self.config.field_selector.clone(),
                    timeout: Some(WATCH_SECONDS),
                    ..WatchParams::default()
                };
                let began = Instant::now();
                match self.api.watch(&parameters, &revision).await {
                    Ok(changes) => {
                        let changes = changes.boxed();
                        let ends_at = began + Duration::from_secs(WATCH_SECONDS.into());
                        self.state = State::Watching { revision, changes, ends_at };
                        None
                    }
                    Err(error) => {
                        self.state = State::Listed { revision };
                        Some(Err(watcher::Error::WatchStartFailed(error)))
                    }
                }
            }
            State::Watching { revision, changes, ends_at } => {
                self.follow(revision, changes, ends_at).await
            }
        }
    }

    /// Requests a page of the list.
    async fn list(&mut self, token: Option<String>) -> Option<watcher::Result<Event<K>>> {
        let parameters = ListParams {
            label_selector: self.config.label_selector.clone(),
            field_selector: self.config.field_selector.clone(),
            limit: self.config.page_size,
            continue_token: token,
            ..ListParams::default()
        };
        let list = match self.api.list(&parameters).await {
            Ok(list) => list,
            Err(error) => return Some(Err(watcher::Error::InitialListFailed(error))),
        };
        let given = |text: Option<String>| text.filter(|it| !it.is_empty());
        let next = match (given(list.metadata.continue_), given(list.metadata.resource_version)) {
            (Some(token), _) => NextPage::Page(Some(token)),
            (None, Some(revision)) => NextPage::End(revision),
            (None, None) => return Some(Err(watcher::Error::NoResourceVersion)),
        };
        self.state = State::Listing { page: list.items.into_iter(), next };
        None
    }

    /// Waits for the next change, which is after a revision.
    async fn follow(
        &mut self,
        revision: String,
        mut changes: Changes<K>,
        ends_at: Instant,
    ) -> Option<watcher::Result<Event<K>>> {
        // A server that does not end a watch in time cannot be reached any more.
        let change = timeout_at(ends_at + TOLERANCE, changes.next()).await;
        let (revision, event) = match change {
            Ok(Some(Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)))) => {
                (object.meta().resource_version.clone(), Some(Ok(Event::Apply(object))))
            }
            Ok(Some(Ok(WatchEvent::Deleted(object)))) => {
                (object.meta().resource_version.clone(), Some(Ok(Event::Delete(object))))
            }
            Ok(Some(Ok(WatchEvent::Bookmark(bookmark)))) => {
                (Some(bookmark.metadata.resource_version), None)
            }
            Ok(Some(Ok(WatchEvent::Error(status)))) => {
                (Some(revision), Some(Err(watcher::Error::WatchError(status))))
            }
            Ok(Some(Err(error))) => (Some(revision), Some(Err(watcher::Error::WatchFailed(error)))),
            Ok(None) if Instant::now() + TOLERANCE >= ends_at => {
                self.state = State::Listed { revision };
                return None;
            }
            Ok(None) | Err(_) => {
                // The state is that before a list.
                self.has_failed = true;
                return None;
            }
        };
        let Some(revision) = revision.filter(|it| !it.is_empty()) else {
            return Some(Err(watcher::Error::NoResourceVersion));
        };
        self.state = State::Watching { revision, changes, ends_at };
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

#[cfg(test)]
mod tests;
