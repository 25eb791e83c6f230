//! The kinds of `olm.io/v1`.

use k8s_openapi::ClusterResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde::ser::{Serialize, SerializeStruct as _, Serializer};

use super::resource;
use crate::olm::{CatalogSpec, CatalogStatus, OperatorRevisionSpec, OperatorSpec, OperatorStatus};

/// An operator that is installed from a catalog: one package, whose name it has.
// +kubebuilder:resource:path=operators,scope=Cluster
// +kubebuilder:printcolumn:name=Satisfied,type=string,
//  JSONPath=`.status.conditions[?(@.type=="ConstraintsSatisfied")].status`,
//  description="Whether everything that it requires is installed"
// +kubebuilder:printcolumn:name=Version,type=string,
//  JSONPath=`.status.resolvedVersion`,description="Requested version, and the installed one"
// +kubebuilder:printcolumn:name=Installed,type=string,priority=1,
//  JSONPath=`.status.conditions[?(@.type=="Installed")].status`,
//  description="Whether a bundle is installed"
// +kubebuilder:printcolumn:name=Available,type=string,priority=1,
//  JSONPath=`.status.conditions[?(@.type=="Available")].status`,
//  description="Whether the operator works"
// +kubebuilder:printcolumn:name=Progressing,type=string,priority=1,
//  JSONPath=`.status.conditions[?(@.type=="Progressing")].status`,
//  description="Whether a bundle is being rolled out"
// +kubebuilder:printcolumn:name=Catalog,type=string,priority=1,
//  JSONPath=`.status.bundle.catalog`,description="Catalog that the bundle came from"
// +kubebuilder:printcolumn:name=Namespace,type=string,priority=1,
//  JSONPath=`.status.namespace`,description="Namespace that it is installed in"
// +kubebuilder:printcolumn:name=Message,type=string,priority=1,
//  JSONPath=`.status.conditions[?(@.type=="Progressing")].message`,
//  description="What is going on"
// +kubebuilder:printcolumn:name=Age,type=date,priority=1,
//  JSONPath=`.metadata.creationTimestamp`,description="When the object was created"
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Operator {
    /// Name, revision, annotations and the other metadata.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// What is to be installed.
    // +kubebuilder:validation:XValidation:rule="!has(oldSelf.__namespace__)
    //  || oldSelf.__namespace__ == ''
    //  || (has(self.__namespace__) && self.__namespace__ == oldSelf.__namespace__)",
    //  message="an operator cannot move: delete the Operator, and create it with the other namespace"
    #[serde(default)]
    pub spec: OperatorSpec,
    /// What is installed; absent before the controller's first write.
    #[serde(default)]
    pub status: Option<OperatorStatus>,
}

/// A collection of packages that Operators are installed from.
// +kubebuilder:resource:path=catalogs,scope=Cluster
// +kubebuilder:printcolumn:name=Serving,type=string,
//  JSONPath=`.status.conditions[?(@.type=="Serving")].status`,
//  description="Whether Operators are resolved from it"
// +kubebuilder:printcolumn:name=Packages,type=integer,
//  JSONPath=`.status.packages`,description="Number of packages"
// +kubebuilder:printcolumn:name=Weight,type=integer,
//  JSONPath=`.spec.weight`,description="Rank among catalogs: lower values are preferred"
// +kubebuilder:printcolumn:name=Read,type=date,
//  JSONPath=`.status.lastReadTime`,description="When the content was read"
// +kubebuilder:printcolumn:name=Age,type=date,
//  JSONPath=`.metadata.creationTimestamp`,description="When the object was created"
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Catalog {
    /// Name, revision, annotations and the other metadata.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// Where the content is, and how much it is preferred.
    // +required
    #[serde(default)]
    pub spec: CatalogSpec,
    /// What was read; absent before the controller's first write.
    #[serde(default)]
    pub status: Option<CatalogStatus>,
}

/// The objects of one installation of an Operator. Written by the controller; the last five of an
/// Operator are kept.
// +kubebuilder:resource:path=operatorrevisions,scope=Cluster
// +kubebuilder:printcolumn:name=Operator,type=string,
//  JSONPath=`.spec.operator`,description="Operator that the objects belong to"
// +kubebuilder:printcolumn:name=Revision,type=integer,
//  JSONPath=`.spec.revision`,description="Number of the revision"
// +kubebuilder:printcolumn:name=Bundle,type=string,
//  JSONPath=`.spec.bundle.name`,description="Bundle that the objects were made of"
// +kubebuilder:printcolumn:name=Age,type=date,
//  JSONPath=`.metadata.creationTimestamp`,description="When the object was created"
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct OperatorRevision {
    /// Name, revision, annotations and the other metadata.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// The objects.
    // +required
    // +kubebuilder:validation:XValidation:rule="self.operator == oldSelf.operator
    //  && self.revision == oldSelf.revision && self.part == oldSelf.part
    //  && self.digest == oldSelf.digest",
    //  message="a revision does not change: the controller makes another one"
    #[serde(default)]
    pub spec: OperatorRevisionSpec,
}

resource!(ClusterResourceScope, Operator, OPERATOR, "olm.io/v1", [spec], [status]);
resource!(ClusterResourceScope, Catalog, CATALOG, "olm.io/v1", [spec], [status]);
resource!(ClusterResourceScope, OperatorRevision, OPERATOR_REVISION, "olm.io/v1", [spec], []);
