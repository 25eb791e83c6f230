//! Watches of the objects that EventActions select. Only metadata is watched.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::authorization::v1::ResourceAttributes;
use kube::core::{DynamicObject, GroupVersion, PartialObjectMeta};
use kube::runtime::watcher::{Config, Error};
use kube::{Api, Client};
use plimsoll_api::olm::action::{SelectedObjects, TRIGGERED_BY_ANNOTATION};
use plimsoll_api::{ACTION, ApiKind, CLUSTER_VERSION, NamespacedName, OPERATOR};
use plimsoll_operators::actions::triggers::{ObjectContent, selector_problem};
use plimsoll_plan::plan::GroupVersionKind;
use plimsoll_plan::progress::Scope;
use tokio::task::JoinSet;

use crate::listing_watch::ListingWatch;
use crate::relay::Relay;
use crate::resources::{Resources, Served};
use crate::write::chain;

/// The delay before objects that could not be watched are tried again.
pub(super) const RETRY_INTERVAL: Duration = Duration::from_secs(30);

/// The objects that an EventAction selects, and the namespace of the EventAction.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Selection {
    pub(super) namespace: String,
    pub(super) objects: SelectedObjects,
}

/// A message from a watch of selected objects.
#[derive(Debug)]
pub(super) enum SelectionChange {
    /// The watch of this resource has started.
    Begun(Box<Served>),
    /// The objects cannot be watched; the text says why.
    Unavailable(String),
    /// The content of the object with this name; `None` if it was deleted.
    Object(String, Option<ObjectContent>),
    /// All objects have been listed.
    Listed,
}

/// A watch of selected objects, with what it has observed. The watch ends when this is dropped.
pub(super) struct SelectionWatch {
    _task: JoinSet<()>,
    served: Option<Box<Served>>,
    is_listed: bool,
    content: BTreeMap<String, ObjectContent>,
    problem: String,
}

impl SelectionWatch {
    /// Starts the watch.
    pub(super) fn begin<T: Send + 'static>(
        client: Client,
        selection: Selection,
        observed: impl Fn(SelectionChange) -> T + Send + Sync + 'static,
        relay: Relay<T>,
    ) -> Self {
        let mut task = JoinSet::new();
        task.spawn(watch(client, selection, observed, relay));
        Self {
            _task: task,
            served: None,
            is_listed: false,
            content: BTreeMap::new(),
            problem: String::new(),
        }
    }

    /// Records a change; returns whether it allows a decision.
    pub(super) fn observe(&mut self, change: SelectionChange) -> bool {
        match change {
            SelectionChange::Begun(served) => {
                (self.served, self.is_listed) = (Some(served), false);
                self.content.clear();
            }
            SelectionChange::Unavailable(problem) => {
                (self.problem, self.is_listed) = (problem, false);
                return true;
            }
            SelectionChange::Object(name, Some(content)) => {
                drop(self.content.insert(name, content))
            }
            SelectionChange::Object(name, None) => drop(self.content.remove(&name)),
            SelectionChange::Listed => {
                self.problem.clear();
                self.is_listed = true;
            }
        }
        self.is_listed
    }

    /// Returns the content of the objects by name, or the reason why it is not known; `None` if
    /// they have not been listed yet.
    pub(super) fn content(&self) -> Option<Result<&BTreeMap<String, ObjectContent>, String>> {
        match self.is_listed {
            true => Some(Ok(&self.content)),
            false => (!self.problem.is_empty()).then(|| Err(self.problem.clone())),
        }
    }

    /// Returns the resource of the objects; `None` if the watch has not started yet.
    pub(super) fn served(&self) -> Option<&Served> {
        self.served.as_deref()
    }

    /// Returns the permission that a user needs to select the objects; `None` if the watch has not
    /// started yet.
    pub(super) fn access(&self, namespace: &str) -> Option<ResourceAttributes> {
        let Served { resource, scope } = self.served.as_deref()?;
        Some(ResourceAttributes {
            group: Some(resource.group.clone()),
            version: Some(resource.version.clone()),
            resource: Some(resource.plural.clone()),
            namespace: (*scope == Scope::Namespaced).then(|| namespace.to_owned()),
            verb: Some("watch".to_owned()),
            ..ResourceAttributes::default()
        })
    }
}

/// Watches selected objects until the receiver is dropped. Tries again if they cannot be watched.
async fn watch<T>(
    client: Client,
    selection: Selection,
    observed: impl Fn(SelectionChange) -> T + Sync,
    relay: Relay<T>,
) {
    let sender = &relay.sender;
    if let Some(problem) = selector_problem(&selection.objects.selector) {
        // Another selector has a watch of its own. Without a receiver, there is nothing to do.
        let _ = sender.send(observed(SelectionChange::Unavailable(problem))).await;
        return;
    }
    while !sender.is_closed() && !relay.restored.is_cancelled() {
        let problem = match served(&client, &selection.objects).await {
            Ok(served) => {
                let begun = observed(SelectionChange::Begun(Box::new(served.clone())));
                if sender.send(begun).await.is_err() {
                    return;
                }
                watch_served(&client, &selection, &served, &observed, &relay).await
            }
            Err(problem) => problem,
        };
        if sender.send(observed(SelectionChange::Unavailable(problem))).await.is_err() {
            return;
        }
        tokio::time::sleep(RETRY_INTERVAL).await;
    }
}

/// Returns the resource of selected objects.
///
/// # Errors
///
/// When the cluster does not serve it, or the API server does not answer.
async fn served(client: &Client, objects: &SelectedObjects) -> Result<Served, String> {
    let SelectedObjects { api_version, kind, .. } = objects;
    let GroupVersion { group, version } =
        api_version.parse().map_err(|_| format!("{api_version} is no apiVersion"))?;
    let resources = Resources::discover_version(client, &group, &version).await;
    let resources = resources.map_err(|error| chain(&error))?;
    let kind = GroupVersionKind { group, version, kind: kind.clone() };
    let served = resources.get(&kind).cloned();
    served.ok_or_else(|| format!("the cluster does not serve {} of {api_version}", kind.kind))
}

/// Watches selected objects until the API server refuses the watch, and returns the reason.
async fn watch_served<T>(
    client: &Client,
    selection: &Selection,
    served: &Served,
    observed: &(impl Fn(SelectionChange) -> T + Sync),
    relay: &Relay<T>,
) -> String {
    let api: Api<PartialObjectMeta<DynamicObject>> = match served.scope {
        Scope::Namespaced => {
            Api::namespaced_with(client.clone(), &selection.namespace, &served.resource)
        }
        Scope::Cluster => Api::all_with(client.clone(), &served.resource),
    };
    let labels = selection.objects.selector.iter().map(|(name, value)| format!("{name}={value}"));
    let config = Config::default().labels(&labels.collect::<Vec<String>>().join(","));
    let watched = ListingWatch::new(api, config);
    let shown = |object: Option<PartialObjectMeta<DynamicObject>>, id: NamespacedName, _: u64| {
        let content = object.map(|it| content(&it, &selection.objects));
        vec![observed(SelectionChange::Object(id.name, content))]
    };
    let listed = || observed(SelectionChange::Listed);
    relay.follow_unless_refused(watched, shown, listed, refused).await
}

/// Returns the content of an object. Those alone have a chain that led to them which Actions write, or that are Actions:
/// others could be given one by whoever may write them.
fn content(object: &PartialObjectMeta<DynamicObject>, selected: &SelectedObjects) -> ObjectContent {
    let metadata = &object.metadata;
    let uid = metadata.uid.as_deref().unwrap_or_default();
    let revision = metadata.resource_version.as_deref().unwrap_or_default();
    let annotations = metadata.annotations.as_ref();
    let annotation = |name: &str| annotations.and_then(|it| it.get(name)).map(String::as_str);
    let content = ObjectContent::of_object(uid, metadata.generation, revision);
    let SelectedObjects { api_version, kind, .. } = selected;
    let is_a = |it: ApiKind| it.api_version() == *api_version && it.kind == kind;
    match () {
        () if is_a(ACTION) => {
            content.after_chain(annotation(TRIGGERED_BY_ANNOTATION).unwrap_or_default())
        }
        () if is_a(OPERATOR) || is_a(CLUSTER_VERSION) => {
            content.after(annotation, metadata.generation)
        }
        () => content,
    }
}

/// Returns why the API server refuses a watch; `None` if the watch may succeed later.
fn refused(error: &Error) -> Option<String> {
    let (Error::InitialListFailed(error) | Error::WatchStartFailed(error)) = error else {
        return None;
    };
    match error {
        kube::Error::Api(status) if matches!(status.code, 403..=405) => {
            Some(status.message.clone())
        }
        _ => None,
    }
}
