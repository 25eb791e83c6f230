//! Watches of the objects that EventActions select. Only metadata is read.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::authorization::v1::ResourceAttributes;
use kube::core::{DynamicObject, GroupVersion, PartialObjectMeta};
use kube::runtime::watcher::{Config, Error};
use kube::{Api, Client};
use plimsoll_api::olm::action::SelectedObjects;
use plimsoll_plan::plan::GroupVersionKind;
use plimsoll_plan::progress::Scope;
use tokio::task::JoinSet;

use crate::observe::ListingWatch;
use crate::relay::{Id, Relay};
use crate::resources::{Resources, Served};
use crate::write::chain;

/// How soon objects that could not be watched are asked for again.
pub(super) const RETRY_INTERVAL: Duration = Duration::from_secs(30);

/// Which objects are selected, and in which namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Selection {
    pub(super) namespace: String,
    pub(super) objects: SelectedObjects,
}

/// What a watch of selected objects shows.
#[derive(Debug)]
pub(super) enum SelectionChange {
    /// The watch begins, of this resource.
    Begun(Box<Served>),
    /// Why there is none.
    Unavailable(String),
    /// The content of an object; `None` if it is gone.
    Object(String, Option<String>),
    /// All objects have been shown.
    Listed,
}

/// What is known of selected objects. The watch ends when this is dropped.
pub(super) struct SelectionWatch {
    _task: JoinSet<()>,
    served: Option<Box<Served>>,
    is_listed: bool,
    content: BTreeMap<String, String>,
    problem: String,
}

impl SelectionWatch {
    /// Begins to watch.
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

    /// Takes note of a change; whether something can be decided by it.
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

    /// What there is, by name, or why it is not known; `None` until all has been shown.
    pub(super) fn content(&self) -> Option<Result<&BTreeMap<String, String>, String>> {
        match self.is_listed {
            true => Some(Ok(&self.content)),
            false => (!self.problem.is_empty()).then(|| Err(self.problem.clone())),
        }
    }

    /// What who selects the objects has to be allowed; `None` before the watch began.
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

/// Watches until the receiver is gone; what cannot be watched is tried again and again.
async fn watch<T>(
    client: Client,
    selection: Selection,
    observed: impl Fn(SelectionChange) -> T + Sync,
    relay: Relay<T>,
) {
    let sender = &relay.sender;
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

/// The resource of selected objects.
///
/// # Errors
///
/// When there is none, or the API server does not answer.
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

/// Watches until the API server refuses it, and returns why.
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
    let shown = |object: Option<PartialObjectMeta<DynamicObject>>, id: Id, _: u64| {
        let content = object.map(|it| content(&it));
        vec![observed(SelectionChange::Object(id.name, content))]
    };
    let listed = || observed(SelectionChange::Listed);
    relay.follow_unless_refused(watched, shown, listed, refused).await
}

/// What changes when an object does: its generation, which its status leaves as it is, or its revision if
/// objects of the kind have none; and its uid, since another object may have the name later.
fn content(object: &PartialObjectMeta<DynamicObject>) -> String {
    let metadata = &object.metadata;
    let uid = metadata.uid.as_deref().unwrap_or_default();
    match (metadata.generation, &metadata.resource_version) {
        (Some(generation), _) => format!("{uid} generation {generation}"),
        (None, revision) => format!("{uid} revision {}", revision.as_deref().unwrap_or_default()),
    }
}

/// Why the API server does not let objects be watched; `None` if it does, or may later on.
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
