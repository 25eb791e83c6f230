//! The columns of the built-in kinds.
use jiff::Timestamp;
use serde_json::Value;

use super::cells::{
    self, authorization, events, extensions, jobs, machines, network, scaling, workloads,
};
use crate::semantics::registry::ApiResource;

mod services;

/// One column.
#[derive(Clone, Copy)]
pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) column_type: &'static str,
    pub(super) format: &'static str,
    /// Above zero only the wide form shows it.
    pub(super) priority: i64,
    pub(super) cell: Cell,
}

/// How a cell is read from an object.
#[derive(Clone, Copy)]
pub(super) enum Cell {
    /// The value at a path, or a text where there is none.
    At(&'static str, &'static str),
    /// The time since the one at a path.
    Age(&'static str),
    /// By a function.
    Of(fn(&Value) -> Value),
    /// By a function that needs the time.
    Timed(fn(&Value, Timestamp) -> Value),
}

use Cell::{Age, At, Of, Timed};

const NAME: Column = Column {
    name: "Name",
    column_type: "string",
    format: "name",
    priority: 0,
    cell: At("metadata.name", ""),
};

const AGE: Column = text("Age", Age("metadata.creationTimestamp"));

const CREATED_AT: Column =
    Column { column_type: "date", ..text("Created At", At("metadata.creationTimestamp", "")) };

const fn text(name: &'static str, cell: Cell) -> Column {
    Column { name, column_type: "string", format: "", priority: 0, cell }
}

const fn integer(name: &'static str, cell: Cell) -> Column {
    Column { column_type: "integer", ..text(name, cell) }
}

const fn boolean(name: &'static str, cell: Cell) -> Column {
    Column { column_type: "boolean", ..text(name, cell) }
}

const fn wide(column: Column) -> Column {
    Column { priority: 1, ..column }
}

const CONTAINERS: Column = wide(text("Containers", Of(workloads::template_containers)));
const IMAGES: Column = wide(text("Images", Of(workloads::template_images)));
const SELECTOR: Column = wide(text("Selector", Of(workloads::selector)));

/// The columns of a kind.
pub(super) fn columns_of(resource: &ApiResource) -> &'static [Column] {
    match resource.group.as_str() {
        "" => core(&resource.kind),
        "apps" => apps(&resource.kind),
        "events.k8s.io" => EVENT,
        "rbac.authorization.k8s.io" => authorization(&resource.kind),
        _ => services::columns_of(&resource.group, &resource.kind)
            .unwrap_or_else(|| others(&resource.group, &resource.kind)),
    }
}

const DEFAULT: &[Column] = &[NAME, CREATED_AT];
const ONLY_AGE: &[Column] = &[NAME, AGE];

const EVENT: &[Column] = &[
    text("Last Seen", Timed(events::event_last_seen)),
    text("Type", At("type", "")),
    text("Reason", At("reason", "")),
    text("Object", Of(events::event_object)),
    wide(text("Subobject", Of(events::event_subobject))),
    wide(text("Source", Of(events::event_source))),
    text("Message", Of(events::event_message)),
    wide(text("First Seen", Timed(events::event_first_seen))),
    wide(text("Count", Of(events::event_count))),
    wide(NAME),
];

fn core(kind: &str) -> &'static [Column] {
    match kind {
        "ConfigMap" => const { &[NAME, text("Data", Of(cells::data_count)), AGE] },
        "Secret" => {
            const { &[NAME, text("Type", At("type", "")), text("Data", Of(cells::data_count)), AGE] }
        }
        "Event" => EVENT,
        "Namespace" => const { &[NAME, text("Status", At("status.phase", "")), AGE] },
        "ServiceAccount" => ONLY_AGE,
        "Service" => {
            const {
                &[
                    NAME,
                    text("Type", At("spec.type", "")),
                    text("Cluster-IP", At("spec.clusterIP", "<none>")),
                    text("External-IP", Of(network::service_external)),
                    text("Port(s)", Of(network::service_ports)),
                    AGE,
                    wide(text("Selector", Of(network::service_selector))),
                ]
            }
        }
        "Pod" => {
            const {
                &[
                    NAME,
                    text("Ready", Of(workloads::pod_ready)),
                    text("Status", Of(workloads::pod_status)),
                    text("Restarts", Of(workloads::pod_restarts)),
                    AGE,
                    wide(text("IP", At("status.podIP", "<none>"))),
                    wide(text("Node", At("spec.nodeName", "<none>"))),
                    wide(text("Nominated Node", At("status.nominatedNodeName", "<none>"))),
                    wide(text("Readiness Gates", Of(cells::none))),
                ]
            }
        }
        "Node" => {
            const {
                &[
                    NAME,
                    text("Status", Of(machines::node_status)),
                    text("Roles", Of(machines::node_roles)),
                    AGE,
                    text("Version", At("status.nodeInfo.kubeletVersion", "")),
                    wide(text("Internal-IP", Of(machines::node_internal_address))),
                    wide(text("External-IP", Of(machines::node_external_address))),
                    wide(text("OS-Image", At("status.nodeInfo.osImage", "<unknown>"))),
                    wide(text("Kernel-Version", Of(cells::services::kernel_version))),
                    wide(text(
                        "Container-Runtime",
                        At("status.nodeInfo.containerRuntimeVersion", "<unknown>"),
                    )),
                ]
            }
        }
        "PersistentVolume" => {
            const {
                &[
                    NAME,
                    text("Capacity", At("spec.capacity.storage", "")),
                    text("Access Modes", Of(machines::access_modes)),
                    text("Reclaim Policy", At("spec.persistentVolumeReclaimPolicy", "")),
                    text("Status", At("status.phase", "")),
                    text("Claim", Of(machines::volume_claim)),
                    text("StorageClass", At("spec.storageClassName", "")),
                    text("VolumeAttributesClass", At("spec.volumeAttributesClassName", "<unset>")),
                    text("Reason", At("status.reason", "")),
                    AGE,
                    wide(text("VolumeMode", At("spec.volumeMode", "<unset>"))),
                ]
            }
        }
        "PersistentVolumeClaim" => {
            const {
                &[
                    NAME,
                    text("Status", At("status.phase", "")),
                    text("Volume", At("spec.volumeName", "")),
                    text("Capacity", At("status.capacity.storage", "")),
                    text("Access Modes", Of(machines::access_modes)),
                    text("StorageClass", At("spec.storageClassName", "")),
                    text("VolumeAttributesClass", At("spec.volumeAttributesClassName", "<unset>")),
                    AGE,
                    wide(text("VolumeMode", At("spec.volumeMode", "<unset>"))),
                ]
            }
        }
        "ReplicationController" => REPLICAS,
        "Endpoints" => const { &[NAME, text("Endpoints", Of(network::endpoints)), AGE] },
        "ResourceQuota" => {
            const {
                &[
                    NAME,
                    text("Request", Of(machines::quota_requests)),
                    text("Limit", Of(machines::quota_limits)),
                    AGE,
                ]
            }
        }
        "PodTemplate" => {
            const {
                &[
                    NAME,
                    text("Containers", Of(workloads::pod_template_containers)),
                    text("Images", Of(workloads::pod_template_images)),
                    text("Pod Labels", Of(workloads::pod_template_labels)),
                ]
            }
        }
        _ => DEFAULT,
    }
}

const REPLICAS: &[Column] = &[
    NAME,
    integer("Desired", Of(workloads::desired_replicas)),
    integer("Current", Of(workloads::current_replicas)),
    integer("Ready", Of(workloads::ready_replicas)),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

fn apps(kind: &str) -> &'static [Column] {
    match kind {
        "Deployment" => {
            const {
                &[
                    NAME,
                    text("Ready", Of(workloads::ready_of_desired)),
                    text("Up-to-date", Of(workloads::updated_replicas)),
                    text("Available", Of(workloads::available_replicas)),
                    AGE,
                    CONTAINERS,
                    IMAGES,
                    SELECTOR,
                ]
            }
        }
        "ReplicaSet" => REPLICAS,
        "StatefulSet" => {
            const { &[NAME, text("Ready", Of(workloads::ready_of_desired)), AGE, CONTAINERS, IMAGES] }
        }
        "DaemonSet" => {
            const {
                &[
                    NAME,
                    integer("Desired", Of(workloads::daemons_desired)),
                    integer("Current", Of(workloads::daemons_current)),
                    integer("Ready", Of(workloads::daemons_ready)),
                    integer("Up-to-date", Of(workloads::daemons_updated)),
                    integer("Available", Of(workloads::daemons_available)),
                    text("Node Selector", Of(workloads::daemons_nodes)),
                    AGE,
                    CONTAINERS,
                    IMAGES,
                    SELECTOR,
                ]
            }
        }
        "ControllerRevision" => {
            const {
                &[
                    NAME,
                    text("Controller", Of(workloads::controller)),
                    integer("Revision", At("revision", "0")),
                    AGE,
                ]
            }
        }
        _ => DEFAULT,
    }
}

fn authorization(kind: &str) -> &'static [Column] {
    match kind {
        "RoleBinding" | "ClusterRoleBinding" => {
            const {
                &[
                    NAME,
                    text("Role", Of(authorization::bound_role)),
                    AGE,
                    wide(text("Users", Of(authorization::bound_users))),
                    wide(text("Groups", Of(authorization::bound_groups))),
                    wide(text("ServiceAccounts", Of(authorization::bound_accounts))),
                ]
            }
        }
        _ => DEFAULT,
    }
}

fn others(group: &str, kind: &str) -> &'static [Column] {
    match (group, kind) {
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            const {
                &[
                    NAME,
                    text("Scope", At("spec.scope", "")),
                    text("Versions", Of(extensions::definition_versions)),
                    CREATED_AT,
                    wide(text("Group", At("spec.group", ""))),
                    wide(text("Kind", At("spec.names.kind", ""))),
                    wide(text("ShortNames", Of(extensions::definition_short_names))),
                    wide(boolean("Established", Of(extensions::definition_established))),
                ]
            }
        }
        ("apiregistration.k8s.io", "APIService") => {
            const {
                &[
                    NAME,
                    text("Service", Of(extensions::api_service_target)),
                    text("Available", Of(extensions::api_service_available)),
                    AGE,
                ]
            }
        }
        ("batch", "Job") => {
            const {
                &[
                    NAME,
                    text("Status", Of(jobs::job_status)),
                    text("Completions", Of(jobs::job_completions)),
                    text("Duration", Timed(jobs::job_duration)),
                    AGE,
                    CONTAINERS,
                    IMAGES,
                    SELECTOR,
                ]
            }
        }
        ("batch", "CronJob") => {
            const {
                &[
                    NAME,
                    text("Schedule", At("spec.schedule", "")),
                    text("Timezone", At("spec.timeZone", "<none>")),
                    boolean("Suspend", Of(jobs::cron_suspended)),
                    integer("Active", Of(jobs::cron_active)),
                    text("Last Schedule", Timed(jobs::cron_last)),
                    AGE,
                    wide(text("Containers", Of(workloads::cron_containers))),
                    wide(text("Images", Of(workloads::cron_images))),
                    wide(text("Selector", Of(cells::none))),
                ]
            }
        }
        ("coordination.k8s.io", "Lease") => {
            const { &[NAME, text("Holder", At("spec.holderIdentity", "")), AGE] }
        }
        ("networking.k8s.io", "Ingress") => {
            const {
                &[
                    NAME,
                    text("Class", At("spec.ingressClassName", "<none>")),
                    text("Hosts", Of(network::ingress_hosts)),
                    text("Address", Of(network::ingress_address)),
                    text("Ports", Of(network::ingress_ports)),
                    AGE,
                ]
            }
        }
        ("networking.k8s.io", "NetworkPolicy") => {
            const { &[NAME, text("Pod-Selector", Of(network::network_policy_pods)), AGE] }
        }
        ("networking.k8s.io", "IngressClass") => {
            const {
                &[
                    NAME,
                    text("Controller", At("spec.controller", "")),
                    text("Parameters", Of(network::ingress_class_parameters)),
                    AGE,
                ]
            }
        }
        ("policy", "PodDisruptionBudget") => {
            const {
                &[
                    NAME,
                    text("Min Available", Of(scaling::budget_min)),
                    text("Max Unavailable", Of(scaling::budget_max)),
                    integer("Allowed Disruptions", At("status.disruptionsAllowed", "0")),
                    AGE,
                ]
            }
        }
        ("autoscaling", "HorizontalPodAutoscaler") => {
            const {
                &[
                    NAME,
                    text("Reference", Of(scaling::autoscaler_reference)),
                    text("Targets", Of(scaling::autoscaler_targets)),
                    text("MinPods", Of(scaling::autoscaler_min)),
                    text("MaxPods", At("spec.maxReplicas", "0")),
                    text("Replicas", Of(scaling::autoscaler_replicas)),
                    AGE,
                ]
            }
        }
        ("scheduling.k8s.io", "PriorityClass") => {
            const {
                &[
                    NAME,
                    integer("Value", At("value", "0")),
                    boolean("Global-Default", Of(scaling::priority_is_default)),
                    AGE,
                    text("PreemptionPolicy", At("preemptionPolicy", "")),
                ]
            }
        }
        ("storage.k8s.io", "StorageClass") => {
            const {
                &[
                    NAME,
                    text("Provisioner", At("provisioner", "")),
                    text("ReclaimPolicy", At("reclaimPolicy", "Delete")),
                    text("VolumeBindingMode", At("volumeBindingMode", "Immediate")),
                    text("AllowVolumeExpansion", Of(machines::storage_expands)),
                    AGE,
                ]
            }
        }
        (
            "admissionregistration.k8s.io",
            "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration",
        ) => const { &[NAME, integer("Webhooks", Of(extensions::webhook_count)), AGE] },
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy") => {
            const {
                &[
                    NAME,
                    integer("Validations", Of(extensions::validation_count)),
                    text("ParamKind", Of(extensions::policy_parameter_kind)),
                    AGE,
                ]
            }
        }
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding") => {
            const {
                &[
                    NAME,
                    text("PolicyName", At("spec.policyName", "")),
                    text("ParamRef", Of(extensions::policy_parameter)),
                    AGE,
                ]
            }
        }
        ("discovery.k8s.io", "EndpointSlice") => {
            const {
                &[
                    NAME,
                    text("AddressType", At("addressType", "")),
                    text("Ports", Of(network::slice_ports)),
                    text("Endpoints", Of(network::slice_endpoints)),
                    AGE,
                ]
            }
        }
        ("node.k8s.io", "RuntimeClass") => {
            const { &[NAME, text("Handler", At("handler", "")), AGE] }
        }
        _ => DEFAULT,
    }
}
