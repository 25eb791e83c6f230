//! Volumes of a pod, and where containers mount them.
use std::collections::BTreeSet;

use serde_json::Value;

use super::check::{
    below, duplicate, error, forbidden, invalid, is_empty, items, not_supported, problems,
    required, text,
};
use super::field_reference::field_reference;
use super::quantities::amount;
use crate::names::label;
use crate::{FieldError, FieldErrorKind};

const HOST_PATH_TYPES: [&str; 8] = [
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
];

/// Sources in the order in which kube-apiserver checks them: of several, all but the first are
/// reported.
const SOURCES: [&str; 13] = [
    "emptyDir",
    "hostPath",
    "gitRepo",
    "secret",
    "nfs",
    "iscsi",
    "persistentVolumeClaim",
    "downwardAPI",
    "configMap",
    "projected",
    "csi",
    "ephemeral",
    "image",
];

/// Checks the volumes of a pod.
///
/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: ValidateVolumes
pub(super) fn check(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let mut names = BTreeSet::new();
    for (index, volume) in value.as_array().into_iter().flatten().enumerate() {
        let at = format!("{path}[{index}]");
        let before = errors.len();
        source(volume, &at, errors);
        let name = text(volume, "name");
        let at = format!("{at}.name");
        if name.is_empty() {
            errors.push(required(at, ""));
            continue;
        }
        problems(&at, &name.into(), label(name), errors);
        if !names.insert(name) && errors.len() == before {
            errors.push(duplicate(at, &name.into()));
        }
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: validateVolumeSource
fn source(volume: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let mut count = 0;
    for kind in SOURCES {
        let value = &volume[kind];
        if value.is_null() {
            continue;
        }
        let at = format!("{path}.{kind}");
        if count > 0 {
            errors.push(forbidden(at, "may not specify more than 1 volume type"));
            continue;
        }
        count += 1;
        match kind {
            "emptyDir" => {
                let size = value["sizeLimit"].as_str().and_then(amount);
                if size.is_some_and(|size| size.is_negative()) {
                    let detail = "SizeLimit field must be a valid resource quantity";
                    errors.push(forbidden(format!("{at}.sizeLimit"), detail));
                }
            }
            "hostPath" => host_path(value, &at, errors),
            "secret" => named_source(value, "secretName", &at, errors),
            "configMap" => named_source(value, "name", &at, errors),
            "persistentVolumeClaim" if text(value, "claimName").is_empty() => {
                errors.push(required(format!("{at}.claimName"), ""));
            }
            "downwardAPI" => downward(value, &at, errors),
            "projected" => projected(value, &at, errors),
            _ => {}
        }
    }
}

/// Checks a path on the node.
///
/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: validateHostPathVolumeSource
pub(super) fn host_path(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let given = text(value, "path");
    if given.is_empty() {
        errors.push(required(format!("{path}.path"), ""));
        return;
    }
    no_steps_up(given, &format!("{path}.path"), errors);
    let kind = value["type"].as_str().unwrap_or_default();
    if !HOST_PATH_TYPES.contains(&kind) {
        errors.push(not_supported(&format!("{path}.type"), &value["type"], &HOST_PATH_TYPES));
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: validatePathNoBacksteps
fn no_steps_up(given: &str, path: &str, errors: &mut Vec<FieldError>) {
    if given.split('/').any(|step| step == "..") {
        errors.push(invalid(path, &given.into(), "must not contain '..'"));
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: validateLocalDescendingPath
fn relative(given: &str, path: &str, errors: &mut Vec<FieldError>) {
    if given.starts_with('/') {
        errors.push(invalid(path, &given.into(), "must be a relative path"));
    }
    no_steps_up(given, path, errors);
}

fn mode(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if value.as_i64().is_some_and(|mode| !(0..=0o777).contains(&mode)) {
        let detail = "must be a number between 0 and 0777 (octal), both inclusive";
        errors.push(invalid(path, value, detail));
    }
}

fn named_source(value: &Value, name: &str, path: &str, errors: &mut Vec<FieldError>) {
    if text(value, name).is_empty() {
        errors.push(required(format!("{path}.{name}"), ""));
    }
    mode(&value["defaultMode"], &format!("{path}.defaultMode"), errors);
    keys(value, path, errors);
}

/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: validateKeyToPath
fn keys(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for (index, item) in items(value, "items").iter().enumerate() {
        let at = format!("{path}.items[{index}]");
        for field in ["key", "path"] {
            if text(item, field).is_empty() {
                errors.push(required(format!("{at}.{field}"), ""));
            }
        }
        relative(text(item, "path"), &format!("{at}.path"), errors);
        mode(&item["mode"], &format!("{at}.mode"), errors);
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: validateDownwardAPIVolumeSource
fn downward(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    mode(&value["defaultMode"], &format!("{path}.defaultMode"), errors);
    for item in items(value, "items") {
        // kube-apiserver reports these without the index of the item.
        if text(item, "path").is_empty() {
            errors.push(required(format!("{path}.path"), ""));
        }
        relative(text(item, "path"), &format!("{path}.path"), errors);
        field_reference(&item["fieldRef"], &format!("{path}.fieldRef"), errors);
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: validateProjectionSources
fn projected(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    mode(&value["defaultMode"], &format!("{path}.defaultMode"), errors);
    for (index, source) in items(value, "sources").iter().enumerate() {
        for kind in ["secret", "configMap"] {
            let at = format!("{path}.sources[{index}].{kind}");
            if source[kind].is_null() {
                continue;
            }
            if text(&source[kind], "name").is_empty() {
                errors.push(required(format!("{at}.name"), ""));
            }
            keys(&source[kind], &at, errors);
        }
    }
}

/// Checks where a container mounts volumes.
///
/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: ValidateVolumeMounts
pub(super) fn mounts(
    container: &Value,
    path: &str,
    volume_names: &BTreeSet<&str>,
    errors: &mut Vec<FieldError>,
) {
    let mut places = BTreeSet::new();
    let path = below(path, "volumeMounts");
    for (index, mount) in items(container, "volumeMounts").iter().enumerate() {
        let at = format!("{path}[{index}]");
        let (name, place) = (text(mount, "name"), text(mount, "mountPath"));
        if name.is_empty() {
            errors.push(required(format!("{at}.name"), ""));
        }
        if !volume_names.contains(name) {
            let missing = error(format!("{at}.name"), FieldErrorKind::NotFound, "");
            errors.push(missing.with_value(name.into()));
        }
        if place.is_empty() {
            errors.push(required(format!("{at}.mountPath"), ""));
        }
        if !places.insert(place) {
            errors.push(invalid(format!("{at}.mountPath"), &place.into(), "must be unique"));
        }
        if !is_empty(&mount["subPath"]) {
            // kube-apiserver reports this without the index of the mount.
            relative(text(mount, "subPath"), &format!("{path}.subPath"), errors);
        }
    }
}
