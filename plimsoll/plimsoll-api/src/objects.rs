//! The objects of our kinds as a client reads and writes them: metadata, spec and status.
//!
//! They implement `Resource` and `Metadata` of `k8s-openapi`, so `kube::Api<ClusterVersion>` works
//! without a dependency on a client here.

mod action;
mod olm;

use k8s_openapi::ClusterResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde::ser::{Serialize, SerializeStruct as _, Serializer};

use crate::config::{
    ClusterOperatorSpec, ClusterOperatorStatus, ClusterVersionSpec, ClusterVersionStatus,
};
use crate::progress::ReleaseProgressStatus;

/// The version of a cluster: the release that is requested, and how far it has been applied.
// +kubebuilder:resource:path=clusterversions,scope=Cluster
// +kubebuilder:printcolumn:name=Version,type=string,
//  JSONPath=`.status.history[?(@.state=="Completed")].version`,
//  description="Latest release that was completed"
// +kubebuilder:printcolumn:name=Available,type=string,
//  JSONPath=`.status.conditions[?(@.type=="Available")].status`,
//  description="Whether a release was completely applied"
// +kubebuilder:printcolumn:name=Progressing,type=string,
//  JSONPath=`.status.conditions[?(@.type=="Progressing")].status`,
//  description="Whether a release is being applied"
// +kubebuilder:printcolumn:name=Since,type=date,
//  JSONPath=`.status.conditions[?(@.type=="Progressing")].lastTransitionTime`,
//  description="When Progressing last changed"
// +kubebuilder:printcolumn:name=Status,type=string,
//  JSONPath=`.status.conditions[?(@.type=="Progressing")].message`,
//  description="Progress of the release"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.capabilities)
//  || !has(self.spec.capabilities.additionalEnabledCapabilities)
//  || !has(self.spec.capabilities.baselineCapabilitySet)
//  || self.spec.capabilities.baselineCapabilitySet != 'None'
//  || !('marketplace' in self.spec.capabilities.additionalEnabledCapabilities)
//  || 'OperatorLifecycleManager' in self.spec.capabilities.additionalEnabledCapabilities
//  || (has(self.status) && has(self.status.capabilities)
//  && has(self.status.capabilities.enabledCapabilities)
//  && 'OperatorLifecycleManager' in self.status.capabilities.enabledCapabilities)",
//  message="capability marketplace needs capability OperatorLifecycleManager, enable both"
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct ClusterVersion {
    /// Name, revision, annotations and the other metadata.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// The requested release, and how the cluster is updated to it.
    // +required
    #[serde(default)]
    pub spec: ClusterVersionSpec,
    /// The state of the cluster's version; absent before the controller's first write.
    #[serde(default)]
    pub status: Option<ClusterVersionStatus>,
}

/// A component of the cluster, as its operator reports it.
// +kubebuilder:resource:path=clusteroperators,scope=Cluster,shortName=co
// +kubebuilder:printcolumn:name=Version,type=string,
//  JSONPath=`.status.versions[?(@.name=="operator")].version`,
//  description="Version that the operator reports for itself"
// +kubebuilder:printcolumn:name=Available,type=string,
//  JSONPath=`.status.conditions[?(@.type=="Available")].status`,
//  description="Whether the component works"
// +kubebuilder:printcolumn:name=Progressing,type=string,
//  JSONPath=`.status.conditions[?(@.type=="Progressing")].status`,
//  description="Whether the component is changing"
// +kubebuilder:printcolumn:name=Degraded,type=string,
//  JSONPath=`.status.conditions[?(@.type=="Degraded")].status`,
//  description="Whether the component works worse than it should"
// +kubebuilder:printcolumn:name=Since,type=date,
//  JSONPath=`.status.conditions[?(@.type=="Available")].lastTransitionTime`,
//  description="When Available last changed"
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct ClusterOperator {
    /// Name, revision, annotations and the other metadata.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// Empty: an operator is not configured here.
    // +required
    #[serde(default)]
    pub spec: ClusterOperatorSpec,
    /// The operator's report, written as a whole each time; absent before its first.
    #[serde(default)]
    pub status: Option<ClusterOperatorStatus>,
}

/// How far a release has been applied to this cluster, and what blocks it. Written by the
/// controller; its name is that of the ClusterVersion.
// +kubebuilder:resource:path=releaseprogresses,scope=Cluster
// +kubebuilder:metadata:annotations="plimsoll.io/definition-version=4"
// +kubebuilder:printcolumn:name=Version,type=string,
//  JSONPath=`.status.version`,description="Version of the release"
// +kubebuilder:printcolumn:name=Mode,type=string,
//  JSONPath=`.status.mode`,description="Initializing, Updating or Reconciling"
// +kubebuilder:printcolumn:name=Done,type=integer,
//  JSONPath=`.status.done`,description="Number of manifests that are applied"
// +kubebuilder:printcolumn:name=Total,type=integer,
//  JSONPath=`.status.total`,description="Number of manifests"
// +kubebuilder:printcolumn:name=Age,type=date,
//  JSONPath=`.metadata.creationTimestamp`,description="When the object was created"
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct ReleaseProgress {
    /// Name, revision, annotations and the other metadata.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// The state of the release; absent before the controller's first write.
    #[serde(default)]
    pub status: Option<ReleaseProgressStatus>,
}

/// Implements what a client needs of a kind: its scope, those of its fields beside metadata that it
/// always has, and those that may be absent.
macro_rules! resource {
    (
        $scope:ident, $kind:ident, $reference:ident, $api_version:literal,
        [$($field:ident),*], [$($optional:ident),*]
    ) => {
        impl k8s_openapi::Resource for $kind {
            const API_VERSION: &'static str = $api_version;
            const GROUP: &'static str = crate::$reference.group;
            const KIND: &'static str = crate::$reference.kind;
            const VERSION: &'static str = crate::$reference.version;
            const URL_PATH_SEGMENT: &'static str = crate::$reference.plural;
            type Scope = $scope;
        }

        impl k8s_openapi::Metadata for $kind {
            type Ty = ObjectMeta;

            fn metadata(&self) -> &ObjectMeta {
                &self.metadata
            }

            fn metadata_mut(&mut self) -> &mut ObjectMeta {
                &mut self.metadata
            }
        }

        impl Serialize for $kind {
            /// Serializes the object with its type, as the API server wants it.
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut object = serializer.serialize_struct(stringify!($kind), 5)?;
                object.serialize_field("apiVersion", $api_version)?;
                object.serialize_field("kind", crate::$reference.kind)?;
                object.serialize_field("metadata", &self.metadata)?;
                $(object.serialize_field(stringify!($field), &self.$field)?;)*
                $(if let Some(value) = &self.$optional {
                    object.serialize_field(stringify!($optional), value)?;
                })*
                object.end()
            }
        }
    };
}

use resource;

pub use self::action::{
    Action, ActionClass, ActionPart, ActionPolicy, CronAction, EventAction, MaintenanceWindow,
    RetryAction,
};
pub use self::olm::{Catalog, Operator, OperatorRevision};

resource!(
    ClusterResourceScope,
    ClusterVersion,
    CLUSTER_VERSION,
    "config.openshift.io/v1",
    [spec],
    [status]
);
resource!(
    ClusterResourceScope,
    ClusterOperator,
    CLUSTER_OPERATOR,
    "config.openshift.io/v1",
    [spec],
    [status]
);
resource!(
    ClusterResourceScope,
    ReleaseProgress,
    RELEASE_PROGRESS,
    "plimsoll.io/v1alpha1",
    [],
    [status]
);

#[cfg(test)]
mod tests;
