//! Rules on which objects of an Operator are ready.

use serde::{Deserialize, Serialize};

/// When objects of an Operator are ready. A rollout waits for them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReadinessRule {
    /// API group of the objects; empty for the core group.
    // +kubebuilder:validation:MaxLength=253
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Kind of the objects in CamelCase, such as `Deployment`.
    // +required
    // +kubebuilder:validation:MinLength=1
    // +kubebuilder:validation:MaxLength=63
    pub kind: String,
    /// Namespace of the objects; empty for any.
    // +kubebuilder:validation:MaxLength=63
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name of the object; empty for all objects of the kind.
    // +kubebuilder:validation:MaxLength=253
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Rule in CEL over `self`, the object as the API server has it, such as
    /// `self.status.phase == 'Running'`; or `conditions` for what its conditions say by convention.
    // +required
    // +kubebuilder:validation:MinLength=1
    // +kubebuilder:validation:MaxLength=4096
    pub rule: String,
}
