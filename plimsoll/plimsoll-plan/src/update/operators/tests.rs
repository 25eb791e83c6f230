//! What is read of the status of Operators, and what breaks them.

use std::collections::BTreeSet;

use plimsoll_api::olm::{BundleReference, OperatorStatus};
use plimsoll_api::{GroupKind, ObjectKey};
use plimsoll_content::Manifest;
use plimsoll_content::inclusion::Context;
use plimsoll_resolve::{Api, Bundle};
use semver::Version;
use serde_json::json;

use super::{OperatorsOnPlatform, platform_requirements};

/// The status of an Operator at 1.0.0 that runs on this version of OpenShift at most, if any, and
/// requires these kinds of the platform.
fn status(newest: &str, kinds: &str) -> OperatorStatus {
    let mut bundle = Bundle::new("x.v1.0.0", Version::new(1, 0, 0));
    bundle.max_openshift_version = Some(newest.to_owned()).filter(|it| !it.is_empty());
    let api = |kind: &str| Api {
        group: "example.com".to_owned(),
        version: "v1".to_owned(),
        kind: kind.to_owned(),
    };
    bundle.native_apis = kinds.split_whitespace().map(api).collect();
    OperatorStatus {
        bundle: Some(BundleReference {
            name: bundle.name.clone(),
            version: "1.0.0".to_owned(),
            ..BundleReference::default()
        }),
        platform: platform_requirements(&bundle),
        ..OperatorStatus::default()
    }
}

#[test]
fn the_next_minor_version_breaks_what_does_not_run_on_it() {
    let check = |newest: &str, version: &str, expected: &[&str]| {
        let mut operators = OperatorsOnPlatform::default();
        operators.observed("lamp", Some(&status(newest, "")));
        let broken = operators.broken_by_next_minor(version);
        let broken: Vec<&str> = broken.iter().map(|it| it.message.as_str()).collect();
        assert_eq!(broken, expected, "{newest} at {version}");
    };
    check("4.22", "4.22.3", &["Operator lamp 1.0.0: it runs on OpenShift 4.22 at most"]);
    check("4.23", "4.22.3", &[]);
    check("", "4.22.3", &[]);
    // What is broken already holds up nothing.
    check("4.21", "4.22.3", &[]);
    check("4.22", "not a version", &[]);
}

#[test]
fn a_release_without_an_api_breaks_what_requires_it() {
    let check = |required: &str, removed: &[&str], expected: &[&str]| {
        let mut operators = OperatorsOnPlatform::default();
        operators.observed("lamp", Some(&status("", required)));
        let removed: BTreeSet<GroupKind> =
            removed.iter().map(|kind| GroupKind::new("example.com", *kind)).collect();
        let broken = operators.broken_without(&removed).expect("they are known");
        let broken: Vec<&str> = broken.iter().map(|it| it.message.as_str()).collect();
        assert_eq!(broken, expected, "{required} without {removed:?}");
    };
    check(
        "Kettle Plug",
        &["Kettle"],
        &["Operator lamp 1.0.0: it requires Kettle (example.com/v1), which the release removes"],
    );
    check("Plug", &["Kettle"], &[]);
    check("", &["Kettle"], &[]);
    let unknown = OperatorsOnPlatform::unknown("WHY");
    assert_eq!(unknown.broken_without(&BTreeSet::new()), Err("WHY".to_owned()));
}

#[test]
fn only_a_change_of_what_is_required_is_a_change() {
    let mut operators = OperatorsOnPlatform::default();
    assert!(!operators.observed("lamp", Some(&status("", ""))));
    assert!(operators.observed("lamp", Some(&status("4.22", ""))));
    assert!(!operators.observed("lamp", Some(&status("4.22", ""))));
    assert!(operators.observed("lamp", None));
    assert!(!operators.observed("lamp", None));
}

#[test]
fn a_release_that_contains_objects_of_an_operator_names_it() {
    let check = |objects: &[&str], annotations: &[&str], expected: &[&str]| {
        let key = |name: &&str| ObjectKey {
            group: String::new(),
            kind: "ConfigMap".to_owned(),
            namespace: "foo".to_owned(),
            name: (*name).to_owned(),
        };
        let inventory: Vec<ObjectKey> = objects.iter().map(key).collect();
        let status = OperatorStatus { inventory, ..OperatorStatus::default() };
        let mut operators = OperatorsOnPlatform::default();
        assert_eq!(operators.observed("lamp", Some(&status)), !objects.is_empty());
        assert!(!operators.observed("lamp", Some(&status)));
        let annotations: serde_json::Map<String, serde_json::Value> =
            annotations.iter().map(|it| ((*it).to_owned(), json!("true"))).collect();
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": "a", "namespace": "foo", "annotations": annotations },
        });
        let manifest = Manifest::read("a.yaml".into(), 0, &object).expect("a manifest");
        let held = operators.holding(&[manifest], &Context::default());
        let held: Vec<&str> = held.iter().map(|it| it.message.as_str()).collect();
        assert_eq!(held, expected, "{objects:?}");
        assert_eq!(operators.observed("lamp", None), !objects.is_empty());
    };
    let message = "Operator lamp: configmap \"foo/a\" belongs to it and to the release; with \
                   spec.deletion.crds: Orphan, its deletion keeps definitions and their objects";
    check(&["a", "b"], &["example.com/any"], &[message]);
    check(&["b"], &["example.com/any"], &[]);
    check(&[], &["example.com/any"], &[]);
    // The release leaves it out.
    check(&["a"], &[], &[]);
}
