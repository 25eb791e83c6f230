//! Carries out what is decided of Operators: what the cluster, the catalogs and executions show goes
//! in, what to read, write, execute, delete and report comes out.
//!
//! # From an Operator to its objects
//!
//! 1. [`decide`](super::decide) names a bundle. Its content is read and rendered
//!    ([`OperatorEffect::ReadBundle`]).
//! 2. The objects that it would take are inspected ([`OperatorEffect::InspectObjects`]): what belongs to somebody
//!    else stops it before anything is changed (OPR-27).
//! 3. The objects are recorded in OperatorRevisions ([`OperatorEffect::WriteRevision`]): what is
//!    executed is what anybody can read, and a process that takes over needs no catalog.
//! 4. The revision is rolled out as a plan, by the same state machine as a release
//!    ([`plimsoll_plan::reconciler::execution`]); from then on drift is repaired.
//! 5. What earlier revisions had and this one lacks is deleted ([`super::deletion`]), but for
//!    definitions: their objects are of users, and stay until the Operator is deleted.
//!
//! Nothing is remembered that the cluster does not say: a process that takes over reads Operators and
//! OperatorRevisions and goes on.

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
use super::inventory::AddOnInventory;
use super::{OperatorInputs, RequestedOperator, change_set};

pub use self::catalogs::CatalogContent;
pub use self::observed::{ObservedObject, WatchedChange};
pub use self::revision::{REVISIONS_KEPT, RevisionContent};

/// The kinds that configure the add-on layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OperatorKind {
    /// Operator.
    Operator,
    /// OperatorRevision.
    Revision,
    /// Catalog.
    Catalog,
}

/// The time, in its three forms.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// The time of day, for what is reported.
    pub time: Timestamp,
    /// The time of day as if nobody had set the clock, for what is waited for.
    pub steady: Timestamp,
    /// The time since the process started.
    pub uptime: Uptime,
}

/// Something happened.
#[derive(Debug, Clone, PartialEq)]
pub enum OperatorEvent {
    /// An object that configures the add-on layer is as it is, or gone.
    Configuration {
        /// Its kind.
        kind: OperatorKind,
        /// Its name.
        name: String,
        /// The object; `None` when it is gone.
        object: Option<Box<Value>>,
    },
    /// All objects of such a kind have been shown.
    ConfigurationListed(OperatorKind),
    /// What is known of the cluster.
    Facts(Box<ClusterFacts>),
    /// A catalog was read, or has not changed.
    CatalogRead {
        /// Its name.
        name: String,
        /// What it has; `None` if that is what it had before.
        content: Result<Option<CatalogContent>, String>,
    },
    /// A bundle was read and rendered.
    BundleRead {
        /// The Operator.
        operator: String,
        /// The request that is answered.
        ticket: u64,
        /// What a revision is made of, or why it cannot be.
        content: Result<Box<RevisionContent>, String>,
    },
    /// Existing objects were inspected.
    ObjectsInspected {
        /// The Operator.
        operator: String,
        /// The request that is answered.
        ticket: u64,
        /// What was found, or why nothing could be.
        findings: Result<Findings, String>,
    },
    /// The OperatorRevisions of a revision were written, or could not be.
    RevisionWritten {
        /// The Operator.
        operator: String,
        /// The request that is answered.
        ticket: u64,
        /// Why they could not be.
        result: Result<(), String>,
    },
    /// A finalizer or a status was written, or could not be.
    Written {
        /// The kind of the object.
        kind: OperatorKind,
        /// Its name.
        name: String,
        /// What was written.
        what: WrittenPart,
        /// Whether it was; what could not be written is tried again.
        is_written: bool,
    },
    /// A watch showed an object of an Operator, or of any release's or nobody's, by its kind.
    Watched(plimsoll_api::GroupKind, WatchedChange),
    /// A watch showed an object of a kind that an Operator defines, by the name of the definition.
    OperandWatched(String, WatchedChange),
    /// A namespace is in a state; `None` when it is gone.
    Namespace(String, Option<NamespaceState>),
    /// A definition changed, by group and plural.
    Definition(String, String),
    /// An execution of a step ended.
    Executed {
        /// The Operator.
        operator: String,
        /// The rollout that it belongs to.
        run: u64,
        /// The step.
        step: usize,
        /// How it went.
        outcome: StepOutcome,
    },
    /// Discovery of a group version was answered or failed; the kinds found.
    Discovered(GroupVersion, Vec<(GroupVersionKind, Scope)>),
    /// The API server accepted or refused to delete an object.
    DeletionAnswered {
        /// The Operator.
        operator: String,
        /// The uid of the object.
        uid: String,
        /// Why it was refused.
        result: Result<(), String>,
    },
    /// What a namespace holds that is not of the cluster's own making.
    NamespaceRead {
        /// The Operator.
        operator: String,
        /// The namespace.
        namespace: String,
        /// The objects; why they could not be read.
        objects: Result<Vec<ObjectKey>, String>,
    },
}

/// A part of an object that is written by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WrittenPart {
    /// The finalizer of an Operator.
    Finalizer,
    /// The status.
    Status,
}

/// The existing objects that a revision would take, and the changes of definitions that break users.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Findings {
    /// Those that exist.
    pub objects: Vec<FoundObject>,
    /// What definitions would change that users of the present ones cannot follow, as sentences.
    pub unsafe_definitions: Vec<String>,
}

/// An object that exists already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundObject {
    /// The object.
    pub key: ObjectKey,
    /// The Operator that its label names; empty without one.
    pub operator: String,
    /// Whether this program applied it.
    pub is_ours: bool,
    /// Its controller, as `Kind "name"`; `None` if it has none.
    pub controller: Option<String>,
    /// Whether it is being deleted.
    pub is_terminating: bool,
}

/// Something to do.
#[derive(Debug, Clone)]
pub enum OperatorEffect {
    /// Read a catalog if it changed.
    ReadCatalog {
        /// Its name.
        name: String,
        /// Where it is.
        source: CatalogSource,
    },
    /// Read a bundle and render it.
    ReadBundle {
        /// The Operator.
        operator: String,
        /// To be named in the answer.
        ticket: u64,
        /// The bundle, and the catalog that has it.
        bundle: BundleReference,
        /// Where the catalog is.
        source: CatalogSource,
        /// Namespace and configuration.
        spec: Box<OperatorSpec>,
    },
    /// Inspect the existing objects that a revision would take.
    InspectObjects {
        /// The Operator.
        operator: String,
        /// To be named in the answer.
        ticket: u64,
        /// The objects, each with the version of its manifest.
        objects: Vec<(ObjectKey, String)>,
        /// Definitions that are to be held against those that exist, and how strictly.
        definitions: (Vec<Value>, CrdUpgradeSafety),
    },
    /// Write OperatorRevisions, each with its name.
    WriteRevision {
        /// The Operator.
        operator: String,
        /// To be named in the answer.
        ticket: u64,
        /// The objects.
        revisions: Vec<(String, Value)>,
    },
    /// Delete an OperatorRevision that is not kept any more.
    DeleteRevision(String),
    /// Add or remove the finalizer of an Operator.
    SetFinalizer {
        /// The Operator.
        operator: String,
        /// Its finalizers as they are.
        before: Vec<String>,
        /// Whether it is added.
        is_added: bool,
    },
    /// Write the status of an Operator or a Catalog.
    WriteStatus {
        /// Its kind.
        kind: OperatorKind,
        /// Its name.
        name: String,
        /// The status.
        status: Value,
        /// The resourceVersion that is replaced.
        revision: String,
    },
    /// Execute a step.
    Execute {
        /// The Operator.
        operator: String,
        /// To be named in the answer.
        run: u64,
        /// The plan.
        plan: Arc<Plan>,
        /// Index of the step in the plan.
        step: usize,
    },
    /// Watch the objects of a kind that carry the label of an Operator; of definitions and namespaces
    /// all.
    Watch(GroupVersionKind, WatchScope),
    /// Watch all objects of the kind of a definition, by the definition's name.
    WatchOperands(String),
    /// Stop watching them.
    UnwatchOperands(String),
    /// Delete an object, if it is still the one of this uid.
    Delete {
        /// The Operator.
        operator: String,
        /// The object.
        object: LiveObject,
    },
    /// Read what a namespace holds.
    ReadNamespace {
        /// The Operator.
        operator: String,
        /// The namespace.
        namespace: String,
    },
    /// Emit an event about an Operator.
    Emit {
        /// Its name.
        operator: String,
        /// Its uid.
        uid: String,
        /// The event.
        draft: EventDraft,
    },
}

/// The state of the add-on layer.
#[derive(Debug, Clone, Default)]
pub struct OperatorReconciler {
    operators: BTreeMap<String, TrackedOperator>,
    /// What decisions are made from, by Operator.
    requested: BTreeMap<String, RequestedOperator>,
    catalogs: BTreeMap<String, TrackedCatalog>,
    listed: BTreeSet<OperatorKind>,
    facts: Option<ClusterFacts>,
    concerns: Concerns,
    /// The Operators that are to be decided.
    undecided: BTreeSet<String>,
    /// The Operators whose next step is to be found.
    unsettled: BTreeSet<String>,
    indexes: Indexes,
    /// Who provides, requires and owns what.
    installed: OperatorIndex,
    observed: Observed,
    /// OperatorRevisions of an Operator that was not shown yet, or that is gone, by name, each with the
    /// uid of that Operator.
    unclaimed: BTreeMap<String, (String, plimsoll_api::olm::OperatorRevisionSpec)>,
    /// The OperatorRevisions that there are, by name.
    written_revisions: BTreeMap<String, WrittenRevision>,
    served: BTreeMap<GroupVersionKind, Scope>,
    watched: BTreeSet<plimsoll_api::GroupKind>,
    /// Tickets and runs that were given out.
    tickets: u64,
}

impl OperatorReconciler {
    /// Begins on a cluster that serves some kinds.
    pub fn new(served: impl IntoIterator<Item = (GroupVersionKind, Scope)>) -> Self {
        Self { served: served.into_iter().collect(), ..Self::default() }
    }

    /// Whether everything that decisions are made from has been shown once.
    fn is_informed(&self) -> bool {
        use OperatorKind::{Catalog, Operator, Revision};
        self.facts.is_some()
            && [Operator, Revision, Catalog].iter().all(|kind| self.listed.contains(kind))
            // What a catalog has is read at once; decisions wait for it, so that none says that
            // there is no such package.
            && self.catalogs.values().all(TrackedCatalog::was_read)
    }

    /// The Operators to decide, with the other members of their change sets; none before everything
    /// that decisions are made from is known.
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

    /// What plans are made from, but for what the API server has of Operators; `None` before it is known.
    pub fn inventory(&self) -> Option<AddOnInventory> {
        let facts = self.facts.as_ref().filter(|_| self.is_informed())?;
        Some(AddOnInventory {
            operators: self.requested.clone(),
            observed: BTreeMap::new(),
            unavailable: catalogs::unavailable(&self.catalogs),
            facts: facts.clone(),
        })
    }

    /// The names of all Operators: what of the catalogs matters.
    pub fn operator_names(&self) -> impl Iterator<Item = &String> {
        self.operators.keys()
    }

    /// Decides what is undecided. `offered` answers the catalogs that are served, each with those of
    /// some packages that it has.
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

    /// The catalogs that are served, by name, each with its weight.
    pub fn served_catalogs(&self) -> impl Iterator<Item = (&str, i64)> {
        let served = self.catalogs.iter().filter(|(_, it)| it.is_served());
        served.map(|(name, it)| (name.as_str(), it.weight()))
    }

    /// Something happened; what to do next.
    pub fn handle(&mut self, event: OperatorEvent, moment: Moment) -> Vec<OperatorEffect> {
        let mut effects = Vec::new();
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
                self.bundle_read(&operator, ticket, content, moment, &mut effects);
            }
            OperatorEvent::ObjectsInspected { operator, ticket, findings } => {
                self.objects_inspected(&operator, ticket, findings, moment, &mut effects);
            }
            OperatorEvent::RevisionWritten { operator, ticket, result } => {
                self.revision_written(&operator, ticket, result, moment);
            }
            OperatorEvent::Written { kind, name, what, is_written } => {
                self.written(kind, &name, what, is_written, moment);
            }
            OperatorEvent::Watched(kind, change) => {
                self.watched_changed(&kind, &change, moment, &mut effects);
            }
            OperatorEvent::OperandWatched(definition, change) => {
                self.observed.operands.entry(definition).or_default().change(&change);
                self.unsettle_deleting();
            }
            OperatorEvent::Namespace(name, state) => {
                self.namespace_changed(&name, state, moment, &mut effects);
            }
            OperatorEvent::Definition(group, plural) => {
                self.definition_changed(&group, &plural, moment, &mut effects);
            }
            OperatorEvent::Executed { operator, run, step, outcome } => {
                self.executed(&operator, run, step, outcome, moment, &mut effects);
            }
            OperatorEvent::Discovered(version, kinds) => {
                self.discovered(&version, &kinds, moment, &mut effects);
            }
            OperatorEvent::DeletionAnswered { operator, uid, result } => {
                self.deletion_answered(&operator, &uid, result, moment);
            }
            OperatorEvent::NamespaceRead { operator, namespace, objects } => {
                self.namespace_read(&operator, &namespace, objects, moment);
            }
        }
        effects.extend(self.settle(moment));
        effects
    }

    /// A time that was waited for has come.
    pub fn woken(&mut self, moment: Moment) -> Vec<OperatorEffect> {
        let mut effects = Vec::new();
        for name in self.indexes.wakes.due(moment.uptime) {
            self.start(&name, moment, &mut effects);
            if let Some(operator) = self.operators.get_mut(&name) {
                operator.woken(moment);
            }
            self.unsettled.insert(name);
        }
        effects.extend(self.settle(moment));
        effects
    }

    /// When to call [`Self::woken`] if nothing happens before.
    pub fn wake_at(&self) -> Option<Uptime> {
        let catalogs = self.catalogs.values().filter_map(TrackedCatalog::wake_at);
        self.indexes.wakes.first().into_iter().chain(catalogs).min()
    }

    /// A group version that an Operator waits for, to be discovered now.
    pub fn next_discovery(&mut self, moment: Moment) -> Option<GroupVersion> {
        self.indexes.discoveries.due(moment.uptime).into_iter().find_map(|name| {
            let rollout = self.operators.get_mut(&name)?.rollout.as_mut()?;
            let version = rollout.execution.next_discovery(moment.uptime);
            self.reindex(&name, moment);
            version
        })
    }

    /// When to call [`Self::next_discovery`]; `None` when nothing is waited for.
    pub fn discover_at(&self) -> Option<Uptime> {
        self.indexes.discoveries.first()
    }

    fn ticket(&mut self) -> u64 {
        self.tickets += 1;
        self.tickets
    }

    /// Finds what comes next for everything that changed, and what is to be reported.
    fn settle(&mut self, moment: Moment) -> Vec<OperatorEffect> {
        let mut effects = Vec::new();
        self.read_catalogs(moment, &mut effects);
        while let Some(name) = self.unsettled.pop_first() {
            self.act(&name, moment, &mut effects);
            self.report(&name, moment, &mut effects);
            self.reindex(&name, moment);
        }
        self.report_catalogs(moment, &mut effects);
        effects
    }
}

#[cfg(test)]
mod tests;
