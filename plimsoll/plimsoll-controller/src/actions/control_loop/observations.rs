//! The observations of watches, and what they make due.

use std::collections::BTreeSet;
use std::sync::Arc;

use kube::core::DynamicObject;
use kube::runtime::watcher::Config;
use kube::{Api, Client};
use plimsoll_api::olm::action::{ActionState, ActionStatus, EventSourceKind, PlannedChange};
use plimsoll_api::{
    ACTION, ACTION_CLASS, ACTION_POLICY, ApiKind, CATALOG, CLUSTER_VERSION_NAME,
    MAINTENANCE_WINDOW, OPERATOR,
};
use plimsoll_operators::actions::policy::NamedPolicy;
use plimsoll_operators::actions::report::ActionObject;
use plimsoll_operators::actions::triggers::ObjectContent;
use plimsoll_operators::reconciler::OperatorKind;
use serde_json::Value;

use super::known;
use super::queue::WorkItem;
use super::{ControlLoop, Owner};
use crate::actions::generators::{ActionGenerator, GENERATORS};
use crate::actions::inventory::AddOnChange;
use crate::actions::parts;
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
        let kinds = [ACTION, ACTION_CLASS, ACTION_POLICY, MAINTENANCE_WINDOW, OPERATOR];
        kinds.iter().chain(&GENERATORS).all(|kind| self.listed.contains(kind.kind))
    }

    /// Handles a change of an Operator or a Catalog.
    pub(super) fn add_ons_changed(&mut self, change: AddOnChange) {
        match change {
            AddOnChange::Operator(name, object) => {
                let before = self.operators.get(&name).map(ObjectContent::of_operator);
                match object {
                    Some(object) => self.operators.insert(name.clone(), *object),
                    None => self.operators.remove(&name),
                };
                if before != self.operators.get(&name).map(ObjectContent::of_operator) {
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
                    Some(digest) => {
                        self.catalogs.insert(name, ObjectContent::of_catalog(&digest));
                    }
                    None => drop(self.catalogs.remove(&name)),
                }
                self.generators_due(ActionGenerator::depends_on_catalogs);
            }
            AddOnChange::Listed(OperatorKind::Operator) => drop(self.listed.insert(OPERATOR.kind)),
            AddOnChange::Listed(OperatorKind::Catalog) => {
                self.listed.insert(CATALOG.kind);
                self.generators_due(ActionGenerator::depends_on_catalogs);
            }
            AddOnChange::Listed(OperatorKind::Revision) => {}
        }
    }

    /// Handles what a watch delivers.
    pub(super) fn observed(&mut self, observation: Observation) {
        match observation {
            Observation::Object(ACTION, id, object) => self.action_observed(&id, object.as_deref()),
            Observation::Object(ACTION_CLASS, id, object) => {
                let classes = Arc::make_mut(&mut self.classes);
                if self.class_states.observe(&id.name, object.as_deref(), classes) {
                    self.policy_states.classes_changed(&self.policies, &self.classes);
                    self.ended.classes_changed(&self.classes);
                    self.queue.add([WorkItem::Outdated]);
                    self.rules_changed();
                    // It may be the class of one that is back.
                    self.actions_due(|it| it.status.state == ActionState::Running);
                }
                self.queue.add([WorkItem::Classes]);
            }
            Observation::Object(ACTION_POLICY, id, object) => {
                let policies = Arc::make_mut(&mut self.policies);
                let (object, classes) = (object.as_deref(), &self.classes);
                if self.policy_states.observe(&id.name, object, policies, classes) {
                    self.rules_changed();
                }
                self.queue.add([WorkItem::Classes]);
            }
            Observation::Object(MAINTENANCE_WINDOW, id, object) => match object {
                Some(object) => self.windows.insert_object(&id.name, &object),
                None => self.windows.remove(&id.name),
            },
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
                let content = object.map(|it| {
                    let content = ObjectContent::of_cluster_version(&it.into_value());
                    (CLUSTER_VERSION_NAME.to_owned(), content)
                });
                self.cluster_version = Some(content.into_iter().collect());
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
        let Some(object) = object else { return self.action_gone(id) };
        let (mut action, error) = known::read(object);
        if self.ended.has(id, &action.uid) {
            return self.ended_observed(id, &action, object);
        }
        let is_same = |it: &ActionObject| it.uid == action.uid;
        let is_old = |it: &ActionObject| is_same(it) && !is_newer(&action.revision, &it.revision);
        if self.actions.get(id).is_some_and(is_old) {
            return;
        }
        if !self.actions.get(id).is_some_and(is_same) {
            // Another one of that name is gone.
            self.action_gone(id);
        }
        let is_loaded = !self.unloaded.remove(id);
        let before = self.forget(id);
        if let Some(before) = &before {
            self.disown(id, &before.owner);
            if !is_behind(&action.status, &before.status) {
                self.unsaved.remove(id);
            } else if self.unsaved.contains(id) {
                action.status = before.status.clone();
            }
        }
        let whole = before.as_ref().map(|it| &it.status).filter(|_| is_loaded);
        if !parts::restore(&mut action.status, whole) {
            self.unloaded.insert(id.clone());
        }
        self.note_unreadable(id, error);
        let mut is_due = action.status.state == ActionState::Running || action.has_finalizer();
        match &before {
            Some(before) => {
                is_due |= before.spec != action.spec;
                is_due |= before.is_deleting != action.is_deleting;
                self.announce_change(before, &action);
            }
            None => is_due = true,
        }
        self.remember(id, action, object, is_due);
        if let Some(before) = before {
            self.left(&before);
        }
    }

    /// Keeps an Action: as a whole, or a record of it if nothing remains to be done.
    fn remember(
        &mut self,
        id: &NamespacedName,
        action: ActionObject,
        object: &Value,
        is_due: bool,
    ) {
        let generator = generator_of(object);
        if let Some(generator) = &generator {
            let owner = Owner::of(id, &action.owner);
            self.generated.entry(owner.clone()).or_default().insert(id.clone());
            self.owners.insert(owner, generator.clone());
            self.queue.add([generator.clone()]);
        }
        if action.status.state.is_final() && !action.has_finalizer() {
            return self.keep_record(id, &action, generator.is_some());
        }
        if is_due {
            self.queue.add([WorkItem::of(&action)]);
        }
        self.counts.add(&action);
        self.actions.insert(id.clone(), action);
    }

    /// Keeps a record of an Action of which nothing remains to be done.
    fn keep_record(&mut self, id: &NamespacedName, action: &ActionObject, is_generated: bool) {
        self.counts.add_ended(action.status.state);
        self.ended.insert(id, action, is_generated, &self.classes);
        self.unsaved.remove(id);
        self.unloaded.remove(id);
        self.unreadable.remove(id);
        self.refusals.remove(id);
        self.queue.forget(&WorkItem::of(action));
        self.queue.add([WorkItem::Outdated]);
    }

    /// Handles the state of an Action of which a record is kept. It has ended, whatever the watch
    /// shows later, but how it ended may be written in several steps.
    fn ended_observed(&mut self, id: &NamespacedName, action: &ActionObject, object: &Value) {
        if generator_of(object).is_none() {
            self.orphaned(id, action);
        }
        if let Some(before) = self.ended.update(id, action, &self.classes) {
            self.counts.remove_ended(before.state);
            self.counts.add_ended(action.status.state);
            self.queue.add([WorkItem::Outdated]);
            self.queue.add(self.owners.get(&Owner::of(id, &before.owner)).cloned());
        }
    }

    /// Keeps only a record of an Action that has ended and was released: the watch shows nothing
    /// newer of it.
    pub(super) fn keep_ended(&mut self, id: &NamespacedName) {
        let is_released = |it: &ActionObject| it.status.state.is_final() && !it.has_finalizer();
        if !self.actions.get(id).is_some_and(is_released) {
            return;
        }
        if let Some(action) = self.actions.remove(id) {
            self.counts.remove(&action);
            let is_generated = self.owners.contains_key(&Owner::of(id, &action.owner));
            self.keep_record(id, &action, is_generated);
        }
    }

    /// Records why an Action cannot be read, or that it can.
    fn note_unreadable(&mut self, id: &NamespacedName, error: Option<String>) {
        let Some(error) = error else { return drop(self.unreadable.remove(id)) };
        let NamespacedName { namespace, name } = id;
        tracing::warn!(namespace, name, error, "an Action cannot be read");
        self.unreadable.insert(id.clone(), error);
    }

    /// Removes an Action that has not ended, or has to be released, and returns it.
    fn forget(&mut self, id: &NamespacedName) -> Option<ActionObject> {
        let before = self.actions.remove(id)?;
        self.counts.remove(&before);
        Some(before)
    }

    /// Removes an Action that is gone, and makes due what depends on it.
    pub(super) fn action_gone(&mut self, id: &NamespacedName) {
        let owner = match self.forget(id) {
            Some(before) => {
                self.unsaved.remove(id);
                self.unloaded.remove(id);
                self.unreadable.remove(id);
                self.refusals.remove(id);
                self.queue.forget(&WorkItem::of(&before));
                self.left(&before);
                before.owner
            }
            None => match self.ended.remove(id) {
                Some((state, owner)) => {
                    self.counts.remove_ended(state);
                    owner
                }
                None => return,
            },
        };
        self.queue.add(self.owners.get(&Owner::of(id, &owner)).cloned());
        self.disown(id, &owner);
    }

    /// Keeps an Action that has ended as its class says, if an object that generated it was deleted
    /// and has left it.
    fn orphaned(&mut self, id: &NamespacedName, action: &ActionObject) {
        let Some(owner) = self.ended.orphan(id, action, &self.classes) else { return };
        self.queue.add(self.owners.get(&Owner::of(id, &owner)).cloned());
        self.disown(id, &owner);
        self.queue.add([WorkItem::Outdated]);
    }

    /// Ceases to know an Action as generated by the object with a uid.
    fn disown(&mut self, id: &NamespacedName, owner: &str) {
        let owner = Owner::of(id, owner);
        let Some(made) = self.generated.get_mut(&owner) else { return };
        made.remove(id);
        if made.is_empty() {
            self.generated.remove(&owner);
            self.owners.remove(&owner);
        }
    }

    /// Makes the Actions due that have not begun after a change of classes or policies, and
    /// publishes the guarded classes.
    fn rules_changed(&mut self) {
        self.actions_due(|it| is_judged_again(it.status.state));
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

/// Returns whether other classes or policies may decide otherwise about an Action in a state.
fn is_judged_again(state: ActionState) -> bool {
    match state {
        // A policy may not ask for an approval any more.
        ActionState::Pending | ActionState::WaitingForApproval => true,
        // Policies are asked again before each write.
        ActionState::Running => false,
        ActionState::Succeeded | ActionState::Failed | ActionState::Cancelled => false,
    }
}

/// Returns the object that generated an Action; `None` if none did.
fn generator_of(object: &Value) -> Option<WorkItem> {
    let metadata = &object["metadata"];
    let mut owners = metadata["ownerReferences"].as_array()?.iter();
    let owner = owners.find(|it| it["controller"] == true)?;
    let is_kind = |it: &&ApiKind| {
        let group = owner["apiVersion"].as_str().and_then(|it| it.split('/').next());
        owner["kind"] == it.kind && group == Some(it.group)
    };
    let kind = GENERATORS.iter().find(is_kind)?.kind;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (namespace, name) = (text(&metadata["namespace"]), text(&owner["name"]));
    Some(WorkItem::Generator(kind, NamespacedName { namespace, name }))
}

/// Returns whether the API server has a status to which only the progress is to be added that could
/// not be written: no other controller has continued or ended the Action.
fn is_behind(shown: &ActionStatus, unsaved: &ActionStatus) -> bool {
    shown.attempts == unsaved.attempts && !shown.state.is_final()
}

/// Returns whether a resourceVersion is newer than another one. They are compared as numbers.
pub(super) fn is_newer(revision: &str, other: &str) -> bool {
    let number = |text: &str| text.parse::<u64>().unwrap_or_default();
    number(revision) > number(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_that_have_not_begun_follow_changes_of_policies() {
        let check = |state: ActionState, expected: bool| {
            assert_eq!(is_judged_again(state), expected, "{state:?}");
        };
        check(ActionState::Pending, true);
        check(ActionState::WaitingForApproval, true);
        check(ActionState::Running, false);
        check(ActionState::Succeeded, false);
        check(ActionState::Failed, false);
        check(ActionState::Cancelled, false);
    }
}
