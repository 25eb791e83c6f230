//! The defaults that depend on other fields: functions that `data/defaults.txt` names.
//!
//! Each gets the value at the path of its rule.
use base64::Engine as _;
use serde_json::{Value, json};

use super::path::child;

/// Fills in what is missing in a value.
pub(super) type Function = fn(&mut Value);

/// The functions that the data file may name.
pub(super) const FUNCTIONS: &[(&str, Function)] = &[
    ("allocatable", allocatable),
    ("container_limits", container_limits),
    ("definition_names", definition_names),
    ("drop_unused_affinity", drop_unused_affinity),
    ("empty_dir", empty_dir),
    ("external_traffic_policy", external_traffic_policy),
    ("grace_period", grace_period),
    ("host_port", host_port),
    ("image_pull_policy", image_pull_policy),
    ("image_volume_pull_policy", image_volume_pull_policy),
    ("job_counts", job_counts),
    ("labels_from_template", labels_from_template),
    ("mirror_service_account", mirror_service_account),
    ("name_label", name_label),
    ("pod_ranges", pod_ranges),
    ("policy_types", policy_types),
    ("requests_from_limits", requests_from_limits),
    ("rolling_update_unless_set", rolling_update_unless_set),
    ("selector_and_labels_from_template", selector_and_labels_from_template),
    ("stored_versions", stored_versions),
    ("string_data", string_data),
    ("target_port", target_port),
];

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or("")
}

fn is_set(value: Option<&Value>) -> bool {
    value.is_some_and(|value| !value.is_null())
}

/// The object in a field, created where it is missing; `None` if `value` is not an object.
fn child_of<'a>(value: &'a mut Value, name: &str) -> Option<&'a mut Value> {
    value.as_object_mut().map(|map| child(map, name))
}

/// Sets a field of an object unless it is set.
fn set_if_missing(value: &mut Value, name: &str, default: Value) {
    if let Some(map) = value.as_object_mut()
        && !is_set(map.get(name))
    {
        map.insert(name.to_owned(), default);
    }
}

/// A negative grace period is one second.
///
/// Upstream: k8s.io/kubernetes/pkg/apis/core/v1/defaults.go: SetDefaults_Pod
fn grace_period(spec: &mut Value) {
    let grace = spec.get("terminationGracePeriodSeconds").and_then(Value::as_i64);
    if let (Some(..0), Some(spec)) = (grace, spec.as_object_mut()) {
        spec.insert("terminationGracePeriodSeconds".to_owned(), json!(1));
    }
}

/// Requests what is limited and not requested.
///
/// Upstream: k8s.io/kubernetes/pkg/apis/core/v1/defaults.go: SetDefaults_Pod
fn requests_from_limits(container: &mut Value) {
    let Some(Value::Object(limits)) = container.pointer("/resources/limits").cloned() else {
        return;
    };
    let resources = child_of(container, "resources");
    if let Some(requests) = resources.and_then(|resources| child_of(resources, "requests")) {
        for (name, limit) in limits {
            set_if_missing(requests, &name, limit);
        }
    }
}

/// Defaults the host port of a pod on the host's network to the container port.
///
/// Upstream: k8s.io/kubernetes/pkg/apis/core/v1/defaults.go: defaultHostNetworkPorts
fn host_port(port: &mut Value) {
    let container_port = port.get("containerPort").cloned();
    if let Some(container_port) = container_port {
        set_if_missing(port, "hostPort", container_port);
    }
}

/// Keeps the deprecated field `serviceAccount` equal to `serviceAccountName`.
///
/// Upstream: k8s.io/kubernetes/pkg/apis/core/v1/defaults.go: SetDefaults_PodSpec
fn mirror_service_account(spec: &mut Value) {
    let name = [text(spec, "/serviceAccountName"), text(spec, "/serviceAccount")]
        .into_iter()
        .find(|name| !name.is_empty())
        .map(str::to_owned);
    if let (Some(name), Some(spec)) = (name, spec.as_object_mut()) {
        spec.insert("serviceAccountName".to_owned(), json!(name));
        spec.insert("serviceAccount".to_owned(), json!(name));
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/core/v1/defaults.go: SetDefaults_Container
fn image_pull_policy(container: &mut Value) {
    if text(container, "/imagePullPolicy").is_empty() {
        let policy = pull_policy(text(container, "/image"));
        if let Some(container) = container.as_object_mut() {
            container.insert("imagePullPolicy".to_owned(), json!(policy));
        }
    }
}

/// The pull policy of an image: always for `latest` and for images without tag and digest.
///
/// Upstream: k8s.io/kubernetes/pkg/util/parsers/parsers.go: ParseImageName
fn pull_policy(image: &str) -> &'static str {
    let (name, has_digest) = match image.split_once('@') {
        Some((name, _)) => (name, true),
        None => (image, false),
    };
    // A colon before the last slash belongs to the port of a registry.
    let last = name.rsplit('/').next().unwrap_or(name);
    let tag = last.split_once(':').map(|(_, tag)| tag);
    match tag {
        Some("latest") => "Always",
        None if !has_digest => "Always",
        _ => "IfNotPresent",
    }
}

/// A volume without a source is an empty directory.
///
/// Upstream: k8s.io/kubernetes/pkg/apis/core/v1/defaults.go: SetDefaults_Volume
fn empty_dir(volume: &mut Value) {
    let has_source = volume
        .as_object()
        .is_some_and(|map| map.iter().any(|(key, value)| key != "name" && !value.is_null()));
    if !has_source {
        set_if_missing(volume, "emptyDir", json!({}));
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/core/v1/defaults.go: SetDefaults_PodSpec
fn image_volume_pull_policy(image: &mut Value) {
    let policy = pull_policy(text(image, "/reference"));
    set_if_missing(image, "pullPolicy", json!(policy));
}

fn template_labels(object: &Value) -> Option<Value> {
    object.pointer("/spec/template/metadata/labels").filter(|labels| labels.is_object()).cloned()
}

/// Upstream: k8s.io/kubernetes/pkg/apis/core/v1/defaults.go: SetDefaults_ReplicationController
fn selector_and_labels_from_template(controller: &mut Value) {
    let Some(labels) = template_labels(controller) else { return };
    if let Some(spec) = child_of(controller, "spec") {
        set_if_missing(spec, "selector", labels);
    }
    labels_from_template(controller);
}

/// Upstream: k8s.io/kubernetes/pkg/apis/batch/v1/defaults.go: SetDefaults_Job
fn labels_from_template(object: &mut Value) {
    let Some(labels) = template_labels(object) else { return };
    if let Some(metadata) = child_of(object, "metadata") {
        set_if_missing(metadata, "labels", labels);
    }
}

/// Removes the configuration of a session affinity other than `ClientIP`.
///
/// Upstream: k8s.io/kubernetes/pkg/apis/core/v1/defaults.go: SetDefaults_Service
fn drop_unused_affinity(spec: &mut Value) {
    if text(spec, "/sessionAffinity") != "ClientIP"
        && let Some(spec) = spec.as_object_mut()
    {
        spec.remove("sessionAffinityConfig");
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/core/v1/defaults.go: SetDefaults_Service
fn external_traffic_policy(spec: &mut Value) {
    let kind = text(spec, "/type");
    let external_ips = spec.get("externalIPs").and_then(Value::as_array);
    let is_reachable = matches!(kind, "LoadBalancer" | "NodePort")
        || (kind == "ClusterIP" && external_ips.is_some_and(|list| !list.is_empty()));
    if is_reachable {
        set_if_missing(spec, "externalTrafficPolicy", json!("Cluster"));
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/core/v1/defaults.go: SetDefaults_Service
fn target_port(port: &mut Value) {
    let unset = match port.get("targetPort") {
        None | Some(Value::Null) => true,
        Some(target) => *target == json!(0) || *target == json!(""),
    };
    if let (true, Some(number)) = (unset, port.get("port").cloned())
        && let Some(port) = port.as_object_mut()
    {
        port.insert("targetPort".to_owned(), number);
    }
}

/// Moves `stringData` to `data`, encoded.
///
/// Upstream: k8s.io/kubernetes/pkg/apis/core/v1/conversion.go: Convert_v1_Secret_To_core_Secret
fn string_data(secret: &mut Value) {
    let texts = secret.as_object_mut().and_then(|secret| secret.remove("stringData"));
    let Some(Value::Object(texts)) = texts else { return };
    let Some(Value::Object(data)) = child_of(secret, "data") else { return };
    for (key, text) in &texts {
        let bytes = text.as_str().unwrap_or("");
        let encoded = base64::engine::general_purpose::STANDARD.encode(bytes);
        data.insert(key.clone(), json!(encoded));
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/core/v1/defaults.go: SetDefaults_Namespace
fn name_label(namespace: &mut Value) {
    let name = text(namespace, "/metadata/name").to_owned();
    if name.is_empty() {
        return;
    }
    let metadata = child_of(namespace, "metadata");
    if let Some(Value::Object(labels)) = metadata.and_then(|metadata| child_of(metadata, "labels"))
    {
        labels.insert("kubernetes.io/metadata.name".to_owned(), json!(name));
    }
}

/// A strategy of no type is a rolling update; its partition has a default only then or if it is
/// written.
///
/// Upstream: k8s.io/kubernetes/pkg/apis/apps/v1/defaults.go: SetDefaults_StatefulSet
fn rolling_update_unless_set(strategy: &mut Value) {
    if text(strategy, "/type").is_empty()
        && let Some(map) = strategy.as_object_mut()
    {
        map.insert("type".to_owned(), json!("RollingUpdate"));
        child(map, "rollingUpdate");
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/batch/v1/defaults.go: SetDefaults_Job
fn job_counts(spec: &mut Value) {
    if !is_set(spec.get("completions")) && !is_set(spec.get("parallelism")) {
        set_if_missing(spec, "completions", json!(1));
    }
    let per_index = is_set(spec.get("backoffLimitPerIndex"));
    set_if_missing(spec, "backoffLimit", json!(if per_index { i32::MAX } else { 6 }));
    let has_policy = is_set(spec.get("podFailurePolicy"));
    let replacement = if has_policy { "Failed" } else { "TerminatingOrFailed" };
    set_if_missing(spec, "podReplacementPolicy", json!(replacement));
}

/// Upstream: k8s.io/kubernetes/pkg/apis/networking/v1/defaults.go: SetDefaults_NetworkPolicy
fn policy_types(spec: &mut Value) {
    let has =
        |name: &str| spec.get(name).and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    if has("policyTypes") {
        return;
    }
    let types = if has("egress") { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
    if let Some(spec) = spec.as_object_mut() {
        spec.insert("policyTypes".to_owned(), types);
    }
}

/// Upstream: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1/defaults.go: SetDefaults_CustomResourceDefinitionSpec
fn definition_names(names: &mut Value) {
    let kind = text(names, "/kind").to_owned();
    let Some(names) = names.as_object_mut() else { return };
    if kind.is_empty() {
        return;
    }
    for (name, default) in [("singular", kind.to_lowercase()), ("listKind", format!("{kind}List"))]
    {
        let unset = |value: &Value| value.is_null() || value == "";
        if names.get(name).is_none_or(unset) {
            names.insert(name.to_owned(), json!(default));
        }
    }
}

/// Upstream: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1/defaults.go: SetDefaults_CustomResourceDefinition
fn stored_versions(definition: &mut Value) {
    let storage = definition
        .pointer("/spec/versions")
        .and_then(Value::as_array)
        .and_then(|list| list.iter().find(|version| version["storage"] == json!(true)))
        .map(|version| text(version, "/name").to_owned());
    let Some(storage) = storage else { return };
    let Some(Value::Object(status)) = child_of(definition, "status") else { return };
    let stored = status.get("storedVersions").and_then(Value::as_array);
    if stored.is_none_or(Vec::is_empty) {
        status.insert("storedVersions".to_owned(), json!([storage]));
    }
}

/// Defaults the limits to the maximum, and the requests to the limits, then to the minimum.
///
/// Upstream: k8s.io/kubernetes/pkg/apis/core/v1/defaults.go: SetDefaults_LimitRangeItem
fn container_limits(limit: &mut Value) {
    for (from, to) in [("max", "default"), ("default", "defaultRequest"), ("min", "defaultRequest")]
    {
        let Some(amounts) = limit.get(from).and_then(Value::as_object).cloned() else {
            continue;
        };
        let Some(target) = child_of(limit, to) else { continue };
        for (name, amount) in amounts {
            set_if_missing(target, &name, amount);
        }
    }
}

/// Defaults the allocatable resources to the capacity.
///
/// Upstream: k8s.io/kubernetes/pkg/apis/core/v1/defaults.go: SetDefaults_NodeStatus
fn allocatable(status: &mut Value) {
    if let Some(capacity) = status.get("capacity").filter(|capacity| !capacity.is_null()).cloned() {
        set_if_missing(status, "allocatable", capacity);
    }
}

/// Copies the single `podCIDR`, which older clients write, to `podCIDRs`.
///
/// Upstream: k8s.io/kubernetes/pkg/apis/core/v1/conversion.go: Convert_v1_NodeSpec_To_core_NodeSpec
fn pod_ranges(spec: &mut Value) {
    let range = text(spec, "/podCIDR").to_owned();
    if !range.is_empty() {
        set_if_missing(spec, "podCIDRs", json!([range]));
    }
}
