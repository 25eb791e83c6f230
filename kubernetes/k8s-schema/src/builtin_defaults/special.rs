//! The defaults that depend on other fields.
use base64::Engine as _;
use serde_json::{Value, json};

use super::place::{child, fill_all, visit};
use super::table;

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or("")
}

fn is_set(value: Option<&Value>) -> bool {
    value.is_some_and(|value| !value.is_null())
}

/// Sets `pointer`'s last field in an object that exists, unless it is set.
fn set_if_missing(value: &mut Value, name: &str, default: Value) {
    if let Some(map) = value.as_object_mut()
        && !is_set(map.get(name))
    {
        map.insert(name.to_owned(), default);
    }
}

pub(super) fn pod(value: &mut Value) {
    pod_template(value, "spec");
    visit(value, "spec", &mut |spec| {
        let grace = spec.get("terminationGracePeriodSeconds").and_then(Value::as_i64);
        if let (Some(..0), Some(spec)) = (grace, spec.as_object_mut()) {
            spec.insert("terminationGracePeriodSeconds".to_owned(), json!(1));
        }
        set_if_missing(spec, "enableServiceLinks", json!(true));
        let host_network = spec.get("hostNetwork") == Some(&json!(true));
        for list in ["containers[]", "initContainers[]"] {
            visit(spec, list, &mut requests_from_limits);
            if host_network {
                visit(spec, &format!("{list}.ports[]"), &mut host_port);
            }
        }
    });
}

/// A limit without a request is a request too.
fn requests_from_limits(container: &mut Value) {
    let Some(Value::Object(limits)) = container.pointer("/resources/limits").cloned() else {
        return;
    };
    visit(container, "resources.requests", &mut |requests| {
        for (name, limit) in &limits {
            set_if_missing(requests, name, limit.clone());
        }
    });
}

fn host_port(port: &mut Value) {
    let container_port = port.get("containerPort").cloned();
    if let Some(container_port) = container_port {
        set_if_missing(port, "hostPort", container_port);
    }
}

/// The defaults of the pod spec at `place`, wherever it is used.
pub(super) fn pod_template(value: &mut Value, place: &str) {
    visit(value, place, &mut |spec| {
        fill_all(spec, "", table::POD_SPEC);
        mirror_service_account(spec);
        for list in ["initContainers[]", "containers[]", "ephemeralContainers[]"] {
            visit(spec, list, &mut container);
        }
        visit(spec, "volumes[]", &mut volume);
    });
}

/// The deprecated name and the present one say the same.
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

fn container(container: &mut Value) {
    fill_all(container, "", table::CONTAINER);
    for probe in ["livenessProbe?", "readinessProbe?", "startupProbe?"] {
        fill_all(container, probe, table::PROBE);
    }
    if text(container, "/imagePullPolicy").is_empty() {
        let policy = pull_policy(text(container, "/image"));
        if let Some(container) = container.as_object_mut() {
            container.insert("imagePullPolicy".to_owned(), json!(policy));
        }
    }
}

/// Images that name no version may change under their name.
fn pull_policy(image: &str) -> &'static str {
    let (name, has_digest) = match image.split_once('@') {
        Some((name, _)) => (name, true),
        None => (image, false),
    };
    let last = name.rsplit('/').next().unwrap_or(name);
    let tag = last.split_once(':').map(|(_, tag)| tag);
    match tag {
        Some("latest") => "Always",
        None if !has_digest => "Always",
        _ => "IfNotPresent",
    }
}

fn volume(volume: &mut Value) {
    let has_source = volume
        .as_object()
        .is_some_and(|map| map.iter().any(|(key, value)| key != "name" && !value.is_null()));
    if !has_source {
        set_if_missing(volume, "emptyDir", json!({}));
    }
    fill_all(volume, "", table::VOLUME);
    visit(volume, "image?", &mut |image| {
        let policy = pull_policy(text(image, "/reference"));
        set_if_missing(image, "pullPolicy", json!(policy));
    });
}

pub(super) fn replication_controller(value: &mut Value) {
    fill_all(value, "", table::REPLICA_SET);
    let labels = value.pointer("/spec/template/metadata/labels").cloned();
    if let Some(labels) = labels.filter(Value::is_object) {
        visit(value, "spec", &mut |spec| set_if_missing(spec, "selector", labels.clone()));
        visit(value, "metadata", &mut |meta| set_if_missing(meta, "labels", labels.clone()));
    }
    pod_template(value, "spec.template?.spec");
}

pub(super) fn service(value: &mut Value) {
    fill_all(value, "", table::SERVICE);
    visit(value, "spec", &mut |spec| {
        match text(spec, "/sessionAffinity") {
            "ClientIP" => {
                let config = "sessionAffinityConfig.clientIP";
                visit(spec, config, &mut |ip| set_if_missing(ip, "timeoutSeconds", json!(10800)));
            }
            _ => {
                spec.as_object_mut().map(|spec| spec.remove("sessionAffinityConfig"));
            }
        }
        visit(spec, "ports[]", &mut target_port);
        let kind = text(spec, "/type").to_owned();
        let external_ips = spec.get("externalIPs").and_then(Value::as_array);
        let is_reachable = matches!(kind.as_str(), "LoadBalancer" | "NodePort")
            || (kind == "ClusterIP" && external_ips.is_some_and(|list| !list.is_empty()));
        if is_reachable {
            set_if_missing(spec, "externalTrafficPolicy", json!("Cluster"));
        }
        if matches!(kind.as_str(), "LoadBalancer" | "NodePort" | "ClusterIP") {
            set_if_missing(spec, "internalTrafficPolicy", json!("Cluster"));
        }
        if kind == "LoadBalancer" {
            set_if_missing(spec, "allocateLoadBalancerNodePorts", json!(true));
        }
    });
}

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

/// What is written as text is stored as data.
pub(super) fn secret(value: &mut Value) {
    fill_all(value, "", table::SECRET);
    let texts = value.as_object_mut().and_then(|secret| secret.remove("stringData"));
    let Some(Value::Object(texts)) = texts else { return };
    visit(value, "data", &mut |data| {
        let Some(data) = data.as_object_mut() else { return };
        for (key, text) in &texts {
            let bytes = text.as_str().unwrap_or("");
            let encoded = base64::engine::general_purpose::STANDARD.encode(bytes);
            data.insert(key.clone(), json!(encoded));
        }
    });
}

pub(super) fn namespace(value: &mut Value) {
    let name = text(value, "/metadata/name").to_owned();
    if !name.is_empty() {
        visit(value, "metadata.labels", &mut |labels| {
            if let Some(labels) = labels.as_object_mut() {
                labels.insert("kubernetes.io/metadata.name".to_owned(), json!(name));
            }
        });
    }
    visit(value, "status", &mut |status| set_if_missing(status, "phase", json!("Active")));
}

pub(super) fn deployment(value: &mut Value) {
    fill_all(value, "", table::DEPLOYMENT);
    if text(value, "/spec/strategy/type") == "RollingUpdate" {
        fill_all(value, "", table::DEPLOYMENT_ROLLING_UPDATE);
    }
    pod_template(value, "spec.template.spec");
}

pub(super) fn daemon_set(value: &mut Value) {
    fill_all(value, "", table::DAEMON_SET);
    if text(value, "/spec/updateStrategy/type") == "RollingUpdate" {
        fill_all(value, "", table::DAEMON_SET_ROLLING_UPDATE);
    }
    pod_template(value, "spec.template.spec");
}

pub(super) fn stateful_set(value: &mut Value) {
    fill_all(value, "", table::STATEFUL_SET);
    visit(value, "spec.updateStrategy", &mut |strategy| {
        if text(strategy, "/type").is_empty()
            && let Some(map) = strategy.as_object_mut()
        {
            map.insert("type".to_owned(), json!("RollingUpdate"));
            child(map, "rollingUpdate");
        }
        if text(strategy, "/type") == "RollingUpdate" {
            visit(strategy, "rollingUpdate?", &mut |rolling| {
                set_if_missing(rolling, "partition", json!(0));
                set_if_missing(rolling, "maxUnavailable", json!(1));
            });
        }
    });
    visit(value, "spec.volumeClaimTemplates[]", &mut |claim| {
        set_if_missing(claim, "apiVersion", json!("v1"));
        set_if_missing(claim, "kind", json!("PersistentVolumeClaim"));
    });
    pod_template(value, "spec.template.spec");
}

pub(super) fn job(value: &mut Value) {
    visit(value, "spec", &mut |spec| {
        if !is_set(spec.get("completions")) && !is_set(spec.get("parallelism")) {
            set_if_missing(spec, "completions", json!(1));
        }
        let per_index = is_set(spec.get("backoffLimitPerIndex"));
        set_if_missing(spec, "backoffLimit", json!(if per_index { i32::MAX } else { 6 }));
        let has_policy = is_set(spec.get("podFailurePolicy"));
        let replacement = if has_policy { "Failed" } else { "TerminatingOrFailed" };
        set_if_missing(spec, "podReplacementPolicy", json!(replacement));
    });
    fill_all(value, "", table::JOB);
    let labels = value.pointer("/spec/template/metadata/labels").cloned();
    if let Some(labels) = labels.filter(Value::is_object) {
        visit(value, "metadata", &mut |metadata| {
            set_if_missing(metadata, "labels", labels.clone());
        });
    }
    pod_template(value, "spec.template.spec");
}

/// The job inside gets its pod's defaults; its own come when it is created.
pub(super) fn cron_job(value: &mut Value) {
    fill_all(value, "", table::CRON_JOB);
    pod_template(value, "spec.jobTemplate.spec.template.spec");
}

pub(super) fn binding(value: &mut Value) {
    const RBAC: &str = "rbac.authorization.k8s.io";
    visit(value, "roleRef", &mut |role| {
        if text(role, "/apiGroup").is_empty()
            && let Some(role) = role.as_object_mut()
        {
            role.insert("apiGroup".to_owned(), json!(RBAC));
        }
    });
    visit(value, "subjects[]", &mut |subject| {
        let is_person = matches!(text(subject, "/kind"), "User" | "Group");
        if is_person
            && text(subject, "/apiGroup").is_empty()
            && let Some(subject) = subject.as_object_mut()
        {
            subject.insert("apiGroup".to_owned(), json!(RBAC));
        }
    });
}

pub(super) fn network_policy(value: &mut Value) {
    fill_all(value, "", table::NETWORK_POLICY);
    visit(value, "spec", &mut |spec| {
        let has = |name: &str| {
            spec.get(name).and_then(Value::as_array).is_some_and(|list| !list.is_empty())
        };
        if has("policyTypes") {
            return;
        }
        let types = if has("egress") { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
        if let Some(spec) = spec.as_object_mut() {
            spec.insert("policyTypes".to_owned(), types);
        }
    });
}

pub(super) fn custom_resource_definition(value: &mut Value) {
    let kind = text(value, "/spec/names/kind").to_owned();
    visit(value, "spec.names", &mut |names| {
        let Some(names) = names.as_object_mut() else { return };
        let mut fill = |name: &str, text: String| {
            let unset = |value: &Value| value.is_null() || value == "";
            if names.get(name).is_none_or(unset) && !text.is_empty() {
                names.insert(name.to_owned(), json!(text));
            }
        };
        fill("singular", kind.to_lowercase());
        fill("listKind", if kind.is_empty() { String::new() } else { format!("{kind}List") });
    });
    fill_all(value, "", table::CUSTOM_RESOURCE_DEFINITION);
    let storage = value
        .pointer("/spec/versions")
        .and_then(Value::as_array)
        .and_then(|list| list.iter().find(|version| version["storage"] == json!(true)))
        .map(|version| text(version, "/name").to_owned());
    if let Some(storage) = storage {
        visit(value, "status", &mut |status| {
            let stored = status.get("storedVersions").and_then(Value::as_array);
            if let (true, Some(status)) = (stored.is_none_or(Vec::is_empty), status.as_object_mut())
            {
                status.insert("storedVersions".to_owned(), json!([storage]));
            }
        });
    }
}

/// A container may use what it may use at most, unless something else is said.
pub(super) fn limit_range(value: &mut Value) {
    visit(value, "spec.limits[]", &mut |limit| {
        if text(limit, "/type") != "Container" {
            return;
        }
        for (from, to) in
            [("max", "default"), ("default", "defaultRequest"), ("min", "defaultRequest")]
        {
            let Some(amounts) = limit.get(from).and_then(Value::as_object).cloned() else {
                continue;
            };
            visit(limit, to, &mut |target| {
                for (name, amount) in &amounts {
                    set_if_missing(target, name, amount.clone());
                }
            });
        }
    });
}

/// What a node has may all be used; its range of addresses is the first of its ranges.
pub(super) fn node(value: &mut Value) {
    visit(value, "status?", &mut |status| {
        if let Some(capacity) = status.get("capacity").filter(|capacity| is_set(Some(*capacity))) {
            let capacity = capacity.clone();
            set_if_missing(status, "allocatable", capacity);
        }
    });
    visit(value, "spec?", &mut |spec| {
        let range = text(spec, "/podCIDR").to_owned();
        if !range.is_empty() {
            set_if_missing(spec, "podCIDRs", json!([range]));
        }
    });
}
