//! A plan: the steps that bring a cluster to a release, in what order, and what is left out and
//! why. A value: it can be printed, compared, stored and refused before anything happens.

pub mod features;
pub mod graph;
mod inventory;
pub mod mode;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use plimsoll_api::config::Release;
use plimsoll_api::progress::Orphan;
use plimsoll_api::{CLUSTER_OPERATOR, GroupKind, ObjectKey};
use plimsoll_content::inclusion::{self, Context, Decision, ExclusionReason};
use plimsoll_content::ready_when::{READY_WHEN, may_be_gated};
use plimsoll_content::{Definition, Manifest};
use serde_json::json;

use self::graph::{Graph, Ordering, Task};
use self::mode::Mode;

/// Annotation: create the object if it is missing, never change it (CV-4.1).
pub const CREATE_ONLY: &str = "release.openshift.io/create-only";
/// Annotation: the object is to be deleted (DEL-1).
pub const DELETE: &str = "release.openshift.io/delete";

/// How the files begin that plans make up to delete orphans by.
pub(crate) const ORPHAN_FILE: &str = "orphan of ";

/// A kind in one of its versions.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupVersionKind {
    /// API group; empty for the core group.
    pub group: String,
    /// API version.
    pub version: String,
    /// Kind in CamelCase.
    pub kind: String,
}

impl fmt::Display for GroupVersionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() {
            write!(f, "{}, Kind={}", self.version, self.kind)
        } else {
            write!(f, "{}/{}, Kind={}", self.group, self.version, self.kind)
        }
    }
}

/// What a step does with its object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Server-side apply, and again whenever the object drifts.
    Apply,
    /// Create it if it is missing; never change it.
    CreateOnly,
    /// Make sure that the ClusterOperator exists and wait until it reports what the manifest
    /// names.
    Gate,
    /// Delete it, in updates only, without waiting for the end (DEL-4).
    Delete,
    /// Rewrite the objects of a definition that may be stored in another than its storage version, then drop
    /// the other versions from its `status.storedVersions`.
    Migrate,
    /// The manifest asks for something that does not exist; the text says what.
    Refuse(String),
}

/// What an object must reach after it has been applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readiness {
    /// Applied is enough.
    Applied,
    /// The kinds it defines are served.
    Served,
    /// A workload has rolled out or run to its end, another object is ready, or the condition holds that a
    /// manifest names.
    RolledOut,
    /// A ClusterOperator passes its gate.
    Gate,
}

/// One step of a plan: one manifest and what becomes of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The manifest.
    pub manifest: Manifest,
    /// What is done with it.
    pub action: Action,
    /// What is awaited after it.
    pub readiness: Readiness,
    /// For a CustomResourceDefinition: the kinds that it serves.
    pub serves: Vec<GroupVersionKind>,
    /// Whether a later step applies the object once more. Until then a CustomResourceDefinition keeps the
    /// conversion that it has in the cluster.
    pub is_repeated: bool,
}

impl Step {
    /// The kind of the object, in the version of the manifest.
    pub fn kind(&self) -> GroupVersionKind {
        GroupVersionKind {
            group: self.manifest.key.group.clone(),
            version: self.manifest.version.clone(),
            kind: self.manifest.key.kind.clone(),
        }
    }

    /// Whether what it applies runs to its end, and once for a release: a Job.
    pub fn runs_once(&self) -> bool {
        matches!(self.action, Action::Apply | Action::CreateOnly) && is_job(&self.manifest)
    }

    /// The condition on which the object is ready, as its manifest names it; `None` if it names none.
    pub fn ready_when(&self) -> Option<&str> {
        let value = self.manifest.annotations.get(READY_WHEN).map(String::as_str);
        value.filter(|_| self.readiness == Readiness::RolledOut)
    }

    /// How messages name the object: `deployment "ns/name"`.
    pub fn describe(&self) -> String {
        let key = &self.manifest.key;
        format!("{} \"{}\"", key.kind.to_lowercase(), key.namespaced_name())
    }
}

/// A document that is not part of the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excluded {
    /// Its file.
    pub file: Arc<str>,
    /// Its number in the file, from 0.
    pub document: usize,
    /// Its object.
    pub key: ObjectKey,
    /// The reason why it is left out.
    pub reason: ExclusionReason,
}

/// How to bring a cluster to a release.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The release.
    pub release: Release,
    /// Hash of the included manifests (CV-2.7).
    pub hash: String,
    /// The rules it follows.
    pub mode: Mode,
    /// One step for each included manifest, in the order of the payload; then the deletions of
    /// orphans.
    pub steps: Vec<Step>,
    /// Number of steps that are of manifests of the release: those that `hash` is of, and that are
    /// counted and recorded.
    pub release_steps: usize,
    /// The order of the steps.
    pub graph: Graph,
    /// What is left out.
    pub excluded: Vec<Excluded>,
}

/// Plans how to bring a cluster to a release.
pub fn plan(manifests: &[Manifest], context: &Context, release: Release, mode: Mode) -> Plan {
    let mut steps = Vec::new();
    let mut excluded = Vec::new();
    for manifest in manifests {
        match inclusion::decide(manifest, context) {
            Decision::Included => steps.push(gated(step(manifest))),
            Decision::Excluded(reason) => excluded.push(Excluded {
                file: manifest.file.clone(),
                document: manifest.document,
                key: manifest.key.clone(),
                reason,
            }),
        }
    }
    let ordering = match mode {
        Mode::Updating => Ordering::ByLevel,
        Mode::Initializing => Ordering::Flattened,
        Mode::Reconciling => Ordering::Shuffled { attempt: 0 },
    };
    let graph = graph::build(&tasks(&steps), ordering);
    let hash = plimsoll_content::hash::manifest_hash(steps.iter().map(|step| &step.manifest.raw));
    let release_steps = steps.len();
    let mut plan = Plan { release, hash, mode, release_steps, steps, graph, excluded };
    plan.refuse_contradictions();
    plan
}

impl Plan {
    /// Plans how to bring a cluster to objects that are applied stage by stage: those of a stage side by
    /// side, the next stage when all of them are ready, and what their manifests name as conditions holds.
    /// Nothing is deleted: what other annotations ask for counts in releases alone. A ClusterOperator that names no versions is an object like others. A
    /// definition that a later stage has once more keeps its conversion until then.
    pub fn in_stages(stages: &[Vec<Manifest>], release: Release) -> Self {
        let graph = Graph::in_stages(stages.iter().map(Vec::len));
        let mut steps: Vec<Step> = stages.iter().flatten().map(step).collect();
        for step in &mut steps {
            let is_applied = match step.action {
                Action::Delete | Action::Refuse(_) | Action::CreateOnly => true,
                Action::Gate => !names_versions(&step.manifest),
                Action::Apply | Action::Migrate => false,
            };
            if is_applied {
                step.action = Action::Apply;
                step.readiness = awaited(&Action::Apply, &step.manifest);
                step.serves = served_by(&step.manifest, step.readiness);
            }
        }
        let mut later = BTreeSet::new();
        for step in steps.iter_mut().rev() {
            step.is_repeated = !later.insert(step.manifest.key.clone());
            let is_awaited = becomes_ready(&step.manifest.key.group_kind()) || is_gated(step);
            if step.action == Action::Apply && is_awaited {
                // What is awaited is awaited where it is applied last.
                let is_last = !step.is_repeated;
                step.readiness = if is_last { Readiness::RolledOut } else { Readiness::Applied };
            }
        }
        let manifests = steps.iter().map(|step| &step.manifest.raw);
        let hash = plimsoll_content::hash::manifest_hash(manifests);
        let (mode, release_steps, excluded) = (Mode::Updating, steps.len(), Vec::new());
        Self { release, hash, mode, steps, release_steps, graph, excluded }
    }

    /// Appends the deletion of objects, which comes after all else.
    #[must_use]
    pub fn then_deleting(self, objects: impl IntoIterator<Item = Manifest>) -> Self {
        self.then(&Action::Delete, objects)
    }

    /// Appends the migration of the objects of definitions, which comes after all else. These steps are of the
    /// release as those before them are.
    #[must_use]
    pub fn then_migrating(self, definitions: impl IntoIterator<Item = Manifest>) -> Self {
        let mut plan = self.then(&Action::Migrate, definitions);
        plan.release_steps = plan.steps.len();
        plan
    }

    fn then(mut self, action: &Action, manifests: impl IntoIterator<Item = Manifest>) -> Self {
        let first = self.steps.len();
        self.steps.extend(manifests.into_iter().map(|manifest| Step {
            manifest,
            action: action.clone(),
            readiness: Readiness::Applied,
            serves: Vec::new(),
            is_repeated: false,
        }));
        self.graph.finish_with((first..self.steps.len()).collect());
        self
    }

    /// The steps in the order in which a reconciling pass begins them: it differs from pass to
    /// pass, so that steps that get stuck do not always come before the same others
    /// (CV-6.5). `attempt` is the number of passes before this one.
    pub fn reconciling_order(&self, attempt: u32) -> Vec<usize> {
        let graph = graph::build(&tasks(&self.steps), Ordering::Shuffled { attempt });
        graph.nodes.into_iter().flat_map(|node| node.tasks).collect()
    }

    /// The steps that are of manifests of the release.
    pub fn of_release(&self) -> &[Step] {
        &self.steps[..self.release_steps]
    }

    /// Whether another plan has the same steps for the same release.
    pub fn has_steps_of(&self, other: &Self) -> bool {
        let mut pairs = self.steps.iter().zip(&other.steps);
        self.release == other.release
            && self.steps.len() == other.steps.len()
            && pairs.all(|(one, two)| one.manifest.raw == two.manifest.raw)
    }

    /// The steps of this plan for what `other` does with some of its steps: those of the same
    /// manifests.
    pub fn steps_like(&self, other: &Self, steps: &[usize]) -> Vec<usize> {
        let manifests =
            steps.iter().filter_map(|&step| other.steps.get(step)).map(|it| &it.manifest);
        let of_others: BTreeMap<_, _> = manifests.map(|it| (&it.key, &it.raw)).collect();
        let is_like = |index: &usize| {
            let manifest = &self.steps[*index].manifest;
            of_others.get(&manifest.key) == Some(&&manifest.raw)
        };
        (0..self.release_steps).filter(is_like).collect()
    }

    /// Removes the namespaces from the keys of objects whose kinds, among `cluster_kinds`, have none.
    /// True if there were any.
    pub fn normalize_keys(&mut self, cluster_kinds: &BTreeSet<GroupKind>) -> bool {
        let steps = self.steps.iter_mut().map(|step| &mut step.manifest.key);
        let excluded = self.excluded.iter_mut().map(|excluded| &mut excluded.key);
        let mut is_changed = false;
        for key in steps.chain(excluded) {
            is_changed |= key.normalize(cluster_kinds);
        }
        if is_changed {
            self.refuse_contradictions();
        }
        is_changed
    }

    /// Whether a step of the release may be of an object, whatever is known of its kind.
    pub fn names(&self, object: &ObjectKey) -> bool {
        self.of_release().iter().any(|step| step.manifest.key.may_be(object))
    }

    /// Refuses to delete what another step applies.
    fn refuse_contradictions(&mut self) {
        if !self.steps.iter().any(|step| step.action == Action::Delete) {
            return;
        }
        let is_applied =
            |step: &&Step| matches!(step.action, Action::Apply | Action::CreateOnly | Action::Gate);
        let applied = self.steps.iter().filter(is_applied).map(|step| &step.manifest);
        let applied: BTreeMap<ObjectKey, Arc<str>> =
            applied.map(|manifest| (manifest.key.clone(), manifest.file.clone())).collect();
        for step in self.steps.iter_mut().filter(|step| step.action == Action::Delete) {
            if let Some(file) = applied.get(&step.manifest.key) {
                let object = &step.manifest.key;
                step.action = Action::Refuse(format!(
                    "{object} is not deleted, since {file} applies it: remove one of the two manifests"
                ));
            }
        }
    }

    /// The plan, and at its end the deletion of objects that earlier releases left behind, unless it
    /// names them. The hash stays that of the release's manifests.
    #[must_use]
    pub fn and_prune(mut self, orphans: &[Orphan]) -> Self {
        let first = self.steps.len();
        let left = orphans.iter().filter(|orphan| !self.names(&orphan.object));
        let deletions: Vec<Step> =
            left.filter_map(deletion_of).map(|manifest| step(&manifest)).collect();
        self.steps.extend(deletions);
        self.graph.finish_with((first..self.steps.len()).collect());
        self
    }
}

/// The manifest that a release would delete an orphan by; `None` for what no object can be called,
/// which only another client can have recorded.
fn deletion_of(orphan: &Orphan) -> Option<Manifest> {
    let key = &orphan.object;
    let api_version = match key.group.as_str() {
        "" => orphan.api_version.clone(),
        group => format!("{group}/{}", orphan.api_version),
    };
    let mut metadata = json!({"annotations": {DELETE: "true"}, "name": key.name});
    if !key.namespace.is_empty() {
        metadata["namespace"] = key.namespace.clone().into();
    }
    let object = json!({"apiVersion": api_version, "kind": key.kind, "metadata": metadata});
    let file = format!("{ORPHAN_FILE}{}: {}", orphan.version, orphan.file);
    Manifest::read(file.into(), 0, &object).ok()
}

fn tasks(steps: &[Step]) -> Vec<Task<'_>> {
    let files = steps.iter().map(|step| &step.manifest);
    files.map(|manifest| Task { file: &manifest.file, is_job: is_job(manifest) }).collect()
}

fn is_job(manifest: &Manifest) -> bool {
    manifest.key.group == "batch" && manifest.key.kind == "Job"
}

fn step(manifest: &Manifest) -> Step {
    let action = action(manifest);
    let readiness = awaited(&action, manifest);
    let serves = served_by(manifest, readiness);
    Step { manifest: manifest.clone(), action, readiness, serves, is_repeated: false }
}

pub(crate) fn is_cluster_operator(key: &ObjectKey) -> bool {
    key.group == CLUSTER_OPERATOR.group && key.kind == CLUSTER_OPERATOR.kind
}

/// Whether objects of a kind that are applied stage by stage are awaited, beside those that a release awaits.
pub(crate) fn becomes_ready(kind: &GroupKind) -> bool {
    matches!(
        (kind.group.as_str(), kind.kind.as_str()),
        ("", "PersistentVolumeClaim")
            | ("cert-manager.io", "Certificate")
            | ("apiregistration.k8s.io", "APIService")
    )
}

/// Whether the manifest of a ClusterOperator names versions that it is to report.
fn names_versions(manifest: &Manifest) -> bool {
    let object = manifest.object();
    object["status"]["versions"].as_array().is_some_and(|versions| !versions.is_empty())
}

/// A step of a release, which also waits for the condition that its manifest names.
fn gated(step: Step) -> Step {
    if is_gated(&step) { Step { readiness: Readiness::RolledOut, ..step } } else { step }
}

/// Whether nothing but the condition that its manifest names is awaited of a step.
fn is_gated(step: &Step) -> bool {
    step.readiness == Readiness::Applied
        && step.action == Action::Apply
        && step.manifest.annotations.contains_key(READY_WHEN)
        && may_be_gated(&step.manifest.key)
}

/// What is awaited after an action.
fn awaited(action: &Action, manifest: &Manifest) -> Readiness {
    let crd = manifest.key.group == "apiextensions.k8s.io"
        && manifest.key.kind == "CustomResourceDefinition";
    match (action, manifest.key.group.as_str(), manifest.key.kind.as_str()) {
        (Action::Gate, ..) => Readiness::Gate,
        (Action::Apply, ..) if crd => Readiness::Served,
        (Action::Apply, "apps", "Deployment" | "DaemonSet" | "StatefulSet")
        | (Action::Apply, "batch", "Job") => Readiness::RolledOut,
        (
            Action::Apply
            | Action::CreateOnly
            | Action::Delete
            | Action::Migrate
            | Action::Refuse(_),
            ..,
        ) => Readiness::Applied,
    }
}

/// The kinds that are served once an object is ready.
fn served_by(manifest: &Manifest, readiness: Readiness) -> Vec<GroupVersionKind> {
    let definition = manifest.definition.as_ref().filter(|_| readiness == Readiness::Served);
    definition.map(|definition| served(definition)).unwrap_or_default()
}

fn served(definition: &Definition) -> Vec<GroupVersionKind> {
    let kind = |version: &str| GroupVersionKind {
        group: definition.kind.group.clone(),
        version: version.to_owned(),
        kind: definition.kind.kind.clone(),
    };
    definition.served().map(kind).collect()
}

fn action(manifest: &Manifest) -> Action {
    if let Some(value) = manifest.annotations.get(DELETE) {
        return if value == "true" {
            Action::Delete
        } else {
            Action::Refuse(format!("invalid delete annotation \"{DELETE}\" value: {value:?}"))
        };
    }
    if is_cluster_operator(&manifest.key) {
        return Action::Gate;
    }
    let create_only = manifest.annotations.get(CREATE_ONLY);
    if create_only.is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        Action::CreateOnly
    } else {
        Action::Apply
    }
}
