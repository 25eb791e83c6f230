//! Updates: immutable fields, and what else an update may not change.
use serde_json::{Value, json};

use super::check::{forbidden, invalid, is_empty, items};
use super::workloads::shown_selector;
use crate::{FieldError, FieldErrorKind};

const IMMUTABLE: &str = "field is immutable";

/// Checks that an update changes none of the immutable fields, given as dotted paths.
pub(super) fn check_immutable(
    paths: &[&str],
    kind: &str,
    live: &Value,
    object: &Value,
    errors: &mut Vec<FieldError>,
) {
    for path in paths {
        let at = |object: &Value| {
            path.split('.').fold(object.clone(), |value, field| value[field].clone())
        };
        let (before, after) = (at(live), at(object));
        let both_empty = is_empty(&before) && is_empty(&after);
        if before == after || both_empty {
            continue;
        }
        let mut error = invalid(*path, &after, IMMUTABLE);
        if kind == "StorageClass" {
            error = error.with_shown("null");
        } else if path.ends_with(".selector") {
            error = error.with_shown(shown_selector(&after));
        }
        errors.push(error);
    }
}

/// What else an update of a kind may not change.
pub(super) fn check(
    group: &str,
    kind: &str,
    live: &Value,
    object: &Value,
    errors: &mut Vec<FieldError>,
) {
    match (group, kind) {
        ("", "Pod") => pod(live, object, errors),
        ("", "PersistentVolumeClaim") => claim(live, object, errors),
        ("apps", "StatefulSet") => stateful_set(live, object, errors),
        ("scheduling.k8s.io", "PriorityClass") if live["value"] != object["value"] => {
            errors.push(forbidden("value", "may not be changed in an update."));
        }
        ("", "ConfigMap") => frozen(live, object, &["data", "binaryData"], errors),
        ("", "Secret") => {
            frozen(live, object, &["data"], errors);
            if live["type"] != object["type"] {
                errors.push(invalid("type", &object["type"], IMMUTABLE));
            }
        }
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => {
            role_reference(live, object, errors);
        }
        _ => {}
    }
}

/// `immutable: true` cannot be taken back, and nothing under it changes.
///
/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: ValidateConfigMapUpdate
/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: ValidateSecretUpdate
fn frozen(live: &Value, object: &Value, fields: &[&str], errors: &mut Vec<FieldError>) {
    const DETAIL: &str = "field is immutable when `immutable` is set";
    if live["immutable"] != true {
        return;
    }
    if object["immutable"] != true {
        errors.push(forbidden("immutable", DETAIL));
    }
    for field in fields {
        if live[*field] != object[*field] {
            errors.push(forbidden(*field, DETAIL));
        }
    }
}

/// The role reference of a binding is immutable.
///
/// Upstream: k8s.io/kubernetes/pkg/apis/rbac/validation/validation.go: ValidateRoleBindingUpdate
fn role_reference(live: &Value, object: &Value, errors: &mut Vec<FieldError>) {
    let (before, after) = (&live["roleRef"], &object["roleRef"]);
    if before != after {
        // The internal type of the reference has no JSON names, hence the capitals.
        let shown = json!({
            "APIGroup": after["apiGroup"],
            "Kind": after["kind"],
            "Name": after["name"],
        });
        errors.push(invalid("roleRef", &shown, IMMUTABLE));
    }
}

/// The spec of a pod is immutable, except for images, deadline and added tolerations.
///
/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: ValidatePodUpdate
fn pod(live: &Value, object: &Value, errors: &mut Vec<FieldError>) {
    const DEADLINE: &str = "spec.activeDeadlineSeconds";
    let deadline = |pod: &Value| pod["spec"]["activeDeadlineSeconds"].as_i64();
    match (deadline(live), deadline(object)) {
        (Some(before), Some(after)) if after > before => {
            let detail = "must be less than or equal to previous value";
            errors.push(invalid(DEADLINE, &after.into(), detail));
        }
        (Some(_), None) => {
            let detail = "must not update from a positive integer to nil value";
            errors.push(invalid(DEADLINE, &Value::Null, detail));
        }
        _ => {}
    }
    let additions_only = items(&live["spec"], "tolerations")
        .iter()
        .all(|old| items(&object["spec"], "tolerations").contains(old));
    if !additions_only {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        errors.push(forbidden("spec.tolerations", detail));
    }
    if without_mutable(live, live) != without_mutable(live, object) {
        let detail = "pod updates may not change fields other than `spec.containers[*].image`,\
                      `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
                      `spec.tolerations` (only additions to existing tolerations),\
                      `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was \
                      previously negative)";
        errors.push(forbidden("spec", detail));
    }
}

fn without_mutable(live: &Value, pod: &Value) -> Value {
    let mut spec = pod["spec"].clone();
    for list in ["containers", "initContainers"] {
        for container in spec[list].as_array_mut().into_iter().flatten() {
            container["image"] = Value::Null;
        }
        if is_empty(&spec[list]) {
            spec[list] = Value::Null;
        }
    }
    for field in ["activeDeadlineSeconds", "tolerations", "schedulingGates"] {
        spec[field] = Value::Null;
    }
    // A pod that is not scheduled may get its node.
    if is_empty(&live["spec"]["nodeName"]) {
        spec["nodeName"] = Value::Null;
    }
    if live["spec"]["terminationGracePeriodSeconds"].as_i64().is_some_and(|grace| grace < 0) {
        spec["terminationGracePeriodSeconds"] = json!(1);
    }
    spec
}

/// The spec of a claim is immutable, except for the size of a bound claim and fields that were empty.
///
/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: ValidatePersistentVolumeClaimUpdate
fn claim(live: &Value, object: &Value, errors: &mut Vec<FieldError>) {
    let is_bound = live["status"]["phase"] == "Bound";
    let fixed = |claim: &Value| {
        let mut spec = claim["spec"].clone();
        for field in ["volumeName", "storageClassName"] {
            if is_empty(&live["spec"][field]) {
                spec[field] = Value::Null;
            }
        }
        if is_bound {
            spec["resources"]["requests"]["storage"] = Value::Null;
            spec["volumeAttributesClassName"] = Value::Null;
        }
        spec
    };
    if fixed(live) != fixed(object) {
        let detail = "spec is immutable after creation except resources.requests and \
                      volumeAttributesClassName for bound claims";
        errors.push(FieldError::new("spec", FieldErrorKind::Forbidden, detail));
    }
}

/// Checks that an update changes no field of a StatefulSet other than these; immutable fields among
/// them are reported one by one.
///
/// Upstream: k8s.io/kubernetes/pkg/apis/apps/validation/validation.go: ValidateStatefulSetUpdate
fn stateful_set(live: &Value, object: &Value, errors: &mut Vec<FieldError>) {
    const KNOWN: [&str; 11] = [
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
        "serviceName",
        "podManagementPolicy",
        "selector",
        "volumeClaimTemplates",
    ];
    let fixed = |object: &Value| {
        let mut spec = object["spec"].clone();
        if let Some(fields) = spec.as_object_mut() {
            fields.retain(|name, _| !KNOWN.contains(&name.as_str()));
        }
        spec
    };
    if fixed(live) != fixed(object) {
        let detail = "updates to statefulset spec for fields other than 'replicas', 'ordinals', \
                      'template', 'updateStrategy', 'revisionHistoryLimit', \
                      'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
        errors.push(forbidden("spec", detail));
    }
}
