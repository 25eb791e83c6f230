//! The objects of all Operators and of their kinds, as watches that they share show them.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_api::{CLUSTER_OPERATOR, GroupKind, ObjectKey, Verdict};
use plimsoll_plan::progress::{Mark, NamespaceState, Trace};
use plimsoll_plan::removal::Terminating;
use plimsoll_plan::update::upgradeable::{NotUpgradeable, objection_of};
use serde_json::Value;

use crate::deletion::LiveObject;

/// An object as a watch shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct ObservedObject {
    /// The object.
    pub key: ObjectKey,
    /// The Operator that its label names; empty without one.
    pub operator: String,
    /// Its uid.
    pub uid: String,
    /// The uids of its owners.
    pub owners: BTreeSet<String>,
    /// Its revision, and what of it is ours.
    pub mark: Mark,
    /// Its health; `None` where none is awaited.
    pub health: Option<Verdict>,
    /// Since when it is terminating, and why it still exists; `None` when it is not.
    pub terminating: Option<Terminating>,
    /// All of it, for a ClusterOperator; `None` for other kinds.
    pub whole: Option<Value>,
}

impl ObservedObject {
    /// Whether it was applied by this program: what others label is theirs.
    pub(super) fn is_ours(&self) -> bool {
        matches!(self.mark.trace, Trace::Ours(_))
    }

    /// Returns what a deletion needs to know of the object.
    pub(super) fn live(&self) -> LiveObject {
        let terminating = self.terminating.as_ref();
        LiveObject {
            key: self.key.clone(),
            uid: self.uid.clone(),
            owners: self.owners.clone(),
            terminating_since: terminating.map(|it| it.since),
            finalizers: terminating.map(|it| it.finalizers.clone()).unwrap_or_default(),
        }
    }
}

/// What a watch of objects showed.
#[derive(Debug, Clone, PartialEq)]
pub enum WatchedChange {
    /// An object as it is.
    Present(Box<ObservedObject>),
    /// An object is gone.
    Gone {
        /// The object.
        key: ObjectKey,
        /// The revision of its deletion.
        revision: u64,
    },
    /// All objects of the kind that exist have been shown.
    Listed,
}

/// The objects of one kind.
#[derive(Debug, Clone, Default)]
pub(super) struct ObservedKind {
    pub(super) is_listed: bool,
    objects: BTreeMap<ObjectKey, ObservedObject>,
}

impl ObservedKind {
    /// Takes note of a change; the object as it was known before.
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

/// What is known of the cluster's objects.
#[derive(Debug, Clone, Default)]
pub(super) struct Observed {
    /// The objects that name an Operator, by kind; those of kinds that are not watched are missing.
    pub(super) kinds: BTreeMap<GroupKind, ObservedKind>,
    /// The objects that name an Operator, by that.
    labelled: BTreeMap<String, BTreeSet<ObjectKey>>,
    /// All objects of kinds that Operators define, by the name of the definition.
    pub(super) operands: BTreeMap<String, ObservedKind>,
    /// The namespaces that exist.
    pub(super) namespaces: BTreeMap<String, NamespaceState>,
}

impl Observed {
    /// Takes note of a change of an object that may name an Operator; the object as it was known
    /// before.
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

    /// The objects that name an Operator.
    pub(super) fn labelled(&self, name: &str) -> impl Iterator<Item = &ObservedObject> {
        let keys = self.labelled.get(name).into_iter().flatten();
        keys.filter_map(|key| self.kinds.get(&key.group_kind())?.objects.get(key))
    }

    /// A namespace that the watch of namespaces has shown; `None` if it has not.
    pub(super) fn namespace(&self, name: &str) -> Option<&ObservedObject> {
        let key = ObjectKey {
            group: String::new(),
            kind: "Namespace".to_owned(),
            namespace: String::new(),
            name: name.to_owned(),
        };
        self.kinds.get(&key.group_kind())?.objects.get(&key)
    }

    /// Why a ClusterOperator of an Operator is not upgradeable, as a sentence; `None` if it is, or if
    /// there is none.
    pub(super) fn objection(&self, operator: &str) -> Option<String> {
        let kind = GroupKind::new(CLUSTER_OPERATOR.group, CLUSTER_OPERATOR.kind);
        let mut found = self.labelled(operator).filter(|it| it.key.group_kind() == kind);
        found.find_map(|object| {
            let NotUpgradeable { operator, reason, message } =
                objection_of(object.whole.as_ref()?)?;
            Some(format!("ClusterOperator {operator}: {message} ({reason})"))
        })
    }

    /// The workloads of an Operator that are not available, as sentences. What no watch has shown yet
    /// is not said to be unavailable.
    pub(super) fn unavailable(&self, operator: &str) -> Vec<String> {
        let objects = self.of_operator(operator).into_iter();
        let messages = objects.filter_map(|it| match &it.health {
            Some(Verdict::Waiting { message, .. }) => Some(message.clone()),
            Some(Verdict::Ready | Verdict::ReadyWith { .. }) | None => None,
        });
        messages.collect()
    }

    /// The objects that name an Operator and were applied for it: what others label so is theirs.
    pub(super) fn of_operator(&self, name: &str) -> Vec<&ObservedObject> {
        self.labelled(name).filter(|it| it.is_ours()).collect()
    }
}
