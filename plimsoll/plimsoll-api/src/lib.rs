//! Wire types of the APIs that Plimsoll installs: shapes only, no behaviour.
//!
//! `config.openshift.io/v1` (ClusterVersion, ClusterOperator) is schema-compatible with the
//! published API; `plimsoll.io/v1alpha1` is our own.

pub mod config;
pub mod crd;
pub mod progress;

/// A reference to a kind: everything a client needs to address its objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApiKind {
    /// API group.
    pub group: &'static str,
    /// API version.
    pub version: &'static str,
    /// Kind in CamelCase.
    pub kind: &'static str,
    /// Plural resource name.
    pub plural: &'static str,
}

/// The ClusterVersion kind; its one object is called [`CLUSTER_VERSION_NAME`].
pub const CLUSTER_VERSION: ApiKind = ApiKind {
    group: "config.openshift.io",
    version: "v1",
    kind: "ClusterVersion",
    plural: "clusterversions",
};
/// The ClusterOperator kind.
pub const CLUSTER_OPERATOR: ApiKind = ApiKind {
    group: "config.openshift.io",
    version: "v1",
    kind: "ClusterOperator",
    plural: "clusteroperators",
};
/// The ReleaseProgress kind; its one object has the ClusterVersion's name.
pub const RELEASE_PROGRESS: ApiKind = ApiKind {
    group: "plimsoll.io",
    version: "v1alpha1",
    kind: "ReleaseProgress",
    plural: "releaseprogresses",
};
/// The FeatureGate kind, which releases bring; the features of a cluster are in the one called
/// `cluster`.
pub const FEATURE_GATE: ApiKind = ApiKind {
    group: "config.openshift.io",
    version: "v1",
    kind: "FeatureGate",
    plural: "featuregates",
};
/// Name of the one ClusterVersion of a cluster.
pub const CLUSTER_VERSION_NAME: &str = "version";
