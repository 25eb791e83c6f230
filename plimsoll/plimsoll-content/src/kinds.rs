//! Which kinds exist and which of them have namespaces: those built into Kubernetes and those that
//! the CustomResourceDefinitions of a payload define.

use std::collections::{BTreeMap, BTreeSet};

use k8s_schema::builtin;
use plimsoll_api::GroupKind;

use crate::Manifest;
use crate::built_in::{INSTALLED, built_in_cluster_kinds};
use crate::definition::Scope;

/// Returns the kinds known to have no namespace: those of every cluster, and those that manifests define
/// so. Of a kind that they define in both ways, only an API server knows.
pub fn cluster_kinds<'a>(manifests: impl IntoIterator<Item = &'a Manifest>) -> BTreeSet<GroupKind> {
    let mut kinds = built_in_cluster_kinds().clone();
    let mut namespaced = BTreeSet::new();
    for definition in manifests.into_iter().filter_map(|manifest| manifest.definition.as_ref()) {
        match definition.scope {
            Scope::Cluster => kinds.insert(definition.kind.clone()),
            Scope::Namespaced => namespaced.insert(definition.kind.clone()),
        };
    }
    kinds.retain(|kind| !namespaced.contains(kind));
    kinds
}

/// The kinds that a payload can use.
#[derive(Debug, Clone, Default)]
pub struct Kinds {
    scopes: BTreeMap<GroupKind, Scope>,
    versions: BTreeSet<(GroupKind, String)>,
}

impl Kinds {
    /// The kinds built into Kubernetes and those that the manifests define. A kind defined more
    /// than once, for several feature sets, has the versions of all its definitions.
    pub fn of(manifests: &[Manifest]) -> Self {
        let mut kinds = Self::default();
        for resource in builtin::resources() {
            let kind = GroupKind::new(&resource.group, &resource.kind);
            let scope = if resource.namespaced { Scope::Namespaced } else { Scope::Cluster };
            kinds.add(kind, &resource.version, scope);
        }
        for kind in INSTALLED {
            kinds.add(GroupKind::new("config.openshift.io", kind), "v1", Scope::Cluster);
        }
        for definition in manifests.iter().filter_map(|manifest| manifest.definition.as_ref()) {
            for version in definition.served() {
                kinds.add(definition.kind.clone(), version, definition.scope);
            }
        }
        kinds
    }

    fn add(&mut self, kind: GroupKind, version: &str, scope: Scope) {
        self.versions.insert((kind.clone(), version.to_owned()));
        self.scopes.insert(kind, scope);
    }

    /// Whether the objects of a kind live in namespaces; `None` for a kind that does not exist.
    pub fn scope(&self, kind: &GroupKind) -> Option<Scope> {
        self.scopes.get(kind).copied()
    }

    /// Whether a kind exists in a version.
    pub fn serves(&self, kind: &GroupKind, version: &str) -> bool {
        self.versions.contains(&(kind.clone(), version.to_owned()))
    }
}
