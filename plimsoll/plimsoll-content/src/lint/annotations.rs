//! Annotations that mean nothing, or not what they say.

use serde_json::Value;

use super::FindingCollector;
use crate::Manifest;
use crate::finding::FindingCode;
use crate::inclusion::{
    self, EXCLUDE_PREFIX, FEATURE_GATE, FEATURE_SET, FEATURE_SETS, INCLUDE_PREFIX, MAJOR_VERSION,
};

const CREATE_ONLY: &str = "release.openshift.io/create-only";
const DELETE: &str = "release.openshift.io/delete";

fn path(key: &str) -> String {
    format!("metadata.annotations.{key}")
}

pub(super) fn check(manifest: &Manifest, object: &Value, report: &mut FindingCollector<'_>) {
    let written = object.pointer("/metadata/annotations").and_then(Value::as_object);
    for (key, value) in written.into_iter().flatten().filter(|(_, value)| !value.is_string()) {
        let message = format!("the annotation {key} is not a string but {value}: quote it");
        report.add(manifest, &path(key), FindingCode::AnnotationType, message);
    }
    if manifest.annotations.is_empty() {
        let message = "no annotations: no cluster includes the document";
        report.add(manifest, "metadata", FindingCode::NoAnnotations, message);
        return;
    }
    profiles(manifest, report);
    feature_sets(manifest, report);
    if let Some(problem) = inclusion::major_version_problem(manifest) {
        report.add(manifest, &path(MAJOR_VERSION), FindingCode::MajorVersion, problem.to_string());
    }
    actions(manifest, report);
}

fn profiles(manifest: &Manifest, report: &mut FindingCollector<'_>) {
    let is_profile = |key: &&String| key.starts_with(INCLUDE_PREFIX);
    if !manifest.annotations.keys().any(|key| is_profile(&key)) {
        let message = format!("no annotation {INCLUDE_PREFIX}…: no cluster includes the document");
        report.add(manifest, "metadata.annotations", FindingCode::NoProfile, message);
    }
    for (key, value) in &*manifest.annotations {
        let decides = is_profile(&key) || key.starts_with(EXCLUDE_PREFIX);
        if decides && value != "true" {
            let message =
                format!("{key}={value} counts as if it were not there: only `true` counts");
            report.add(manifest, &path(key), FindingCode::ProfileValue, message);
        }
    }
}

fn feature_sets(manifest: &Manifest, report: &mut FindingCollector<'_>) {
    let set = manifest.annotations.get(FEATURE_SET);
    for name in set.into_iter().flat_map(|value| value.split(',')) {
        if !FEATURE_SETS.contains(&name) {
            let message = format!("unknown feature set {name:?}: no cluster includes the document");
            report.add(manifest, &path(FEATURE_SET), FindingCode::AnnotationValue, message);
        }
    }
    if set.is_some() && manifest.annotations.contains_key(FEATURE_GATE) {
        let message = format!(
            "{FEATURE_SET} and {FEATURE_GATE} exclude each other: no cluster includes the document"
        );
        report.add(manifest, &path(FEATURE_GATE), FindingCode::FeatureSetAndGate, message);
    }
}

fn actions(manifest: &Manifest, report: &mut FindingCollector<'_>) {
    if let Some(value) = manifest.annotations.get(DELETE).filter(|value| *value != "true") {
        let message = format!("{DELETE}={value} is refused: only `true` is valid");
        report.add(manifest, &path(DELETE), FindingCode::DeleteValue, message);
    }
    let means_something =
        |value: &&String| value.eq_ignore_ascii_case("true") || value.eq_ignore_ascii_case("false");
    if let Some(value) = manifest.annotations.get(CREATE_ONLY).filter(|it| !means_something(it)) {
        let message = format!("{CREATE_ONLY}={value} has no effect: only `true` has");
        report.add(manifest, &path(CREATE_ONLY), FindingCode::AnnotationValue, message);
    }
}
