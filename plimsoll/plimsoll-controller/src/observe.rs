//! Watches the objects of a plan and sends observations on one channel.
//!
//! Memory stays small: of most kinds only metadata is watched, and of each object only its
//! revision and the digest of our fields is kept. Objects that are not of the plan are dropped
//! as they arrive.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta};
use kube::core::{ApiResource, DynamicObject, PartialObjectMeta};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client};
use plimsoll_api::{ApiKind, CLUSTER_VERSION_NAME, GroupKind, RELEASE_PROGRESS};
use plimsoll_plan::apply::fingerprint::{FIELD_MANAGER, fingerprint};
use plimsoll_plan::health::readiness;
use plimsoll_plan::progress::{Mark, NamespaceState, Trace};
use plimsoll_plan::reconciler::execution::Observation;
use plimsoll_plan::reconciler::watches::{WatchScope, WatchedObjects};
use plimsoll_plan::removal::{self, Terminating};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::resources::api_resource;

/// Observations that may wait to be handled: a burst of a whole payload fits.
pub(crate) const OBSERVATIONS_QUEUED: usize = 1024;

/// What a watch of an object that configures the controller showed.
#[derive(Debug)]
pub(crate) enum ConfigObservation {
    /// The ClusterVersion; `None` when it is gone.
    ClusterVersion(Option<Box<DynamicObject>>),
    /// The ReleaseProgress does not exist any more.
    ReleaseProgressGone,
    /// The FeatureGate; `None` when there is none.
    FeatureGate(Option<Box<DynamicObject>>),
    /// The data of a ConfigMap; `None` when there is none.
    ConfigMap { name: &'static str, data: Option<BTreeMap<String, String>> },
}

/// Watches a kind until the receiver is gone.
pub(crate) async fn watch_kind(
    client: Client,
    resource: ApiResource,
    scope: WatchScope,
    objects: Arc<WatchedObjects>,
    sender: mpsc::Sender<Observation>,
) {
    let kind = GroupKind::new(&resource.group, &resource.kind);
    let mut relay = Relay { kind, scope, objects, sender, known: BTreeMap::new(), unseen: None };
    let config = watcher::Config::default();
    match scope {
        WatchScope::Metadata | WatchScope::Definitions => {
            let api: Api<PartialObjectMeta<DynamicObject>> = Api::all_with(client, &resource);
            let mut events = std::pin::pin!(watcher::watcher(api, config).default_backoff());
            while let Some(event) = events.next().await {
                if !relay.handle(event).await {
                    return;
                }
            }
        }
        WatchScope::Namespaces | WatchScope::Workloads | WatchScope::Operators => {
            let api: Api<DynamicObject> = Api::all_with(client, &resource);
            let mut events = std::pin::pin!(watcher::watcher(api, config).default_backoff());
            while let Some(event) = events.next().await {
                if !relay.handle(event).await {
                    return;
                }
            }
        }
    }
}

/// Watches one object by its name until the receiver is gone; while its kind is not served, it is
/// retried every half minute.
pub(crate) async fn watch_named(
    client: Client,
    (kind, name): (ApiKind, &'static str),
    observed: impl Fn(Option<Box<DynamicObject>>) -> ConfigObservation,
    sender: mpsc::Sender<ConfigObservation>,
) {
    let api: Api<DynamicObject> = Api::all_with(client, &api_resource(kind));
    let observed = |object: Option<DynamicObject>| Some(observed(object.map(Box::new)));
    watch_one(api, name, observed, sender).await;
}

/// Watches whether the ReleaseProgress exists, until the receiver is gone.
pub(crate) async fn watch_release_progress(
    client: Client,
    sender: mpsc::Sender<ConfigObservation>,
) {
    // By metadata alone: the status is our own, and changes all the time.
    let api: Api<PartialObjectMeta<DynamicObject>> =
        Api::all_with(client, &api_resource(RELEASE_PROGRESS));
    let observed = |object: Option<PartialObjectMeta<DynamicObject>>| {
        object.is_none().then_some(ConfigObservation::ReleaseProgressGone)
    };
    watch_one(api, CLUSTER_VERSION_NAME, observed, sender).await;
}

/// Watches one ConfigMap until the receiver is gone.
pub(crate) async fn watch_config_map(
    client: Client,
    (namespace, name): (&'static str, &'static str),
    sender: mpsc::Sender<ConfigObservation>,
) {
    let observed = |object: Option<ConfigMap>| {
        let data = object.map(|object| object.data.unwrap_or_default());
        Some(ConfigObservation::ConfigMap { name, data })
    };
    watch_one(Api::namespaced(client, namespace), name, observed, sender).await;
}

async fn watch_one<K>(
    api: Api<K>,
    name: &str,
    observed: impl Fn(Option<K>) -> Option<ConfigObservation>,
    sender: mpsc::Sender<ConfigObservation>,
) where
    K: kube::Resource + Clone + DeserializeOwned + fmt::Debug + Send + 'static,
{
    let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let mut events = std::pin::pin!(watcher::watcher(api, config).default_backoff());
    let mut seen = false;
    while let Some(event) = events.next().await {
        let observation = match event {
            Ok(Event::Init) => {
                seen = false;
                continue;
            }
            Ok(Event::InitApply(object) | Event::Apply(object)) => {
                seen = true;
                observed(Some(object))
            }
            Ok(Event::InitDone) if seen => continue,
            Ok(Event::InitDone | Event::Delete(_)) => observed(None),
            Err(error) => {
                tracing::debug!(%error, name, "watching failed; trying again");
                continue;
            }
        };
        let Some(observation) = observation else { continue };
        if sender.send(observation).await.is_err() {
            return;
        }
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

struct Relay {
    kind: GroupKind,
    scope: WatchScope,
    objects: Arc<WatchedObjects>,
    sender: mpsc::Sender<Observation>,
    /// Objects of interest that exist, with the revision they were last shown at.
    known: BTreeMap<(String, String), u64>,
    /// While a listing runs: those known before that it has not shown.
    unseen: Option<BTreeMap<(String, String), u64>>,
}

impl Relay {
    /// Handles one event; false when the receiver is gone.
    async fn handle<T: WatchedObject>(&mut self, event: watcher::Result<Event<T>>) -> bool {
        match event {
            Ok(Event::Init) => {
                self.unseen = Some(self.known.clone());
                true
            }
            Ok(Event::InitApply(object) | Event::Apply(object)) => self.present(object).await,
            Ok(Event::Delete(object)) => {
                let revision = revision(object.metadata());
                self.gone(id(object.metadata()), revision).await
            }
            Ok(Event::InitDone) => {
                for (id, revision) in self.unseen.take().unwrap_or_default() {
                    if !self.gone(id, revision + 1).await {
                        return false;
                    }
                }
                self.send(Observation::Listed(self.kind.clone())).await
            }
            Err(error) => {
                tracing::debug!(kind = %self.kind, %error, "watching failed; trying again");
                !is_interruption(&error) || self.send(Observation::Interrupted).await
            }
        }
    }

    async fn present<T: WatchedObject>(&mut self, object: T) -> bool {
        let metadata = object.metadata();
        let id = id(metadata);
        let revision = revision(metadata);
        if let Some(unseen) = &mut self.unseen {
            unseen.remove(&id);
        }
        if self.scope == WatchScope::Namespaces {
            let terminating = metadata.deletion_timestamp.is_some();
            let state =
                if terminating { NamespaceState::Terminating } else { NamespaceState::Active };
            let name = id.1.clone();
            self.known.insert(id.clone(), revision);
            if !self.send(Observation::Namespace { name, state: Some(state) }).await {
                return false;
            }
        }
        if !self.send_definition(&id.1).await {
            return false;
        }
        let mark = mark(metadata);
        let mut terminating = terminating(metadata);
        let key = self.objects.get(&id).cloned();
        if key.is_some() || self.scope == WatchScope::Operators {
            self.known.insert(id.clone(), revision);
        }
        let mut health = None;
        match (self.scope, &key) {
            (WatchScope::Operators, _) => {
                let (name, object) = (id.1, Some(object.into_value()));
                if !self.send(Observation::Operator { name, revision, object }).await {
                    return false;
                }
            }
            (WatchScope::Workloads, Some(key)) => {
                health = readiness::workload(&key.group, &key.kind, &object.into_value());
            }
            (WatchScope::Namespaces, _) => {
                if let Some(terminating) = &mut terminating {
                    terminating.remaining = removal::remaining(&object.into_value());
                }
            }
            (WatchScope::Workloads, None) | (WatchScope::Metadata | WatchScope::Definitions, _) => {
            }
        }
        match key {
            Some(key) => self.send(Observation::Object { key, mark, health, terminating }).await,
            None => true,
        }
    }

    async fn gone(&mut self, id: (String, String), revision: u64) -> bool {
        self.known.remove(&id);
        if self.scope == WatchScope::Namespaces {
            let name = id.1.clone();
            if !self.send(Observation::Namespace { name, state: None }).await {
                return false;
            }
        }
        if !self.send_definition(&id.1).await {
            return false;
        }
        if self.scope == WatchScope::Operators {
            let name = id.1.clone();
            if !self.send(Observation::Operator { name, revision, object: None }).await {
                return false;
            }
        }
        let Some(key) = self.objects.get(&id).cloned() else {
            return true;
        };
        let mark = Mark::new(revision, Trace::Gone);
        self.send(Observation::Object { key, mark, health: None, terminating: None }).await
    }

    /// Sends a change of a definition, if definitions are watched; false when the receiver is gone.
    async fn send_definition(&self, name: &str) -> bool {
        match name.split_once('.') {
            Some((plural, group)) if self.scope == WatchScope::Definitions => {
                let (group, plural) = (group.to_owned(), plural.to_owned());
                self.send(Observation::Definition { group, plural }).await
            }
            _ => true,
        }
    }

    async fn send(&self, observation: Observation) -> bool {
        self.sender.send(observation).await.is_ok()
    }
}

/// Whether the connection was lost or could not be made; otherwise the server answered with an
/// error.
fn is_interruption(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => !matches!(error, kube::Error::Api(_)),
        watcher::Error::WatchError(_) | watcher::Error::NoResourceVersion => false,
    }
}

fn id(metadata: &ObjectMeta) -> (String, String) {
    (metadata.namespace.clone().unwrap_or_default(), metadata.name.clone().unwrap_or_default())
}

/// The revision of an object: resourceVersions are comparable numbers.
pub(crate) fn revision(metadata: &ObjectMeta) -> u64 {
    metadata.resource_version.as_deref().and_then(|text| text.parse().ok()).unwrap_or_default()
}

/// An object as a write left it or a watch showed it.
pub(crate) fn mark(metadata: &ObjectMeta) -> Mark {
    Mark {
        revision: revision(metadata),
        generation: metadata.generation.unwrap_or_default(),
        is_terminating: metadata.deletion_timestamp.is_some(),
        trace: trace(metadata),
    }
}

/// Since when an object has been going, and what holds it.
pub(crate) fn terminating(metadata: &ObjectMeta) -> Option<Terminating> {
    let since = metadata.deletion_timestamp.as_ref()?.0;
    let finalizers = metadata.finalizers.clone().unwrap_or_default();
    Some(Terminating { since, finalizers, remaining: Vec::new() })
}

/// The digest of the fields that we own of an object.
pub(crate) fn trace(metadata: &ObjectMeta) -> Trace {
    let ours = |entry: &&ManagedFieldsEntry| {
        entry.manager.as_deref() == Some(FIELD_MANAGER)
            && entry.operation.as_deref() == Some("Apply")
            && entry.subresource.as_deref().unwrap_or_default().is_empty()
    };
    let entry = metadata.managed_fields.as_ref().and_then(|entries| entries.iter().find(ours));
    let Some((entry, fields)) = entry.and_then(|it| Some((it, it.fields_v1.as_ref()?))) else {
        return Trace::Foreign;
    };
    let time = entry.time.as_ref().map(|time| time.0.as_second()).unwrap_or_default();
    let (labels, annotations) = (metadata.labels.as_ref(), metadata.annotations.as_ref());
    Trace::Ours(fingerprint(&fields.0, time, labels, annotations))
}
