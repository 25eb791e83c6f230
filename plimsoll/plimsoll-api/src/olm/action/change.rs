//! The changes that an Action plans.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::olm::RemainingObjects;

/// What is done with an Operator, or with the ClusterVersion.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PlannedChange {
    /// Name of the Operator; empty for the ClusterVersion.
    // +required
    pub operator: String,
    /// What is done: `Create`, `Update` or `Delete` the Operator, `UpdateRelease` or `EnableCapability` in the
    /// ClusterVersion, or `Await` what is requested already.
    // +required
    // +kubebuilder:validation:Enum=Create;Update;Delete;UpdateRelease;EnableCapability;Await
    pub operation: ChangeOperation,
    /// Uid of the object that was planned for; empty if it is created.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// `spec.version` of the Operator, or `spec.desiredUpdate` of the ClusterVersion, before; empty for any,
    /// and if it is created.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub requested_before: String,
    /// The same afterwards; empty for any, and if it is deleted.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub requested: String,
    /// The installed version before; empty for none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version_before: String,
    /// The installed version afterwards; empty for none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Name of the bundle that is installed; empty if that is not known, and if it is deleted.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub bundle: String,
    /// The channel that the bundle is taken from; empty if there is none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub channel: String,
    /// Name of the Catalog that the bundle is taken from; empty if that is not known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub catalog: String,
    /// What `spec.repository` of the Operator is set to; empty if it stays as it is, and if it is created.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub repository: String,
    /// Other fields of the `spec` of an Operator that exists, with the values that they get; before the deletion
    /// if it is deleted. Absent for none.
    // +kubebuilder:pruning:PreserveUnknownFields
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spec_fields: Option<Value>,
    /// Image of the bundle, or the digest of the Catalog if it has the content itself; empty if that is
    /// not known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub image: String,
    /// The capability that is enabled; empty for none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub capability: String,
    /// Whether others need it, and it was not requested itself.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dependency: bool,
    /// Whether it exists as a dependency, and its label says from now on that a person asked for it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub becomes_requested: bool,
    /// The Operator to create; absent otherwise.
    // +kubebuilder:pruning:PreserveUnknownFields
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manifest: Option<Value>,
    /// The change set that it is applied with; empty for none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub change_set: String,
    /// The change set that it is in and leaves; empty for none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub leaves_change_set: String,
    /// Names of the Operators that it depends on, directly or not, and that the plan leaves as they are.
    // +listType=atomic
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub relies_on: Vec<String>,
    /// Objects of its kinds that go with it.
    // +listType=atomic
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub workloads: Vec<RemainingObjects>,
    /// Names of the CustomResourceDefinitions that go with it, and all objects of their kinds.
    // +listType=atomic
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub definitions: Vec<String>,
    /// Permissions in all namespaces that its bundle brings and that the installed one does not have, as texts. They are
    /// looked for if `noNewClusterPermissions` is demanded of the plan; none otherwise.
    // +listType=atomic
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub new_cluster_permissions: Vec<String>,
    /// Digest of the content of each bundle in which they were looked for, by `CATALOG/NAME`: only these may be installed
    /// for the requested version. None if they were not looked for.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub inspected: BTreeMap<String, String>,
    /// How far it is: `Planned`, `Writing` if the request was recorded and may have been sent, `Written` to the
    /// API server, `Completed` or `Failed`.
    // +required
    // +kubebuilder:validation:Enum=Planned;Writing;Written;Completed;Failed
    pub state: ChangeState,
    /// Whether it failed before it was written: what it is about is left as it was.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unwritten: bool,
    /// Why it is in that state, in one word; empty for a plan.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The same as a sentence.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// What is done with an Operator.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChangeOperation {
    /// It is created.
    Create,
    /// Another version is requested of it.
    Update,
    /// It is deleted.
    Delete,
    /// Another release is requested in the ClusterVersion.
    UpdateRelease,
    /// A capability is requested in the ClusterVersion.
    EnableCapability,
    /// Nothing is written; the Action ends when it is done.
    #[default]
    Await,
}

impl PlannedChange {
    /// Whether it changes the ClusterVersion.
    pub fn is_release(&self) -> bool {
        self.operator.is_empty()
    }

    /// What it changes, for people: the Operator, the release or a capability of it.
    pub fn subject(&self) -> &str {
        match (self.operator.as_str(), self.capability.as_str()) {
            ("", "") => "release",
            ("", capability) => capability,
            (operator, _) => operator,
        }
    }
}

/// How far a change is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChangeState {
    /// Nothing was done.
    #[default]
    Planned,
    /// The request is recorded before it is sent: the API server may have it.
    Writing,
    /// The API server has it.
    Written,
    /// It is done.
    Completed,
    /// It could not be done.
    Failed,
}
