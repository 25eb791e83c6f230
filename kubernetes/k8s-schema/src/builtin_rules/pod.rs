//! Pods, and the templates that pods are made from.
use serde_json::Value;

use super::check::{
    address, apply, below, forbidden, invalid, items, not_supported, problems, required, selector,
    text,
};
use super::containers;
use crate::FieldError;
use crate::names::{qualified, subdomain};

/// Checks a pod's spec.
///
/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: ValidatePodSpec
pub(super) fn spec(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    apply(super::part("pod-before-containers"), value, path, errors);
    containers::check(value, path, errors);
    apply(super::part("pod-after-containers"), value, path, errors);
}

/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: ValidateHostAliases
pub(super) fn host_names(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for (index, name) in value.as_array().into_iter().flatten().enumerate() {
        let found = subdomain(name.as_str().unwrap_or_default());
        problems(&format!("{path}[{index}]"), name, found, errors);
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: validatePodDNSConfig
pub(super) fn name_servers(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for (index, server) in items(value, "nameservers").iter().enumerate() {
        let found = address(server.as_str().unwrap_or_default());
        problems(&format!("{path}.nameservers[{index}]"), server, found, errors);
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: validatePodDNSConfig
pub(super) fn dns_config_is_there(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if spec["dnsPolicy"] != "None" {
        return;
    }
    if spec["dnsConfig"].is_null() {
        let detail = "must provide `dnsConfig` when `dnsPolicy` is None";
        errors.push(required(below(path, "dnsConfig"), detail));
    } else if items(&spec["dnsConfig"], "nameservers").is_empty() {
        let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
        errors.push(required(below(path, "dnsConfig.nameservers"), detail));
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: ValidateTolerations
pub(super) fn tolerations(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for (index, toleration) in value.as_array().into_iter().flatten().enumerate() {
        let at = format!("{path}[{index}]");
        let field = |name: &str| text(toleration, name);
        let operator = format!("{at}.operator");
        if !field("key").is_empty() {
            let found = qualified(field("key"));
            problems(&format!("{at}.key"), &toleration["key"], found, errors);
        }
        if field("key").is_empty() && field("operator") != "Exists" {
            let detail = "operator must be Exists when `key` is empty, which means \"match all \
                          values and all keys\"";
            errors.push(invalid(&operator, &field("operator").into(), detail));
        }
        if !toleration["tolerationSeconds"].is_null() && field("effect") != "NoExecute" {
            let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            errors.push(invalid(format!("{at}.effect"), &field("effect").into(), detail));
        }
        match field("operator") {
            "" | "Equal" => {
                let found = crate::names::label_value(field("value"));
                problems(&operator, &field("value").into(), found, errors);
            }
            "Exists" if !field("value").is_empty() => {
                let detail = "value must be empty when `operator` is 'Exists'";
                errors.push(invalid(&operator, &toleration["value"], detail));
            }
            "Exists" => {}
            _ => {
                errors.push(not_supported(&operator, &toleration["operator"], &["Equal", "Exists"]))
            }
        }
        if !field("effect").is_empty() {
            check_effect(&toleration["effect"], &format!("{at}.effect"), errors);
        }
    }
}

/// Checks the effect of a taint or toleration.
///
/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: validateTaintEffect
pub(super) fn check_effect(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
    if !effects.contains(&value.as_str().unwrap_or_default()) {
        errors.push(not_supported(path, value, &effects));
    }
}

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: validateAffinity
pub(super) fn affinity(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let terms = &value["nodeAffinity"][REQUIRED];
    if !terms.is_null() {
        node_terms(terms, &format!("{path}.nodeAffinity.{REQUIRED}"), errors);
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        for (index, term) in items(&value[kind], REQUIRED).iter().enumerate() {
            pod_term(term, &format!("{path}.{kind}.{REQUIRED}[{index}]"), errors);
        }
        for (index, term) in items(&value[kind], PREFERRED).iter().enumerate() {
            let at = format!("{path}.{kind}.{PREFERRED}[{index}]");
            if !term["weight"].as_i64().is_some_and(|weight| (1..=100).contains(&weight)) {
                let weight = term["weight"].as_i64().unwrap_or_default();
                let detail = "must be in the range 1-100";
                errors.push(invalid(format!("{at}.weight"), &weight.into(), detail));
            }
            pod_term(&term["podAffinityTerm"], &format!("{at}.podAffinityTerm"), errors);
        }
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: ValidateNodeSelector
fn node_terms(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let terms = items(value, "nodeSelectorTerms");
    let at = format!("{path}.nodeSelectorTerms");
    if terms.is_empty() {
        errors.push(required(at, "must have at least one node selector term"));
        return;
    }
    for (index, term) in terms.iter().enumerate() {
        for (inner, expression) in items(term, "matchExpressions").iter().enumerate() {
            let at = format!("{at}[{index}].matchExpressions[{inner}]");
            node_expression(expression, &at, errors);
        }
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: ValidateNodeSelectorRequirement
fn node_expression(expression: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let values = items(expression, "values");
    match text(expression, "operator") {
        "In" | "NotIn" if values.is_empty() => errors.push(required(
            format!("{path}.values"),
            "must be specified when `operator` is 'In' or 'NotIn'",
        )),
        "Exists" | "DoesNotExist" if !values.is_empty() => errors.push(forbidden(
            format!("{path}.values"),
            "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
        )),
        "Gt" | "Lt" if values.len() != 1 => errors.push(required(
            format!("{path}.values"),
            "must be specified single value when `operator` is 'Lt' or 'Gt'",
        )),
        "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
        other => {
            let at = format!("{path}.operator");
            errors.push(invalid(at, &other.into(), "not a valid selector operator"));
        }
    }
    let key = text(expression, "key");
    problems(&format!("{path}.key"), &key.into(), qualified(key), errors);
}

/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: validatePodAffinityTerm
fn pod_term(term: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if !term["labelSelector"].is_null() {
        selector(&term["labelSelector"], &format!("{path}.labelSelector"), errors);
    }
    let (at, key) = (format!("{path}.topologyKey"), text(term, "topologyKey"));
    if key.is_empty() {
        errors.push(required(&at, "can not be empty"));
    }
    problems(&at, &key.into(), qualified(key), errors);
}

/// Checks a pod's template: labels and spec.
///
/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: ValidatePodTemplateSpec
pub(super) fn template(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    crate::metadata::labels(value["metadata"].get("labels"), &below(path, "labels"), errors);
    spec(&value["spec"], &below(path, "spec"), errors);
}
