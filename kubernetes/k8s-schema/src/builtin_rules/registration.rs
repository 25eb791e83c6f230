//! Admission webhooks and API services.
use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::check::{invalid, items, not_supported, problems, required, text};
use crate::FieldError;
use crate::names::{label_1035, qualified, subdomain};

pub(super) fn unique(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let mut seen = BTreeSet::new();
    for (index, webhook) in value.as_array().into_iter().flatten().enumerate() {
        let name = text(webhook, "name");
        if !name.is_empty() && !seen.insert(name) {
            errors.push(super::check::duplicate(format!("{path}[{index}].name"), &name.into()));
        }
    }
}

/// Upstream: k8s.io/apimachinery/pkg/util/validation/validation.go: IsFullyQualifiedName
pub(super) fn name(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let name = value.as_str().unwrap_or_default();
    if name.is_empty() {
        return errors.push(required(path, ""));
    }
    let found = subdomain(name);
    let is_well_formed = found.is_empty();
    problems(path, value, found, errors);
    if is_well_formed && name.split('.').count() < 3 {
        let detail = "should be a domain with at least three segments separated by dots";
        errors.push(invalid(path, value, detail));
    }
}

pub(super) fn side_effects(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    const KNOWN: [&str; 2] = ["None", "NoneOnDryRun"];
    if value.is_null() {
        let detail = "must specify one of None, NoneOnDryRun";
        errors.push(required(path, detail));
    } else if !KNOWN.contains(&value.as_str().unwrap_or_default()) {
        errors.push(not_supported(path, value, &KNOWN));
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/admissionregistration/validation/validation.go: validateRuleWithOperations
pub(super) fn operations(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    const KNOWN: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
    let given = value.as_array().map_or(&[][..], Vec::as_slice);
    if given.is_empty() {
        errors.push(required(path, ""));
    }
    if given.len() > 1 && given.iter().any(|operation| operation == "*") {
        let detail = "if '*' is present, must not specify other operations";
        errors.push(invalid(path, value, detail));
    }
    for (index, operation) in given.iter().enumerate() {
        if !KNOWN.contains(&operation.as_str().unwrap_or_default()) {
            errors.push(not_supported(&format!("{path}[{index}]"), operation, &KNOWN));
        }
    }
}

pub(super) fn rule_groups(rule: &Value, path: &str, errors: &mut Vec<FieldError>) {
    wildcard(rule, "apiGroups", "API groups", path, errors);
}

pub(super) fn rule_versions(rule: &Value, path: &str, errors: &mut Vec<FieldError>) {
    wildcard(rule, "apiVersions", "API versions", path, errors);
}

/// Checks a list that is either `*` alone or names.
///
/// Upstream: k8s.io/kubernetes/pkg/apis/admissionregistration/validation/validation.go: validateRule
fn wildcard(rule: &Value, field: &str, noun: &str, path: &str, errors: &mut Vec<FieldError>) {
    let given = items(rule, field);
    let at = format!("{path}.{field}");
    if given.is_empty() {
        errors.push(required(&at, ""));
    }
    if given.len() > 1 && given.iter().any(|name| name == "*") {
        let detail = format!("if '*' is present, must not specify other {noun}");
        errors.push(invalid(&at, &rule[field], &detail));
    }
    for (index, name) in given.iter().enumerate() {
        if field == "apiVersions" && name == "" {
            errors.push(required(format!("{at}[{index}]"), ""));
        }
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/admissionregistration/validation/validation.go: validateResources
pub(super) fn resources(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let given = value.as_array().map_or(&[][..], Vec::as_slice);
    if given.is_empty() {
        errors.push(required(path, ""));
    }
    let has_all = given.iter().any(|resource| resource == "*");
    let plain = |resource: &&Value| !resource.as_str().unwrap_or_default().contains('/');
    if has_all && given.iter().filter(plain).count() > 1 {
        let detail = "if '*' is present, must not specify other resources without subresources";
        errors.push(invalid(path, value, detail));
    }
}

pub(super) fn client(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    match (value["url"].as_str(), &value["service"]) {
        (Some(url), Value::Null) => check_url(url, &format!("{path}.url"), errors),
        (None, service) if !service.is_null() => {
            check_service(service, &format!("{path}.service"), errors);
        }
        _ => errors.push(required(path, "exactly one of url or service is required")),
    }
}

/// Checks the URL of a webhook.
///
/// Upstream: k8s.io/apiserver/pkg/util/webhook/validation.go: ValidateWebhookURL
pub fn check_url(url: &str, path: &str, errors: &mut Vec<FieldError>) {
    const FORM: &str = "; desired format: https://host[/path]";
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let mut wrong = |value: &str, detail: &str| {
        errors.push(invalid(path, &value.into(), detail));
    };
    if scheme != "https" {
        wrong(scheme, &format!("'https' is the only allowed URL scheme{FORM}"));
    }
    let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let authority = rest.split('/').next().filter(|_| !scheme.is_empty()).unwrap_or_default();
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    if host.is_empty() {
        wrong(host, &format!("host must be specified{FORM}"));
    }
    if let Some(user) = user {
        wrong(user, "user information is not permitted in the URL");
    }
    if !fragment.is_empty() {
        wrong(fragment, "fragments are not permitted in the URL");
    }
    if !query.is_empty() {
        wrong(query, "query parameters are not permitted in the URL");
    }
}

/// Checks the service of a webhook.
///
/// Upstream: k8s.io/apiserver/pkg/util/webhook/validation.go: ValidateWebhookService
pub fn check_service(service: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for name in ["name", "namespace"] {
        if text(service, name).is_empty() {
            errors.push(required(format!("{path}.{name}"), ""));
        }
    }
    check_port(service, path, errors);
    let url_path = text(service, "path");
    if matches!(url_path, "" | "/") {
        return;
    }
    let mut wrong = |detail: &str| {
        errors.push(invalid(format!("{path}.path"), &url_path.into(), detail));
    };
    if url_path == "//" {
        return wrong("segment[0] may not be empty");
    }
    if !url_path.starts_with('/') {
        wrong("must start with a '/'");
    }
    let rest: String = url_path.chars().skip(1).collect();
    let rest = rest.strip_suffix('/').unwrap_or(&rest);
    for (index, step) in rest.split('/').enumerate() {
        if step.is_empty() {
            wrong(&format!("segment[{index}] may not be empty"));
            continue;
        }
        for problem in subdomain(step) {
            wrong(&format!("segment[{index}]: {problem}"));
        }
    }
}

fn check_port(service: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let port = &service["port"];
    if port.as_i64().is_some_and(|port| !(1..=65_535).contains(&port)) {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        errors.push(invalid(format!("{path}.port"), port, detail));
    }
}

pub(super) fn review_versions(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let versions = value.as_array().map_or(&[][..], Vec::as_slice);
    check_review_versions(versions, "must specify one of v1, v1beta1", path, errors);
}

/// Checks the versions of reviews that a webhook understands; `missing` says what is wrong if there
/// are none.
///
/// Upstream: k8s.io/kubernetes/pkg/apis/admissionregistration/validation/validation.go: validateAdmissionReviewVersions
pub fn check_review_versions(
    versions: &[Value],
    missing: &str,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    if versions.is_empty() {
        return errors.push(required(path, missing));
    }
    let mut seen = BTreeSet::new();
    for (index, version) in versions.iter().enumerate() {
        let at = format!("{path}[{index}]");
        let name = version.as_str().unwrap_or_default();
        if !seen.insert(name) {
            errors.push(invalid(at, version, "duplicate version"));
            continue;
        }
        problems(&at, version, label_1035(name), errors);
    }
    if !versions.iter().any(|version| version == "v1" || version == "v1beta1") {
        let detail = "must include at least one of v1, v1beta1";
        errors.push(invalid(path, &versions.to_vec().into(), detail));
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/admissionregistration/validation/validation.go: validateMatchCondition
pub(super) fn condition(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if text(value, "expression").trim().is_empty() {
        errors.push(required(format!("{path}.expression"), ""));
    }
    let name = text(value, "name");
    let at = format!("{path}.name");
    if name.is_empty() {
        errors.push(required(at, ""));
    } else {
        problems(&at, &name.into(), qualified(name), errors);
    }
}

/// Upstream: k8s.io/kube-aggregator/pkg/apis/apiregistration/validation/validation.go: ValidateAPIService
pub(super) fn api_service(object: &Value, _path: &str, errors: &mut Vec<FieldError>) {
    let spec = &object["spec"];
    let (group, version) = (text(spec, "group"), text(spec, "version"));
    let wanted = format!("{version}.{group}");
    if text(&object["metadata"], "name") != wanted {
        let detail = format!("must be `spec.version+\".\"+spec.group`: {wanted:?}");
        errors.push(invalid("metadata.name", &object["metadata"]["name"], &detail));
    }
    if !group.is_empty() {
        problems("spec.group", &group.into(), subdomain(group), errors);
    }
    problems("spec.version", &version.into(), label_1035(version), errors);
    for (field, most) in [("groupPriorityMinimum", 20_000), ("versionPriority", 1_000)] {
        let priority = spec[field].as_i64().unwrap_or_default();
        if !(1..=most).contains(&priority) {
            let detail = format!("must be positive and less than {most}");
            errors.push(invalid(format!("spec.{field}"), &json!(priority), &detail));
        }
    }
    let service = &spec["service"];
    if service.is_null() {
        if spec["insecureSkipTLSVerify"] == true {
            let detail = "local APIServices may not have insecureSkipTLSVerify";
            errors.push(invalid("spec.insecureSkipTLSVerify", &json!(true), detail));
        }
        return;
    }
    for name in ["namespace", "name"] {
        if text(service, name).is_empty() {
            errors.push(required(format!("spec.service.{name}"), ""));
        }
    }
    check_port(service, "spec.service", errors);
}
