//! Quantities of resources: requests and limits of containers, quotas, limit ranges.
use std::collections::BTreeSet;

use serde_json::Value;

use super::check::{
    NOT_NEGATIVE, duplicate, forbidden, invalid, is_empty, items, problems, required, text,
};
use crate::FieldError;
use crate::names::qualified;
use crate::quantity::Quantity;

/// Standard resources that containers may request.
const CONTAINER_RESOURCES: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

/// Standard resources that quotas limit; the first [`COUNTED`] are counts of objects.
const QUOTA_RESOURCES: [&str; 20] = [
    "pods",
    "services",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
    "requests.cpu",
    "requests.memory",
    "requests.storage",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "cpu",
    "memory",
    "storage",
    "ephemeral-storage",
];

/// How many of [`QUOTA_RESOURCES`] are counts, whose values are whole numbers.
const COUNTED: usize = 9;

/// Reads a quantity.
pub(super) fn amount(text: &str) -> Option<Quantity> {
    Quantity::parse(text)
}

fn quantity(value: &Value) -> Option<Quantity> {
    value.as_str().and_then(Quantity::parse)
}

fn entries(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

/// Checks the requests and limits of a container.
///
/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: ValidateContainerResourceRequirements
pub(super) fn requirements(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let (limits, requests) = (&value["limits"], &value["requests"]);
    for (field, map) in [("limits", limits), ("requests", requests)] {
        for (name, given) in entries(map) {
            let at = format!("{path}.{field}[{name}]");
            container_resource(name, &at, errors);
            resource_value(name, given, &at, errors);
            let limit = quantity(&limits[name]);
            let over = quantity(given)
                .zip(limit)
                .is_some_and(|(request, limit)| request.nanos() > limit.nanos());
            if field == "requests" && over {
                let detail =
                    format!("must be less than or equal to {name} limit of {}", text(limits, name));
                errors.push(invalid(format!("{path}.requests"), given, &detail));
            }
            if field == "requests" && is_extended(name) && limits[name].is_null() {
                let detail = "Limit must be set for non overcommitable resources";
                errors.push(required(format!("{path}.limits"), detail));
            }
        }
    }
    let has = |name: &str| !limits[name].is_null() || !requests[name].is_null();
    let huge = entries(limits).chain(entries(requests)).any(|(name, _)| is_huge(name));
    if huge && !has("cpu") && !has("memory") {
        errors.push(forbidden(path, "HugePages require cpu or memory"));
    }
}

fn is_huge(name: &str) -> bool {
    name.starts_with("hugepages-")
}

/// Upstream: k8s.io/kubernetes/pkg/apis/core/helper/helpers.go: IsExtendedResourceName
fn is_extended(name: &str) -> bool {
    name.contains('/') && !name.contains("kubernetes.io/")
}

/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: ValidateContainerResourceName
fn container_resource(name: &str, path: &str, errors: &mut Vec<FieldError>) {
    let found = qualified(name);
    if !found.is_empty() {
        return problems(path, &name.into(), found, errors);
    }
    if name.contains('/') || CONTAINER_RESOURCES.contains(&name) || is_huge(name) {
        return;
    }
    if !QUOTA_RESOURCES.contains(&name) {
        let detail = "must be a standard resource type or fully qualified";
        errors.push(invalid(path, &name.into(), detail));
    }
    errors.push(invalid(path, &name.into(), "must be a standard resource for containers"));
}

/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: ValidateResourceQuantityValue
fn resource_value(name: &str, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let Some(given) = quantity(value) else { return };
    if given.is_negative() {
        errors.push(invalid(path, value, NOT_NEGATIVE));
    }
    let counted = QUOTA_RESOURCES[..COUNTED].contains(&name) || is_extended(name);
    if counted && !given.is_whole() {
        errors.push(invalid(path, value, "must be an integer"));
    }
    if let Some(page) = name.strip_prefix("hugepages-").and_then(Quantity::parse) {
        let fits = page.whole() > 0 && given.is_whole() && given.whole() % page.whole() == 0;
        if !fits {
            let detail = format!(
                "{} is not positive integer multiple of {name}",
                value.as_str().unwrap_or_default()
            );
            errors.push(invalid(path, value, &detail));
        }
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: ValidateResourceQuotaSpec
pub(super) fn quota(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for (name, given) in entries(&value["hard"]) {
        let at = format!("{path}.hard[{name}]");
        let found = qualified(name);
        let is_well_formed = found.is_empty();
        problems(&at, &name.as_str().into(), found, errors);
        let known = QUOTA_RESOURCES.contains(&name.as_str())
            || ["hugepages-", "requests.hugepages-"].iter().any(|huge| name.starts_with(huge));
        if !name.contains('/') && !known {
            if is_well_formed {
                let detail = "must be a standard resource type or fully qualified";
                errors.push(invalid(&at, &name.as_str().into(), detail));
            }
            let detail = "must be a standard resource for quota";
            errors.push(invalid(&at, &name.as_str().into(), detail));
        }
        resource_value(name, given, &at, errors);
    }
    scopes(value, &format!("{path}.scopes"), errors);
}

/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: validateResourceQuotaScopes
fn scopes(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    const KNOWN: [&str; 6] = [
        "Terminating",
        "NotTerminating",
        "BestEffort",
        "NotBestEffort",
        "PriorityClass",
        "CrossNamespacePodAffinity",
    ];
    let scopes = items(value, "scopes");
    if scopes.is_empty() {
        return;
    }
    let mut wrong = |detail: &str| errors.push(invalid(path, &value["scopes"], detail));
    let has = |name: &str| scopes.iter().any(|scope| scope == name);
    if scopes.iter().any(|scope| !KNOWN.contains(&scope.as_str().unwrap_or_default())) {
        wrong("unsupported scope");
    }
    if has("BestEffort") && entries(&value["hard"]).any(|(name, _)| name != "pods") {
        wrong("unsupported scope applied to resource");
    }
    let conflicts =
        has("BestEffort") && has("NotBestEffort") || has("Terminating") && has("NotTerminating");
    if conflicts {
        wrong("conflicting scopes");
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: ValidateLimitRange
pub(super) fn limit_range(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let mut kinds = BTreeSet::new();
    for (index, limit) in items(value, "limits").iter().enumerate() {
        let at = format!("{path}.limits[{index}]");
        let kind = text(limit, "type");
        problems(&format!("{at}.type"), &kind.into(), qualified(kind), errors);
        if !kinds.insert(kind) {
            errors.push(duplicate(format!("{at}.type"), &kind.into()));
        }
        if kind == "Pod" {
            for field in ["default", "defaultRequest"] {
                if !is_empty(&limit[field]) {
                    let detail = "may not be specified when `type` is 'Pod'";
                    errors.push(forbidden(format!("{at}.{field}"), detail));
                }
            }
        }
        let storage = |field: &str| !limit[field]["storage"].is_null();
        if kind == "PersistentVolumeClaim" && !storage("min") && !storage("max") {
            let detail = "either minimum or maximum storage value is required, but neither was \
                          provided";
            errors.push(required(format!("{at}.limits"), detail));
        }
        let names: BTreeSet<&String> = ["max", "min", "default", "defaultRequest"]
            .iter()
            .chain(&["maxLimitRequestRatio"])
            .flat_map(|field| entries(&limit[*field]))
            .map(|(name, _)| name)
            .collect();
        for name in names {
            bounds(limit, name, &at, errors);
        }
    }
}

/// Checks the order of the bounds of one resource.
fn bounds(limit: &Value, name: &str, path: &str, errors: &mut Vec<FieldError>) {
    let of = |field: &str| Some((&limit[field][name], quantity(&limit[field][name])?));
    let shown = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    // The value in the message is the one that kube-apiserver shows; it follows no rule.
    let mut in_order = |[low, high, at]: [&str; 3], low_word: &str, high_word: &str, shows_low| {
        let (Some((low_value, low)), Some((high_value, high))) = (of(low), of(high)) else {
            return;
        };
        if low.nanos() > high.nanos() {
            let detail = format!(
                "{low_word} value {} is greater than {high_word} value {}",
                shown(low_value),
                shown(high_value)
            );
            let given = if shows_low { low_value } else { high_value };
            errors.push(invalid(format!("{path}.{at}[{name}]"), given, &detail));
        }
    };
    in_order(["min", "max", "min"], "min", "max", true);
    in_order(["min", "defaultRequest", "defaultRequest"], "min", "default request", false);
    in_order(["defaultRequest", "max", "defaultRequest"], "default request", "max", true);
    let words = ("default request", "default limit");
    in_order(["defaultRequest", "default", "defaultRequest"], words.0, words.1, true);
    in_order(["min", "default", "default"], "min", "default", true);
    in_order(["default", "max", "default"], "default", "max", false);
    if let Some((value, ratio)) = of("maxLimitRequestRatio")
        && ratio.nanos() < 1_000_000_000
    {
        let detail = format!("ratio {} is less than 1", shown(value));
        errors.push(invalid(format!("{path}.maxLimitRequestRatio[{name}]"), value, &detail));
    }
}
