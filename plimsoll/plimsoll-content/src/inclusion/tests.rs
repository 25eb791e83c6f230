//! Inclusion, check by check.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_api::GroupKind;
use serde_json::json;

use super::{Context, Decision, EnabledCapabilities, UnmanagedObject, decide};
use crate::Manifest;

const PROFILE: &str = "include.release.openshift.io/p";

fn manifest(kind: &str, annotations: &[(&str, &str)]) -> Manifest {
    let (group, kind) = kind.split_once('/').unwrap_or(("", kind));
    let api_version = if group.is_empty() { "v1".to_owned() } else { format!("{group}/v1") };
    let annotations: BTreeMap<&str, &str> = annotations.iter().copied().collect();
    let metadata = json!({ "name": "x", "namespace": "ns", "annotations": annotations });
    let object = json!({ "apiVersion": api_version, "kind": kind, "metadata": metadata });
    Manifest::read("0000_10_a_b.yaml".into(), 0, &object).expect("a manifest")
}

fn names(list: &str) -> BTreeSet<String> {
    list.split_whitespace().map(str::to_owned).collect()
}

/// Checks one decision: an empty text for inclusion, else the reason.
fn check(kind: &str, annotations: &[(&str, &str)], context: &Context, expected: &str) {
    let decision = match decide(&manifest(kind, annotations), context) {
        Decision::Included => String::new(),
        Decision::Excluded(reason) => reason.to_string(),
    };
    assert_eq!(decision, expected, "{kind} with {annotations:?} under {context:?}");
}

#[test]
fn a_document_without_annotations_is_never_included() {
    check("ConfigMap", &[], &Context::default(), "no annotations");
    check("ConfigMap", &[("any", "")], &Context::default(), "");
}

#[test]
fn the_profile_must_be_exactly_true() {
    let context = Context { profile: Some("p".to_owned()), ..Context::default() };
    check("ConfigMap", &[(PROFILE, "true")], &context, "");
    check("ConfigMap", &[("any", "")], &context, "include.release.openshift.io/p unset");
    for value in ["True", "false", "", "false-except-for-the-config-operator"] {
        let reason = format!("unrecognized value include.release.openshift.io/p={value}");
        check("ConfigMap", &[(PROFILE, value)], &context, &reason);
    }
}

#[test]
fn what_is_for_any_profile_needs_no_annotation() {
    let check = |annotations: &[(&str, &str)], expected: &str| {
        let manifest = Manifest { any_profile: true, ..manifest("ConfigMap", annotations) };
        let context = Context::new("p", "");
        let decision = match decide(&manifest, &context) {
            Decision::Included => String::new(),
            Decision::Excluded(reason) => reason.to_string(),
        };
        assert_eq!(decision, expected, "{annotations:?}");
    };
    check(&[], "");
    check(&[("any", "")], "");
    check(&[(PROFILE, "true")], "");
    // What names a profile is for that one.
    check(
        &[("include.release.openshift.io/other", "true")],
        "include.release.openshift.io/p unset",
    );
    check(&[(PROFILE, "True")], "unrecognized value include.release.openshift.io/p=True");
    check(
        &[("release.openshift.io/feature-set", "OKD")],
        "\"Default\" is required, and release.openshift.io/feature-set=OKD",
    );
}

#[test]
fn the_exclude_annotation_must_be_exactly_true() {
    let context = Context { exclude_identifier: Some("hosted".to_owned()), ..Context::default() };
    let key = "exclude.release.openshift.io/hosted";
    check("ConfigMap", &[(key, "true")], &context, "exclude.release.openshift.io/hosted=true");
    check("ConfigMap", &[(key, "True")], &context, "");
    check("ConfigMap", &[("exclude.release.openshift.io/other", "true")], &context, "");
}

#[test]
fn the_feature_set_must_be_listed() {
    let key = "release.openshift.io/feature-set";
    let cases = [
        ("TechPreviewNoUpgrade,Default", "", ""),
        ("TechPreviewNoUpgrade,Default", "Default", ""),
        (
            "TechPreviewNoUpgrade",
            "",
            "\"Default\" is required, and release.openshift.io/feature-set=TechPreviewNoUpgrade",
        ),
        (
            "Tech",
            "TechPreviewNoUpgrade",
            "unrecognized value \"Tech\" in release.openshift.io/feature-set=Tech",
        ),
        (
            "Default, OKD",
            "",
            "unrecognized value \" OKD\" in release.openshift.io/feature-set= OKD,Default",
        ),
        ("", "", "unrecognized value \"\" in release.openshift.io/feature-set="),
    ];
    for (value, cluster, expected) in cases {
        let context = Context { feature_set: Some(cluster.to_owned()), ..Context::default() };
        check("ConfigMap", &[(key, value)], &context, expected);
        check("ConfigMap", &[(key, value)], &Context::default(), "");
        check("ConfigMap", &[("any", "")], &context, "");
    }
}

#[test]
fn every_feature_gate_must_be_as_demanded() {
    let key = "release.openshift.io/feature-gate";
    let cases = [
        ("A,-B", "A", ""),
        ("A,-B", "A B", "feature gate B is enabled but manifest requires it to be disabled"),
        ("A,-B", "", "feature gate A is required but not enabled"),
        (" A , ,-B,", "A", ""),
        ("", "", ""),
    ];
    for (value, enabled, expected) in cases {
        let context = Context { feature_gates: Some(names(enabled)), ..Context::default() };
        check("ConfigMap", &[(key, value)], &context, expected);
        check("ConfigMap", &[(key, value)], &Context::default(), "");
    }
}

#[test]
fn a_feature_set_and_a_feature_gate_exclude_each_other_when_both_count() {
    let both = [
        ("release.openshift.io/feature-set", "Default"),
        ("release.openshift.io/feature-gate", "-A"),
    ];
    let set = Context { feature_set: Some(String::new()), ..Context::default() };
    let gates = Context { feature_gates: Some(names("")), ..Context::default() };
    let active = Context { feature_gates: Some(names("")), ..set.clone() };
    check("ConfigMap", &both, &set, "");
    check("ConfigMap", &both, &gates, "");
    check(
        "ConfigMap",
        &both,
        &active,
        "both release.openshift.io/feature-set and release.openshift.io/feature-gate are set, at most one may be",
    );
}

#[test]
fn major_versions_include_and_exclude() {
    const CRD: &str = "apiextensions.k8s.io/CustomResourceDefinition";
    const KEY: &str = "release.openshift.io/major-version";
    let cases = [
        (CRD, "5,-4", 4, "major version 4 is not among release.openshift.io/major-version=5,-4"),
        (CRD, "5,-4", 5, ""),
        (CRD, "5,-4", 6, "major version 6 is not among release.openshift.io/major-version=5,-4"),
        (CRD, "-4", 5, ""),
        (CRD, "-4", 4, "major version 4 is not among release.openshift.io/major-version=-4"),
        ("config.openshift.io/FeatureGate", "4, 5", 5, ""),
        (
            CRD,
            "4,-4",
            5,
            "major version 4 is both included and excluded by release.openshift.io/major-version=4,-4",
        ),
        (CRD, "x", 5, "invalid major version \"x\" in release.openshift.io/major-version=x"),
        (
            "ConfigMap",
            "5",
            5,
            "release.openshift.io/major-version is only allowed on CustomResourceDefinition and FeatureGate",
        ),
    ];
    for (kind, value, version, expected) in cases {
        let context = Context { major_version: Some(version), ..Context::default() };
        check(kind, &[(KEY, value)], &context, expected);
        check(kind, &[(KEY, value)], &Context::default(), "");
    }
}

#[test]
fn unknown_capabilities_are_named_before_disabled_ones() {
    let cases = [
        ("A+B", "A", "disabled capabilities: B"),
        ("A+B", "", "disabled capabilities: A, B"),
        ("A+B", "A B", ""),
        ("A+Z", "", "unrecognized capability names: Z"),
        ("Z+Y", "Z Y", "unrecognized capability names: Z, Y"),
        ("A+ B", "A B", "unrecognized capability names:  B"),
        ("a", "A", "unrecognized capability names: a"),
        ("", "", ""),
    ];
    for (value, enabled, expected) in cases {
        let capabilities = EnabledCapabilities { known: names("A B"), enabled: names(enabled) };
        let context = Context { capabilities: Some(capabilities), ..Context::default() };
        check("ConfigMap", &[("capability.openshift.io/name", value)], &context, expected);
        check("ConfigMap", &[("any", "")], &context, "");
    }
}

#[test]
fn overrides_match_exactly_and_ignore_the_namespace_of_what_has_none() {
    let entry = |group: &str, kind: &str, namespace: &str, name: &str| UnmanagedObject {
        group: group.to_owned(),
        kind: kind.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    };
    let cases = [
        ("apps/Deployment", entry("apps", "Deployment", "ns", "x"), "overridden"),
        ("apps/Deployment", entry("apps", "Deployment", "other", "x"), ""),
        ("apps/Deployment", entry("", "Deployment", "ns", "x"), ""),
        ("apps/Deployment", entry("apps", "deployment", "ns", "x"), ""),
        ("apps/Deployment", entry("apps", "Deployment", "ns", "y"), ""),
        ("r/ClusterRole", entry("r", "ClusterRole", "whatever", "x"), "overridden"),
        ("r/ClusterRole", entry("r", "ClusterRole", "", "x"), "overridden"),
        ("r/ClusterRole", entry("r", "ClusterRole", "whatever", "y"), ""),
    ];
    for (kind, entry, expected) in cases {
        let context = Context {
            overrides: vec![entry],
            cluster_kinds: [GroupKind::new("r", "ClusterRole")].into(),
            ..Context::default()
        };
        check(kind, &[("any", "")], &context, expected);
    }
    let mut without_namespace = manifest("x.io/Unknown", &[("any", "")]);
    without_namespace.key.namespace = String::new();
    let context = Context {
        overrides: vec![entry("x.io", "Unknown", "whatever", "x")],
        ..Context::default()
    };
    assert!(matches!(decide(&without_namespace, &context), Decision::Excluded(_)));
}

#[test]
fn the_first_failing_check_names_the_reason() {
    let annotations = [
        ("exclude.release.openshift.io/hosted", "true"),
        ("release.openshift.io/feature-set", "OKD"),
        ("release.openshift.io/major-version", "5"),
        ("capability.openshift.io/name", "Z"),
    ];
    let mut context = Context {
        exclude_identifier: Some("hosted".to_owned()),
        major_version: Some(4),
        capabilities: Some(EnabledCapabilities::default()),
        ..Context::new("p", "Default")
    };
    let mut check_next = |remove: fn(&mut Context), expected: &str| {
        check("ConfigMap", &annotations, &context, expected);
        remove(&mut context);
    };
    check_next(
        |context| context.exclude_identifier = None,
        "exclude.release.openshift.io/hosted=true",
    );
    check_next(
        |context| context.feature_set = None,
        "\"Default\" is required, and release.openshift.io/feature-set=OKD",
    );
    check_next(
        |context| context.major_version = None,
        "release.openshift.io/major-version is only allowed on CustomResourceDefinition and FeatureGate",
    );
    check_next(|context| context.profile = None, "include.release.openshift.io/p unset");
    check_next(|context| context.capabilities = None, "unrecognized capability names: Z");
    check_next(|_| {}, "");
}
