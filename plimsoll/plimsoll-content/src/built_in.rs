//! Kinds without namespaces that every cluster has.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use k8s_schema::builtin;
use plimsoll_api::GroupKind;

/// The namespaces that every cluster has.
pub(crate) const NAMESPACES: [&str; 4] =
    ["default", "kube-node-lease", "kube-public", "kube-system"];

/// The kinds that every cluster has that is kept at a release, beside Kubernetes' own: they are
/// installed with the first one.
pub(crate) const INSTALLED: [&str; 2] = ["ClusterOperator", "ClusterVersion"];

/// Returns the kinds without namespaces that every cluster has: those built into Kubernetes, and those
/// that are installed with the first release.
pub fn built_in_cluster_kinds() -> &'static BTreeSet<GroupKind> {
    static KINDS: LazyLock<BTreeSet<GroupKind>> = LazyLock::new(|| {
        let built_in = builtin::resources().iter().filter(|resource| !resource.namespaced);
        let built_in = built_in.map(|resource| GroupKind::new(&resource.group, &resource.kind));
        let installed = INSTALLED.map(|kind| GroupKind::new("config.openshift.io", kind));
        built_in.chain(installed).collect()
    });
    &KINDS
}
