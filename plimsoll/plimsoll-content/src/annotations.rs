//! Annotations that mean nothing, or not what they say.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::Manifest;
use crate::diagnostic::FindingCode;
use crate::immutable::{REPLACE, may_be_replaced};
use crate::inclusion::{
    self, EXCLUDE_PREFIX, FEATURE_GATE, FEATURE_SET, FEATURE_SETS, INCLUDE_PREFIX, MAJOR_VERSION,
};
use crate::ready_when::{self, READY_WHEN};

/// Annotation of what is created and then left alone.
pub(crate) const CREATE_ONLY: &str = "release.openshift.io/create-only";
/// Annotation of what is to be deleted.
pub(crate) const DELETE: &str = "release.openshift.io/delete";

/// An annotation of a manifest that means nothing, or not what it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnnotationDefect {
    /// Which rule it breaks, with its severity.
    pub code: FindingCode,
    /// The path of the field in the document.
    pub field: String,
    /// What is wrong and what to do, in one line without a final stop.
    pub message: String,
}

/// What is wrong or doubtful about the annotations of a manifest, made from `object`. Errors among
/// it keep the payload from being loaded.
pub(crate) fn defects(manifest: &Manifest, object: &Value) -> Vec<AnnotationDefect> {
    let mut defects = Vec::new();
    let mut add = |field: String, code, message| {
        defects.push(AnnotationDefect { code, field, message });
    };
    let written = object.pointer("/metadata/annotations").and_then(Value::as_object);
    for (key, value) in written.into_iter().flatten().filter(|(_, value)| !value.is_string()) {
        let message = format!("the annotation {key} is not a string but {value}: quote it");
        add(path(key), FindingCode::AnnotationType, message);
    }
    if !manifest.may_be_included() {
        let message = "no annotations: no cluster includes the document";
        add("metadata".to_owned(), FindingCode::NoAnnotations, message.to_owned());
        return defects;
    }
    profiles(manifest, &mut add);
    feature_sets(&manifest.annotations, &mut add);
    if let Some(problem) = inclusion::major_version_problem(manifest) {
        add(path(MAJOR_VERSION), FindingCode::MajorVersion, problem.to_string());
    }
    actions(&manifest.annotations, &mut add);
    replacement(manifest, &mut add);
    gate(manifest, &mut add);
    defects
}

fn replacement(manifest: &Manifest, add: &mut impl FnMut(String, FindingCode, String)) {
    let Some(value) = manifest.annotations.get(REPLACE) else { return };
    if value != "true" && value != "false" {
        let message = format!("{REPLACE}={value} has no effect: only `true` has");
        add(path(REPLACE), FindingCode::AnnotationValue, message);
    } else if value == "true" && !may_be_replaced(&manifest.key) {
        let message = format!(
            "{REPLACE}=true is refused for kind {}: what it contains would go with it",
            manifest.key.kind
        );
        add(path(REPLACE), FindingCode::AnnotationValue, message);
    }
}

fn gate(manifest: &Manifest, add: &mut impl FnMut(String, FindingCode, String)) {
    let Some(value) = manifest.annotations.get(READY_WHEN) else { return };
    // Once it is created, such an object is what other clients make of it, the annotation included.
    let unawaited = [CREATE_ONLY, DELETE].into_iter().find(|it| {
        manifest.annotations.get(*it).is_some_and(|value| value.eq_ignore_ascii_case("true"))
    });
    let problem = match unawaited {
        Some(other) => Some(format!(
            "has no effect with {other}, since such an object is not awaited: remove one of the two"
        )),
        None => ready_when::problem(&manifest.key, value),
    };
    if let Some(problem) = problem {
        let message = format!("{READY_WHEN}={value:?} {problem}");
        add(path(READY_WHEN), FindingCode::AnnotationValue, message);
    }
}

fn path(key: &str) -> String {
    format!("metadata.annotations.{key}")
}

fn profiles(manifest: &Manifest, add: &mut impl FnMut(String, FindingCode, String)) {
    let annotations: &BTreeMap<String, String> = &manifest.annotations;
    let is_profile = |key: &&String| key.starts_with(INCLUDE_PREFIX);
    if !manifest.any_profile && !annotations.keys().any(|key| is_profile(&key)) {
        let message = format!("no annotation {INCLUDE_PREFIX}…: no cluster includes the document");
        add("metadata.annotations".to_owned(), FindingCode::NoProfile, message);
    }
    for (key, value) in annotations {
        let decides = is_profile(&key) || key.starts_with(EXCLUDE_PREFIX);
        if decides && value != "true" {
            let message =
                format!("{key}={value} counts as if it were not there: only `true` counts");
            add(path(key), FindingCode::ProfileValue, message);
        }
    }
}

fn feature_sets(
    annotations: &BTreeMap<String, String>,
    add: &mut impl FnMut(String, FindingCode, String),
) {
    let set = annotations.get(FEATURE_SET);
    for name in set.into_iter().flat_map(|value| value.split(',')) {
        if !FEATURE_SETS.contains(&name) {
            let message = format!("unknown feature set {name:?}: no cluster includes the document");
            add(path(FEATURE_SET), FindingCode::AnnotationValue, message);
        }
    }
    if set.is_some() && annotations.contains_key(FEATURE_GATE) {
        let message = format!(
            "{FEATURE_SET} and {FEATURE_GATE} exclude each other: no cluster includes the document"
        );
        add(path(FEATURE_GATE), FindingCode::FeatureSetAndGate, message);
    }
}

fn actions(
    annotations: &BTreeMap<String, String>,
    add: &mut impl FnMut(String, FindingCode, String),
) {
    if let Some(value) = annotations.get(DELETE).filter(|value| *value != "true") {
        let message = format!("{DELETE}={value} is refused: only `true` is valid");
        add(path(DELETE), FindingCode::DeleteValue, message);
    }
    let means_something =
        |value: &&String| value.eq_ignore_ascii_case("true") || value.eq_ignore_ascii_case("false");
    if let Some(value) = annotations.get(CREATE_ONLY).filter(|it| !means_something(it)) {
        let message = format!("{CREATE_ONLY}={value} has no effect: only `true` has");
        add(path(CREATE_ONLY), FindingCode::AnnotationValue, message);
    }
}
