//! The observations of watches, and what they make due.

use std::collections::BTreeSet;
use std::sync::Arc;

use kube::core::DynamicObject;
use kube::runtime::watcher::Config;
use kube::{Api, Client};
use plimsoll_api::config::{ClusterVersionStatus, UpdateState};
use plimsoll_api::olm::action::{ActionState, EventSourceKind, PlannedChange};
use plimsoll_api::{ACTION, ACTION_CLASS, ACTION_POLICY, ApiKind, CATALOG, OPERATOR};
use plimsoll_operators::actions::attributes::NamedClass;
use plimsoll_operators::actions::policy::NamedPolicy;
use plimsoll_operators::actions::report::ActionObject;
use plimsoll_operators::observed::ObservedOperator;
use plimsoll_operators::reconciler::OperatorKind;
use serde::Deserialize as _;
use serde_json::Value;

use super::ControlLoop;
use super::queue::WorkItem;
use crate::actions::access::named;
use crate::actions::generators::GENERATORS;
use crate::actions::inventory::AddOnChange;
use crate::actions::selection::{Selection, SelectionChange};
use crate::listing_watch::{ListingWatch, WatchedObject as _};
use crate::relay::Relay;
use crate::resources::api_resource;
use plimsoll_api::NamespacedName;

/// A message from a watch.
pub(super) enum Observation {
    /// The current state of an object; `None` if it was deleted.
    Object(ApiKind, NamespacedName, Option<Box<Value>>),
    /// All objects of a kind have been listed.
    Listed(ApiKind),
    /// The current ClusterVersion; `None` if there is none.
    ClusterVersion(Option<Box<DynamicObject>>),
    /// A change of the objects that an EventAction selects.
    Selected(Box<Selection>, SelectionChange),
}

/// Watches the objects of a kind until the receiver is dropped.
pub(super) async fn watch_objects(client: Client, kind: ApiKind, relay: Relay<Observation>) {
    let api: Api<DynamicObject> = Api::all_with(client, &api_resource(kind));
    let shown = |object: Option<DynamicObject>, id: NamespacedName, _: u64| {
        vec![Observation::Object(kind, id, object.map(|it| Box::new(it.into_value())))]
    };
    let listed = || Observation::Listed(kind);
    relay.follow(ListingWatch::new(api, Config::default()), shown, listed).await;
}

impl ControlLoop {
    /// Returns whether all kinds have been listed.
    pub(super) fn is_informed(&self) -> bool {
        let kinds = [ACTION, ACTION_CLASS, ACTION_POLICY, OPERATOR];
        kinds.iter().chain(&GENERATORS).all(|kind| self.listed.contains(kind.kind))
    }

    /// Handles a change of an Operator or a Catalog.
    pub(super) fn add_ons_changed(&mut self, change: AddOnChange) {
        match change {
            AddOnChange::Operator(name, object) => {
                let before = self.operators.get(&name).map(|it| it.version().to_owned());
                match object {
                    Some(object) => self.operators.insert(name.clone(), *object),
                    None => self.operators.remove(&name),
                };
                if before.as_deref() != self.operators.get(&name).map(ObservedOperator::version) {
                    self.generators_due(|it| it.looks_for(EventSourceKind::Operator));
                }
                let is_affected = |it: &ActionObject| {
                    it.status.state == ActionState::Running
                        && it.status.plan.iter().any(|change| change.operator == name)
                };
                self.actions_due(is_affected);
            }
            AddOnChange::Catalog(name, digest) => {
                match digest {
                    Some(digest) if digest.is_empty() => {}
                    Some(digest) => drop(self.catalogs.insert(name, digest)),
                    None => drop(self.catalogs.remove(&name)),
                }
                self.generators_due(|it| it.looks_for(EventSourceKind::Catalog));
            }
            AddOnChange::Listed(OperatorKind::Operator) => drop(self.listed.insert(OPERATOR.kind)),
            AddOnChange::Listed(OperatorKind::Catalog) => {
                self.listed.insert(CATALOG.kind);
                self.generators_due(|it| it.looks_for(EventSourceKind::Catalog));
            }
            AddOnChange::Listed(OperatorKind::Revision) => {}
        }
    }

    /// Handles what a watch delivers.
    pub(super) fn observed(&mut self, observation: Observation) {
        match observation {
            Observation::Object(ACTION, id, object) => self.action_observed(&id, object.as_deref()),
            Observation::Object(ACTION_CLASS, id, object) => {
                let class =
                    object.and_then(|it| named(&it).map(|(name, spec)| NamedClass { name, spec }));
                let classes = Arc::make_mut(&mut self.classes);
                classes.retain(|it| it.name != id.name);
                classes.extend(class);
                classes.sort_by(|a, b| a.name.cmp(&b.name));
                self.rules_changed();
            }
            Observation::Object(ACTION_POLICY, id, object) => {
                let policy =
                    object.and_then(|it| named(&it).map(|(name, spec)| NamedPolicy { name, spec }));
                self.policies.retain(|it| it.name != id.name);
                self.policies.extend(policy);
                self.rules_changed();
            }
            Observation::Object(kind, id, object) => {
                self.generator_observed(kind, id, object.as_deref())
            }
            Observation::Listed(kind) => {
                self.listed.insert(kind.kind);
            }
            Observation::Selected(selection, change) => {
                let watched = self.selections.get_mut(&selection);
                if watched.is_some_and(|it| it.observe(change)) {
                    self.generators_due(|it| it.selection.as_ref() == Some(&*selection));
                }
            }
            Observation::ClusterVersion(object) => {
                let status = object.map(|it| it.data["status"].clone()).unwrap_or_default();
                let status = ClusterVersionStatus::deserialize(&status).unwrap_or_default();
                let mut completed =
                    status.history.iter().filter(|it| it.state == UpdateState::Completed);
                self.release =
                    Some(completed.next().map(|it| it.version.clone()).unwrap_or_default());
                self.generators_due(|it| it.looks_for(EventSourceKind::ClusterVersion));
                let is_affected = |it: &ActionObject| {
                    it.status.state == ActionState::Running
                        && it.status.plan.iter().any(PlannedChange::is_release)
                };
                self.actions_due(is_affected);
            }
        }
    }

    /// Records the current state of an Action; `object` is `None` if it was deleted.
    pub(super) fn action_observed(&mut self, id: &NamespacedName, object: Option<&Value>) {
        let before = self.actions.remove(id);
        let until_then = before.clone();
        if let Some(before) = &before
            && let Some(made) = self.generated.get_mut(&before.owner)
        {
            made.remove(id);
            if made.is_empty() {
                self.generated.remove(&before.owner);
            }
        }
        let read = object.map(ActionObject::read).transpose();
        let mut owner = before.as_ref().map(|it| it.owner.clone()).unwrap_or_default();
        match read {
            Ok(Some(mut action)) => {
                owner.clone_from(&action.owner);
                let mut is_due = action.status.state == ActionState::Running;
                match before.filter(|it| it.uid == action.uid) {
                    Some(before) if !is_newer(&action.revision, &before.revision) => {
                        (action, is_due) = (before, false);
                    }
                    Some(before) => {
                        is_due |= before.spec != action.spec;
                        is_due |= before.is_deleting != action.is_deleting;
                        if self.unsaved.contains(id) {
                            action.status = before.status;
                        }
                    }
                    None => is_due = true,
                }
                if !action.owner.is_empty() {
                    self.generated.entry(action.owner.clone()).or_default().insert(id.clone());
                }
                if is_due && (!action.status.state.is_final() || action.has_finalizer()) {
                    self.queue.add([WorkItem::of(&action)]);
                }
                self.actions.insert(id.clone(), action);
            }
            Ok(None) => {
                self.unsaved.remove(id);
            }
            Err(error) => tracing::warn!(
                namespace = id.namespace,
                name = id.name,
                error,
                "an Action cannot be read"
            ),
        }
        if let Some(before) = until_then {
            self.left(&before);
        }
        if !owner.is_empty() {
            self.generators_due(|it| it.uid == owner);
        }
    }

    /// Makes pending Actions due after a change of classes or policies, and publishes the guarded
    /// classes.
    fn rules_changed(&mut self) {
        self.actions_due(|it| it.status.state == ActionState::Pending);
        let classes = self.classes.iter();
        let guarded = classes.filter(|class| {
            let named =
                |policy: &NamedPolicy| policy.spec.classes.iter().any(|it| class.goes_by(it));
            self.policies.iter().any(named)
        });
        let names = guarded.flat_map(|it| it.spec.aliases.iter().chain([&it.name])).cloned();
        let names: BTreeSet<String> = names.collect();
        self.guarded.send_if_modified(|before| {
            let is_changed = *before != names;
            *before = names;
            is_changed
        });
    }
}

/// Returns whether a resourceVersion is newer than another one. They are compared as numbers.
pub(super) fn is_newer(revision: &str, other: &str) -> bool {
    let number = |text: &str| text.parse::<u64>().unwrap_or_default();
    number(revision) > number(other)
}
