//! Defaults that kube-apiserver has in code and its OpenAPI does not tell.
//!
//! Most are rows of a table: a place and a value. What depends on other fields is a small function
//! each. Clusters' own business (addresses of services, names of nodes) is not here.

mod place;
mod special;
mod table;
#[cfg(test)]
mod tests;

use serde_json::Value;

use special::{
    binding, cron_job, custom_resource_definition, daemon_set, deployment, job, limit_range,
    namespace, network_policy, node, pod, pod_template, replication_controller, secret, service,
    stateful_set,
};

/// Fills in the defaults of a built-in kind that its OpenAPI schema does not declare. Kinds
/// without any are left alone.
pub fn apply_builtin_defaults(group: &str, version: &str, kind: &str, value: &mut Value) {
    let rules = |value: &mut Value, rules: table::Rules| place::fill_all(value, "", rules);
    match (group, kind) {
        ("", "Pod") => pod(value),
        ("", "PodTemplate") => pod_template(value, "template.spec"),
        ("", "ReplicationController") => replication_controller(value),
        ("", "Service") => service(value),
        ("", "Namespace") => namespace(value),
        ("", "Secret") => secret(value),
        ("", "PersistentVolume") => rules(value, table::PERSISTENT_VOLUME),
        ("", "PersistentVolumeClaim") => rules(value, table::PERSISTENT_VOLUME_CLAIM),
        ("", "Endpoints") => rules(value, table::ENDPOINTS),
        ("", "LimitRange") => limit_range(value),
        ("", "Node") => node(value),
        ("apps", "Deployment") => deployment(value),
        ("apps", "DaemonSet") => daemon_set(value),
        ("apps", "StatefulSet") => stateful_set(value),
        ("apps", "ReplicaSet") => {
            rules(value, table::REPLICA_SET);
            pod_template(value, "spec.template.spec");
        }
        ("batch", "Job") => job(value),
        ("batch", "CronJob") => cron_job(value),
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => binding(value),
        ("networking.k8s.io", "NetworkPolicy") => network_policy(value),
        ("networking.k8s.io", "IngressClass") => rules(value, table::INGRESS_CLASS),
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration") => {
            rules(value, table::WEBHOOKS);
        }
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration") => {
            rules(value, table::WEBHOOKS);
            rules(value, table::MUTATING_WEBHOOKS);
        }
        (
            "admissionregistration.k8s.io",
            "ValidatingAdmissionPolicy" | "MutatingAdmissionPolicy",
        ) => rules(value, table::ADMISSION_POLICY),
        (
            "admissionregistration.k8s.io",
            "ValidatingAdmissionPolicyBinding" | "MutatingAdmissionPolicyBinding",
        ) => rules(value, table::ADMISSION_POLICY_BINDING),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => custom_resource_definition(value),
        ("apiregistration.k8s.io", "APIService") => rules(value, table::API_SERVICE),
        ("scheduling.k8s.io", "PriorityClass") => rules(value, table::PRIORITY_CLASS),
        ("flowcontrol.apiserver.k8s.io", "FlowSchema") => rules(value, table::FLOW_SCHEMA),
        ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration") => {
            rules(value, table::PRIORITY_LEVEL);
        }
        ("storage.k8s.io", "StorageClass") => rules(value, table::STORAGE_CLASS),
        ("storage.k8s.io", "CSIDriver") => rules(value, table::CSI_DRIVER),
        ("discovery.k8s.io", "EndpointSlice") => rules(value, table::ENDPOINT_SLICE),
        ("autoscaling", "HorizontalPodAutoscaler") => {
            rules(value, table::AUTOSCALER);
            if version == "v2" {
                rules(value, table::AUTOSCALER_V2);
            }
        }
        _ => {}
    }
}
