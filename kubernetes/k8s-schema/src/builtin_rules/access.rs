//! RBAC, and certificate signing requests.
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::check::{invalid, is_empty, items, not_supported, problems, required, selector, text};
use crate::FieldError;
use crate::names::{path_segment, subdomain};

const GROUP: &str = "rbac.authorization.k8s.io";

/// Upstream: k8s.io/kubernetes/pkg/apis/certificates/helpers.go: ParseCSR
pub(super) fn certificate_request(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let text = value.as_str().unwrap_or_default();
    let bytes = STANDARD.decode(text).unwrap_or_default();
    let begin = b"-----BEGIN CERTIFICATE REQUEST-----";
    if !bytes.windows(begin.len()).any(|window| window == begin) {
        errors.push(invalid(path, value, "PEM block type must be CERTIFICATE REQUEST"));
    }
}

pub(super) fn namespaced_rule(rule: &Value, path: &str, errors: &mut Vec<FieldError>) {
    policy_rule(rule, true, path, errors);
}

pub(super) fn cluster_rule(rule: &Value, path: &str, errors: &mut Vec<FieldError>) {
    policy_rule(rule, false, path, errors);
}

fn policy_rule(rule: &Value, is_namespaced: bool, path: &str, errors: &mut Vec<FieldError>) {
    resource_rule(rule, is_namespaced, path, errors);
    // `verbs` is checked by declarative validation, whose errors kube-apiserver reports last.
    if items(rule, "verbs").is_empty() {
        errors.push(required(format!("{path}.verbs"), ""));
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/rbac/validation/validation.go: ValidatePolicyRule
fn resource_rule(rule: &Value, is_namespaced: bool, path: &str, errors: &mut Vec<FieldError>) {
    let is_missing = |field: &str| items(rule, field).is_empty();
    let urls = &rule["nonResourceURLs"];
    if !is_empty(urls) {
        let at = format!("{path}.nonResourceURLs");
        if is_namespaced {
            let detail = "namespaced rules cannot apply to non-resource URLs";
            errors.push(invalid(&at, urls, detail));
        }
        let has_resources =
            ["apiGroups", "resources", "resourceNames"].iter().any(|field| !is_missing(field));
        if has_resources {
            let detail = "rules cannot apply to both regular resources and non-resource URLs";
            errors.push(invalid(&at, urls, detail));
        }
        return;
    }
    if is_missing("apiGroups") {
        let detail = "resource rules must supply at least one api group";
        errors.push(required(format!("{path}.apiGroups"), detail));
    }
    if is_missing("resources") {
        let detail = "resource rules must supply at least one resource";
        errors.push(required(format!("{path}.resources"), detail));
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/rbac/validation/validation.go: ValidateClusterRole
pub(super) fn aggregation(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if value.is_null() {
        return;
    }
    let at = format!("{path}.clusterRoleSelectors");
    let selectors = items(value, "clusterRoleSelectors");
    if selectors.is_empty() {
        let detail = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        errors.push(required(&at, detail));
    }
    for (index, one) in selectors.iter().enumerate() {
        let at = format!("{at}[{index}]");
        let before = errors.len();
        selector(one, &at, errors);
        if errors.len() > before {
            errors.push(invalid(at, &Value::Null, "invalid label selector."));
        }
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/rbac/validation/validation.go: ValidateRoleBinding
pub(super) fn role_name(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let name = text(value, "name");
    let at = format!("{path}.name");
    if name.is_empty() {
        errors.push(required(at, ""));
    } else {
        problems(&at, &name.into(), path_segment(name), errors);
    }
}

pub(super) fn subject(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    check_subject(value, true, path, errors);
}

pub(super) fn cluster_subject(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    check_subject(value, false, path, errors);
}

/// Upstream: k8s.io/kubernetes/pkg/apis/rbac/validation/validation.go: ValidateRoleBindingSubject
fn check_subject(value: &Value, is_namespaced: bool, path: &str, errors: &mut Vec<FieldError>) {
    let name = text(value, "name");
    if name.is_empty() {
        errors.push(required(format!("{path}.name"), ""));
    }
    let group = text(value, "apiGroup");
    let mut check_group = |wanted: &str| {
        if group != wanted {
            errors.push(not_supported(&format!("{path}.apiGroup"), &group.into(), &[wanted]));
        }
    };
    match text(value, "kind") {
        "ServiceAccount" => {
            if !name.is_empty() {
                problems(&format!("{path}.name"), &name.into(), subdomain(name), errors);
            }
            if !group.is_empty() {
                errors.push(not_supported(&format!("{path}.apiGroup"), &group.into(), &[""]));
            }
            if !is_namespaced && text(value, "namespace").is_empty() {
                errors.push(required(format!("{path}.namespace"), ""));
            }
        }
        "User" | "Group" => check_group(GROUP),
        other => {
            let kinds = ["ServiceAccount", "User", "Group"];
            errors.push(not_supported(&format!("{path}.kind"), &other.into(), &kinds));
        }
    }
}
