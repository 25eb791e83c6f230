//! The roles of simulated operators, derived from nothing but the manifests of the releases.
//!
//! # Rules
//!
//! * Each ClusterOperator manifest is the role of an operator. What it reports is what the
//!   manifest names. Its Deployments (DaemonSets, StatefulSets) are those before it in the files of
//!   the same run level and component. It may have none.
//! * A namespace that a manifest lies in and that no manifest creates is created at run
//!   time. So is a kind that no definition of the payload brings and the server does not serve.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_api::config::{ClusterOperatorStatus, ObjectReference, OperandVersion};
use plimsoll_api::{GroupKind, ObjectKey};
use plimsoll_content::Manifest;
use plimsoll_plan::plan::graph::position;
use serde::Deserialize;
use serde_json::Value;

use super::template_fingerprint::TemplateFingerprint;
use super::workload::WorkloadKind;

/// Annotation of manifests whose object is to be deleted.
const DELETE: &str = "release.openshift.io/delete";
/// Namespaces that every API server has.
const SYSTEM_NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

/// What the simulation knows of a release: its included manifests, in the order of the payload.
#[derive(Debug, Clone)]
pub struct SimulatedRelease {
    /// Version of the release.
    pub version: String,
    /// Its included manifests.
    pub manifests: Vec<Manifest>,
    /// The kinds known to have no namespace, even where a manifest writes one.
    pub cluster_kinds: BTreeSet<GroupKind>,
}

/// All roles of some releases. Releases are numbered in the order in which they were given.
#[derive(Debug, Default)]
pub(super) struct Roles {
    /// Versions of the releases.
    pub(super) releases: Vec<String>,
    /// Operators by the name of their ClusterOperator.
    pub(super) operators: BTreeMap<String, OperatorRole>,
    /// Namespaces that no manifest creates.
    pub(super) namespaces: BTreeSet<String>,
    /// Kinds that no definition of the payloads brings; many of them are served by any server. The
    /// controller defines ClusterOperators.
    pub(super) external_kinds: BTreeSet<ExternalKind>,
}

/// The role of an operator in each release that has it, by the number of the release.
#[derive(Debug, Default)]
pub(super) struct OperatorRole(pub(super) BTreeMap<usize, ReleaseRole>);

/// The role of an operator in one release.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ReleaseRole {
    /// The versions to report.
    pub(super) versions: Vec<OperandVersion>,
    /// The objects to point at.
    pub(super) related_objects: Vec<ObjectReference>,
    /// The workloads that must have rolled out, and their templates in this release.
    pub(super) workloads: BTreeMap<ObjectKey, TemplateFingerprint>,
}

/// A kind that the payload does not bring and that must be served.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ExternalKind {
    /// API group.
    pub(super) group: String,
    /// API version.
    pub(super) version: String,
    /// Kind in CamelCase.
    pub(super) kind: String,
    /// Whether manifests give its objects a namespace.
    pub(super) namespaced: bool,
}

impl Roles {
    /// Derives the roles from the releases.
    pub(super) fn new(releases: &[SimulatedRelease]) -> Self {
        let mut roles = Self::default();
        for (release, simulated) in releases.iter().enumerate() {
            roles.releases.push(simulated.version.clone());
            roles.add_operators(release, &simulated.manifests);
            roles.add_namespaces(simulated);
            roles.add_external_kinds(&simulated.manifests);
        }
        roles
    }

    /// Returns whether any operator waits for this workload.
    pub(super) fn has_workload(&self, key: &ObjectKey) -> bool {
        self.release_roles().any(|role| role.workloads.contains_key(key))
    }

    /// Returns whether no operator waits for any workload.
    pub(super) fn is_without_workloads(&self) -> bool {
        self.release_roles().all(|role| role.workloads.is_empty())
    }

    fn release_roles(&self) -> impl Iterator<Item = &ReleaseRole> {
        self.operators.values().flat_map(|role| role.0.values())
    }

    fn add_operators(&mut self, release: usize, manifests: &[Manifest]) {
        let mut components: BTreeMap<_, BTreeMap<ObjectKey, TemplateFingerprint>> = BTreeMap::new();
        for manifest in manifests.iter().filter(|manifest| !manifest.is_annotated_true(DELETE)) {
            let Some(position) = position(&manifest.file) else {
                continue;
            };
            let key = &manifest.key;
            let kind = WorkloadKind::of(&key.group, &key.kind);
            if kind.is_some_and(|it| !matches!(it, WorkloadKind::Job | WorkloadKind::ApiService)) {
                let fingerprint = TemplateFingerprint::of(&manifest.object());
                components.entry(position).or_default().insert(key.clone(), fingerprint);
            }
            if is_cluster_operator(key) {
                let status = reported(&manifest.object());
                let role = ReleaseRole {
                    versions: status.versions,
                    related_objects: status.related_objects,
                    workloads: components.get(&position).cloned().unwrap_or_default(),
                };
                self.operators.entry(key.name.clone()).or_default().0.insert(release, role);
            }
        }
    }

    fn add_namespaces(&mut self, simulated: &SimulatedRelease) {
        let SimulatedRelease { manifests, cluster_kinds, .. } = simulated;
        let created: BTreeSet<&str> = manifests
            .iter()
            .filter(|manifest| manifest.key.group.is_empty() && manifest.key.kind == "Namespace")
            .map(|manifest| manifest.key.name.as_str())
            .chain(SYSTEM_NAMESPACES)
            .collect();
        self.namespaces.extend(
            manifests
                .iter()
                .filter(|manifest| !cluster_kinds.contains(&manifest.key.group_kind()))
                .map(|manifest| manifest.key.namespace.as_str())
                .filter(|namespace| !namespace.is_empty() && !created.contains(namespace))
                .map(str::to_owned),
        );
    }

    fn add_external_kinds(&mut self, manifests: &[Manifest]) {
        let defined = manifests.iter().filter_map(|manifest| manifest.definition.as_ref());
        let brought: BTreeSet<&GroupKind> = defined.map(|definition| &definition.kind).collect();
        for manifest in manifests {
            let kind = manifest.key.group_kind();
            // A definition needs a group with a domain; the others are every server's own.
            let is_custom = kind.group.contains('.') && !is_cluster_operator(&manifest.key);
            if is_custom && !brought.contains(&kind) {
                self.external_kinds.insert(ExternalKind {
                    group: kind.group,
                    version: manifest.version.clone(),
                    kind: kind.kind,
                    namespaced: !manifest.key.namespace.is_empty(),
                });
            }
        }
    }
}

fn is_cluster_operator(key: &ObjectKey) -> bool {
    let operator = plimsoll_api::CLUSTER_OPERATOR;
    key.group == operator.group && key.kind == operator.kind
}

/// The status that a ClusterOperator manifest asks for; what cannot be read is left out.
fn reported(manifest: &Value) -> ClusterOperatorStatus {
    let status = &manifest["status"];
    ClusterOperatorStatus {
        versions: Deserialize::deserialize(&status["versions"]).unwrap_or_default(),
        related_objects: Deserialize::deserialize(&status["relatedObjects"]).unwrap_or_default(),
        ..ClusterOperatorStatus::default()
    }
}

#[cfg(test)]
mod tests;
