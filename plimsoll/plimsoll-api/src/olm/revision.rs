//! Revisions: the objects of one installation of an Operator.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{BundleReference, CertificateProvider, ReadinessRule};

/// The objects of one installation of an Operator. It never changes. What is too large for one object
/// is in several parts, which have the same revision.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OperatorRevisionSpec {
    /// Name of the Operator.
    // +required
    // +kubebuilder:validation:MaxLength=253
    pub operator: String,
    /// Number of the revision, from 1.
    // +required
    // +kubebuilder:validation:Minimum=1
    pub revision: u32,
    /// Which part of it this is.
    // +required
    pub part: RevisionPart,
    /// Digest of the objects of this part. A part whose objects have another digest is not applied.
    // +required
    // +kubebuilder:validation:MaxLength=128
    pub digest: String,
    /// The bundle that the objects were made of.
    // +required
    pub bundle: BundleReference,
    /// The bundle's properties as its catalog has them: what it provides and requires is known without
    /// the catalog.
    // +listType=atomic
    pub properties: Vec<BundleProperty>,
    /// Namespace that the operator is installed in.
    // +required
    pub namespace: String,
    /// The configuration that the objects were made with; absent for none.
    // +kubebuilder:pruning:PreserveUnknownFields
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<Value>,
    /// The provider of certificates that the objects were made for; absent for `BuiltIn`.
    // +kubebuilder:validation:Enum=BuiltIn;CertManager;ServiceCa;None
    #[serde(skip_serializing_if = "CertificateProvider::is_default")]
    pub certificates: CertificateProvider,
    /// The rules of the Operator on which the objects are ready; absent for none.
    // +listType=atomic
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ready_when: Vec<ReadinessRule>,
    /// Capabilities that were not enabled when the revision was made: objects of the bundle that need
    /// one of them were left out. When one is enabled, another revision is made of the bundle.
    // +listType=set
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub omitted_capabilities: Vec<String>,
    /// The objects of this part, in the order they are applied.
    // +required
    // +listType=atomic
    pub objects: Vec<RevisionObject>,
}

/// A property of a bundle, such as `olm.gvk.required`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct BundleProperty {
    /// Its type.
    // +required
    #[serde(rename = "type")]
    pub type_: String,
    /// Its value; the form depends on the type, and need not be an object.
    // +required
    // +kubebuilder:validation:Schemaless
    // +kubebuilder:pruning:PreserveUnknownFields
    pub value: Value,
}

/// Which part of a revision an object is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RevisionPart {
    /// Its number, from 1.
    // +required
    pub number: u32,
    /// Number of parts of the revision.
    // +required
    pub of: u32,
}

/// An object of a revision.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RevisionObject {
    /// The phase in which it is applied.
    // +required
    pub phase: String,
    /// The object.
    // +required
    // +kubebuilder:pruning:PreserveUnknownFields
    pub object: Value,
}
