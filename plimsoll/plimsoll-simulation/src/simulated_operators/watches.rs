//! Watches on everything that the simulation reacts to, each as a stream of events.

use std::time::Duration;

use futures::{Stream, StreamExt, TryStreamExt};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::utils::Backoff;
use kube::runtime::wait::await_condition;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client};
use plimsoll_api::ApiKind;
use serde_json::Value;

/// An event of a watch.
#[derive(Debug)]
pub(super) enum WatchEvent {
    /// An object is there, or changed.
    Applied(Box<DynamicObject>),
    /// An object is gone.
    Deleted(Box<DynamicObject>),
    /// All objects have been shown once; these are their names.
    Listed(Vec<String>),
}

/// Pause after the first failure of a watch; it doubles up to [`PAUSE_MAX`].
const PAUSE_MIN: Duration = Duration::from_millis(50);
/// Longest pause between attempts to watch.
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// Watches all objects of a resource that a label selector selects, for ever.
pub(super) fn watch(
    client: Client,
    resource: &ApiResource,
    labels: &str,
) -> impl Stream<Item = WatchEvent> + use<> {
    let plural = resource.plural.clone();
    let mut names = Vec::new();
    watcher(
        Api::<DynamicObject>::all_with(client, resource),
        watcher::Config::default().labels(labels),
    )
    .backoff(Doubling::default())
    .inspect_err(move |error| {
        tracing::debug!(resource = plural, %error, "watch failed, will be taken up again");
    })
    .filter_map(|event| std::future::ready(event.ok()))
    .filter_map(move |event| {
        let event = match event {
            watcher::Event::Init => {
                names.clear();
                None
            }
            watcher::Event::InitApply(object) => {
                names.extend(object.metadata.name.clone());
                Some(WatchEvent::Applied(Box::new(object)))
            }
            watcher::Event::InitDone => Some(WatchEvent::Listed(std::mem::take(&mut names))),
            watcher::Event::Apply(object) => Some(WatchEvent::Applied(Box::new(object))),
            watcher::Event::Delete(object) => Some(WatchEvent::Deleted(Box::new(object))),
        };
        std::future::ready(event)
    })
}

/// Waits until the server serves a kind that a CustomResourceDefinition defines.
pub(super) async fn served(client: Client, kind: ApiKind) {
    let gvk = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let definitions: Api<DynamicObject> = Api::all_with(client, &ApiResource::from_gvk(&gvk));
    let name = format!("{}.{}", kind.plural, kind.group);
    let mut pauses = Doubling::default();
    while let Err(error) = await_condition(definitions.clone(), &name, is_established).await {
        tracing::debug!(definition = name, %error, "watch failed, will be taken up again");
        tokio::time::sleep(pauses.next().unwrap_or(PAUSE_MAX)).await;
    }
}

/// Returns whether a definition is served.
pub(super) fn is_established(definition: Option<&DynamicObject>) -> bool {
    let Some(definition) = definition else {
        return false;
    };
    let conditions = definition.data["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|condition: &Value| {
        condition["type"] == "Established" && condition["status"] == "True"
    })
}

/// Pauses that double from [`PAUSE_MIN`] to [`PAUSE_MAX`] until a success.
#[derive(Debug)]
struct Doubling(Duration);

impl Default for Doubling {
    fn default() -> Self {
        Self(PAUSE_MIN)
    }
}

impl Iterator for Doubling {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let pause = self.0;
        self.0 = (pause * 2).min(PAUSE_MAX);
        Some(pause)
    }
}

impl Backoff for Doubling {
    fn reset(&mut self) {
        self.0 = PAUSE_MIN;
    }
}
