//! `config.openshift.io/v1`: ClusterVersion and ClusterOperator (CV-15, CV-16, CO-3).

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Condition;

/// What an administrator wants of the cluster's version.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterVersionSpec {
    /// Identifies the cluster; an RFC 4122 version 4 UUID.
    #[serde(rename = "clusterID", skip_serializing_if = "String::is_empty")]
    pub cluster_id: String,
    /// The release asked for; none means the one the controller was started with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub desired_update: Option<Update>,
    /// URL of an update service.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub upstream: String,
    /// Update channel.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub channel: String,
    /// Which optional parts of the release are wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<CapabilitiesSpec>,
    /// Objects that are not to be managed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub overrides: Vec<ComponentOverride>,
}

/// A request for a release.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Update {
    /// `Multi`, or empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub architecture: String,
    /// Semantic version.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Pull specification of the payload.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub image: String,
    /// Go ahead although verification or preconditions fail.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub force: bool,
}

/// The capabilities asked for (CAP-5).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CapabilitiesSpec {
    /// Name of a capability set; empty means `vCurrent`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub baseline_capability_set: String,
    /// Capabilities beyond the set.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub additional_enabled_capabilities: Vec<String>,
}

/// An object of the payload to leave alone (CV-7).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ComponentOverride {
    /// Kind.
    pub kind: String,
    /// API group.
    pub group: String,
    /// Namespace; ignored for cluster-scoped objects.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Leave it alone; `false` has no effect.
    pub unmanaged: bool,
}

/// What the controller observed about the cluster's version.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterVersionStatus {
    /// The release that is being applied.
    pub desired: Release,
    /// The releases of this cluster, newest first.
    pub history: Vec<UpdateHistory>,
    /// Generation of the spec that this status answers.
    pub observed_generation: i64,
    /// Hash of the included manifests.
    pub version_hash: String,
    /// Enabled and known capabilities.
    pub capabilities: CapabilitiesStatus,
    /// Conditions, in the order they are shown.
    pub conditions: Vec<Condition>,
    /// Updates that an update service recommends; `None` (null) for unknown or none.
    pub available_updates: Option<Vec<Release>>,
    /// Updates that carry risks; kept as found.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditional_updates: Vec<Value>,
}

/// A release as status names it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Release {
    /// Semantic version.
    pub version: String,
    /// Pull specification.
    pub image: String,
    /// Where the release is described.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub url: String,
    /// Channels that contain it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub channels: Vec<String>,
}

/// One release in a cluster's history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UpdateHistory {
    /// How far it came.
    pub state: UpdateState,
    /// When it was begun.
    pub started_time: Timestamp,
    /// When it was completed or left; null while it lasts.
    pub completion_time: Option<Timestamp>,
    /// Semantic version.
    #[serde(default)]
    pub version: String,
    /// Pull specification.
    #[serde(default)]
    pub image: String,
    /// Whether the payload's signature was verified.
    #[serde(default)]
    pub verified: bool,
    /// Risks that were accepted for it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub accepted_risks: String,
}

/// How far a release came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum UpdateState {
    /// Fully applied at some time.
    Completed,
    /// Not (yet) fully applied.
    Partial,
}

/// Capabilities as the cluster has them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CapabilitiesStatus {
    /// Enabled ones, sorted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub enabled_capabilities: Vec<String>,
    /// Known ones, sorted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub known_capabilities: Vec<String>,
}

/// What an operator reports about its component (CO-7 to CO-12).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterOperatorStatus {
    /// `Available`, `Progressing`, `Degraded`, `Upgradeable`.
    pub conditions: Vec<Condition>,
    /// Versions of the operator and its operands.
    pub versions: Vec<OperandVersion>,
    /// Objects that belong to the component.
    pub related_objects: Vec<ObjectReference>,
    /// Anything the operator adds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extension: Option<Value>,
}

/// A version that an operator reports, or a manifest demands.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OperandVersion {
    /// `operator`, or an operand's name.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// An object, all objects of a resource in a namespace, or all of a resource.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ObjectReference {
    /// API group.
    pub group: String,
    /// Plural resource name.
    pub resource: String,
    /// Namespace, or empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name, or empty for all.
    pub name: String,
}
