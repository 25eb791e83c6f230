//! Updates that carry risks, as an update service describes them.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Release;
use crate::ConditionStatus;

/// An update that is recommended unless one of its risks applies.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConditionalUpdate {
    /// The release that the update leads to.
    // +required
    pub release: Release,
    /// Whether the update is recommended for this cluster.
    // +listType=map
    // +listMapKey=type
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<MetaCondition>,
    /// Names of its risks.
    // +listType=set
    // +kubebuilder:validation:MinItems=1
    // +kubebuilder:validation:MaxItems=500
    // +kubebuilder:validation:items:MaxLength=256
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub risk_names: Vec<String>,
    /// Its risks.
    // +required
    // +listType=map
    // +listMapKey=name
    // +kubebuilder:validation:MinItems=1
    // +kubebuilder:validation:MaxItems=200
    pub risks: Vec<ConditionalUpdateRisk>,
}

/// A risk of updates.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConditionalUpdateRisk {
    /// Whether the risk applies to this cluster.
    // +listType=map
    // +listMapKey=type
    // +kubebuilder:validation:MinItems=1
    // +kubebuilder:validation:MaxItems=8
    // +kubebuilder:validation:XValidation:
    //  rule="self.exists_one(condition, condition.type == 'Applies')",
    //  message="needs a condition Applies"
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<MetaCondition>,
    /// CamelCase name of the risk.
    // +required
    // +kubebuilder:validation:MinLength=1
    pub name: String,
    /// What may go wrong.
    // +required
    // +kubebuilder:validation:MinLength=1
    pub message: String,
    /// URL of the description of the risk.
    // +required
    // +kubebuilder:validation:Format=uri
    // +kubebuilder:validation:MinLength=1
    pub url: String,
    /// Rules on which clusters the risk applies to; the first that can be evaluated counts.
    // +required
    // +listType=atomic
    // +kubebuilder:validation:MinItems=1
    pub matching_rules: Vec<MatchingRule>,
}

/// A rule on which clusters a risk applies to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MatchingRule {
    /// `Always`, or `PromQL` to query the cluster's metrics.
    // +required
    // +kubebuilder:validation:Enum=Always;PromQL
    #[serde(rename = "type")]
    pub type_: String,
    /// The query of a `PromQL` rule; absent for other rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promql: Option<PromQlRule>,
}

/// A rule that is a query of the cluster's metrics.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PromQlRule {
    /// A query whose result is 1 where the risk applies and 0 where it does not.
    // +required
    pub promql: String,
}

/// A condition in the form of `meta/v1`, which is stricter than that of `config.openshift.io/v1`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MetaCondition {
    /// Name of the condition.
    // +kubebuilder:validation:MaxLength=316
    // +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`
    #[serde(rename = "type")]
    pub type_: String,
    /// Whether the condition holds.
    // +kubebuilder:validation:Enum=True;False;Unknown
    pub status: ConditionStatus,
    /// Generation of the spec that the condition was computed from; absent if it is not known.
    // +kubebuilder:validation:Minimum=0
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// When `status` last changed.
    pub last_transition_time: Timestamp,
    /// CamelCase reason.
    // +required
    // +kubebuilder:validation:MinLength=1
    // +kubebuilder:validation:MaxLength=1024
    // +kubebuilder:validation:Pattern=`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`
    #[serde(default)]
    pub reason: String,
    /// Text for people.
    // +required
    // +kubebuilder:validation:MaxLength=32768
    #[serde(default)]
    pub message: String,
}
