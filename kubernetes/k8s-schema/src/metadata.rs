//! What `metadata` may hold.
//!
//! Upstream: k8s.io/apimachinery/pkg/api/validation/objectmeta.go: ValidateObjectMetaAccessor
//! Upstream: k8s.io/apimachinery/pkg/api/validation/objectmeta.go: ValidateObjectMetaAccessorUpdate
use k8s_cel::go::quote;
use serde_json::{Map, Value};

use crate::error::go;
use crate::{FieldError, FieldErrorKind, names};

/// Total size that annotations may have, in bytes.
const ANNOTATIONS_LEN_MAX: usize = 256 * 1024;

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// What the metadata belongs to.
#[derive(Clone, Copy, Debug)]
pub struct MetadataOwner {
    /// Everything that is wrong with a name.
    pub name: fn(&str) -> Vec<String>,
    /// Whether the object lies in a namespace.
    pub namespaced: bool,
}

/// Everything wrong with the metadata of a new object, or with `metadata` in place of `live`.
pub fn validate_metadata(
    owner: MetadataOwner,
    live: Option<&Value>,
    metadata: &Value,
    path: &str,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    match live {
        None => {
            names_of(owner, metadata, path, &mut errors);
            namespace(owner, metadata, path, &mut errors);
        }
        Some(live) => {
            if is_set(live.get("deletionTimestamp")) {
                new_finalizers(live, metadata, path, &mut errors);
            }
            immutable_name(live, metadata, path, &mut errors);
        }
    }
    labels(metadata.get("labels"), &format!("{path}.labels"), &mut errors);
    annotations(metadata.get("annotations"), &format!("{path}.annotations"), &mut errors);
    let mut missing = Vec::new();
    owners(metadata, &format!("{path}.ownerReferences"), &mut errors, &mut missing);
    if live.is_none() {
        finalizers(metadata, &format!("{path}.finalizers"), &mut errors);
    }
    // The declarative part of kube-apiserver's validation comes last.
    errors.extend(missing);
    errors
}

fn is_set(value: Option<&Value>) -> bool {
    value.is_some_and(|value| !value.is_null())
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn invalid(path: impl Into<String>, value: &str, detail: impl Into<String>) -> FieldError {
    FieldError::new(path, FieldErrorKind::Invalid, detail).with_value(value.into())
}

/// An error for each problem of a text.
pub(crate) fn problems(
    path: &str,
    value: &str,
    problems: Vec<String>,
    errors: &mut Vec<FieldError>,
) {
    errors.extend(problems.into_iter().map(|problem| invalid(path, value, problem)));
}

fn names_of(owner: MetadataOwner, metadata: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let name = text(metadata, "name");
    let at = format!("{path}.name");
    if name.is_empty() {
        let detail = "name or generateName is required";
        errors.push(FieldError::new(at, FieldErrorKind::Required, detail));
    } else {
        problems(&at, name, (owner.name)(name), errors);
    }
}

fn namespace(owner: MetadataOwner, metadata: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let namespace = text(metadata, "namespace");
    let at = format!("{path}.namespace");
    match (owner.namespaced, namespace.is_empty()) {
        (true, true) => errors.push(FieldError::new(at, FieldErrorKind::Required, "")),
        (true, false) => problems(&at, namespace, names::label(namespace), errors),
        (false, false) => {
            errors.push(FieldError::new(at, FieldErrorKind::Forbidden, "not allowed on this type"))
        }
        (false, true) => {}
    }
}

fn immutable_name(live: &Value, metadata: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for field in ["name", "namespace", "uid"] {
        let (before, after) = (text(live, field), text(metadata, field));
        if before != after {
            errors.push(invalid(format!("{path}.{field}"), after, "field is immutable"));
        }
    }
    for field in ["deletionTimestamp", "deletionGracePeriodSeconds"] {
        let after = metadata.get(field).filter(|value| !value.is_null());
        if live.get(field).filter(|value| !value.is_null()) != after {
            let at = format!("{path}.{field}");
            let error = FieldError::new(at, FieldErrorKind::Invalid, "field is immutable");
            errors.push(error.with_value(after.cloned().unwrap_or_default()));
        }
    }
}

/// Labels, and what else is a map of them.
pub(crate) fn labels(labels: Option<&Value>, path: &str, errors: &mut Vec<FieldError>) {
    for (key, value) in labels.and_then(Value::as_object).into_iter().flatten() {
        problems(path, key, names::qualified(key), errors);
        let value = value.as_str().unwrap_or_default();
        problems(path, value, names::label_value(value), errors);
    }
}

// Upstream: k8s.io/apimachinery/pkg/api/validation/objectmeta.go: ValidateAnnotations
fn annotations(annotations: Option<&Value>, path: &str, errors: &mut Vec<FieldError>) {
    let empty = Map::new();
    let annotations = annotations.and_then(Value::as_object).unwrap_or(&empty);
    let mut size = 0;
    for (key, value) in annotations {
        size += key.len() + value.as_str().unwrap_or_default().len();
        problems(path, key, names::qualified(&key.to_lowercase()), errors);
    }
    if size > ANNOTATIONS_LEN_MAX {
        let detail = format!("may not be more than {ANNOTATIONS_LEN_MAX} bytes");
        errors.push(FieldError::new(path, FieldErrorKind::TooLong, detail));
    }
}

fn texts(metadata: &Value, field: &str) -> Vec<String> {
    let list = metadata.get(field).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(|text| text.as_str().map(str::to_owned)).collect()
}

// Upstream: k8s.io/apimachinery/pkg/api/validation/objectmeta.go: ValidateFinalizers
fn finalizers(metadata: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let found = texts(metadata, "finalizers");
    for finalizer in &found {
        problems(path, finalizer, names::qualified(finalizer), errors);
    }
    let has = |name: &str| found.iter().any(|finalizer| finalizer == name);
    if has(ORPHAN) && has(FOREGROUND) {
        let detail = format!("finalizer {ORPHAN} and {FOREGROUND} cannot be both set");
        let error = FieldError::new(path, FieldErrorKind::Invalid, detail);
        errors.push(error.with_value(metadata["finalizers"].clone()));
    }
}

// Upstream: k8s.io/apimachinery/pkg/api/validation/objectmeta.go: ValidateNoNewFinalizers
fn new_finalizers(live: &Value, metadata: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let before = texts(live, "finalizers");
    let mut added = texts(metadata, "finalizers");
    added.retain(|finalizer| !before.contains(finalizer));
    added.sort();
    added.dedup();
    if added.is_empty() {
        return;
    }
    let listed: Vec<String> = added.iter().map(|finalizer| quote(finalizer)).collect();
    let detail = format!(
        "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
        listed.join(", ")
    );
    errors.push(FieldError::new(format!("{path}.finalizers"), FieldErrorKind::Forbidden, detail));
}

/// Most errors about several controllers of one object: each lists all owner references.
const CONTROLLER_ERRORS_MAX: usize = 8;

/// References in the order of their fields in Go.
fn shown_owner(owner: &Value) -> String {
    let mut parts: Vec<String> = ["apiVersion", "kind", "name", "uid"]
        .iter()
        .map(|field| format!("\"{field}\":{}", go::json(&text(owner, field).into())))
        .collect();
    for field in ["controller", "blockOwnerDeletion"] {
        if let Some(flag) = owner.get(field).and_then(Value::as_bool) {
            parts.push(format!("\"{field}\":{flag}"));
        }
    }
    format!("{{{}}}", parts.join(","))
}

// Upstream: k8s.io/apimachinery/pkg/api/validation/objectmeta.go: ValidateOwnerReferences
fn owners(
    metadata: &Value,
    path: &str,
    errors: &mut Vec<FieldError>,
    missing: &mut Vec<FieldError>,
) {
    let list = metadata.get("ownerReferences").and_then(Value::as_array);
    let list = list.map_or(&[][..], Vec::as_slice);
    let mut controller: Option<String> = None;
    let mut controllers = 0;
    for (index, owner) in list.iter().enumerate() {
        let at = format!("{path}[{index}]");
        let version = text(owner, "apiVersion");
        let malformed = version.matches('/').count() > 1 || version.ends_with('/');
        if !version.is_empty() && malformed {
            let detail = "must be <group>/<version> or <version>";
            errors.push(invalid(format!("{at}.apiVersion"), version, detail));
        }
        for field in ["apiVersion", "kind", "name", "uid"] {
            if text(owner, field).is_empty() {
                let at = format!("{at}.{field}");
                let detail = "must not be empty";
                missing.push(FieldError::new(at, FieldErrorKind::Required, detail));
            }
        }
        if version == "v1" && text(owner, "kind") == "Event" {
            let detail = "/v1, Kind=Event is disallowed from being an owner";
            let error = FieldError::new(&at, FieldErrorKind::Invalid, detail);
            errors.push(error.with_shown(shown_owner(owner)));
        }
        if owner.get("controller") == Some(&Value::Bool(true)) {
            let name = format!("{}/{}", text(owner, "kind"), text(owner, "name"));
            controllers += 1;
            match &controller {
                None => controller = Some(name),
                Some(_) if controllers > CONTROLLER_ERRORS_MAX => {}
                Some(first) => {
                    let detail = format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {name}"
                    );
                    let all: Vec<String> = list.iter().map(shown_owner).collect();
                    let error = FieldError::new(path, FieldErrorKind::Invalid, detail);
                    errors.push(error.with_shown(format!("[{}]", all.join(","))));
                }
            }
        }
    }
}
