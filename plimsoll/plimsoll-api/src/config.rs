//! `config.openshift.io/v1`: ClusterVersion and ClusterOperator (CV-15, CV-16, CO-3).
//!
//! The definitions in `crds/` are generated from these types (`cargo xtask codegen crds`): the doc
//! comments are their descriptions, and the markers (`// +listType=map` and the like, in the form
//! that controller-gen reads) are what a Rust type cannot say.

mod conditional_updates;

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::conditional_updates::{
    ConditionalUpdate, ConditionalUpdateRisk, MatchingRule, MetaCondition, PromQlRule,
};
use crate::Condition;

/// The release that the administrator requests, and how the cluster is updated to it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterVersionSpec {
    /// Identifies the cluster; a random UUID (RFC 4122, version 4).
    // +required
    #[serde(rename = "clusterID", skip_serializing_if = "String::is_empty")]
    pub cluster_id: String,
    /// The requested release; absent for the release that is applied.
    // +kubebuilder:validation:XValidation:rule="!has(self.architecture) || !has(self.image)
    //  || self.architecture == '' || self.image == ''",
    //  message="architecture and image exclude each other"
    // +kubebuilder:validation:XValidation:rule="!has(self.architecture) || self.architecture == ''
    //  || (has(self.version) && self.version != '')",message="architecture needs a version beside it"
    #[serde(skip_serializing_if = "Option::is_none")]
    pub desired_update: Option<Update>,
    /// URL of the update service; empty for the default one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub upstream: String,
    /// Channel of updates that the update service is asked for; empty for none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub channel: String,
    /// Optional parts of the release that are requested; absent for the default set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<CapabilitiesSpec>,
    /// Where signatures of releases are looked up; empty for the default stores.
    // +listType=map
    // +listMapKey=url
    // +kubebuilder:validation:MaxItems=32
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub signature_stores: Vec<SignatureStore>,
    /// Objects of the release that are not managed.
    // +listType=map
    // +listMapKey=kind
    // +listMapKey=group
    // +listMapKey=namespace
    // +listMapKey=name
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub overrides: Vec<ComponentOverride>,
}

/// A request for a release.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Update {
    /// `Multi` to move to images for several architectures; empty to keep the architecture.
    // +kubebuilder:validation:Enum=Multi;""
    #[serde(skip_serializing_if = "String::is_empty")]
    pub architecture: String,
    /// Semantic version of the release; empty if only the image is given.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Pull specification of the payload; empty if only the version is given.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub image: String,
    /// Whether to update even if verification or preconditions fail.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub force: bool,
    /// Risks that do not block the update.
    // +listType=map
    // +listMapKey=name
    // +kubebuilder:validation:MinItems=1
    // +kubebuilder:validation:MaxItems=1000
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub accept_risks: Vec<AcceptedRisk>,
}

/// A risk of an update that the administrator accepts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AcceptedRisk {
    /// Name of the risk.
    // +required
    // +kubebuilder:validation:MinLength=1
    // +kubebuilder:validation:MaxLength=256
    pub name: String,
}

/// The requested capabilities (CAP-5).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CapabilitiesSpec {
    /// Name of a set of capabilities; empty for `vCurrent`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub baseline_capability_set: String,
    /// Capabilities that are requested in addition to the set.
    // +listType=atomic
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub additional_enabled_capabilities: Vec<String>,
}

impl fmt::Display for CapabilitiesSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.baseline_capability_set.as_str() {
            "" => f.write_str("the default set")?,
            set => write!(f, "set {set}")?,
        }
        match self.additional_enabled_capabilities.as_slice() {
            [] => Ok(()),
            names => write!(f, " and {}", names.join(", ")),
        }
    }
}

/// A store of signatures.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SignatureStore {
    /// Absolute URL of the store.
    // +required
    // +kubebuilder:validation:XValidation:rule="isURL(self)",message="must be an absolute URL"
    pub url: String,
    /// ConfigMap with the certificate authorities to trust; absent for those of the system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca: Option<ConfigMapReference>,
}

/// A ConfigMap in the namespace that its user defines.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConfigMapReference {
    /// Name of the ConfigMap.
    // +required
    pub name: String,
}

/// An object of the release that is not managed (CV-7).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ComponentOverride {
    /// Kind of the object.
    // +required
    pub kind: String,
    /// API group of the object; empty for the core group.
    // +required
    pub group: String,
    /// Namespace of the object; ignored for cluster-scoped objects.
    // +required
    pub namespace: String,
    /// Name of the object.
    // +required
    pub name: String,
    /// Whether the object is unmanaged; `false` has no effect.
    // +required
    pub unmanaged: bool,
}

/// The state of the cluster's version, as the controller observed it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterVersionStatus {
    /// The release that is being applied or reconciled.
    // +required
    pub desired: Release,
    /// The releases of this cluster, newest first.
    // +listType=atomic
    pub history: Vec<UpdateHistory>,
    /// Generation of the spec that this status was computed from.
    // +required
    pub observed_generation: i64,
    /// Hash of the manifests of the release that are applied.
    // +required
    pub version_hash: String,
    /// The capabilities that are enabled and those that are known.
    pub capabilities: CapabilitiesStatus,
    /// Conditions of the cluster's version: Available, Progressing, Failing and others.
    // +listType=map
    // +listMapKey=type
    pub conditions: Vec<Condition>,
    /// Updates that are recommended; null if none are or they are not known.
    // +required
    // +listType=atomic
    pub available_updates: Option<Vec<Release>>,
    /// The risks that conditional updates refer to.
    // +listType=map
    // +listMapKey=name
    // +kubebuilder:validation:MinItems=1
    // +kubebuilder:validation:MaxItems=500
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditional_update_risks: Vec<ConditionalUpdateRisk>,
    /// Updates that are recommended unless one of their risks applies.
    // +listType=atomic
    // +kubebuilder:validation:MaxItems=500
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditional_updates: Vec<ConditionalUpdate>,
}

/// A release, as the status names it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Release {
    /// `Multi` for images for several architectures; empty for one architecture.
    // +kubebuilder:validation:Enum=Multi;""
    #[serde(skip_serializing_if = "String::is_empty")]
    pub architecture: String,
    /// Semantic version.
    // +required
    pub version: String,
    /// Pull specification of the payload.
    // +required
    pub image: String,
    /// URL of the description of the release; empty for none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub url: String,
    /// Channels that contain the release.
    // +listType=set
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub channels: Vec<String>,
}

/// One release in a cluster's history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UpdateHistory {
    /// `Completed` once everything was applied, `Partial` before that.
    pub state: UpdateState,
    /// When the release was first applied.
    pub started_time: Timestamp,
    /// When the release was completed or replaced by another; null before that.
    pub completion_time: Option<Timestamp>,
    /// Semantic version; empty if it is not known.
    #[serde(default)]
    pub version: String,
    /// Pull specification of the payload.
    // +required
    #[serde(default)]
    pub image: String,
    /// Whether the payload's signature was verified.
    // +required
    #[serde(default)]
    pub verified: bool,
    /// Checks that failed and were overridden by force; empty for none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub accepted_risks: String,
}

/// How far a release was applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum UpdateState {
    /// Completely applied at some time.
    Completed,
    /// Not (yet) completely applied.
    Partial,
}

/// Optional parts of the release, as this cluster has them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CapabilitiesStatus {
    /// Names of the enabled capabilities, sorted.
    // +listType=atomic
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub enabled_capabilities: Vec<String>,
    /// Names of all capabilities of the release, sorted.
    // +listType=atomic
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub known_capabilities: Vec<String>,
}

/// A ClusterOperator has no configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterOperatorSpec {}

/// The state of a component, as its operator reports it (CO-7 to CO-12).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterOperatorStatus {
    /// At least Available, Progressing and Degraded; Upgradeable if the operator has a say in it.
    // +listType=map
    // +listMapKey=type
    pub conditions: Vec<Condition>,
    /// Versions of the operator (named `operator`) and its operands. A new version is reported once
    /// nothing of the old one runs.
    pub versions: Vec<OperandVersion>,
    /// Objects to inspect when the component has a problem.
    pub related_objects: Vec<ObjectReference>,
    /// Anything else that the operator reports; absent or null for nothing.
    // +nullable
    // +kubebuilder:pruning:PreserveUnknownFields
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extension: Option<Value>,
}

/// A version that an operator reports, or that its manifest requires.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OperandVersion {
    /// `operator`, or the name of an operand or of an image.
    // +required
    pub name: String,
    /// Its version.
    // +required
    pub version: String,
}

/// An object, all objects of a resource in a namespace, or all objects of a resource.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ObjectReference {
    /// API group; empty for the core group.
    // +required
    pub group: String,
    /// Plural name of the resource.
    // +required
    pub resource: String,
    /// Namespace; empty for cluster-scoped objects.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name; empty for all objects of the resource.
    // +required
    pub name: String,
}
