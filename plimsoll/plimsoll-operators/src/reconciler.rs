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
//!    is executed, and a new leader needs no catalog.
//! 4. The revision is rolled out as a plan, by the same state machine as a release
//!    ([`plimsoll_plan::reconciler::execution`]); from then on drift is reverted.
//! 5. Objects of earlier revisions that this one lacks are deleted ([`super::deletion`]), except for
//!    definitions: their objects belong to users, and are kept until the Operator is deleted.
//!
//! The cluster has the whole state: a new leader reads Operators and OperatorRevisions and continues.

mod act;
mod catalogs;
mod concerns;
mod indexes;
mod messages;
mod observed;
mod parse;
mod prepare;
mod removal;
mod report;
mod revision;
mod track;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use plimsoll_api::ObjectKey;
use plimsoll_api::olm::{BundleReference, CatalogSource, CrdUpgradeSafety, OperatorSpec};
use plimsoll_plan::plan::{GroupVersionKind, Plan};
use plimsoll_plan::progress::{NamespaceState, Scope, StepOutcome};
use plimsoll_plan::reconciler::Uptime;
use plimsoll_plan::reconciler::discovery::GroupVersion;
use plimsoll_plan::reconciler::events::EventDraft;
use plimsoll_plan::reconciler::watches::WatchScope;
use plimsoll_resolve::{CatalogPart, ClusterFacts, Expressions};
use serde_json::Value;

use self::catalogs::TrackedCatalog;
use self::concerns::Concerns;
use self::indexes::Indexes;
use self::observed::Observed;
use self::track::{TrackedOperator, WrittenRevision};
use super::decide::decide_indexed;
use super::deletion::LiveObject;
use super::installed::OperatorIndex;
use super::inventory::OperatorInventory;
use super::{OperatorInputs, RequestedOperator, change_set};

pub use self::catalogs::CatalogContent;
pub use self::observed::{ObservedObject, WatchedChange};
pub use self::revision::{REVISIONS_KEPT, RevisionContent};

/// The kinds that configure the add-on layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OperatorKind {
    /// An Operator.
    Operator,
    /// An OperatorRevision.
    Revision,
    /// A Catalog.
    Catalog,
}

/// The current time, in three forms.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// The time of day, for reports.
    pub time: Timestamp,
    /// The time of day, unaffected by changes of the clock, for timeouts.
    pub steady: Timestamp,
    /// The time since the process started.
    pub uptime: Uptime,
}

/// An event to handle.
#[derive(Debug, Clone, PartialEq)]
pub enum OperatorEvent {
    /// An object that configures the add-on layer was created, changed or deleted.
    Configuration {
        /// The kind of the object.
        kind: OperatorKind,
        /// The name of the object.
        name: String,
        /// The object; `None` if it was deleted.
        object: Option<Box<Value>>,
    },
    /// All objects of a kind that configures the add-on layer were listed.
    ConfigurationListed(OperatorKind),
    /// The facts about the cluster were read.
    Facts(Box<ClusterFacts>),
    /// A catalog was read, or is unchanged.
    CatalogRead {
        /// The name of the catalog.
        name: String,
        /// The content, `None` if it is unchanged; or the reason that it could not be read.
        content: Result<Option<CatalogContent>, String>,
    },
    /// A bundle was read and rendered.
    BundleRead {
        /// The name of the Operator.
        operator: String,
        /// The ticket of the request.
        ticket: u64,
        /// The content of a revision, or the reason that it cannot be made.
        content: Result<Box<RevisionContent>, String>,
    },
    /// Existing objects were inspected.
    ObjectsInspected {
        /// The name of the Operator.
        operator: String,
        /// The ticket of the request.
        ticket: u64,
        /// The findings, or the reason that the objects could not be inspected.
        findings: Result<Findings, String>,
    },
    /// The OperatorRevisions of a revision were written, or could not be.
    RevisionWritten {
        /// The name of the Operator.
        operator: String,
        /// The ticket of the request.
        ticket: u64,
        /// The reason if they could not be written.
        result: Result<(), String>,
    },
    /// A finalizer or a status was written, or could not be.
    Written {
        /// The kind of the object.
        kind: OperatorKind,
        /// The name of the object.
        name: String,
        /// The part of the object.
        what: WrittenPart,
        /// Whether it was written; a failed write is retried.
        is_written: bool,
    },
    /// A watch showed a change of objects of this kind, whether or not they belong to an Operator.
    Watched(plimsoll_api::GroupKind, WatchedChange),
    /// A watch showed a change of operands, by the name of their definition.
    OperandWatched(String, WatchedChange),
    /// The state of a namespace changed; `None` if it was deleted.
    Namespace(String, Option<NamespaceState>),
    /// A CustomResourceDefinition changed, by group and plural.
    Definition(String, String),
    /// The execution of a step ended.
    Executed {
        /// The name of the Operator.
        operator: String,
        /// The run of the rollout.
        run: u64,
        /// The index of the step in the plan.
        step: usize,
        /// The outcome of the execution.
        outcome: StepOutcome,
    },
    /// Discovery of a group version ended, with the kinds that were found.
    Discovered(GroupVersion, Vec<(GroupVersionKind, Scope)>),
    /// The API server accepted or refused to delete an object.
    DeletionAnswered {
        /// The name of the Operator.
        operator: String,
        /// The uid of the object.
        uid: String,
        /// The reason if it was refused.
        result: Result<(), String>,
    },
    /// The content of a namespace was read, without objects that the cluster creates itself.
    NamespaceRead {
        /// The name of the Operator.
        operator: String,
        /// The name of the namespace.
        namespace: String,
        /// The objects, or the reason that they could not be read.
        objects: Result<Vec<ObjectKey>, String>,
    },
}

/// A part of an object that is written separately.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WrittenPart {
    /// The finalizer of an Operator.
    Finalizer,
    /// The status of an Operator or a Catalog.
    Status,
}

/// The existing objects that a revision would apply, and the changes of definitions that are unsafe for
/// users.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Findings {
    /// The existing objects.
    pub objects: Vec<FoundObject>,
    /// The unsafe changes of definitions, as sentences.
    pub unsafe_definitions: Vec<String>,
}

/// An existing object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundObject {
    /// The key of the object.
    pub key: ObjectKey,
    /// The Operator that its label names; empty without one.
    pub operator: String,
    /// Whether this program applied it before.
    pub is_ours: bool,
    /// The controlling owner, as `Kind "name"`; `None` if it has none.
    pub controller: Option<String>,
    /// Whether it is being deleted.
    pub is_terminating: bool,
}

/// An effect to carry out.
#[derive(Debug, Clone)]
pub enum OperatorEffect {
    /// Read a catalog if it changed.
    ReadCatalog {
        /// The name of the catalog.
        name: String,
        /// The source of the catalog.
        source: CatalogSource,
    },
    /// Read a bundle and render it.
    ReadBundle {
        /// The name of the Operator.
        operator: String,
        /// The ticket for the answer.
        ticket: u64,
        /// The bundle, and its catalog.
        bundle: BundleReference,
        /// The source of the catalog.
        source: CatalogSource,
        /// The spec, with the namespace and configuration to render the bundle for.
        spec: Box<OperatorSpec>,
    },
    /// Inspect the existing objects that a revision would apply.
    InspectObjects {
        /// The name of the Operator.
        operator: String,
        /// The ticket for the answer.
        ticket: u64,
        /// The objects, each with the API version of its manifest.
        objects: Vec<(ObjectKey, String)>,
        /// The definitions to compare with existing ones, and what to do about unsafe changes.
        definitions: (Vec<Value>, CrdUpgradeSafety),
    },
    /// Write the OperatorRevisions of a revision.
    WriteRevision {
        /// The name of the Operator.
        operator: String,
        /// The ticket for the answer.
        ticket: u64,
        /// The OperatorRevisions, each with its name.
        revisions: Vec<(String, Value)>,
    },
    /// Delete an OperatorRevision that is no longer kept.
    DeleteRevision(String),
    /// Add or remove the finalizer of an Operator.
    SetFinalizer {
        /// The name of the Operator.
        operator: String,
        /// The current finalizers.
        before: Vec<String>,
        /// Whether to add it; otherwise it is removed.
        is_added: bool,
    },
    /// Write the status of an Operator or a Catalog.
    WriteStatus {
        /// The kind of the object.
        kind: OperatorKind,
        /// The name of the object.
        name: String,
        /// The new status.
        status: Value,
        /// The resourceVersion that the write replaces.
        revision: String,
    },
    /// Execute a step.
    Execute {
        /// The name of the Operator.
        operator: String,
        /// The run of the rollout, for the answer.
        run: u64,
        /// The plan of the rollout.
        plan: Arc<Plan>,
        /// The index of the step in the plan.
        step: usize,
    },
    /// Watch the objects of a kind that have the label of an Operator; for definitions and namespaces, all
    /// objects.
    Watch(GroupVersionKind, WatchScope),
    /// Watch all objects of the kind of a definition, by the definition's name.
    WatchOperands(String),
    /// Stop watching all objects of the kind of a definition.
    UnwatchOperands(String),
    /// Delete an object, with its uid as a precondition.
    Delete {
        /// The name of the Operator.
        operator: String,
        /// The object to delete.
        object: LiveObject,
    },
    /// Read the content of a namespace.
    ReadNamespace {
        /// The name of the Operator.
        operator: String,
        /// The name of the namespace.
        namespace: String,
    },
    /// Emit an event about an Operator.
    Emit {
        /// The name of the Operator.
        operator: String,
        /// The uid of the Operator.
        uid: String,
        /// The event to emit.
        draft: EventDraft,
    },
}

/// The state of the add-on layer.
#[derive(Debug, Clone, Default)]
pub struct OperatorReconciler {
    operators: BTreeMap<String, TrackedOperator>,
    /// The inputs of decisions, by Operator.
    requested: BTreeMap<String, RequestedOperator>,
    catalogs: BTreeMap<String, TrackedCatalog>,
    listed: BTreeSet<OperatorKind>,
    facts: Option<ClusterFacts>,
    concerns: Concerns,
    /// The Operators to decide on.
    undecided: BTreeSet<String>,
    /// The Operators whose next step has to be determined.
    unsettled: BTreeSet<String>,
    indexes: Indexes,
    /// The index of what Operators provide, require and own.
    installed: OperatorIndex,
    observed: Observed,
    /// The OperatorRevisions whose Operator was not shown yet, or was deleted, by name, each with the uid of
    /// that Operator.
    unclaimed: BTreeMap<String, (String, plimsoll_api::olm::OperatorRevisionSpec)>,
    /// The existing OperatorRevisions, by name.
    written_revisions: BTreeMap<String, WrittenRevision>,
    served: BTreeMap<GroupVersionKind, Scope>,
    watched: BTreeSet<plimsoll_api::GroupKind>,
    /// The last ticket or run that was assigned.
    tickets: u64,
    /// What is to be done, since it was last asked for.
    effects: Vec<OperatorEffect>,
}

impl OperatorReconciler {
    /// Creates the reconciler of a cluster that serves some kinds.
    pub fn new(served: impl IntoIterator<Item = (GroupVersionKind, Scope)>) -> Self {
        Self { served: served.into_iter().collect(), ..Self::default() }
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
        let mut names = self.undecided.clone();
        let set_of = |name: &String| change_set::of(self.requested.get(name)?)?.ok();
        let sets: BTreeSet<_> = self.undecided.iter().filter_map(set_of).collect();
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
            unavailable: catalogs::unavailable(&self.catalogs),
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
        self.undecided.retain(|name| !names.contains(name));
        for (name, decision) in decisions {
            if let Some(operator) = self.operators.get_mut(&name) {
                operator.decided(&name, decision);
                self.decision_changed(&name);
                self.unsettled.insert(name);
            }
        }
        self.settle(moment)
    }

    /// Returns the served catalogs by name, each with its weight.
    pub fn served_catalogs(&self) -> impl Iterator<Item = (&str, i64)> {
        let served = self.catalogs.iter().filter(|(_, it)| it.is_served());
        served.map(|(name, it)| (name.as_str(), it.weight()))
    }

    /// Handles an event and returns what to do next.
    pub fn handle(&mut self, event: OperatorEvent, moment: Moment) -> Vec<OperatorEffect> {
        match event {
            OperatorEvent::Configuration { kind, name, object } => match kind {
                OperatorKind::Operator => self.operator_changed(&name, object.as_deref(), moment),
                OperatorKind::Revision => self.revision_changed(&name, object.as_deref(), moment),
                OperatorKind::Catalog => self.catalog_changed(&name, object.as_deref(), moment),
            },
            OperatorEvent::ConfigurationListed(kind) => {
                self.listed.insert(kind);
            }
            OperatorEvent::Facts(facts) => {
                if self.facts.as_ref() != Some(&facts) {
                    self.facts = Some(*facts);
                    self.undecided.extend(self.operators.keys().cloned());
                }
            }
            OperatorEvent::CatalogRead { name, content } => {
                self.catalog_read(&name, content, moment);
            }
            OperatorEvent::BundleRead { operator, ticket, content } => {
                self.bundle_read(&operator, ticket, content, moment);
            }
            OperatorEvent::ObjectsInspected { operator, ticket, findings } => {
                self.objects_inspected(&operator, ticket, findings, moment);
            }
            OperatorEvent::RevisionWritten { operator, ticket, result } => {
                self.revision_written(&operator, ticket, result, moment);
            }
            OperatorEvent::Written { kind, name, what, is_written } => {
                self.written(kind, &name, what, is_written, moment);
            }
            OperatorEvent::Watched(kind, change) => {
                self.watched_changed(&kind, &change, moment);
            }
            OperatorEvent::OperandWatched(definition, change) => {
                self.observed.operands.entry(definition).or_default().change(&change);
                self.unsettle_deleting();
            }
            OperatorEvent::Namespace(name, state) => {
                self.namespace_changed(&name, state, moment);
            }
            OperatorEvent::Definition(group, plural) => {
                self.definition_changed(&group, &plural, moment);
            }
            OperatorEvent::Executed { operator, run, step, outcome } => {
                self.executed(&operator, run, step, outcome, moment);
            }
            OperatorEvent::Discovered(version, kinds) => {
                self.discovered(&version, &kinds, moment);
            }
            OperatorEvent::DeletionAnswered { operator, uid, result } => {
                self.deletion_answered(&operator, &uid, result, moment);
            }
            OperatorEvent::NamespaceRead { operator, namespace, objects } => {
                self.namespace_read(&operator, &namespace, objects, moment);
            }
        }
        self.settle(moment)
    }

    /// Continues with what is due, and returns what to do next.
    pub fn woken(&mut self, moment: Moment) -> Vec<OperatorEffect> {
        for name in self.indexes.wakes.due(moment.uptime) {
            self.start(&name, moment);
            if let Some(operator) = self.operators.get_mut(&name) {
                operator.woken(moment);
            }
            self.unsettled.insert(name);
        }
        self.settle(moment)
    }

    /// Returns when to call [`Self::woken`] if there is no event before.
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

    fn ticket(&mut self) -> u64 {
        self.tickets += 1;
        self.tickets
    }

    /// Determines the next steps of everything that changed, and what to report.
    fn settle(&mut self, moment: Moment) -> Vec<OperatorEffect> {
        self.read_catalogs(moment);
        while let Some(name) = self.unsettled.pop_first() {
            self.act(&name, moment);
            self.report(&name, moment);
            self.reindex(&name, moment);
        }
        self.report_catalogs(moment);
        std::mem::take(&mut self.effects)
    }
}

#[cfg(test)]
mod tests;
