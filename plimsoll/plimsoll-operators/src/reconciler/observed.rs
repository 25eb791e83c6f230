//! The objects of all Operators and of the kinds that they define, as shared watches show them.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_api::{CLUSTER_OPERATOR, GroupKind, ObjectKey, Verdict};
use plimsoll_plan::progress::{Mark, NamespaceState, Trace};
use plimsoll_plan::reconciler::execution::Observation;
use plimsoll_plan::removal::Terminating;
use plimsoll_plan::update::upgradeable::{NotUpgradeable, objection_of};
use serde_json::Value;

use super::revision::KeptRevision;
use crate::deletion::LiveObject;

/// An object as a watch shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct ObservedObject {
    /// The key of the object.
    pub key: ObjectKey,
    /// The Operator that its label names; empty without one.
    pub operator: String,
    /// The uid of the object.
    pub uid: String,
    /// The uids of its owners.
    pub owners: BTreeSet<String>,
    /// The revision, and whether this program applied it for that Operator.
    pub mark: Mark,
    /// The health; `None` for kinds without one.
    pub health: Option<Verdict>,
    /// The deletion timestamp, and what blocks the deletion; `None` if it is not terminating.
    pub terminating: Option<Terminating>,
    /// The whole object, for a ClusterOperator; `None` for other kinds.
    pub whole: Option<Value>,
}

impl ObservedObject {
    /// Returns whether this program applied it for the Operator in its label. The label of an object that
    /// another client, or the release, applied proves nothing.
    pub(super) fn is_ours(&self) -> bool {
        matches!(self.mark.trace, Trace::Ours(_))
    }

    /// Returns what a rollout observes of it.
    pub(super) fn observations(&self) -> Vec<Observation> {
        let operator = self.whole.as_ref().map(|whole| Observation::Operator {
            name: self.key.name.clone(),
            revision: self.mark.revision,
            object: Some(whole.clone()),
        });
        let object = Observation::Object {
            key: self.key.clone(),
            mark: self.mark,
            health: self.health.clone(),
            terminating: self.terminating.clone(),
        };
        operator.into_iter().chain([object]).collect()
    }

    /// Returns the parts that a deletion needs.
    pub(super) fn live(&self) -> LiveObject {
        LiveObject {
            key: self.key.clone(),
            uid: self.uid.clone(),
            owners: self.owners.clone(),
            terminating: self.terminating.clone(),
        }
    }
}

/// Returns the observation that an object was deleted, at a revision.
pub(super) fn gone(key: &ObjectKey, revision: u64) -> Observation {
    let mark = Mark::new(revision, Trace::Gone);
    Observation::Object { key: key.clone(), mark, health: None, terminating: None }
}

/// A change that a watch showed.
#[derive(Debug, Clone, PartialEq)]
pub enum WatchedChange {
    /// An object exists.
    Present(Box<ObservedObject>),
    /// An object was deleted.
    Gone {
        /// The key of the object.
        key: ObjectKey,
        /// The revision of its deletion.
        revision: u64,
    },
    /// All existing objects of the kind were shown.
    Listed,
}

/// The objects of one kind.
#[derive(Debug, Clone, Default)]
pub(super) struct ObservedKind {
    pub(super) is_listed: bool,
    objects: BTreeMap<ObjectKey, ObservedObject>,
}

impl ObservedKind {
    /// Applies a change, and returns the previous state of the object.
    pub(super) fn change(&mut self, change: &WatchedChange) -> Option<ObservedObject> {
        match change {
            WatchedChange::Present(object) => {
                self.objects.insert(object.key.clone(), ObservedObject::clone(object))
            }
            WatchedChange::Gone { key, .. } => self.objects.remove(key),
            WatchedChange::Listed => {
                self.is_listed = true;
                None
            }
        }
    }

    pub(super) fn objects(&self) -> impl Iterator<Item = &ObservedObject> {
        self.objects.values()
    }
}

/// The observed objects of the cluster.
#[derive(Debug, Clone, Default)]
pub(super) struct Observed {
    /// The objects with the label of an Operator, by kind; kinds that are not watched are missing.
    pub(super) kinds: BTreeMap<GroupKind, ObservedKind>,
    /// The keys of these objects, by the Operator in the label.
    labelled: BTreeMap<String, BTreeSet<ObjectKey>>,
    /// All objects of kinds that Operators define, by the name of the definition.
    pub(super) operands: BTreeMap<String, ObservedKind>,
    /// The existing namespaces, with their states.
    pub(super) namespaces: BTreeMap<String, NamespaceState>,
}

impl Observed {
    /// Applies a change of an object that may have the label of an Operator, and returns its previous state.
    pub(super) fn change(
        &mut self,
        kind: &GroupKind,
        change: &WatchedChange,
    ) -> Option<ObservedObject> {
        let before = self.kinds.entry(kind.clone()).or_default().change(change);
        if let Some(before) = &before
            && let Some(keys) = self.labelled.get_mut(&before.operator)
        {
            keys.remove(&before.key);
            if keys.is_empty() {
                self.labelled.remove(&before.operator);
            }
        }
        if let WatchedChange::Present(object) = change
            && !object.operator.is_empty()
        {
            let keys = self.labelled.entry(object.operator.clone()).or_default();
            keys.insert(object.key.clone());
        }
        before
    }

    /// Returns the objects with the label of an Operator.
    pub(super) fn labelled(&self, name: &str) -> impl Iterator<Item = &ObservedObject> {
        let keys = self.labelled.get(name).into_iter().flatten();
        keys.filter_map(|key| self.kinds.get(&key.group_kind())?.objects.get(key))
    }

    /// Returns a namespace; `None` if the watch of namespaces has not shown it.
    pub(super) fn namespace(&self, name: &str) -> Option<&ObservedObject> {
        let key = ObjectKey {
            group: String::new(),
            kind: "Namespace".to_owned(),
            namespace: String::new(),
            name: name.to_owned(),
        };
        self.kinds.get(&key.group_kind())?.objects.get(&key)
    }

    /// Returns the reason that a ClusterOperator of an Operator is not upgradeable, as a sentence; `None` if
    /// there is no such ClusterOperator.
    pub(super) fn upgrade_block(&self, operator: &str) -> Option<String> {
        let kind = GroupKind::new(CLUSTER_OPERATOR.group, CLUSTER_OPERATOR.kind);
        let mut found = self.labelled(operator).filter(|it| it.key.group_kind() == kind);
        found.find_map(|object| {
            let NotUpgradeable { operator, reason, message } =
                objection_of(object.whole.as_ref()?)?;
            Some(format!("ClusterOperator {operator}: {message} ({reason})"))
        })
    }

    /// Returns the workloads of an Operator that are not available, as sentences. Those that no watch has
    /// shown yet are not included.
    pub(super) fn unavailable(&self, operator: &str) -> Vec<String> {
        let objects = self.of_operator(operator).into_iter();
        let messages = objects.filter_map(|it| match &it.health {
            Some(Verdict::Waiting { message, .. }) => Some(message.clone()),
            Some(Verdict::Ready | Verdict::ReadyWith { .. }) | None => None,
        });
        messages.collect()
    }

    /// Returns the workloads of a revision that do not exist, as sentences.
    pub(super) fn missing_workloads(&self, revision: &KeptRevision) -> Vec<String> {
        let runs_on = |key: &ObjectKey| {
            key.group == "apps"
                && matches!(key.kind.as_str(), "Deployment" | "DaemonSet" | "StatefulSet")
        };
        let keys = revision.manifests().map(|it| &it.key).filter(|it| runs_on(it));
        let is_missing = |key: &&ObjectKey| {
            let kind = self.kinds.get(&key.group_kind()).filter(|it| it.is_listed);
            kind.is_some_and(|it| !it.objects.contains_key(*key))
        };
        keys.filter(is_missing).map(|key| format!("{key} does not exist")).collect()
    }

    /// Returns the objects that were applied for an Operator, without those to which another client added its
    /// label.
    pub(super) fn of_operator(&self, name: &str) -> Vec<&ObservedObject> {
        self.labelled(name).filter(|it| it.is_ours()).collect()
    }
}
