//! Watches of the objects that configure Operators, of the objects of all Operators, and of the
//! objects of the kinds that these define.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::{ApiResource, DynamicObject, PartialObjectMeta};
use kube::runtime::watcher::Config;
use kube::{Api, Client};
use plimsoll_api::olm::OPERATOR_LABEL;
use plimsoll_api::{
    ApiKind, CATALOG, GroupKind, NamespacedName, OPERATOR, OPERATOR_REVISION, ObjectKey,
};
use plimsoll_operators::reconciler::{ObservedObject, OperatorEvent, OperatorKind, WatchedChange};
use plimsoll_plan::health;
use plimsoll_plan::progress::{Mark, Trace};
use plimsoll_plan::reconciler::revisions::KnownObjects;
use plimsoll_plan::reconciler::watches::WatchScope;
use plimsoll_plan::removal;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::listing_watch::{ListingWatch, WatchedObject};
use crate::observe::{mark, namespace_state, terminating, whole_object};
use crate::ownership::{labelled_operator, operator_of};
use crate::relay::{Observer, Relay};
use crate::resources::api_resource;
use crate::view::OperatorsView;

/// A kind that configures Operators.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConfigurationKind {
    kind: OperatorKind,
    resource: ApiKind,
    /// What a message calls the objects.
    pub(super) plural: &'static str,
}

/// The kinds that configure Operators.
pub(super) const CONFIGURATION: [ConfigurationKind; 3] = [
    ConfigurationKind { kind: OperatorKind::Operator, resource: OPERATOR, plural: "Operators" },
    ConfigurationKind {
        kind: OperatorKind::Revision,
        resource: OPERATOR_REVISION,
        plural: "OperatorRevisions",
    },
    ConfigurationKind { kind: OperatorKind::Catalog, resource: CATALOG, plural: "Catalogs" },
];

/// Watches Operators, OperatorRevisions or Catalogs until the receiver is dropped. The view has what is
/// not listed.
pub(super) async fn configuration(
    client: Client,
    configuration: ConfigurationKind,
    relay: Relay<OperatorEvent>,
    view: watch::Sender<OperatorsView>,
) {
    let ConfigurationKind { kind, resource, plural } = configuration;
    let api: Api<DynamicObject> = Api::all_with(client, &api_resource(resource));
    let observer = ConfigurationObserver { kind, plural, view };
    relay.observe(ListingWatch::new(api, Config::default()), &observer).await;
}

/// The observer of Operators, OperatorRevisions or Catalogs.
struct ConfigurationObserver {
    kind: OperatorKind,
    plural: &'static str,
    view: watch::Sender<OperatorsView>,
}

impl Observer<DynamicObject> for ConfigurationObserver {
    type Event = OperatorEvent;

    fn shown(
        &self,
        object: Option<DynamicObject>,
        id: NamespacedName,
        _: u64,
    ) -> Vec<OperatorEvent> {
        let object = object.map(|it| Box::new(it.into_value()));
        vec![OperatorEvent::Configuration { kind: self.kind, name: id.name, object }]
    }

    fn listed(&self) -> OperatorEvent {
        self.view.send_if_modified(|view| view.unlisted.remove(self.plural));
        OperatorEvent::ConfigurationListed(self.kind)
    }

    fn interrupted(&self) -> Option<OperatorEvent> {
        self.view.send_if_modified(|view| view.unlisted.insert(self.plural));
        None
    }
}

/// Watches the objects of a kind that have the label of an Operator, or all definitions or
/// namespaces, until the receiver is dropped. Once `widened` is cancelled, objects that were watched by metadata
/// alone are watched whole.
pub(super) async fn objects(
    client: Client,
    resource: ApiResource,
    scope: WatchScope,
    relay: Relay<OperatorEvent>,
    widened: CancellationToken,
) {
    let kind = GroupKind::new(&resource.group, &resource.kind);
    let config = match scope {
        WatchScope::Definitions | WatchScope::Namespaces => Config::default(),
        WatchScope::Metadata | WatchScope::Workloads | WatchScope::Operators => {
            Config::default().labels(OPERATOR_LABEL)
        }
    };
    let mut known = KnownObjects::default();
    let mut scope = scope;
    if matches!(scope, WatchScope::Metadata | WatchScope::Definitions) {
        let api: Api<PartialObjectMeta<DynamicObject>> = Api::all_with(client.clone(), &resource);
        let watched = ListingWatch::new(api, config.clone());
        let observer = ObjectObserver { kind: &kind, scope };
        relay.observe_until(watched, &observer, &mut known, &widened).await;
        if !widened.is_cancelled() {
            return;
        }
        scope = WatchScope::Workloads;
    }
    let api: Api<DynamicObject> = Api::all_with(client, &resource);
    let observer = ObjectObserver { kind: &kind, scope };
    let end = CancellationToken::new();
    relay.observe_until(ListingWatch::new(api, config), &observer, &mut known, &end).await;
}

/// The observer of objects of Operators.
struct ObjectObserver<'a> {
    kind: &'a GroupKind,
    scope: WatchScope,
}

impl<K: WatchedObject> Observer<K> for ObjectObserver<'_> {
    type Event = OperatorEvent;

    fn shown(&self, object: Option<K>, id: NamespacedName, revision: u64) -> Vec<OperatorEvent> {
        events(self.kind, self.scope, object, id, revision)
    }

    fn listed(&self) -> OperatorEvent {
        OperatorEvent::Watched(self.kind.clone(), WatchedChange::Listed)
    }
}

/// Watches all objects of the kind that a definition defines, until the receiver is dropped.
pub(super) async fn operands(
    client: Client,
    definition: String,
    resource: ApiResource,
    relay: Relay<OperatorEvent>,
) {
    let kind = GroupKind::new(&resource.group, &resource.kind);
    let api: Api<PartialObjectMeta<DynamicObject>> = Api::all_with(client, &resource);
    let shown = |object: Option<PartialObjectMeta<DynamicObject>>, id: NamespacedName, revision| {
        let change = change(&kind, WatchScope::Metadata, object, id, revision);
        vec![OperatorEvent::OperandWatched(definition.clone(), change)]
    };
    let listed = || OperatorEvent::OperandWatched(definition.clone(), WatchedChange::Listed);
    relay.follow(ListingWatch::new(api, Config::default()), shown, listed).await;
}

/// Returns the events for a change of an object; `object` is `None` if it was deleted.
fn events<T: WatchedObject>(
    kind: &GroupKind,
    scope: WatchScope,
    object: Option<T>,
    id: NamespacedName,
    revision: u64,
) -> Vec<OperatorEvent> {
    let mut events = Vec::new();
    match scope {
        WatchScope::Namespaces => {
            let state = object.as_ref().map(|it| namespace_state(it.metadata()));
            events.push(OperatorEvent::Namespace(id.name.clone(), state));
        }
        WatchScope::Definitions => {
            if let Some((plural, group)) = id.name.split_once('.') {
                events.push(OperatorEvent::Definition(group.to_owned(), plural.to_owned()));
            }
        }
        WatchScope::Metadata | WatchScope::Workloads | WatchScope::Operators => {}
    }
    events.push(OperatorEvent::Watched(kind.clone(), change(kind, scope, object, id, revision)));
    events
}

/// Returns an object as a watch shows it to the Operator in its label. One that was not applied for that
/// Operator is another client's.
fn operator_mark(metadata: &ObjectMeta) -> Mark {
    let mark = mark(metadata);
    if operator_of(metadata).is_empty() { Mark { trace: Trace::Foreign, ..mark } } else { mark }
}

fn change<T: WatchedObject>(
    kind: &GroupKind,
    scope: WatchScope,
    object: Option<T>,
    id: NamespacedName,
    revision: u64,
) -> WatchedChange {
    let key = ObjectKey {
        group: kind.group.clone(),
        kind: kind.kind.clone(),
        namespace: id.namespace,
        name: id.name,
    };
    let Some(object) = object else { return WatchedChange::Gone { key, revision } };
    let metadata = object.metadata();
    let owners = metadata.owner_references.iter().flatten().map(|owner| owner.uid.clone());
    let mut observed = ObservedObject {
        key,
        operator: labelled_operator(metadata),
        uid: metadata.uid.clone().unwrap_or_default(),
        owners: owners.collect(),
        mark: operator_mark(metadata),
        health: None,
        terminating: terminating(metadata),
        whole: None,
    };
    match scope {
        WatchScope::Workloads => {
            observed.health = health::judge(&kind.group, &kind.kind, &whole_object(object));
        }
        WatchScope::Operators => observed.whole = Some(object.into_value()),
        WatchScope::Namespaces => {
            if let Some(terminating) = &mut observed.terminating {
                terminating.remaining = removal::remaining(&object.into_value());
            }
        }
        WatchScope::Metadata | WatchScope::Definitions => {}
    }
    WatchedChange::Present(Box::new(observed))
}
