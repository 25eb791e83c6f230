//! Containers of a pod.
use std::collections::BTreeSet;

use serde_json::Value;

use super::check::{
    Check::{self, OneOf, Required},
    PORT, apply, below, duplicate, forbidden, invalid, items, not_supported, port_or_name,
    problems, required, text,
};
use super::field_reference::field_reference;
use super::volumes;
use crate::names::{config_key, port, subdomain, variable};
use crate::{FieldError, FieldErrorKind};

/// Checks the containers of a pod's spec.
///
/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: validateContainers
/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: validateInitContainers
pub(super) fn check(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let grace = spec["terminationGracePeriodSeconds"].as_i64().unwrap_or_default();
    let volume_names: BTreeSet<&str> =
        items(spec, "volumes").iter().map(|volume| text(volume, "name")).collect();
    let containers = items(spec, "containers");
    let at = below(path, "containers");
    if containers.is_empty() {
        errors.push(required(&at, ""));
    }
    let mut names = BTreeSet::new();
    let mut host_ports = BTreeSet::new();
    for (index, container) in containers.iter().enumerate() {
        let at = format!("{at}[{index}]");
        one(container, &at, &volume_names, grace, errors);
        let name = text(container, "name");
        if !name.is_empty() && !names.insert(name) {
            errors.push(duplicate(format!("{at}.name"), &name.into()));
        }
        check_probes(container, &at, errors);
    }
    for (index, container) in containers.iter().enumerate() {
        check_host_ports(container, &format!("{at}[{index}]"), &mut host_ports, errors);
    }
    for (index, container) in items(spec, "initContainers").iter().enumerate() {
        let at = format!("{}[{index}]", below(path, "initContainers"));
        one(container, &at, &volume_names, grace, errors);
        let name = text(container, "name");
        if !name.is_empty() && !names.insert(name) {
            errors.push(duplicate(format!("{at}.name"), &name.into()));
        }
        if container["restartPolicy"] == "Always" {
            check_probes(container, &at, errors);
            continue;
        }
        let detail = "may not be set for init containers without restartPolicy=Always";
        for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
            if !container[field].is_null() {
                errors.push(forbidden(format!("{at}.{field}"), detail));
            }
        }
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: validateContainerCommon
fn one(
    container: &Value,
    path: &str,
    volume_names: &BTreeSet<&str>,
    grace: i64,
    errors: &mut Vec<FieldError>,
) {
    apply(super::part("container-before-mounts"), container, path, errors);
    volumes::mounts(container, path, volume_names, errors);
    apply(super::part("container-after-mounts"), container, path, errors);
    for hook in ["postStart", "preStop"] {
        let at = format!("{path}.lifecycle.{hook}");
        let value = &container["lifecycle"][hook];
        if value.is_null() {
            continue;
        }
        handler(value, &at, errors);
        if let Some(seconds) = value["sleep"]["seconds"].as_i64()
            && !(0..=grace).contains(&seconds)
        {
            let detail = format!(
                "must be non-negative and less than terminationGracePeriodSeconds ({grace})"
            );
            errors.push(invalid(format!("{at}.sleep"), &seconds.into(), &detail));
        }
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: validateContainerCommon
pub(super) fn image(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let image = value.as_str().unwrap_or_default();
    if image.is_empty() {
        errors.push(required(path, ""));
    } else if image.trim() != image {
        errors.push(invalid(path, value, "must not have leading or trailing whitespace"));
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: validateContainerPorts
pub(super) fn ports(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let mut names = BTreeSet::new();
    for (index, entry) in value.as_array().into_iter().flatten().enumerate() {
        let at = format!("{path}[{index}]");
        let name = text(entry, "name");
        if !name.is_empty() {
            let found = port(name);
            let fits = found.is_empty();
            // Only the first problem is reported.
            problems(
                &format!("{at}.name"),
                &name.into(),
                found.into_iter().take(1).collect(),
                errors,
            );
            if fits && !names.insert(name) {
                errors.push(duplicate(format!("{at}.name"), &name.into()));
            }
        }
        if entry["containerPort"].as_i64().unwrap_or_default() == 0 {
            errors.push(required(format!("{at}.containerPort"), ""));
        } else {
            apply(&[("containerPort", PORT)], entry, &at, errors);
        }
        if entry["hostPort"].as_i64().unwrap_or_default() != 0 {
            apply(&[("hostPort", PORT)], entry, &at, errors);
        }
        const PROTOCOL: Check = OneOf(&["SCTP", "TCP", "UDP"]);
        apply(&[("protocol", PROTOCOL)], entry, &at, errors);
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: checkHostPortConflicts
fn check_host_ports(
    container: &Value,
    path: &str,
    seen: &mut BTreeSet<String>,
    errors: &mut Vec<FieldError>,
) {
    for (index, port) in items(container, "ports").iter().enumerate() {
        let Some(number) = port["hostPort"].as_i64().filter(|number| *number != 0) else {
            continue;
        };
        let key = format!("{}/{}/{number}", text(port, "protocol"), text(port, "hostIP"));
        if !seen.insert(key.clone()) {
            errors.push(duplicate(format!("{path}.ports[{index}].hostPort"), &key.into()));
        }
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: ValidateEnv
pub(super) fn environment(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let name = text(value, "name");
    let at = format!("{path}.name");
    if name.is_empty() {
        errors.push(required(at, ""));
    } else {
        problems(&at, &name.into(), variable(name), errors);
    }
    let from = &value["valueFrom"];
    if from.is_null() {
        return;
    }
    let path = format!("{path}.valueFrom");
    field_reference(&from["fieldRef"], &format!("{path}.fieldRef"), errors);
    let resource = &from["resourceFieldRef"];
    if !resource.is_null() {
        resource_reference(resource, &format!("{path}.resourceFieldRef"), errors);
    }
    for kind in ["configMapKeyRef", "secretKeyRef"] {
        if !from[kind].is_null() {
            key_reference(&from[kind], &format!("{path}.{kind}"), errors);
        }
    }
    let sources = ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"];
    let count = sources.iter().filter(|source| !from[**source].is_null()).count();
    let mut wrong = |detail: &str| errors.push(invalid(&path, &"".into(), detail));
    if !text(value, "value").is_empty() && count > 0 {
        wrong("may not be specified when `value` is not empty");
    } else if count == 0 {
        wrong(
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, \
             `secretKeyRef` or `fileKeyRef`",
        );
    } else if count > 1 {
        wrong("may not have more than one field specified at a time");
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: validateContainerResourceFieldSelector
fn resource_reference(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    const RESOURCES: [&str; 6] = [
        "limits.cpu",
        "limits.ephemeral-storage",
        "limits.memory",
        "requests.cpu",
        "requests.ephemeral-storage",
        "requests.memory",
    ];
    let resource = text(value, "resource");
    let at = format!("{path}.resource");
    let is_huge = ["limits.hugepages-", "requests.hugepages-"]
        .iter()
        .any(|prefix| resource.starts_with(prefix));
    if resource.is_empty() {
        errors.push(required(at, ""));
    } else if !RESOURCES.contains(&resource) && !is_huge {
        errors.push(not_supported(&at, &resource.into(), &RESOURCES));
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: validateConfigMapKeySelector
fn key_reference(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let name = text(value, "name");
    problems(&format!("{path}.name"), &name.into(), subdomain(name), errors);
    let key = text(value, "key");
    if key.is_empty() {
        errors.push(required(format!("{path}.key"), ""));
    } else {
        problems(&format!("{path}.key"), &key.into(), config_key(key), errors);
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: ValidateEnvFrom
pub(super) fn environment_sources(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for (index, source) in value.as_array().into_iter().flatten().enumerate() {
        let at = format!("{path}[{index}]");
        let prefix = text(source, "prefix");
        if !prefix.is_empty() {
            problems(&format!("{at}.prefix"), &prefix.into(), variable(prefix), errors);
        }
        let mut count = 0;
        for kind in ["configMapRef", "secretRef"] {
            if source[kind].is_null() {
                continue;
            }
            count += 1;
            if text(&source[kind], "name").is_empty() {
                errors.push(required(format!("{at}.{kind}.name"), ""));
            }
        }
        let detail = match count {
            0 => "must specify one of: `configMapRef` or `secretRef`",
            1 => continue,
            _ => "may not have more than one field specified at a time",
        };
        errors.push(invalid(path, &"".into(), detail));
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: validateLivenessProbe
/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: validateReadinessProbe
fn check_probes(container: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let probe = &container[name];
        if probe.is_null() {
            continue;
        }
        let at = format!("{path}.{name}");
        apply(super::part("probe"), probe, &at, errors);
        let seconds = &probe["terminationGracePeriodSeconds"];
        if name == "readinessProbe" {
            if !seconds.is_null() {
                let at = format!("{at}.terminationGracePeriodSeconds");
                errors.push(invalid(at, seconds, "must not be set for readinessProbes"));
            }
        } else if probe["successThreshold"].as_i64().is_some_and(|count| count != 1) {
            let at = format!("{at}.successThreshold");
            errors.push(invalid(at, &probe["successThreshold"], "must be 1"));
        }
    }
}

/// Checks that exactly one handler is declared, and its fields.
///
/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: validateHandler
pub(super) fn handler(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let mut count = 0;
    for kind in ["exec", "httpGet", "tcpSocket", "grpc", "sleep"] {
        let action = &value[kind];
        if action.is_null() {
            continue;
        }
        let at = format!("{path}.{kind}");
        if count > 0 {
            errors.push(forbidden(at, "may not specify more than 1 handler type"));
            continue;
        }
        count += 1;
        match kind {
            "exec" => apply(&[("command", Required)], action, &at, errors),
            "httpGet" => {
                if text(action, "path").is_empty() {
                    errors.push(required(format!("{at}.path"), ""));
                }
                port_or_name(&action["port"], &format!("{at}.port"), errors);
                const SCHEME: Check = OneOf(&["HTTP", "HTTPS"]);
                apply(&[("scheme", SCHEME)], action, &at, errors);
            }
            "tcpSocket" => port_or_name(&action["port"], &format!("{at}.port"), errors),
            "grpc" => apply(&[("port", PORT)], action, &at, errors),
            _ => {}
        }
    }
    if count == 0 {
        errors.push(required(path, "must specify a handler type"));
    }
}

/// A privileged container cannot forbid privilege escalation.
///
/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: ValidateSecurityContext
pub(super) fn privileges(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if value["allowPrivilegeEscalation"] != false || value["privileged"] != true {
        return;
    }
    let detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
    errors.push(FieldError::new(path, FieldErrorKind::Invalid, detail).with_value(value.clone()));
}
