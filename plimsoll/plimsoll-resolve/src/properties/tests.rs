//! Properties and their meaning, and those that are wrong.

use serde_json::{Value, json};

use super::*;
use crate::Requirement;

fn bundle(more: &[(&str, Value)]) -> Bundle {
    let identity = ("olm.package", json!({"packageName": "a", "version": "1.2.3"}));
    let properties: Vec<Property> = std::iter::once(&identity)
        .chain(more)
        .map(|(kind, value)| Property { kind: (*kind).to_owned(), value: value.clone() })
        .collect();
    bundle_from_properties("a.v1.2.3", "a", &properties)
}

fn check_defect(kind: &str, value: Value, defect: &str) {
    let bundle = bundle(&[(kind, value)]);
    assert_eq!(bundle.defects, [format!("its property `{kind}` {defect}")]);
}

#[test]
fn known_properties_become_what_the_resolver_knows() {
    let api = json!({"group": "g", "version": "v1", "kind": "K"});
    let found = bundle(&[
        ("olm.gvk", api.clone()),
        ("olm.gvk.required", api.clone()),
        ("olm.package.required", json!({"packageName": "b", "versionRange": ">=1.0.0"})),
        ("olm.label", json!({"label": "x"})),
        ("olm.maxOpenShiftVersion", json!("4.9")),
        ("something.else", json!(1)),
        (
            "olm.csv.metadata",
            json!({
                "installModes": [
                    {"type": "OwnNamespace", "supported": true},
                    {"type": "AllNamespaces", "supported": false},
                ],
                "minKubeVersion": "1.20.0",
                "nativeAPIs": [api],
                "labels": {"operatorframework.io/arch.arm64": "supported"},
            }),
        ),
    ]);
    let api = Api { group: "g".into(), version: "v1".into(), kind: "K".into() };
    assert_eq!(found.defects, [""; 0]);
    assert_eq!(found.version, Version::new(1, 2, 3));
    assert_eq!(found.provides, std::slice::from_ref(&api));
    assert_eq!(
        found.requires,
        [
            Constraint::Api(api.clone()).into(),
            Constraint::Package { name: "b".into(), range: ">=1.0.0".into() }.into(),
        ]
    );
    assert_eq!(found.install_modes, Some(vec![InstallMode::OwnNamespace]));
    assert_eq!(found.min_kube_version.as_deref(), Some("1.20.0"));
    assert_eq!(found.max_openshift_version.as_deref(), Some("4.9"));
    assert_eq!(found.native_apis, [api]);
    assert_eq!(found.architectures, ["arm64"]);
}

#[test]
fn what_cannot_be_understood_is_a_defect() {
    check_defect(
        "olm.package.required",
        json!({"packageName": "b", "versionRange": "^1.0.0"}),
        "is invalid: `^1.0.0` is not a range: `^` is not a comparison",
    );
    check_defect("olm.constraint", json!({}), "is invalid: the constraint is empty");
    check_defect("olm.constraint", json!({"x": 1}), "is invalid: the field `x` is unknown");
    check_defect(
        "olm.constraint",
        json!({"cel": {"rule": "true"}, "all": {"constraints": []}}),
        "is invalid: both `all` and `cel` are set",
    );
    check_defect(
        "olm.constraint",
        json!({"any": {"constraints": [{"package": {"packageName": "b", "versionRange": "x"}}]}}),
        "is invalid: `x` is not a range: nothing follows the last `||`",
    );
    check_defect("olm.maxOpenShiftVersion", json!("4"), "is `4`, not of the form MAJOR.MINOR");
    let number =
        "is the number 4.2, not text: write it in quotes, since 4.20 is the same number as 4.2";
    check_defect("olm.maxOpenShiftVersion", json!(4.20), number);
    check_defect(
        "olm.package.required",
        json!({"packageName": "b", "versionRange": 4.20}),
        &format!("is invalid: `versionRange` {number}"),
    );
    check_defect(
        "olm.constraint",
        json!({"package": {"packageName": "b", "versionRange": 4.20}}),
        &format!("is invalid: `versionRange` {number}"),
    );
    let long = json!({"failureMessage": "x".repeat(CONSTRAINT_BYTES_MAX), "cel": {"rule": "true"}});
    check_defect("olm.constraint", long, "has 131115 bytes, at most 131072");
}

#[test]
fn a_bundle_must_say_what_it_is() {
    let bundle = bundle_from_properties("a.v1", "a", &[]);
    assert_eq!(bundle.defects, ["it has no property `olm.package`"]);
    let other = Property {
        kind: "olm.package".into(),
        value: json!({"packageName": "b", "version": "1.0.0"}),
    };
    let unreadable =
        Property { kind: "olm.package".into(), value: json!({"packageName": "a", "version": 1.0}) };
    let bundle = bundle_from_properties("a.v1", "a", &[unreadable]);
    assert_eq!(bundle.defects.len(), 1, "{:?}", bundle.defects);
    let bundle = bundle_from_properties("a.v1", "a", &[other]);
    let defect = "its property `olm.package` names package `b`, but it belongs to `a`";
    assert_eq!(bundle.defects, [defect]);
}

#[test]
fn keys_of_constraints_count_in_any_case() {
    let found = bundle(&[(
        "olm.constraint",
        json!({"FailureMessage": "m", "ALL": {"Constraints": [{"Cel": {"Rule": "r"}}]}}),
    )]);
    assert_eq!(found.defects, [""; 0]);
    let member = Constraint::Cel { rule: "r".into() }.into();
    let expected =
        Requirement { message: Some("m".into()), constraint: Constraint::All(vec![member]) };
    assert_eq!(found.requires, [expected]);
}
