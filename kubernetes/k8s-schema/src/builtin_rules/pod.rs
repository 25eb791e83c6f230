//! Pods, and the templates that pods are made from.
use serde_json::Value;

use super::check::{
    Check::{self, Between, Fields, Items, Labels, OneOf, Required, RequiredWith, Text, With},
    Rules, address, apply, below, forbidden, invalid, items, not_supported, problems, required,
    selector, text,
};
use super::{containers, volumes};
use crate::FieldError;
use crate::names::{label, qualified, subdomain};

pub(super) const POD: Rules = &[("spec", With(spec))];

pub(super) const USER_RANGE: Check =
    Between(0, 2_147_483_647, "must be between 0 and 2147483647, inclusive");
const DEADLINE: Check = Between(1, 2_147_483_647, "must be between 1 and 2147483647, inclusive");

/// What comes before and after the containers.
const BEFORE: Rules = &[("volumes", With(volumes::check))];

const AFTER: Rules = &[
    ("restartPolicy", OneOf(&["Always", "OnFailure", "Never"])),
    ("dnsPolicy", OneOf(&["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"])),
    ("nodeSelector", Labels),
    ("securityContext", Fields(SECURITY)),
    ("affinity", With(affinity)),
    ("dnsConfig", With(name_servers)),
    ("", With(dns_config_is_there)),
    ("readinessGates", Items(&[("conditionType", Text(qualified))])),
    ("topologySpreadConstraints", Items(SPREAD)),
    ("serviceAccountName", Text(subdomain)),
    ("nodeName", Text(subdomain)),
    ("activeDeadlineSeconds", DEADLINE),
    ("hostname", Text(label)),
    ("subdomain", Text(label)),
    ("tolerations", With(tolerations)),
    ("hostAliases", Items(&[("ip", Text(address)), ("hostnames", With(host_names))])),
];

const SECURITY: Rules = &[
    ("runAsUser", USER_RANGE),
    ("runAsGroup", USER_RANGE),
    ("fsGroup", USER_RANGE),
    ("sysctls", Items(&[("name", Required)])),
    ("fsGroupChangePolicy", OneOf(&["Always", "OnRootMismatch"])),
    ("seccompProfile", Fields(SECCOMP)),
];

pub(super) const SECCOMP: Rules =
    &[("type", OneOf(&["Localhost", "RuntimeDefault", "Unconfined"]))];

const SPREAD: Rules = &[
    ("maxSkew", Between(1, i64::MAX, "must be greater than zero")),
    ("topologyKey", RequiredWith("can not be empty")),
    ("whenUnsatisfiable", OneOf(&["DoNotSchedule", "ScheduleAnyway"])),
    ("labelSelector", Check::Selector),
];

/// Checks a pod's spec.
pub(super) fn spec(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    apply(BEFORE, value, path, errors);
    containers::check(value, path, errors);
    apply(AFTER, value, path, errors);
}

fn host_names(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for (index, name) in value.as_array().into_iter().flatten().enumerate() {
        let found = subdomain(name.as_str().unwrap_or_default());
        problems(&format!("{path}[{index}]"), name, found, errors);
    }
}

fn name_servers(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for (index, server) in items(value, "nameservers").iter().enumerate() {
        let found = address(server.as_str().unwrap_or_default());
        problems(&format!("{path}.nameservers[{index}]"), server, found, errors);
    }
}

fn dns_config_is_there(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
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

fn tolerations(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
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

/// Checks what a taint does to pods that do not tolerate it.
pub(super) fn check_effect(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
    if !effects.contains(&value.as_str().unwrap_or_default()) {
        errors.push(not_supported(path, value, &effects));
    }
}

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

fn affinity(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
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
pub(super) fn template(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    crate::metadata::labels(value["metadata"].get("labels"), &below(path, "labels"), errors);
    spec(&value["spec"], &below(path, "spec"), errors);
}
