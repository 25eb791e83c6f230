//! Volumes, claims and storage classes.
use serde_json::{Value, json};

use super::check::{forbidden, invalid, is_empty, items, not_supported, problems, required};
use super::quantities::amount;
use super::volumes::host_path;
use crate::FieldError;
use crate::names::qualified;

const ACCESS_MODES: [&str; 4] =
    ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
const POSITIVE: &str = "must be greater than zero";

/// Upstream: k8s.io/kubernetes/pkg/apis/storage/validation/validation.go: validateVolumeLifecycleModes
pub(super) fn lifecycle_modes(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    const KNOWN: [&str; 2] = ["Ephemeral", "Persistent"];
    for mode in value.as_array().into_iter().flatten() {
        if !KNOWN.contains(&mode.as_str().unwrap_or_default()) {
            errors.push(not_supported(path, mode, &KNOWN));
        }
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: ValidatePersistentVolumeSpec
pub(super) fn modes(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let given = items(spec, "accessModes");
    let at = format!("{path}.accessModes");
    for mode in given {
        if !ACCESS_MODES.contains(&mode.as_str().unwrap_or_default()) {
            errors.push(not_supported(&at, mode, &ACCESS_MODES));
        }
    }
    if given.len() > 1 && given.iter().any(|mode| mode == "ReadWriteOncePod") {
        let detail = "may not use ReadWriteOncePod with other access modes";
        errors.push(forbidden(at, detail));
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: ValidatePersistentVolumeClaimSpec
pub(super) fn claim_modes(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if items(spec, "accessModes").is_empty() {
        let at = format!("{path}.accessModes");
        errors.push(required(at, "at least 1 access mode is required"));
    }
    modes(spec, path, errors);
}

/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: ValidatePersistentVolumeClaimSpec
pub(super) fn claim_size(resources: &Value, path: &str, errors: &mut Vec<FieldError>) {
    size(&resources["requests"]["storage"], &format!("{path}[storage]"), errors);
}

fn size(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    match value.as_str().and_then(amount) {
        None => errors.push(required(path, "")),
        Some(size) if size.is_negative() || size.is_zero() => {
            errors.push(invalid(path, value, POSITIVE));
        }
        Some(_) => {}
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: ValidatePersistentVolumeSpec
pub(super) fn capacity(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if is_empty(value) {
        errors.push(required(path, ""));
    }
    let known = value.as_object().is_some_and(|map| map.len() == 1 && map.contains_key("storage"));
    if !known {
        errors.push(not_supported(path, value, &["storage"]));
    }
    for (name, size) in value.as_object().into_iter().flatten() {
        let amount = size.as_str().and_then(amount);
        if amount.is_some_and(|amount| amount.is_negative() || amount.is_zero()) {
            errors.push(invalid(format!("{path}[{name}]"), size, POSITIVE));
        }
    }
}

/// Sources of a persistent volume, in the order in which kube-apiserver checks them: of several, all
/// but the first are reported.
pub(super) const SOURCES: [&str; 22] = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "flocker",
    "nfs",
    "rbd",
    "quobyte",
    "cephfs",
    "iscsi",
    "cinder",
    "fc",
    "flexVolume",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "scaleIO",
    "local",
    "storageos",
    "csi",
];

/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: ValidatePersistentVolumeSpec
pub(super) fn source(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let mut count = 0;
    for kind in SOURCES {
        if spec[kind].is_null() {
            continue;
        }
        count += 1;
        let at = format!("{path}.{kind}");
        if count > 1 {
            errors.push(forbidden(at, "may not specify more than 1 volume type"));
        } else if kind == "hostPath" {
            host_path(&spec[kind], &at, errors);
        }
    }
    if count == 0 {
        errors.push(required(path, "must specify a volume type"));
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/storage/validation/validation.go: validateProvisioner
pub(super) fn provisioner(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let name = value.as_str().unwrap_or_default();
    if name.is_empty() {
        errors.push(required(path, ""));
    } else {
        let lower = name.to_lowercase();
        problems(path, &json!(lower), qualified(&lower), errors);
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/storage/validation/validation.go: validateParameters
pub(super) fn parameters(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for name in value.as_object().into_iter().flatten().map(|(name, _)| name) {
        if name.is_empty() {
            errors.push(invalid(path, &name.as_str().into(), "field can not be empty."));
        }
    }
}
