//! Inputs and outputs of the [`OperatorReconciler`](super::OperatorReconciler): events and effects.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use plimsoll_api::olm::{
    BundleReference, CatalogDefects, CatalogSource, CrdUpgradeSafety, OperatorSpec,
};
use plimsoll_api::{GroupKind, ObjectKey};
use plimsoll_plan::plan::{GroupVersionKind, Plan};
use plimsoll_plan::progress::{NamespaceState, Scope, StepOutcome};
use plimsoll_plan::reconciler::Uptime;
use plimsoll_plan::reconciler::discovery::GroupVersion;
use plimsoll_plan::reconciler::events::EventDraft;
use plimsoll_plan::reconciler::watches::WatchScope;
use plimsoll_resolve::ClusterFacts;
use serde_json::Value;

use super::observed::WatchedChange;
use super::revision::RevisionContent;
use crate::deletion::LiveObject;
use crate::deletion::definition::DefinitionTimes;

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
        /// The ticket of the request.
        ticket: u64,
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
    Watched(GroupKind, WatchedChange),
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
    /// The conversion webhook of a definition was removed, or could not be.
    ConversionRemoved {
        /// The name of the Operator.
        operator: String,
        /// The uid of the definition.
        uid: String,
        /// The reason if it could not be.
        result: Result<(), String>,
    },
    /// The content of a namespace was read, without objects that the cluster creates itself.
    NamespaceRead {
        /// The name of the Operator.
        operator: String,
        /// The name of the namespace.
        namespace: String,
        /// The objects, or the reason that they could not be read.
        objects: Result<Vec<ContainedObject>, String>,
    },
    /// The kinds of objects with the label of an Operator were found.
    KindsFound {
        /// The name of the Operator.
        operator: String,
        /// The kinds, each with its scope, or the reason that they could not be found.
        kinds: Result<BTreeMap<GroupVersionKind, Scope>, String>,
    },
    /// The definition of Operators was read.
    DefinitionRead {
        /// The name of the Operator.
        operator: String,
        /// The definition, `None` if there is none; or the reason that it could not be read.
        definition: Result<Option<DefinitionTimes>, String>,
    },
    /// The objects were read that the release contains which the cluster is at or goes to.
    ReleaseRead {
        /// The name of the Operator.
        operator: String,
        /// The objects, as ReleaseProgress names them, or the reason that they could not be read.
        objects: Result<BTreeSet<String>, String>,
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

/// The content of a catalog.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CatalogContent {
    /// The digest of the content.
    pub digest: String,
    /// The number of packages.
    pub packages: u64,
    /// The number of bundles.
    pub bundles: u64,
    /// The defects; `None` if there are none.
    pub defects: Option<CatalogDefects>,
    /// The Operators whose packages are unchanged. It lacks those whose packages differ, and those that were
    /// created while the catalog was read, whose decision may be based on the previous content.
    pub unchanged: BTreeSet<String>,
}

/// The existing objects that a revision would apply, and the changes of definitions that are unsafe for
/// users.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Findings {
    /// The existing objects.
    pub objects: Vec<FoundObject>,
    /// The unsafe changes of definitions, as sentences.
    pub unsafe_definitions: Vec<String>,
    /// The changes of definitions that no API server accepts, as sentences.
    pub refused_definitions: Vec<String>,
    /// The existing definitions among those to apply, as they are in the cluster.
    pub definitions: Vec<Value>,
    /// The kinds that are not served.
    pub unserved: Vec<UnservedKind>,
}

/// A kind that is not served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnservedKind {
    /// The kind.
    pub kind: GroupVersionKind,
    /// The versions in which it is served, in order.
    pub versions: Vec<String>,
    /// The packages of the catalogs that provide it, in order.
    pub providers: Vec<String>,
}

/// An existing object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundObject {
    /// The key of the object.
    pub key: ObjectKey,
    /// The Operator that this program applied it for; empty if it applied it for none.
    pub operator: String,
    /// Whether this program applied it before, for an Operator or for the release.
    pub is_ours: bool,
    /// The controlling owner, as `Kind "name"`; `None` if it has none.
    pub controller: Option<String>,
    /// The earlier managers whose fields are taken over with it.
    pub managers: BTreeSet<String>,
    /// Whether it is being deleted.
    pub is_terminating: bool,
}

/// An object that was found in a namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ContainedObject {
    /// The key of the object.
    pub key: ObjectKey,
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
        /// The ticket of the request.
        ticket: u64,
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
        /// The definitions to compare with existing ones.
        definitions: Vec<Value>,
        /// Whether unsafe changes of definitions matter.
        safety: CrdUpgradeSafety,
        /// The kinds that have to be served.
        kinds: BTreeSet<GroupVersionKind>,
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
    /// Delete an OperatorRevision that is no longer kept, and is released for that.
    DeleteRevision {
        /// The name of the OperatorRevision.
        name: String,
        /// The uid of the OperatorRevision.
        uid: String,
    },
    /// Remove our finalizer from an OperatorRevision; to be repeated until it succeeds or the OperatorRevision is
    /// gone.
    ReleaseRevision {
        /// The name of the OperatorRevision.
        name: String,
        /// The uid of the OperatorRevision.
        uid: String,
    },
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
        resource_version: String,
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
        /// Whether the related objects of a ClusterOperator are filled in once it is applied.
        fills_related_objects: bool,
    },
    /// Watch the objects of a kind that have the label of an Operator; for definitions and namespaces, all
    /// objects. For a kind that is watched by metadata alone, watch the objects whole from now on.
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
    /// Remove the conversion webhook of a definition, with its uid as a precondition, if a service answers it.
    RemoveConversion {
        /// The name of the Operator.
        operator: String,
        /// The definition.
        definition: LiveObject,
        /// The service.
        service: ObjectKey,
    },
    /// Read the content of a namespace.
    ReadNamespace {
        /// The name of the Operator.
        operator: String,
        /// The name of the namespace.
        namespace: String,
    },
    /// Find the kinds, among all that are served, of which objects with the label of an Operator exist.
    FindKinds {
        /// The name of the Operator.
        operator: String,
    },
    /// Read the definition of Operators as the API server has it now: no watch, which may lag behind.
    ReadDefinition {
        /// The name of the Operator that is being deleted.
        operator: String,
    },
    /// Read the objects that the release contains which the cluster is at or goes to.
    ReadRelease {
        /// The name of the Operator.
        operator: String,
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
