//! Small tables about kinds.
use crate::semantics::registry::{ApiResource, ResourceOrigin};

/// Kinds whose `metadata.generation` counts.
const WITH_GENERATION: [(&str, &[&str]); 11] = [
    ("", &["Pod", "PodTemplate", "ReplicationController"]),
    ("admissionregistration.k8s.io", &[]),
    ("apiextensions.k8s.io", &["CustomResourceDefinition"]),
    ("apps", &["DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"]),
    ("autoscaling", &[]),
    ("batch", &["CronJob", "Job"]),
    ("discovery.k8s.io", &["EndpointSlice"]),
    ("flowcontrol.apiserver.k8s.io", &[]),
    ("networking.k8s.io", &["Ingress", "IngressClass", "NetworkPolicy"]),
    ("policy", &["PodDisruptionBudget"]),
    ("scheduling.k8s.io", &["PriorityClass"]),
];

/// Kinds that a put creates if they are missing.
const CREATED_ON_UPDATE: [(&str, &[&str]); 5] = [
    ("", &["Endpoints", "Event", "LimitRange", "PodTemplate", "Service"]),
    ("coordination.k8s.io", &["Lease"]),
    ("events.k8s.io", &["Event"]),
    ("node.k8s.io", &["RuntimeClass"]),
    ("rbac.authorization.k8s.io", &[]),
];

/// Kinds whose updates have to name the version they were made against.
const CONDITIONAL_UPDATE_ONLY: [(&str, &[&str]); 7] = [
    ("admissionregistration.k8s.io", &[]),
    ("apiextensions.k8s.io", &["CustomResourceDefinition"]),
    ("apiregistration.k8s.io", &["APIService"]),
    ("coordination.k8s.io", &["Lease"]),
    ("flowcontrol.apiserver.k8s.io", &[]),
    ("node.k8s.io", &["RuntimeClass"]),
    ("policy", &["PodDisruptionBudget"]),
];

/// Kinds whose deletion is answered with the object rather than with a `Status`.
const DELETED_OBJECT_RETURNED: [(&str, &[&str]); 1] = [(
    "",
    &[
        "PersistentVolume",
        "PersistentVolumeClaim",
        "Pod",
        "PodTemplate",
        "ResourceQuota",
        "Service",
        "ServiceAccount",
    ],
)];

/// Whether a table names the kind; an empty list of kinds stands for the whole group.
fn names(table: &[(&str, &[&str])], resource: &ApiResource) -> bool {
    table.iter().any(|(group, kinds)| {
        *group == resource.group && (kinds.is_empty() || kinds.contains(&resource.kind.as_str()))
    })
}

/// Whether changes of an object are counted in `metadata.generation`.
///
/// Upstream: k8s.io/kubernetes/pkg/registry/apps/deployment/strategy.go: PrepareForCreate
pub(crate) fn has_generation(resource: &ApiResource) -> bool {
    match resource.origin {
        ResourceOrigin::Custom(_) => true,
        ResourceOrigin::BuiltIn => names(&WITH_GENERATION, resource),
    }
}

/// Whether a put may create the object.
///
/// Upstream: k8s.io/apiserver/pkg/registry/rest/update.go: RESTUpdateStrategy
pub(crate) fn may_create_on_update(resource: &ApiResource) -> bool {
    match resource.origin {
        ResourceOrigin::Custom(_) => false,
        ResourceOrigin::BuiltIn => names(&CREATED_ON_UPDATE, resource),
    }
}

/// Whether a put may leave the resource version out.
///
/// Upstream: k8s.io/apiserver/pkg/registry/rest/update.go: RESTUpdateStrategy
pub(crate) fn may_update_unconditionally(resource: &ApiResource) -> bool {
    match resource.origin {
        ResourceOrigin::Custom(_) => false,
        ResourceOrigin::BuiltIn => !names(&CONDITIONAL_UPDATE_ONLY, resource),
    }
}

/// Whether a delete is answered with the object.
///
/// Upstream: k8s.io/apiserver/pkg/registry/generic/registry/store.go: finalizeDelete
pub(crate) fn returns_deleted_object(resource: &ApiResource) -> bool {
    match resource.origin {
        ResourceOrigin::Custom(_) => false,
        ResourceOrigin::BuiltIn => names(&DELETED_OBJECT_RETURNED, resource),
    }
}

/// The fields that an endpoint resets, so that nobody comes to own them through it.
///
/// Upstream: k8s.io/apiserver/pkg/registry/rest/rest.go: ResetFieldsStrategy
pub(crate) fn reset_fields(resource: &ApiResource, subresource: &str) -> &'static [&'static str] {
    match (subresource, &resource.origin) {
        ("", _) if resource.has_status() => &["status"],
        ("", _) => &[],
        ("status", ResourceOrigin::Custom(_)) => &["spec", "metadata"],
        ("status", ResourceOrigin::BuiltIn) if resource.is("apps", "Deployment") => {
            &["spec", "metadata.labels"]
        }
        ("status", ResourceOrigin::BuiltIn) => &["spec"],
        _ => &[],
    }
}
