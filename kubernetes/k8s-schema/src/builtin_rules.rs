//! What kube-apiserver refuses in built-in kinds.
//!
//! Most rules are rows of tables: a field and a [`Check`](check::Check), in the order in which
//! kube-apiserver reports them. What depends on several fields is a small function each. The
//! commonest kinds and fields are here; what is not is accepted.

mod access;
mod check;
mod configuration;
mod containers;
mod event;
mod ingress;
mod network;
mod pod;
mod quantities;
mod registration;
mod scheduling;
mod storage;
#[cfg(test)]
mod tests;
mod update;
mod volumes;
mod workloads;

use serde_json::Value;

use crate::FieldError;
use check::{Rules, apply};
pub use registration::{
    check_review_versions, check_service as check_webhook_service, check_url as check_webhook_url,
};

/// Everything wrong with an object of a built-in kind but its metadata; `live` is the object
/// before an update.
pub fn validate_builtin(
    group: &str,
    kind: &str,
    live: Option<&Value>,
    object: &Value,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    apply(rules_of(group, kind), object, "", &mut errors);
    if kind == "Event" {
        event::check(group, live, object, &mut errors);
    }
    if let Some(live) = live {
        update::check(group, kind, live, object, &mut errors);
    }
    errors
}

fn rules_of(group: &str, kind: &str) -> Rules {
    match (group, kind) {
        ("", "Pod") => pod::POD,
        ("", "ReplicationController") => workloads::REPLICATION_CONTROLLER,
        ("", "Service") => network::SERVICE,
        ("", "Endpoints") => network::ENDPOINTS,
        ("", "ConfigMap") => configuration::CONFIG_MAP,
        ("", "Secret") => configuration::SECRET,
        ("", "Namespace") => configuration::NAMESPACE,
        ("", "Node") => scheduling::NODE,
        ("", "PersistentVolume") => storage::VOLUME,
        ("", "PersistentVolumeClaim") => storage::CLAIM,
        ("", "ResourceQuota") => quantities::RESOURCE_QUOTA,
        ("", "LimitRange") => quantities::LIMIT_RANGE,
        ("apps", "Deployment") => workloads::DEPLOYMENT,
        ("apps", "ReplicaSet") => workloads::REPLICA_SET,
        ("apps", "DaemonSet") => workloads::DAEMON_SET,
        ("apps", "StatefulSet") => workloads::STATEFUL_SET,
        ("batch", "Job") => workloads::JOB,
        ("batch", "CronJob") => workloads::CRON_JOB,
        ("rbac.authorization.k8s.io", "Role") => access::ROLE,
        ("rbac.authorization.k8s.io", "ClusterRole") => access::CLUSTER_ROLE,
        ("rbac.authorization.k8s.io", "RoleBinding") => access::ROLE_BINDING,
        ("rbac.authorization.k8s.io", "ClusterRoleBinding") => access::CLUSTER_ROLE_BINDING,
        ("networking.k8s.io", "Ingress") => ingress::INGRESS,
        ("networking.k8s.io", "IngressClass") => ingress::INGRESS_CLASS,
        ("networking.k8s.io", "NetworkPolicy") => network::NETWORK_POLICY,
        ("policy", "PodDisruptionBudget") => scheduling::DISRUPTION_BUDGET,
        ("autoscaling", "HorizontalPodAutoscaler") => scheduling::AUTOSCALER,
        ("scheduling.k8s.io", "PriorityClass") => scheduling::PRIORITY_CLASS,
        ("storage.k8s.io", "StorageClass") => storage::STORAGE_CLASS,
        ("storage.k8s.io", "CSIDriver") => storage::CSI_DRIVER,
        ("coordination.k8s.io", "Lease") => scheduling::LEASE,
        ("discovery.k8s.io", "EndpointSlice") => network::ENDPOINT_SLICE,
        (
            "admissionregistration.k8s.io",
            "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration",
        ) => registration::WEBHOOKS,
        ("apiregistration.k8s.io", "APIService") => registration::API_SERVICE,
        ("certificates.k8s.io", "CertificateSigningRequest") => access::SIGNING_REQUEST,
        ("node.k8s.io", "RuntimeClass") => scheduling::RUNTIME_CLASS,
        _ => &[],
    }
}
