//! Updates: immutable fields, and what else an update may not change.
use serde_json::{Value, json};

use super::check::{forbidden, invalid, is_empty, items};
use super::quantities::amount;
use super::storage::SOURCES;
use super::workloads::shown_selector;
use crate::{FieldError, FieldErrorKind};

const IMMUTABLE: &str = "field is immutable";
/// The name by which kube-apiserver refuses a change of `spec.attachRequired` of a CSIDriver.
pub(super) const ATTACH_REQUIRED: &str = "spec.attachedRequired";

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
        ("", "PersistentVolume") => volume(live, object, errors),
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
        ("storage.k8s.io", "CSIDriver") => csi_driver(live, object, errors),
        ("storage.k8s.io", "VolumeAttributesClass") => {
            volume_attributes_class(live, object, errors);
        }
        ("networking.k8s.io", "ServiceCIDR") => service_cidr(live, object, errors),
        _ => check_immutable(immutable_of(group, kind), kind, live, object, errors),
    }
}

/// The immutable fields of kinds of which nothing else is checked.
///
/// Upstream: k8s.io/kubernetes/pkg/apis/storage/validation/validation.go: ValidateVolumeAttachmentUpdate
/// Upstream: k8s.io/kubernetes/pkg/apis/storage/validation/validation.go: ValidateCSIStorageCapacityUpdate
/// Upstream: k8s.io/kubernetes/pkg/apis/networking/validation/validation.go: ValidateIPAddressUpdate
/// Upstream: k8s.io/kubernetes/pkg/apis/resource/validation/validation.go: ValidateResourceClaimUpdate
/// Upstream: k8s.io/kubernetes/pkg/apis/resource/validation/validation.go: ValidateResourceClaimTemplateUpdate
fn immutable_of(group: &str, kind: &str) -> &'static [&'static str] {
    match (group, kind) {
        ("storage.k8s.io", "VolumeAttachment")
        | ("resource.k8s.io", "ResourceClaim" | "ResourceClaimTemplate") => &["spec"],
        ("storage.k8s.io", "CSIStorageCapacity") => &["nodeTopology", "storageClassName"],
        ("networking.k8s.io", "IPAddress") => &["spec.parentRef"],
        _ => &[],
    }
}

/// Returns the fields of a Service in which two manifests differ and that no update changes. What an API server
/// allocated is in neither: an address that is not asked for stays as it is.
///
/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: validateUpgradeDowngradeClusterIPs
/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: validateUpgradeDowngradeIPFamilies
/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: validateLoadBalancerClassField
pub(super) fn service(before: &Value, after: &Value) -> Vec<&'static str> {
    let (before, after) = (&before["spec"], &after["spec"]);
    let both = |kind: &str| before["type"] == kind && after["type"] == kind;
    let is_external = |spec: &Value| spec["type"] == "ExternalName";
    let mut fields = Vec::new();
    if is_external(before) || is_external(after) {
        return fields;
    }
    let (address, next) = (cluster_address(before), cluster_address(after));
    let is_changed = match (address, next) {
        // A headless Service stays headless, which is refused of other types.
        (Some("None"), None) => !matches!(after["type"].as_str(), None | Some("ClusterIP")),
        (_, None) => false,
        (None, Some(next)) => next == "None",
        (Some(address), Some(next)) => address != next,
    };
    if is_changed {
        fields.push("spec.clusterIP");
    }
    if both("LoadBalancer") && before["loadBalancerClass"] != after["loadBalancerClass"] {
        fields.push("spec.loadBalancerClass");
    }
    let families = (before["ipFamilies"][0].as_str(), after["ipFamilies"][0].as_str());
    let is_headless = [address, next].contains(&Some("None"));
    if let (Some(family), Some(next)) = families
        && family != next
        && !is_headless
    {
        fields.push("spec.ipFamilies");
    }
    fields
}

/// Returns the address that the spec of a Service asks for; `None` if it asks for none.
fn cluster_address(spec: &Value) -> Option<&str> {
    let asked = spec["clusterIP"].as_str().filter(|it| !it.is_empty());
    asked.or_else(|| spec["clusterIPs"][0].as_str())
}

/// Upstream: k8s.io/kubernetes/pkg/apis/storage/validation/validation.go: ValidateCSIDriverUpdate
fn csi_driver(live: &Value, object: &Value, errors: &mut Vec<FieldError>) {
    let (before, after) = (&live["spec"]["attachRequired"], &object["spec"]["attachRequired"]);
    if before != after {
        errors.push(invalid(ATTACH_REQUIRED, after, IMMUTABLE));
    }
    check_immutable(&["spec.volumeLifecycleModes"], "CSIDriver", live, object, errors);
}

/// Upstream: k8s.io/kubernetes/pkg/apis/storage/validation/validation.go: ValidateVolumeAttributesClassUpdate
fn volume_attributes_class(live: &Value, object: &Value, errors: &mut Vec<FieldError>) {
    for field in ["driverName", "parameters"] {
        if live[field] != object[field] {
            errors.push(forbidden(field, &format!("updates to {field} are forbidden.")));
        }
    }
}

/// Existing ranges of addresses do not change; one of the other family may be added to the only one.
///
/// Upstream: k8s.io/kubernetes/pkg/apis/networking/validation/validation.go: ValidateServiceCIDRUpdate
fn service_cidr(live: &Value, object: &Value, errors: &mut Vec<FieldError>) {
    let (before, after) = (items(&live["spec"], "cidrs"), items(&object["spec"], "cidrs"));
    if before.len() != after.len() && (before.len(), after.len()) != (1, 2) {
        errors.push(invalid("spec.cidrs", &object["spec"]["cidrs"], IMMUTABLE));
        return;
    }
    for (index, (before, after)) in before.iter().zip(after).enumerate() {
        if before != after {
            errors.push(invalid(format!("spec.cidrs[{index}]"), after, IMMUTABLE));
        }
    }
}

/// The source of a volume and its mode are immutable, and so is what nodes it is for, once that is set.
///
/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: ValidatePersistentVolumeUpdate
fn volume(live: &Value, object: &Value, errors: &mut Vec<FieldError>) {
    const EXPAND: &str = "controllerExpandSecretRef";
    let is_kept = |kind: &str| {
        let (before, mut after) = (&live["spec"][kind], object["spec"][kind].clone());
        // It may be set once.
        if before[EXPAND].is_null()
            && let Some(fields) = after.as_object_mut()
        {
            fields.remove(EXPAND);
        }
        *before == after
    };
    if !SOURCES.into_iter().all(is_kept) {
        let detail = "spec.persistentvolumesource is immutable after creation";
        errors.push(forbidden("spec.persistentvolumesource", detail));
    }
    let mode = |volume: &Value| volume["spec"]["volumeMode"].clone();
    if mode(live) != mode(object) {
        errors.push(invalid("volumeMode", &mode(object), IMMUTABLE));
    }
    let (before, after) = (&live["spec"]["nodeAffinity"], &object["spec"]["nodeAffinity"]);
    // Labels that were in beta are the same as those that took their place.
    let has_beta_labels = before.to_string().contains("beta.kubernetes.io/");
    if !before.is_null() && before != after && !has_beta_labels {
        let detail = "field is immutable, except for updating from beta label to GA";
        errors.push(invalid("nodeAffinity", after, detail));
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

/// The spec of a claim is immutable, except for the size of a bound claim, which does not get smaller than its
/// volume, and fields that were empty.
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
    let size = |value: &Value| match value {
        Value::String(text) => amount(text),
        Value::Number(number) => amount(&number.to_string()),
        _ => None,
    };
    let requested = |claim: &Value| size(&claim["spec"]["resources"]["requests"]["storage"]);
    if let (Some(before), Some(after)) = (requested(live), requested(object))
        && let Some(capacity) = size(&live["status"]["capacity"]["storage"])
        && after.nanos() < before.nanos()
        && after.nanos() <= capacity.nanos()
    {
        let detail = "field can not be less than status.capacity";
        errors.push(forbidden("spec.resources.requests.storage", detail));
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
