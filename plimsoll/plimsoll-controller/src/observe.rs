//! Watches the objects of a plan and sends observations on one channel.
//!
//! Memory stays small: of most kinds only metadata is watched, and of each object only its
//! revision and the digest of our fields is kept. Objects that are not of the plan are dropped
//! as they arrive.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::{ApiResource, DynamicObject, PartialObjectMeta};
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client};
use plimsoll_api::{ApiKind, CLUSTER_VERSION_NAME, GroupKind, NamespacedName, RELEASE_PROGRESS};
use plimsoll_content::ready_when::READY_WHEN;
use plimsoll_plan::apply::fingerprint::fingerprint;
use plimsoll_plan::health;
use plimsoll_plan::progress::{Mark, NamespaceState, Trace};
use plimsoll_plan::reconciler::execution::{ExecutionEvent, Observation};
use plimsoll_plan::reconciler::watches::{WatchScope, WatchedObjects};
use plimsoll_plan::removal::{self, Terminating};
use plimsoll_plan::update::acknowledge::ConfigMapName;
use plimsoll_plan::update::operators::OperatorsOnPlatform;
use plimsoll_plan::windows::MaintenanceWindows;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::listing_watch::{ListingWatch, WatchedObject, revision};
use crate::ownership::{applied_fields, is_annotation_ours, operator_of};
use crate::relay::{Observer, Relay};
use crate::resources::{api_resource, definitions};

/// What a watch of an object that configures the controller showed.
#[derive(Debug)]
pub(crate) enum ConfigObservation {
    /// The ClusterVersion; `None` when it is gone.
    ClusterVersion(Option<Box<DynamicObject>>),
    /// The revision of the ReleaseProgress; `None` when it is gone.
    ReleaseProgress(Option<u64>),
    /// The connection of the watch of the ClusterVersion was lost: it is going to be listed.
    ClusterVersionInterrupted,
    /// The same for the ReleaseProgress.
    ReleaseProgressInterrupted,
    /// The FeatureGate; `None` when there is none.
    FeatureGate(Option<Box<DynamicObject>>),
    /// Whether the kind of Operators is served.
    OperatorDefinition { is_served: bool },
    /// What the installed Operators require of the platform.
    Operators(OperatorsOnPlatform),
    /// Whether the kind of MaintenanceWindows is served.
    WindowDefinition { is_served: bool },
    /// The MaintenanceWindows.
    Windows(Arc<MaintenanceWindows>),
    /// The data of a ConfigMap; `None` when there is none.
    ConfigMap { name: &'static str, data: Option<BTreeMap<String, String>> },
}

/// Watches the objects of a plan of one kind until the receiver is dropped.
pub(crate) async fn watch_kind(
    client: Client,
    resource: ApiResource,
    scope: WatchScope,
    objects: WatchedObjects,
    relay: Relay<ExecutionEvent>,
) {
    let kind = GroupKind::new(&resource.group, &resource.kind);
    let observer = PlanObserver { kind, scope, objects };
    let config = watcher::Config::default();
    match scope {
        WatchScope::Metadata | WatchScope::Definitions => {
            let api: Api<PartialObjectMeta<DynamicObject>> = Api::all_with(client, &resource);
            relay.observe(ListingWatch::new(api, config), &observer).await;
        }
        WatchScope::Namespaces | WatchScope::Workloads | WatchScope::Operators => {
            let api: Api<DynamicObject> = Api::all_with(client, &resource);
            relay.observe(ListingWatch::new(api, config), &observer).await;
        }
    }
}

/// Watches whether a definition has its kind served, until the receiver is gone.
pub(crate) async fn watch_definition<T>(
    client: Client,
    name: &'static str,
    observed: impl Fn(bool) -> T,
    sender: mpsc::Sender<T>,
) {
    let observed =
        |definition: Option<DynamicObject>| observed(definition.as_ref().is_some_and(is_served));
    watch_one(Api::all_with(client, &definitions()), name, observed, None, sender).await;
}

fn is_served(definition: &DynamicObject) -> bool {
    let conditions = definition.data["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    definition.metadata.deletion_timestamp.is_none()
        && conditions.any(|it| it["type"] == "Established" && it["status"] == "True")
}

/// Watches one object by its name until the receiver is gone; while its kind is not served, it is
/// retried every half minute. `interrupted` is sent when a connection was lost, if there is one: then
/// the object is also reported as gone when its kind is.
pub(crate) async fn watch_named<T>(
    client: Client,
    kind: ApiKind,
    name: &'static str,
    observed: impl Fn(Option<Box<DynamicObject>>) -> T,
    interrupted: Option<fn() -> T>,
    sender: mpsc::Sender<T>,
) {
    let api: Api<DynamicObject> = Api::all_with(client, &api_resource(kind));
    let observed = |object: Option<DynamicObject>| observed(object.map(Box::new));
    watch_one(api, name, observed, interrupted, sender).await;
}

/// Watches whether the ReleaseProgress exists, and at which revision, until the receiver is gone.
pub(crate) async fn watch_release_progress(
    client: Client,
    sender: mpsc::Sender<ConfigObservation>,
) {
    // By metadata alone: the status is our own, and changes all the time.
    let api: Api<PartialObjectMeta<DynamicObject>> =
        Api::all_with(client, &api_resource(RELEASE_PROGRESS));
    let observed = |object: Option<PartialObjectMeta<DynamicObject>>| {
        ConfigObservation::ReleaseProgress(object.map(|object| revision(&object.metadata)))
    };
    let interrupted = || ConfigObservation::ReleaseProgressInterrupted;
    watch_one(api, CLUSTER_VERSION_NAME, observed, Some(interrupted), sender).await;
}

/// Watches one ConfigMap until the receiver is gone.
pub(crate) async fn watch_config_map(
    client: Client,
    config_map: ConfigMapName,
    sender: mpsc::Sender<ConfigObservation>,
) {
    let ConfigMapName { namespace, name } = config_map;
    let observed = |object: Option<ConfigMap>| {
        let data = object.map(|object| object.data.unwrap_or_default());
        ConfigObservation::ConfigMap { name, data }
    };
    watch_one(Api::namespaced(client, namespace), name, observed, None, sender).await;
}

async fn watch_one<K, T>(
    api: Api<K>,
    name: &str,
    observed: impl Fn(Option<K>) -> T,
    interrupted: Option<fn() -> T>,
    sender: mpsc::Sender<T>,
) where
    K: kube::Resource + Clone + DeserializeOwned + fmt::Debug + Send + 'static,
{
    let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let mut events = ListingWatch::new(api, config);
    let (mut seen, mut was_listed) = (false, false);
    loop {
        let observation = match events.next().await {
            Ok(Event::Init) => {
                seen = false;
                match interrupted.filter(|_| was_listed && events.lists_again()) {
                    Some(interrupted) => interrupted(),
                    None => continue,
                }
            }
            Ok(Event::InitApply(object) | Event::Apply(object)) => {
                seen = true;
                observed(Some(object))
            }
            Ok(Event::InitDone) => {
                was_listed = true;
                match seen {
                    true => continue,
                    false => observed(None),
                }
            }
            Ok(Event::Delete(_)) => observed(None),
            Err(error) => {
                tracing::debug!(%error, name, "watching failed; trying again");
                match interrupted {
                    Some(interrupted) if events.is_interrupted() => interrupted(),
                    // A server that was restored from an early backup may not serve the kind.
                    Some(_) if is_unserved(&error) && std::mem::take(&mut was_listed) => {
                        observed(None)
                    }
                    _ => continue,
                }
            }
        };
        if sender.send(observation).await.is_err() {
            return;
        }
    }
}

/// The observer of the objects of a plan of one kind.
struct PlanObserver {
    kind: GroupKind,
    scope: WatchScope,
    objects: WatchedObjects,
}

impl<K: WatchedObject> Observer<K> for PlanObserver {
    type Event = ExecutionEvent;

    fn shown(&self, object: Option<K>, name: NamespacedName, revision: u64) -> Vec<ExecutionEvent> {
        let key = self.objects.get(&name).cloned();
        let NamespacedName { namespace: _, name } = name;
        let state = object.as_ref().map(|it| namespace_state(it.metadata()));
        let shown = object.as_ref().filter(|_| key.is_some());
        let shown = shown.map(|it| (release_mark(it.metadata()), terminating(it.metadata())));
        let is_needed_whole = match self.scope {
            WatchScope::Operators => true,
            WatchScope::Workloads | WatchScope::Namespaces => key.is_some(),
            WatchScope::Metadata | WatchScope::Definitions => false,
        };
        let mut whole = object.filter(|_| is_needed_whole).map(whole_object);
        let mut observations = Vec::new();
        match self.scope {
            WatchScope::Namespaces => observations.push(Observation::Namespace { name, state }),
            WatchScope::Definitions => observations.extend(definition(&name)),
            WatchScope::Operators => {
                let object = whole.take();
                observations.push(Observation::Operator { name, revision, object });
            }
            WatchScope::Metadata | WatchScope::Workloads => {}
        }
        if let Some(key) = key {
            let gone = || (Mark::new(revision, Trace::Gone), None);
            let (mark, mut terminating) = shown.unwrap_or_else(gone);
            let mut health = None;
            match (self.scope, &whole, &mut terminating) {
                (WatchScope::Workloads, Some(whole), _) => {
                    health = health::judge(&key.group, &key.kind, whole);
                }
                (WatchScope::Namespaces, Some(whole), Some(terminating)) => {
                    terminating.remaining = removal::remaining(whole);
                }
                _ => {}
            }
            observations.push(Observation::Object { key, mark, health, terminating });
        }
        observations.into_iter().map(ExecutionEvent::Observed).collect()
    }

    fn listed(&self) -> ExecutionEvent {
        ExecutionEvent::Observed(Observation::Listed(self.kind.clone()))
    }

    fn interrupted(&self) -> Option<ExecutionEvent> {
        Some(ExecutionEvent::Observed(Observation::Interrupted(self.kind.clone())))
    }

    fn is_remembered(&self, name: &NamespacedName) -> bool {
        match self.scope {
            WatchScope::Namespaces | WatchScope::Operators => true,
            WatchScope::Metadata | WatchScope::Definitions | WatchScope::Workloads => {
                self.objects.contains_key(name)
            }
        }
    }

    fn may_return(&self, name: &NamespacedName) -> bool {
        self.objects.contains_key(name)
    }
}

/// Returns the observation of a change of a definition; `None` if no definition may have the name.
fn definition(name: &str) -> Option<Observation> {
    let (plural, group) = name.split_once('.')?;
    Some(Observation::Definition { group: group.to_owned(), plural: plural.to_owned() })
}

/// Returns the state of a namespace.
pub(crate) fn namespace_state(metadata: &ObjectMeta) -> NamespaceState {
    match metadata.deletion_timestamp {
        Some(_) => NamespaceState::Terminating,
        None => NamespaceState::Active,
    }
}

/// Returns whether the server has no such kind.
fn is_unserved(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status)) => status.code == 404,
        _ => false,
    }
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

/// Returns an object to be judged. Only its manifest says on which condition it is ready, not whoever may
/// annotate it.
pub(crate) fn whole_object(object: impl WatchedObject) -> Value {
    let is_gate_ours = is_annotation_ours(object.metadata(), READY_WHEN);
    let mut whole = object.into_value();
    let annotations = whole.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
    if let Some(annotations) = annotations.filter(|_| !is_gate_ours) {
        annotations.remove(READY_WHEN);
    }
    whole
}

/// An object of a release as a watch showed it. What was applied for an Operator is not the release's.
fn release_mark(metadata: &ObjectMeta) -> Mark {
    let mark = mark(metadata);
    if operator_of(metadata).is_empty() { mark } else { Mark { trace: Trace::Foreign, ..mark } }
}

/// Since when an object has been going, and what holds it.
pub(crate) fn terminating(metadata: &ObjectMeta) -> Option<Terminating> {
    let since = metadata.deletion_timestamp.as_ref()?.0;
    let finalizers = metadata.finalizers.clone().unwrap_or_default();
    Some(Terminating { since, finalizers, remaining: Vec::new() })
}

/// The digest of the fields that we own of an object.
pub(crate) fn trace(metadata: &ObjectMeta) -> Trace {
    let Some((entry, fields)) = applied_fields(metadata) else { return Trace::Foreign };
    let time = entry.time.as_ref().map(|time| time.0.as_second()).unwrap_or_default();
    let (labels, annotations) = (metadata.labels.as_ref(), metadata.annotations.as_ref());
    Trace::Ours(fingerprint(fields, time, labels, annotations))
}
