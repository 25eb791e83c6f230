//! The handler of an Operator: its state, with what it reads and writes beside it.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_api::{GroupKind, ObjectKey};
use plimsoll_plan::plan::GroupVersionKind;
use plimsoll_plan::progress::Scope;
use plimsoll_plan::reconciler::counters::Counters;
use plimsoll_plan::reconciler::events::EventDraft;
use plimsoll_plan::reconciler::watches::WatchScope;
use plimsoll_resolve::ClusterFacts;

use super::catalogs::TrackedCatalog;
use super::events::{Moment, OperatorEffect};
use super::indexes::Indexes;
use super::observed::Observed;
use super::revision::WrittenRevision;
use super::track::TrackedOperator;
use crate::RequestedOperator;
use crate::revision_key::RevisionKey;

/// The handler of an Operator for one event. Its methods change the Operator alone; the other Operators, the
/// catalogs and the facts are borrowed to read.
pub(super) struct OperatorHandler<'a> {
    pub(super) name: &'a str,
    pub(super) operator: &'a mut TrackedOperator,
    pub(super) peers: Peers<'a>,
    /// The inputs of decisions, by Operator.
    pub(super) requested: &'a BTreeMap<String, RequestedOperator>,
    pub(super) catalogs: &'a BTreeMap<String, TrackedCatalog>,
    /// The facts about the cluster; `None` before they were read.
    pub(super) facts: Option<&'a ClusterFacts>,
    /// The existing OperatorRevisions of all Operators, by name.
    pub(super) written_revisions: &'a BTreeMap<String, WrittenRevision>,
    /// The key that signs OperatorRevisions.
    pub(super) key: Option<&'a RevisionKey>,
    pub(super) cluster: &'a mut ObservedCluster,
    pub(super) output: &'a mut Output,
    pub(super) moment: Moment,
    /// Whether the inputs of decisions no longer agree with the Operator.
    pub(super) is_request_outdated: bool,
}

/// The other Operators.
#[derive(Clone, Copy)]
pub(super) struct Peers<'a> {
    pub(super) operators: &'a BTreeMap<String, TrackedOperator>,
    pub(super) indexes: &'a Indexes,
}

/// The cluster as discovery and watches show it.
#[derive(Debug, Clone, Default)]
pub(super) struct ObservedCluster {
    pub(super) objects: Observed,
    pub(super) served: BTreeMap<GroupVersionKind, Scope>,
    /// The watched kinds, each with how much of its objects is watched.
    watched: BTreeMap<GroupKind, WatchScope>,
}

impl ObservedCluster {
    /// Returns a served version of a kind, that one if it is served; `None` if no version is.
    pub(super) fn served_version(&self, kind: &GroupVersionKind) -> Option<GroupVersionKind> {
        if self.served.contains_key(kind) {
            return Some(kind.clone());
        }
        let is_same = |it: &&GroupVersionKind| it.group == kind.group && it.kind == kind.kind;
        self.served.keys().find(is_same).cloned()
    }
}

/// The output of handlers.
#[derive(Debug, Clone, Default)]
pub(super) struct Output {
    /// The effects to carry out, in order.
    pub(super) effects: Vec<OperatorEffect>,
    /// The Operators to decide on.
    pub(super) undecided: BTreeSet<String>,
    /// The Operators whose next step has to be determined.
    pub(super) pending: BTreeSet<String>,
    /// The executed steps, counted.
    pub(super) counters: Counters,
    /// The number of objects that were repaired after another client changed or deleted them.
    pub(super) drift_repairs: u64,
    /// The OperatorRevisions whose release was requested, by name.
    pub(super) released: BTreeSet<String>,
    /// The last ticket or run that was assigned.
    tickets: u64,
}

impl Output {
    /// Returns a new ticket or run.
    pub(super) fn ticket(&mut self) -> u64 {
        self.tickets += 1;
        self.tickets
    }
}

impl OperatorHandler<'_> {
    /// Requests that the next step of the Operator is determined.
    pub(super) fn mark_pending(&mut self) {
        self.output.pending.insert(self.name.to_owned());
    }

    /// Emits an event about the Operator.
    pub(super) fn emit(&mut self, draft: EventDraft) {
        let (operator, uid) = (self.name.to_owned(), self.operator.object.uid.clone());
        self.output.effects.push(OperatorEffect::Emit { operator, uid, draft });
    }

    /// Starts the watch of a kind unless it exists, and has its objects watched whole if they are `needed` so.
    pub(super) fn watch(&mut self, kind: GroupVersionKind, needed: WatchScope) {
        let group_kind = GroupKind::new(&kind.group, &kind.kind);
        let scope = match (WatchScope::of_operators(&group_kind), needed) {
            (WatchScope::Metadata, WatchScope::Workloads) => WatchScope::Workloads,
            (scope, _) => scope,
        };
        let watched = self.cluster.watched.get(&group_kind);
        if watched.is_none_or(|it| *it != scope && scope != WatchScope::Metadata) {
            self.cluster.watched.insert(group_kind, scope);
            self.output.effects.push(OperatorEffect::Watch(kind, scope));
        }
    }
}

impl<'a> Peers<'a> {
    /// Returns another Operator that holds an object and satisfies `is_meant`; `None` if there is none.
    pub(super) fn holder(
        self,
        key: &ObjectKey,
        is_meant: impl Fn(&TrackedOperator) -> bool,
    ) -> Option<&'a str> {
        let has = |it: &TrackedOperator| {
            it.held().flat_map(|(_, it)| it.manifests()).any(|it| it.key.may_be(key))
        };
        self.indexes
            .holding(key)
            .find(|name| self.operators.get(*name).is_some_and(|peer| is_meant(peer) && has(peer)))
    }

    /// Returns those of the objects that another Operator holds, each with that Operator.
    pub(super) fn holders<'k>(
        self,
        keys: &BTreeSet<&'k ObjectKey>,
    ) -> BTreeMap<&'k ObjectKey, &'a str> {
        let holder = |key| Some((key, self.holder(key, |_| true)?));
        keys.iter().copied().filter_map(holder).collect()
    }

    /// Returns whether an Operator was deleted or is being deleted.
    pub(super) fn is_gone(self, name: &str) -> bool {
        self.operators.get(name).is_none_or(|it| it.object.deleted.is_some())
    }

    /// Returns whether another Operator, which is not being deleted, is installed in a namespace or about to
    /// be.
    pub(super) fn use_namespace(self, namespace: &str) -> bool {
        self.operators.values().any(|it| {
            let is_there = it.object.spec.namespace == namespace
                || it.revisions.values().any(|revision| revision.namespace == namespace);
            it.object.deleted.is_none() && is_there
        })
    }

    /// Returns whether the deletion of another Operator needs the operands of a definition.
    pub(super) fn watch_operands(self, definition: &str) -> bool {
        let mut removals = self.operators.values().filter_map(|it| it.removal.as_ref());
        removals.any(|it| it.watches(definition))
    }
}
