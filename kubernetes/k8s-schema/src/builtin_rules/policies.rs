//! Mutating admission policies and their bindings.
use std::collections::BTreeSet;

use serde_json::Value;

use super::check::{duplicate, forbidden, invalid, items, not_supported, problems, required, text};
use super::registration;
use crate::FieldError;
use crate::names::{label_1035, path_segment, subdomain};

/// Upstream: k8s.io/kubernetes/pkg/apis/admissionregistration/validation/validation.go: validateParamKind
pub(super) fn param_kind(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let (at, given) = (format!("{path}.apiVersion"), text(value, "apiVersion"));
    match given.split('/').collect::<Vec<_>>().as_slice() {
        [""] | ["", ""] => errors.push(required(at, "")),
        [version] => problems(&at, &(*version).into(), label_1035(version), errors),
        [group, version] => {
            if !group.is_empty() {
                joined(&at, group, &subdomain(group), "", errors);
            }
            if version.is_empty() {
                errors.push(invalid(at, &given.into(), "version must be specified"));
            } else {
                joined(&at, version, &label_1035(version), "", errors);
            }
        }
        _ => {
            let detail = format!("unexpected GroupVersion string: {given}");
            errors.push(invalid(at, &given.into(), &detail));
        }
    }
    let (at, kind) = (format!("{path}.kind"), text(value, "kind"));
    if kind.is_empty() {
        return errors.push(required(at, ""));
    }
    let prefix = "may have mixed case, but should otherwise match: ";
    joined(&at, kind, &label_1035(&kind.to_lowercase()), prefix, errors);
}

/// One error for all problems of a text.
fn joined(
    path: &str,
    value: &str,
    problems: &[String],
    prefix: &str,
    errors: &mut Vec<FieldError>,
) {
    if !problems.is_empty() {
        errors.push(invalid(path, &value.into(), &format!("{prefix}{}", problems.join(","))));
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/admissionregistration/validation/validation.go: validateNamedRuleWithOperations
pub(super) fn resource_names(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let mut seen = BTreeSet::new();
    for (index, name) in value.as_array().into_iter().flatten().enumerate() {
        let (at, shown) = (format!("{path}[{index}]"), name.as_str().unwrap_or_default());
        problems(&at, name, path_segment(shown), errors);
        if !seen.insert(shown) {
            errors.push(duplicate(at, name));
        }
    }
}

/// Checks that a policy has rules, and that they are of writes that have an object.
///
/// Upstream: k8s.io/kubernetes/pkg/apis/admissionregistration/validation/validation.go: validateMutatingAdmissionPolicySpec
pub(super) fn constraints(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if items(value, "resourceRules").is_empty() {
        errors.push(required(format!("{path}.resourceRules"), ""));
    }
    mutable_operations(value, path, errors);
}

/// Upstream: k8s.io/kubernetes/pkg/apis/admissionregistration/validation/validation.go: supportedMutatingOperations
pub(super) fn mutable_operations(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    const KNOWN: [&str; 4] = ["*", "CONNECT", "CREATE", "UPDATE"];
    let at = format!("{path}.resourceRules.operations");
    for rule in items(value, "resourceRules") {
        for operation in items(rule, "operations") {
            if !KNOWN.contains(&operation.as_str().unwrap_or_default()) {
                errors.push(not_supported(&at, operation, &KNOWN));
            }
        }
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/admissionregistration/validation/validation.go: validateMatchConditions
pub(super) fn conditions(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let mut seen = BTreeSet::new();
    for (index, condition) in value.as_array().into_iter().flatten().enumerate() {
        let at = format!("{path}[{index}]");
        registration::condition(condition, &at, errors);
        let name = text(condition, "name");
        if !name.is_empty() && !seen.insert(name) {
            errors.push(duplicate(format!("{at}.name"), &name.into()));
        }
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/admissionregistration/validation/validation.go: validateVariable
pub(super) fn variable(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let (at, name) = (format!("{path}.name"), text(value, "name"));
    let mut characters = name.chars();
    let starts = characters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    if name.trim().is_empty() {
        errors.push(required(at, "name is not specified"));
    } else if !starts || !characters.all(|c| c.is_ascii_alphanumeric() || c == '_') {
        errors.push(invalid(at, &name.into(), "must be a valid CEL identifier"));
    }
    if text(value, "expression").trim().is_empty() {
        errors.push(required(format!("{path}.expression"), "expression is not specified"));
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/admissionregistration/validation/validation.go: validateMutation
pub(super) fn mutations(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    const FIELDS: [(&str, &str); 2] =
        [("ApplyConfiguration", "applyConfiguration"), ("JSONPatch", "jsonPatch")];
    let given = value.as_array().map_or(&[][..], Vec::as_slice);
    if given.is_empty() {
        errors.push(required(path, "mutations must contain at least one item"));
    }
    for (index, mutation) in given.iter().enumerate() {
        let at = format!("{path}[{index}]");
        let patch_type = text(mutation, "patchType");
        if patch_type.is_empty() {
            errors.push(required(format!("{at}.patchType"), ""));
            continue;
        }
        if !FIELDS.iter().any(|(name, _)| *name == patch_type) {
            let known = FIELDS.map(|(name, _)| name);
            errors.push(not_supported(&format!("{at}.patchType"), &patch_type.into(), &known));
            continue;
        }
        for (name, field) in FIELDS {
            let (value, at) = (&mutation[field], format!("{at}.{field}"));
            if name != patch_type && !value.is_null() {
                let detail = format!("must not be specified when patchType is {patch_type}");
                errors.push(invalid(at, &format!("{{{field}}}").into(), &detail));
            } else if name == patch_type && value.is_null() {
                let detail = format!("must be specified when patchType is {patch_type}");
                errors.push(required(at, &detail));
            } else if name == patch_type && text(value, "expression").trim().is_empty() {
                errors.push(required(format!("{at}.expression"), ""));
            }
        }
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/admissionregistration/validation/validation.go: validateParamRef
pub(super) fn param_ref(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    const EXCLUSIVE: &str = "name and selector are mutually exclusive";
    const KNOWN: [&str; 2] = ["Deny", "Allow"];
    let (name, has_selector) = (text(value, "name"), value["selector"].is_object());
    if !name.is_empty() {
        problems(&format!("{path}.name"), &name.into(), path_segment(name), errors);
    }
    if !name.is_empty() && has_selector {
        errors.push(forbidden(format!("{path}.name"), EXCLUSIVE));
        errors.push(forbidden(format!("{path}.selector"), EXCLUSIVE));
    }
    if name.is_empty() && !has_selector {
        errors.push(required(path, "one of name or selector must be specified"));
    }
    let (at, action) =
        (format!("{path}.parameterNotFoundAction"), text(value, "parameterNotFoundAction"));
    if action.is_empty() {
        errors.push(required(at, ""));
    } else if !KNOWN.contains(&action) {
        errors.push(not_supported(&at, &action.into(), &KNOWN));
    }
}
