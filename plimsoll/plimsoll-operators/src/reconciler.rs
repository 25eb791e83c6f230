//! The state machine that carries out decisions on Operators. Its inputs are events: what the cluster, the
//! catalogs and executions report. Its outputs are effects: what to read, write, execute, delete and report.
//!
//! # From an Operator to its objects
//!
//! 1. [`decide`](super::decide) selects a bundle. Its content is read and rendered
//!    ([`OperatorEffect::ReadBundle`]).
//! 2. The objects that it would apply are inspected ([`OperatorEffect::InspectObjects`]): one with another
//!    owner blocks it before anything is changed (OPR-27).
//! 3. The objects are recorded in OperatorRevisions ([`OperatorEffect::WriteRevision`]): users can read what
//!    is executed, and a new leader needs no catalog. The revisions of a change set are all made before one
//!    of them is rolled out (`change_sets`).
//! 4. The revision is rolled out as a plan, by the same state machine as a release
//!    ([`plimsoll_plan::reconciler::execution`]); from then on drift is reverted.
//! 5. Objects of earlier revisions that this one lacks are deleted ([`super::deletion`]), except for
//!    definitions: their objects belong to users, and are kept until the Operator is deleted.
//!
//! The cluster has the whole state: a new leader reads Operators and OperatorRevisions and continues.

mod act;
mod affected;
mod catalogs;
mod change_sets;
mod configuration;
mod deletion;
mod events;
mod execution;
mod handler;
mod held_revisions;
mod history;
mod indexes;
mod messages;
mod observed;
mod parse;
mod prepare;
mod preview;
mod removal;
mod report;
mod revision;
mod shown;
mod track;
mod unreadable;
mod unserved;
mod way_back;

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_api::GroupKind;
use plimsoll_api::olm::CatalogSource;
use plimsoll_plan::plan::GroupVersionKind;
use plimsoll_plan::progress::{NamespaceState, Scope};
use plimsoll_plan::reconciler::Uptime;
use plimsoll_plan::reconciler::counters::Counters;
use plimsoll_plan::reconciler::discovery::GroupVersion;
use plimsoll_plan::reconciler::execution::{ExecutionEvent, Observation};
use plimsoll_resolve::{CatalogPart, ClusterFacts, Expressions};

use self::catalogs::TrackedCatalog;
use self::handler::{ObservedCluster, OperatorHandler, Output, Peers};
use self::indexes::Indexes;
use self::revision::WrittenRevision;
use self::shown::ShownRevision;
use self::track::TrackedOperator;
use super::decide::decide_indexed;
use super::dependency_index::DependencyIndex;
use super::installed::OperatorIndex;
use super::inventory::OperatorInventory;
use super::revision_key::RevisionKey;
use super::{OperatorInputs, RequestedOperator, change_set};

pub use self::events::{
    CatalogContent, ContainedObject, Findings, FoundObject, Moment, OperatorEffect, OperatorEvent,
    OperatorKind, UnservedKind, WrittenPart,
};
pub use self::messages::{refused_definitions, unsafe_definitions};
pub use self::observed::{ObservedObject, WatchedChange};
pub use self::prepare::{Claim, claim};
pub use self::preview::{kept_content, preview_plan};
pub use self::revision::{REVISIONS_KEPT, RevisionContent};

/// The state of the add-on layer. It routes each event to the Operators that it concerns, and owns what spans
/// several Operators: the decisions, the indexes, and the order in which Operators are handled.
#[derive(Debug, Clone, Default)]
pub struct OperatorReconciler {
    operators: BTreeMap<String, TrackedOperator>,
    /// The inputs of decisions, by Operator.
    requested: BTreeMap<String, RequestedOperator>,
    catalogs: BTreeMap<String, TrackedCatalog>,
    listed: BTreeSet<OperatorKind>,
    facts: Option<ClusterFacts>,
    dependencies: DependencyIndex,
    indexes: Indexes,
    /// The index of what Operators provide, require and own.
    installed: OperatorIndex,
    /// The OperatorRevisions whose Operator was not shown yet, or was deleted, by name.
    unclaimed: BTreeMap<String, ShownRevision>,
    /// The existing OperatorRevisions, by name.
    written_revisions: BTreeMap<String, WrittenRevision>,
    /// The key that signs OperatorRevisions; without one, none is recognized.
    key: Option<RevisionKey>,
    cluster: ObservedCluster,
    output: Output,
}

impl OperatorReconciler {
    /// Creates the reconciler of a cluster that serves some kinds. It uses the OperatorRevisions that have the
    /// signature of a key, and no others.
    pub fn new(
        served: impl IntoIterator<Item = (GroupVersionKind, Scope)>,
        key: RevisionKey,
    ) -> Self {
        let mut reconciler = Self { key: Some(key), ..Self::default() };
        reconciler.cluster.served.extend(served);
        reconciler
    }

    /// Returns whether all inputs of decisions were shown once.
    fn is_informed(&self) -> bool {
        use OperatorKind::{Catalog, Operator, Revision};
        self.facts.is_some()
            && [Operator, Revision, Catalog].iter().all(|kind| self.listed.contains(kind))
            // A catalog is read as soon as it is shown. Decisions wait for that, so that none reports one of
            // its packages as missing.
            && self.catalogs.values().all(TrackedCatalog::was_read)
    }

    /// Returns the Operators to decide on, with the other members of their change sets; none before all
    /// inputs of decisions are known.
    pub fn undecided(&self) -> BTreeSet<String> {
        if !self.is_informed() {
            return BTreeSet::new();
        }
        let mut names = self.output.undecided.clone();
        let set_of = |name: &String| change_set::of(self.requested.get(name)?)?.ok();
        let sets: BTreeSet<_> = self.output.undecided.iter().filter_map(set_of).collect();
        if !sets.is_empty() {
            let others = self.requested.keys();
            names.extend(
                others.filter(|it| set_of(it).is_some_and(|it| sets.contains(&it))).cloned(),
            );
        }
        names
    }

    /// Returns the inventory to plan from, without the Operators as the API server has them; `None` before it
    /// is known.
    pub fn inventory(&self) -> Option<OperatorInventory> {
        let facts = self.facts.as_ref().filter(|_| self.is_informed())?;
        Some(OperatorInventory {
            operators: self.requested.clone(),
            observed: BTreeMap::new(),
            of_release: BTreeSet::new(),
            unavailable: catalogs::unavailable(&self.catalogs),
            offered: BTreeSet::new(),
            facts: facts.clone(),
        })
    }

    /// Returns the names of all Operators, which are the packages that are needed from catalogs.
    pub fn operator_names(&self) -> impl Iterator<Item = &String> {
        self.operators.keys()
    }

    /// Decides on Operators. `offered` returns the served catalogs, each with those of the given packages
    /// that it has.
    pub fn decide(
        &mut self,
        names: &BTreeSet<String>,
        offered: &dyn Fn(&BTreeSet<String>) -> Vec<CatalogPart>,
        expressions: &dyn Expressions,
        moment: Moment,
    ) -> Vec<OperatorEffect> {
        let Some(facts) = &self.facts else { return Vec::new() };
        let unavailable = catalogs::unavailable(&self.catalogs);
        let inputs = OperatorInputs {
            operators: &self.requested,
            unavailable: &unavailable,
            facts,
            expressions,
        };
        let decisions = decide_indexed(inputs, &self.installed, names, offered);
        self.output.undecided.retain(|name| !names.contains(name));
        for (name, decision) in decisions {
            if let Some(operator) = self.operators.get_mut(&name) {
                operator.decided(&name, decision);
                self.decision_changed(&name);
                self.output.pending.insert(name);
            }
        }
        self.process_pending(moment)
    }

    /// Returns whether a requirement of an installed bundle may be an expression: then the bundles that are
    /// offered need their properties.
    pub fn sees_properties(&self) -> bool {
        self.installed.sees_properties()
    }

    /// Returns the served catalogs by name, each with its weight.
    pub fn served_catalogs(&self) -> impl Iterator<Item = (&str, i64)> {
        let served = self.catalogs.iter().filter(|(_, it)| it.is_served());
        served.map(|(name, it)| (name.as_str(), it.weight()))
    }

    /// Returns the sources of the served catalogs, by name.
    pub fn catalog_sources(&self) -> BTreeMap<String, CatalogSource> {
        let served = self.catalogs.iter().filter(|(_, it)| it.is_served());
        served.map(|(name, it)| (name.clone(), it.source().clone())).collect()
    }

    /// Handles an event and returns what to do next.
    pub fn handle(&mut self, event: OperatorEvent, moment: Moment) -> Vec<OperatorEffect> {
        match event {
            OperatorEvent::Configuration { kind, name, object } => match kind {
                OperatorKind::Operator => self.operator_changed(&name, object.as_deref(), moment),
                OperatorKind::Revision => self.revision_changed(&name, object.as_deref(), moment),
                OperatorKind::Catalog => self.catalog_changed(&name, object.as_deref(), moment),
            },
            OperatorEvent::ConfigurationListed(kind) => self.configuration_listed(kind),
            OperatorEvent::Facts(facts) => {
                if self.facts.as_ref() != Some(&facts) {
                    self.facts = Some(*facts);
                    self.output.undecided.extend(self.operators.keys().cloned());
                }
            }
            OperatorEvent::CatalogRead { name, ticket, content } => {
                self.catalog_read(&name, ticket, content, moment);
            }
            OperatorEvent::BundleRead { operator, ticket, content } => {
                self.with(&operator, moment, |it| it.bundle_read(ticket, content));
            }
            OperatorEvent::ObjectsInspected { operator, ticket, findings } => {
                self.with(&operator, moment, |it| it.objects_inspected(ticket, findings));
            }
            OperatorEvent::RevisionWritten { operator, ticket, result } => {
                self.with(&operator, moment, |it| it.revision_written(ticket, result));
            }
            OperatorEvent::Written { kind: OperatorKind::Catalog, name, is_written, .. } => {
                self.catalog_status_written(&name, is_written, moment);
            }
            OperatorEvent::Written { name, what, is_written, .. } => {
                self.with(&name, moment, |it| it.written(what, is_written));
                self.reindex(&name, moment);
            }
            OperatorEvent::Watched(kind, change) => self.watched(&kind, &change, moment),
            OperatorEvent::OperandWatched(definition, change) => {
                let operands = &mut self.cluster.objects.operands;
                operands.entry(definition).or_default().change(&change);
                self.mark_deleting_pending();
            }
            OperatorEvent::Namespace(name, state) => self.namespace_changed(&name, state, moment),
            OperatorEvent::Definition(group, plural) => {
                self.definition_changed(&group, &plural, moment);
            }
            OperatorEvent::Executed { operator, run, step, outcome } => {
                self.with(&operator, moment, |it| it.executed(run, step, outcome));
            }
            OperatorEvent::Discovered(version, kinds) => self.discovered(&version, &kinds, moment),
            OperatorEvent::DeletionAnswered { operator, uid, result } => {
                self.with(&operator, moment, |it| it.deletion_answered(&uid, result));
            }
            OperatorEvent::ConversionRemoved { operator, uid, result } => {
                self.with(&operator, moment, |it| it.conversion_removed(&uid, result));
            }
            OperatorEvent::NamespaceRead { operator, namespace, objects } => {
                self.with(&operator, moment, |it| it.namespace_read(&namespace, objects));
            }
            OperatorEvent::KindsFound { operator, kinds } => {
                self.with(&operator, moment, |it| it.kinds_found(kinds));
            }
            OperatorEvent::DefinitionRead { operator, definition } => {
                self.with(&operator, moment, |it| it.definition_read(definition));
            }
            OperatorEvent::ReleaseRead { operator, objects } => {
                self.with(&operator, moment, |it| it.release_read(objects));
            }
        }
        self.process_pending(moment)
    }

    /// Continues with what is due, and returns what to do next.
    pub fn handle_timeout(&mut self, moment: Moment) -> Vec<OperatorEffect> {
        for name in self.indexes.wakes.due(moment.uptime) {
            self.with(&name, moment, |it| it.timed_out());
            self.output.pending.insert(name);
        }
        self.process_pending(moment)
    }

    /// Returns when to call [`Self::handle_timeout`] if there is no event before.
    pub fn wake_at(&self) -> Option<Uptime> {
        let catalogs = self.catalogs.values().filter_map(TrackedCatalog::wake_at);
        self.indexes.wakes.first().into_iter().chain(catalogs).min()
    }

    /// Returns a group version to discover now, which an Operator waits for.
    pub fn next_discovery(&mut self, moment: Moment) -> Option<GroupVersion> {
        self.indexes.discoveries.due(moment.uptime).into_iter().find_map(|name| {
            let rollout = self.operators.get_mut(&name)?.rollout.as_mut()?;
            let version = rollout.execution.next_discovery(moment.uptime);
            self.reindex(&name, moment);
            version
        })
    }

    /// Returns when to call [`Self::next_discovery`]; `None` if no Operator waits for discovery.
    pub fn discover_at(&self) -> Option<Uptime> {
        self.indexes.discoveries.first()
    }

    /// Returns the executed steps of all Operators, counted.
    pub fn counters(&self) -> &Counters {
        &self.output.counters
    }

    /// Returns the number of objects that were repaired after another client changed or deleted them.
    pub fn drift_repairs(&self) -> u64 {
        self.output.drift_repairs
    }

    /// Lets an Operator handle something; nothing if there is no such Operator.
    fn with(&mut self, name: &str, moment: Moment, handle: impl FnOnce(&mut OperatorHandler<'_>)) {
        let Some((key, mut operator)) = self.operators.remove_entry(name) else { return };
        let mut handler = OperatorHandler {
            name,
            operator: &mut operator,
            peers: Peers { operators: &self.operators, indexes: &self.indexes },
            requested: &self.requested,
            catalogs: &self.catalogs,
            facts: self.facts.as_ref(),
            written_revisions: &self.written_revisions,
            key: self.key.as_ref(),
            cluster: &mut self.cluster,
            output: &mut self.output,
            moment,
            is_request_outdated: false,
        };
        handle(&mut handler);
        let is_request_outdated = handler.is_request_outdated;
        self.operators.insert(key, operator);
        if is_request_outdated {
            self.refresh_request(name);
        }
    }

    /// Determines the next steps of everything that changed, and what to report.
    fn process_pending(&mut self, moment: Moment) -> Vec<OperatorEffect> {
        self.read_catalogs(moment);
        while let Some(name) = self.output.pending.pop_first() {
            self.with(&name, moment, |it| it.reconcile());
            self.with(&name, moment, |it| it.report());
            self.reindex(&name, moment);
        }
        self.report_catalogs(moment);
        std::mem::take(&mut self.output.effects)
    }

    /// Passes an observation to the rollout of an Operator.
    fn observe(&mut self, name: &str, observation: Observation, moment: Moment) {
        let event = ExecutionEvent::Observed(observation);
        self.with(name, moment, |it| it.execute(event));
    }

    /// Handles a change that a watch showed.
    fn watched(&mut self, kind: &GroupKind, change: &WatchedChange, moment: Moment) {
        let before = self.cluster.objects.change(kind, change);
        let previous = before.map(|it| it.operator).unwrap_or_default();
        match change {
            WatchedChange::Present(object) => {
                if previous != object.operator {
                    // Without the label, the object does not belong to the Operator until it is applied
                    // again.
                    let gone = observed::gone(&object.key, object.mark.revision);
                    self.observe(&previous, gone, moment);
                }
                for observation in object.observations() {
                    self.observe(&object.operator, observation, moment);
                }
                if object.whole.is_some() {
                    self.refresh_request(&object.operator);
                    self.output.undecided.insert(object.operator.clone());
                }
                self.output.pending.insert(object.operator.clone());
            }
            WatchedChange::Gone { key, revision } => {
                self.observe(&previous, observed::gone(key, *revision), moment);
                self.output.pending.insert(previous);
                if kind.group.is_empty() && kind.kind == "Namespace" {
                    // The deletion of a shared namespace may be for another Operator than the one in its
                    // label.
                    self.mark_deleting_pending();
                }
            }
            WatchedChange::Listed => {
                let has_kind =
                    |it: &TrackedOperator| it.rollout.as_ref().is_some_and(|it| it.has_kind(kind));
                let operators = self.operators.iter().filter(|(_, it)| has_kind(it));
                let names: Vec<String> = operators.map(|(name, _)| name.clone()).collect();
                for name in names {
                    self.observe(&name, Observation::Listed(kind.clone()), moment);
                }
                self.mark_deleting_pending();
            }
        }
    }

    /// Handles a change of a namespace.
    fn namespace_changed(
        &mut self,
        namespace: &str,
        state: Option<NamespaceState>,
        moment: Moment,
    ) {
        let namespaces = &mut self.cluster.objects.namespaces;
        match state {
            Some(state) => namespaces.insert(namespace.to_owned(), state),
            None => namespaces.remove(namespace),
        };
        for name in self.rolling_out_in(namespace) {
            let observation = Observation::Namespace { name: namespace.to_owned(), state };
            self.observe(&name, observation, moment);
        }
    }

    /// Handles a change of a definition: rollouts that wait for its kind request discovery soon, and revisions
    /// that were refused for its lack are judged again.
    fn definition_changed(&mut self, group: &str, plural: &str, moment: Moment) {
        let waiting = self.rolling_out_group(group, |it| it.execution.discover_at().is_some());
        for name in waiting {
            let (group, plural) = (group.to_owned(), plural.to_owned());
            self.observe(&name, Observation::Definition { group, plural }, moment);
        }
        let refused = self.operators.iter().filter(|(_, it)| it.unserved.contains(group));
        let refused: Vec<String> = refused.map(|(name, _)| name.clone()).collect();
        for name in refused {
            self.with(&name, moment, |it| it.try_again());
        }
    }

    /// Handles the result of discovery.
    fn discovered(
        &mut self,
        version: &GroupVersion,
        kinds: &[(GroupVersionKind, Scope)],
        moment: Moment,
    ) {
        self.cluster.served.extend(kinds.iter().cloned());
        let is_of =
            |kind: &GroupVersionKind| (&kind.group, &kind.version) == (&version.0, &version.1);
        let concerned = self.rolling_out_group(&version.0, |it| it.kinds.iter().any(is_of));
        for name in concerned {
            let event = ExecutionEvent::Discovered(version.clone(), kinds.to_vec());
            self.with(&name, moment, |it| it.execute(event));
        }
    }

    /// Requests the next step of the Operators that are being deleted, or have objects of earlier revisions
    /// to delete.
    fn mark_deleting_pending(&mut self) {
        let is_deleting =
            |it: &TrackedOperator| it.removal.is_some() || it.object.deleted.is_some();
        let deleting = self.operators.iter().filter(|(_, it)| is_deleting(it));
        self.output.pending.extend(deleting.map(|(name, _)| name.clone()));
    }
}

#[cfg(test)]
mod tests;
