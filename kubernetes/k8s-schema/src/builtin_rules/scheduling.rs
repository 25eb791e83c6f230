//! Budgets, autoscalers, priorities, leases and nodes.
use serde_json::{Value, json};

use super::check::{
    duplicate, forbidden, invalid, items, network, not_supported, problems, required, text,
};
use super::pod::check_effect;
use crate::names::{label, path_segment, qualified};
use crate::{FieldError, FieldErrorKind};

/// Upstream: k8s.io/kubernetes/pkg/apis/policy/validation/validation.go: ValidatePodDisruptionBudgetSpec
pub(super) fn one_bound(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if spec["minAvailable"].is_null() || spec["maxUnavailable"].is_null() {
        return;
    }
    let shown = format!(
        "{{\"MinAvailable\":{},\"Selector\":{},\"MaxUnavailable\":{},\"UnhealthyPodEvictionPolicy\":{}}}",
        spec["minAvailable"],
        spec["selector"],
        spec["maxUnavailable"],
        spec["unhealthyPodEvictionPolicy"]
    );
    let detail = "minAvailable and maxUnavailable cannot be both set";
    errors.push(FieldError::new(path, FieldErrorKind::Invalid, detail).with_shown(shown));
}

/// Upstream: k8s.io/kubernetes/pkg/apis/autoscaling/validation/validation.go: validateHorizontalPodAutoscalerSpec
pub(super) fn replica_bounds(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let least = spec["minReplicas"].as_i64();
    let most = spec["maxReplicas"].as_i64().unwrap_or_default();
    if least.is_some_and(|least| least < 0) {
        let at = format!("{path}.minReplicas");
        errors.push(invalid(at, &spec["minReplicas"], "must be greater than or equal to 0"));
    }
    if most < 0 {
        let at = format!("{path}.maxReplicas");
        errors.push(invalid(at, &json!(most), "must be greater than 0"));
    }
    if least.is_some_and(|least| most < least) {
        let detail = "must be greater than or equal to `minReplicas`";
        errors.push(invalid(format!("{path}.maxReplicas"), &json!(most), detail));
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/autoscaling/validation/validation.go: validateMetrics
pub(super) fn scale_to_zero(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let from_outside = |metric: &Value| matches!(text(metric, "type"), "Object" | "External");
    if spec["minReplicas"] == 0 && !items(spec, "metrics").iter().any(from_outside) {
        let detail = "must specify at least one Object or External metric to support scaling to \
                      zero replicas";
        errors.push(forbidden(format!("{path}.metrics"), detail));
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/autoscaling/validation/validation.go: ValidateCrossVersionObjectReference
pub(super) fn scale_target(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for field in ["kind", "name"] {
        let given = text(value, field);
        let at = format!("{path}.{field}");
        if given.is_empty() {
            errors.push(required(at, ""));
        } else {
            problems(&at, &given.into(), path_segment(given), errors);
        }
    }
    let known = ["ReplicationController", "PersistentVolumeClaim"];
    let version = text(value, "apiVersion");
    if !version.contains('/') && !known.contains(&text(value, "kind")) {
        let detail = "apiVersion must specify API group";
        errors.push(invalid(format!("{path}.apiVersion"), &version.into(), detail));
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/autoscaling/validation/validation.go: validateMetricSpec
pub(super) fn metric(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    const TYPES: [(&str, &str); 5] = [
        ("ContainerResource", "containerResource"),
        ("External", "external"),
        ("Object", "object"),
        ("Pods", "pods"),
        ("Resource", "resource"),
    ];
    let kind = text(value, "type");
    let Some((_, field)) = TYPES.iter().find(|(name, _)| *name == kind) else {
        let at = format!("{path}.type");
        if kind.is_empty() {
            errors.push(required(at, "must specify a metric source type"));
        } else {
            errors.push(not_supported(&at, &kind.into(), &TYPES.map(|(name, _)| name)));
        }
        return;
    };
    let source = &value[*field];
    let at = format!("{path}.{field}");
    if source.is_null() {
        let detail = "must populate information for the given metric source";
        return errors.push(required(at, detail));
    }
    if *field != "resource" {
        return;
    }
    if text(source, "name").is_empty() {
        errors.push(required(format!("{at}.name"), "must specify a resource name"));
    }
    let target = &source["target"];
    let utilization = &target["averageUtilization"];
    let at = format!("{at}.target.averageUtilization");
    if utilization.is_null() && target["averageValue"].is_null() {
        let detail = "must set either a target raw value or a target utilization";
        errors.push(required(at, detail));
    } else if utilization.as_i64().is_some_and(|percentage| percentage < 1) {
        errors.push(invalid(at, utilization, "must be greater than 0"));
    }
}

/// The highest priority of a class that is not a system class.
const PRIORITY_MAX: i64 = 1_000_000_000;
const SYSTEM_CLASSES: [&str; 2] = ["system-node-critical", "system-cluster-critical"];

/// Upstream: k8s.io/kubernetes/pkg/apis/scheduling/validation/validation.go: ValidatePriorityClass
pub(super) fn reserved_name(class: &Value, _path: &str, errors: &mut Vec<FieldError>) {
    let name = text(&class["metadata"], "name");
    if SYSTEM_CLASSES.contains(&name) {
        return;
    }
    if name.starts_with("system-") {
        let detail = format!(
            "priority class names with 'system-' prefix are reserved for system use only. error: \
             {name} is not a known system priority class"
        );
        errors.push(forbidden("metadata.name", &detail));
    } else if class["value"].as_i64().is_some_and(|value| value > PRIORITY_MAX) {
        let detail = format!("maximum allowed value of a user defined priority is {PRIORITY_MAX}");
        errors.push(forbidden("value", &detail));
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/node/validation/validation.go: ValidateRuntimeClass
pub(super) fn handler(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let name = value.as_str().unwrap_or_default();
    if name.is_empty() {
        errors.push(required(path, ""));
    } else {
        problems(path, &name.into(), label(name), errors);
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: validateNodeTaints
pub(super) fn taints(value: &Value, _path: &str, errors: &mut Vec<FieldError>) {
    // kube-apiserver reports taints under `metadata`, although they are in `spec`.
    let path = "metadata.taints";
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for (index, taint) in value.as_array().into_iter().flatten().enumerate() {
        let at = format!("{path}[{index}]");
        let key = text(taint, "key");
        problems(&format!("{at}.key"), &key.into(), qualified(key), errors);
        let found = crate::names::label_value(text(taint, "value"));
        problems(&format!("{at}.value"), &text(taint, "value").into(), found, errors);
        check_effect(&taint["effect"], &format!("{at}.effect"), errors);
        let pair = (key, text(taint, "effect"));
        if seen.contains(&pair) {
            let shown = format!(
                "{{\"Key\":{},\"Value\":{},\"Effect\":{},\"TimeAdded\":{}}}",
                json!(key),
                json!(text(taint, "value")),
                json!(pair.1),
                taint["timeAdded"]
            );
            let mut error = duplicate(&at, &Value::Null).with_shown(shown);
            "taints must be unique by key and effect pair".clone_into(&mut error.detail);
            errors.push(error);
        }
        seen.push(pair);
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: ValidateNode
pub(super) fn pod_ranges(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let given = match items(spec, "podCIDRs") {
        [] => std::slice::from_ref(&spec["podCIDR"]),
        list => list,
    };
    for (index, range) in given.iter().enumerate() {
        let Some(text) = range.as_str().filter(|text| !text.is_empty()) else { continue };
        problems(&format!("{path}.podCIDRs[{index}]"), range, network(text), errors);
    }
}
