//! Ingresses.
use std::net::IpAddr;

use serde_json::Value;

use super::check::{
    Check::Text, PORT, apply, invalid, is_empty, items, not_supported, problems, required, text,
};
use crate::names::{label, port, subdomain, wildcard_subdomain};
use crate::{FieldError, FieldErrorKind};

/// Upstream: k8s.io/kubernetes/pkg/apis/networking/validation/validation.go: validateIngressClassSpec
pub(super) fn controller(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let given = value.as_str().unwrap_or_default();
    if given.is_empty() {
        return errors.push(required(path, ""));
    }
    match given.split_once('/') {
        Some((domain, rest)) if !domain.is_empty() && !rest.is_empty() => {
            problems(path, value, subdomain(domain), errors);
        }
        _ => {
            let detail = "must be a domain-prefixed path (such as \"acme.io/foo\")";
            errors.push(invalid(path, value, detail));
        }
    }
}

/// What is wrong with a domain name or wildcard domain name.
fn domain(name: &str) -> Vec<String> {
    if name.contains('*') { wildcard_subdomain(name) } else { subdomain(name) }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/networking/validation/validation.go: validateIngressRules
pub(super) fn host(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let name = value.as_str().unwrap_or_default();
    if name.is_empty() {
        return;
    }
    if name.parse::<IpAddr>().is_ok() {
        errors.push(invalid(path, value, "must be a DNS name, not an IP address"));
    } else {
        problems(path, value, domain(name), errors);
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/networking/validation/validation.go: validateIngressTLS
pub(super) fn hosts(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for (index, name) in value.as_array().into_iter().flatten().enumerate() {
        let found = domain(name.as_str().unwrap_or_default());
        problems(&format!("{path}[{index}]"), name, found, errors);
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/networking/validation/validation.go: ValidateIngressSpec
pub(super) fn has_backend_or_rules(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if items(spec, "rules").is_empty() && spec["defaultBackend"].is_null() {
        let detail = "either `defaultBackend` or `rules` must be specified";
        errors.push(invalid(path, &spec["rules"], detail));
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/networking/validation/validation.go: validateHTTPIngressPath
pub(super) fn path_rule(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    const KINDS: [&str; 3] = ["Exact", "ImplementationSpecific", "Prefix"];
    let kind = text(value, "pathType");
    let given = text(value, "path");
    let at = format!("{path}.path");
    match kind {
        "" => errors.push(required(format!("{path}.pathType"), "pathType must be specified")),
        "Exact" | "Prefix" => {
            if !given.starts_with('/') {
                errors.push(invalid(&at, &given.into(), "must be an absolute path"));
            }
            for part in ["//", "/./", "/../", "%2f", "%2F"] {
                if given.contains(part) {
                    let detail = format!("must not contain '{part}'");
                    errors.push(invalid(&at, &given.into(), &detail));
                }
            }
            for part in ["/..", "/."] {
                if given.ends_with(part) {
                    let detail = format!("cannot end with '{part}'");
                    errors.push(invalid(&at, &given.into(), &detail));
                }
            }
        }
        "ImplementationSpecific" => {
            if !given.is_empty() && !given.starts_with('/') {
                errors.push(invalid(&at, &given.into(), "must be an absolute path"));
            }
        }
        _ => errors.push(not_supported(&format!("{path}.pathType"), &kind.into(), &KINDS)),
    }
    backend(&value["backend"], &format!("{path}.backend"), errors);
}

pub(super) fn backend_if_any(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if !value.is_null() {
        backend(value, path, errors);
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/networking/validation/validation.go: validateIngressBackend
fn backend(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let (service, resource) = (&value["service"], &value["resource"]);
    match (service.is_null(), resource.is_null()) {
        (true, true) => {
            let detail = "resource or service backend is required";
            errors.push(invalid(path, &"".into(), detail));
        }
        (false, false) => {
            let detail = "cannot set both resource and service backends";
            errors.push(invalid(path, &"".into(), detail));
        }
        (true, false) => {
            apply(super::part("backend-reference"), resource, &format!("{path}.resource"), errors);
        }
        (false, true) => service_backend(service, path, errors),
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/networking/validation/validation.go: validateIngressBackend
fn service_backend(service: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let name = text(service, "name");
    let at = format!("{path}.service.name");
    if name.is_empty() {
        errors.push(required(at, ""));
    } else {
        problems(&at, &name.into(), label(name), errors);
    }
    let (by_name, by_number) = (&service["port"]["name"], &service["port"]["number"]);
    let at = format!("{path}.service.port");
    match (is_empty(by_name), is_empty(by_number)) {
        (false, false) => {
            let error = FieldError::new(
                path,
                FieldErrorKind::Invalid,
                "cannot set both port name & port number",
            );
            errors.push(error.with_value("".into()));
        }
        (false, true) => apply(&[("name", Text(port))], &service["port"], &at, errors),
        (true, false) => apply(&[("number", PORT)], &service["port"], &at, errors),
        (true, true) => errors.push(required(path, "port name or number is required")),
    }
}
