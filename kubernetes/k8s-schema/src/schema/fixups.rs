//! Where published OpenAPI says less, or something else, than kube-apiserver does.
//!
//! Everything that is true of a built-in type and not written in its OpenAPI document belongs here,
//! apart from defaults that are code in kube-apiserver (see `builtin_defaults`).
//!
//! Upstream: k8s.io/apimachinery/pkg/api/resource/quantity.go: OpenAPISchemaType
//! Upstream: k8s.io/apimachinery/pkg/util/intstr/intstr.go: OpenAPISchemaType
use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde_json::Value;

use super::node::{MICRO_TIME, Node, QUANTITY, Scalar};

/// Definitions that kube-apiserver treats specially.
///
/// - A quantity and an int-or-string are published as a choice between a number and a string, with
///   no type; for ownership and validation they are scalars.
pub(super) fn node(definition: &str) -> Option<Node> {
    match definition {
        "io.k8s.apimachinery.pkg.api.resource.Quantity"
        | "io.k8s.apimachinery.pkg.util.intstr.IntOrString" => Some(Node {
            scalar: Some(Scalar::Untyped),
            int_or_string: definition.ends_with("IntOrString"),
            format: definition.ends_with("Quantity").then(|| QUANTITY.to_owned()),
            ..Node::default()
        }),
        _ => None,
    }
}

/// The definition that objects of a choice type (a schema or a list of them, a schema or a truth
/// value) decode to. Ownership and strict decoding do not look into them.
pub(super) fn decodes_to(definition: &str) -> Option<&'static str> {
    let name = definition.strip_prefix(API_EXTENSIONS)?;
    matches!(
        name,
        "JSONSchemaPropsOrArray" | "JSONSchemaPropsOrBool" | "JSONSchemaPropsOrStringArray"
    )
    .then_some("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps")
}

const API_EXTENSIONS: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.";

/// Fields that Go writes whatever they hold, though OpenAPI does not call them required: those at
/// their zero value, which OpenAPI gives as default, and lists and times that are null when there is
/// none.
const WRITTEN: [(&str, &[&str]); 26] = [
    ("io.k8s.api.apps.v1.DaemonSetCondition", &["lastTransitionTime"]),
    ("io.k8s.api.apps.v1.DeploymentCondition", &["lastTransitionTime", "lastUpdateTime"]),
    ("io.k8s.api.apps.v1.ReplicaSetCondition", &["lastTransitionTime"]),
    ("io.k8s.api.apps.v1.StatefulSetCondition", &["lastTransitionTime"]),
    ("io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerCondition", &["lastTransitionTime"]),
    ("io.k8s.api.batch.v1.JobCondition", &["lastProbeTime", "lastTransitionTime"]),
    (
        "io.k8s.api.certificates.v1.CertificateSigningRequestCondition",
        &["lastTransitionTime", "lastUpdateTime"],
    ),
    ("io.k8s.api.core.v1.NamespaceCondition", &["lastTransitionTime"]),
    ("io.k8s.api.core.v1.NodeCondition", &["lastHeartbeatTime", "lastTransitionTime"]),
    ("io.k8s.api.core.v1.PersistentVolumeClaimCondition", &["lastProbeTime", "lastTransitionTime"]),
    ("io.k8s.api.core.v1.PodCondition", &["lastProbeTime", "lastTransitionTime"]),
    ("io.k8s.api.core.v1.ReplicationControllerCondition", &["lastTransitionTime"]),
    (
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionStatus",
        &["conditions", "storedVersions"],
    ),
    ("io.k8s.api.apps.v1.ControllerRevision", &["revision"]),
    ("io.k8s.api.apps.v1.StatefulSetSpec", &["serviceName"]),
    ("io.k8s.api.apps.v1.StatefulSetStatus", &["availableReplicas"]),
    ("io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerStatus", &["currentMetrics"]),
    (
        "io.k8s.api.core.v1.Event",
        &[
            "eventTime",
            "firstTimestamp",
            "lastTimestamp",
            "reportingComponent",
            "reportingInstance",
        ],
    ),
    (
        "io.k8s.api.events.v1.Event",
        &["deprecatedFirstTimestamp", "deprecatedLastTimestamp", "eventTime"],
    ),
    ("io.k8s.api.discovery.v1.EndpointSlice", &["ports", "endpoints"]),
    (
        "io.k8s.api.policy.v1.PodDisruptionBudgetStatus",
        &["currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods"],
    ),
    ("io.k8s.api.rbac.v1.ClusterRole", &["rules"]),
    ("io.k8s.api.rbac.v1.Role", &["rules"]),
    ("io.k8s.api.scheduling.v1.PriorityClass", &["value"]),
    ("io.k8s.api.core.v1.LimitRangeSpec", &["limits"]),
    ("io.k8s.api.core.v1.ProjectedVolumeSource", &["sources"]),
];

/// Fields that Go leaves out at their zero value, because they are no pointers.
static LEFT_OUT_AT_ZERO: &str = include_str!("../../data/left-out-at-zero.txt");

fn left_out_at_zero(definition: &str) -> impl Iterator<Item = &'static str> {
    static TABLE: OnceLock<BTreeMap<&'static str, &'static str>> = OnceLock::new();
    let table = TABLE.get_or_init(|| {
        let lines = LEFT_OUT_AT_ZERO.lines().filter(|line| !line.starts_with('#'));
        lines.filter_map(|line| line.split_once(' ')).collect()
    });
    table.get(definition).copied().unwrap_or_default().split(' ')
}

/// Marks the fields of a definition that Go writes always, or not at their zero value.
pub(super) fn mark_fields(definition: &str, node: &mut Node) {
    if definition == "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime" {
        node.format = Some(MICRO_TIME.to_owned());
    }
    let Some(map) = &mut node.map else { return };
    for name in left_out_at_zero(definition) {
        if let Some(edge) = map.fields.get_mut(name) {
            edge.left_out_at_zero = true;
        }
    }
    let written = WRITTEN.iter().find(|(name, _)| *name == definition);
    for name in written.map_or(&[][..], |(_, names)| names) {
        if let Some(edge) = map.fields.get_mut(*name) {
            edge.written = true;
            edge.default.get_or_insert(Value::Null);
        }
    }
}
