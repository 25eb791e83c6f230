//! What the controller reports of an Operator.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::ObjectKey;
use crate::config::{MetaCondition, UpdateState};

/// The state of an Operator, as the controller observed it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OperatorStatus {
    /// Generation of the spec that this status was computed from.
    // +required
    pub observed_generation: i64,
    /// ConstraintsSatisfied, HasValidBundle, Installed, and Progressing, Available, Degraded and
    /// Upgradeable as a ClusterOperator has them.
    // +listType=map
    // +listMapKey=type
    pub conditions: Vec<MetaCondition>,
    /// The requested version and the installed one, such as `^1.2 (@v1.2.5)`; empty before the first
    /// installation.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resolved_version: String,
    /// Namespace that the operator is installed in; empty before the first installation.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The installed bundle; absent before the first installation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bundle: Option<BundleReference>,
    /// Number of the OperatorRevision that is installed or being rolled out; absent before the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<u32>,
    /// Requirements of the bundle that is installed or about to be, or else of the one that is waited for, and
    /// what satisfies them.
    // +listType=atomic
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<DependencyStatus>,
    /// The Operators whose requirements this one satisfies.
    // +listType=atomic
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dependants: Vec<Dependant>,
    /// Whether it was installed as a dependency and nothing depends on it any more.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub orphaned: bool,
    /// The APIs that the installed bundle provides.
    // +listType=atomic
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub provided_apis: Vec<InstalledApi>,
    /// What the installed bundle requires of the platform, so that an update of it cannot break the
    /// Operator; absent if it requires nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub platform: Option<PlatformRequirements>,
    /// Uids of earlier Operators whose OperatorRevisions it took over.
    // +listType=atomic
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub predecessors: Vec<String>,
    /// The objects of the installed revision, in the order they are applied.
    // +listType=atomic
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inventory: Vec<ObjectKey>,
    /// The deletion under way; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion: Option<DeletionProgress>,
    /// The bundles that were installed, newest first.
    // +listType=atomic
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<OperatorHistory>,
}

/// A bundle, and where it came from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BundleReference {
    /// Its name.
    // +required
    pub name: String,
    /// Its version.
    // +required
    pub version: String,
    /// Digest of its content; empty if its source has none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub digest: String,
    /// The channel that it was taken from; empty if there was none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub channel: String,
    /// Name of the Catalog that it was taken from.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub catalog: String,
}

/// What an installed bundle requires of the platform that an update could take away.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PlatformRequirements {
    /// Highest minor version of OpenShift that it runs on, such as `4.22`; empty for any.
    #[serde(rename = "maxOpenShiftVersion", skip_serializing_if = "String::is_empty")]
    pub max_openshift_version: String,
    /// APIs that the cluster itself must serve.
    // +listType=atomic
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub native_apis: Vec<InstalledApi>,
}

/// A requirement of a bundle that is installed, about to be, or waited for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DependencyStatus {
    /// The requirement, such as `bar >=1.2.3`.
    // +required
    pub requirement: String,
    /// Whether it is satisfied.
    // +required
    pub satisfied: bool,
    /// The Operator that satisfies it, or that would in another version; empty if there is none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub operator: String,
    /// The installed version of that Operator; empty if it is not installed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// What is missing; empty if nothing is.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// An Operator that depends on this one.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Dependant {
    /// Its name.
    // +required
    pub operator: String,
    /// Its requirement.
    // +required
    pub requirement: String,
}

/// An API that a bundle provides.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub struct InstalledApi {
    /// API group.
    // +required
    pub group: String,
    /// API version.
    // +required
    pub version: String,
    /// Kind in CamelCase.
    // +required
    pub kind: String,
}

/// A deletion under way.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeletionProgress {
    /// The phase: `Operands`, `Definitions`, `Admission`, `Workloads`, `Configuration`, `Access` or
    /// `Namespaces`.
    // +required
    pub phase: String,
    /// When the deletion began.
    // +required
    pub started_time: Timestamp,
    /// What is left of this phase.
    // +listType=atomic
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remaining: Vec<RemainingObjects>,
    /// Objects that do not go, with their finalizers; at most 20.
    // +listType=atomic
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stuck: Vec<String>,
}

/// Objects of a kind that are left.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RemainingObjects {
    /// Their kind, such as `Kettle.example.com`.
    // +required
    pub kind: String,
    /// Namespace; empty for cluster-scoped objects.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Their number.
    // +required
    pub count: usize,
    /// The names of the first ones; empty if they are not listed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
}

/// A bundle in an Operator's history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OperatorHistory {
    /// `Completed` once every object was applied and ready, `Partial` before that.
    pub state: UpdateState,
    /// When the rollout began.
    pub started_time: Timestamp,
    /// When it was completed or replaced by another; null before that.
    pub completion_time: Option<Timestamp>,
    /// Number of the OperatorRevision.
    pub revision: u32,
    /// Name of the bundle.
    pub bundle: String,
    /// Version of the bundle.
    pub version: String,
    /// What did not hold and was overridden; empty for nothing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub accepted_risks: String,
}
