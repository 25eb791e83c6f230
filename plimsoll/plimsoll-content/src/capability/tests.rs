//! The registry holds what the specification lists, and what a payload declares beside it.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{CURRENT, CapabilityRegistry, most_similar};
use crate::Manifest;

fn manifest(spec: &Value) -> Manifest {
    let object = json!({ "apiVersion": "plimsoll.io/v1alpha1", "kind": "ReleaseCapabilities",
        "metadata": { "name": "capabilities" }, "spec": spec });
    let file = "0000_00_harbour_capabilities.yaml";
    Manifest::read(file.into(), 0, &object).expect("a manifest")
}

fn joined<'a>(names: impl IntoIterator<Item = &'a String>) -> String {
    names.into_iter().map(String::as_str).collect::<Vec<_>>().join(" ")
}

/// What is wrong with declarations, a line each.
fn problems(specs: &[Value]) -> String {
    let manifests: Vec<Manifest> = specs.iter().map(manifest).collect();
    let found = CapabilityRegistry::built_in().declare(&manifests);
    let lines: Vec<String> =
        found.iter().map(|(number, problem)| format!("{number}: {problem}")).collect();
    lines.join("\n")
}

#[test]
fn sets_grow_by_the_documented_numbers() {
    let registry = CapabilityRegistry::built_in();
    let sizes: Vec<usize> = registry.sets().iter().map(|set| set.capabilities.len()).collect();
    assert_eq!(sizes, [0, 4, 8, 9, 12, 14, 16, 16, 17, 19]);
    assert_eq!(registry.capabilities().count(), 19);
    let first = registry.set("v4.11").unwrap();
    assert_eq!(joined(&first.capabilities), "MachineAPI baremetal marketplace openshift-samples");
}

#[test]
fn names_are_case_sensitive_and_misspelt_ones_are_guessed() {
    let registry = CapabilityRegistry::built_in();
    assert!(registry.capability("Console").is_some() && registry.capability("console").is_none());
    assert!(registry.set("v4.19").is_none());
    let cases = [
        ("console", Some("Console")),
        ("Consle", Some("Console")),
        ("MachineApi", Some("MachineAPI")),
        ("bare-metal", Some("baremetal")),
        ("openshiftsamples", Some("openshift-samples")),
        (" Ingress", Some("Ingress")),
        ("Zeppelin", None),
        ("", None),
    ];
    for (name, similar) in cases {
        assert_eq!(registry.similar(name), similar, "{name}");
    }
    assert_eq!(registry.similar_set("vcurrent"), Some(CURRENT));
    assert_eq!(registry.similar_set("none"), Some("None"));
}

#[test]
fn the_nearest_spelling_is_meant() {
    let names = ["bar-operator", "fiz-operator", "foo-operator", "operator", "stable"];
    for (name, meant) in [
        ("fo-operator", Some("foo-operator")),
        ("foo-operatro", Some("foo-operator")),
        ("fix-operator", Some("fiz-operator")),
        ("Bra-Operator", Some("bar-operator")),
        ("fooo-operator", Some("foo-operator")),
        ("operater", Some("operator")),
        ("stabel", Some("stable")),
        ("xyz", None),
    ] {
        assert_eq!(most_similar(name, names.into_iter()), meant, "{name}");
        assert_eq!(most_similar(name, names.into_iter().rev()), meant, "{name}");
    }
}

#[test]
fn packages_are_not_similar_for_what_their_names_end_with() {
    let packages = ["bar-operator", "foo-operator"];
    for (name, meant) in [
        ("nope-operator", None),
        ("lantern-operator", None),
        ("baz-operator", Some("bar-operator")),
    ] {
        assert_eq!(most_similar(name, packages.into_iter()), meant, "{name}");
    }
}

#[test]
fn what_is_too_long_for_a_name_is_not_compared() {
    let (long, longer) = ("a".repeat(253), "a".repeat(254));
    assert_eq!(most_similar(&longer[..252], [long.as_str()].into_iter()), Some(long.as_str()));
    assert_eq!(most_similar(&longer, [long.as_str()].into_iter()), None);
}

#[test]
fn requirements_are_followed_to_their_end() {
    let registry = CapabilityRegistry::built_in();
    let enabled: BTreeSet<String> = ["MachineAPI".to_owned()].into();
    let missing = |name, enabled: &BTreeSet<String>| -> Vec<String> {
        registry.missing_for(name, enabled).into_iter().map(str::to_owned).collect()
    };
    assert_eq!(missing("marketplace", &enabled), ["OperatorLifecycleManager"]);
    assert!(missing("baremetal", &enabled).is_empty());
    assert_eq!(missing("baremetal", &BTreeSet::new()), ["MachineAPI"]);
}

#[test]
fn a_payload_declares_capabilities_and_sets_of_its_own() {
    let mut registry = CapabilityRegistry::built_in();
    let found = registry.declare(&[manifest(&json!({
        "capabilities": [
            { "name": "Lights", "description": " Lamps and horns ", "requires": ["Power"] },
            { "name": "Power", "featureGates": ["Reactor"] },
        ],
        "sets": [
            { "name": "harbour", "extends": "v4.11", "capabilities": ["Lights"],
              "without": ["marketplace"] },
            { "name": "vCurrent", "capabilities": ["Lights"], "without": ["Insights"] },
            { "name": "dark" },
        ],
    }))]);
    assert_eq!(found, []);
    let lights = registry.capability("Lights").unwrap();
    assert_eq!(lights.description, "Lamps and horns");
    assert_eq!(lights.declared.as_deref(), Some("0000_00_harbour_capabilities.yaml"));
    let harbour = registry.set("harbour").unwrap();
    assert_eq!(joined(&harbour.capabilities), "Lights MachineAPI baremetal openshift-samples");
    let current = &registry.set(CURRENT).unwrap().capabilities;
    assert!(current.contains("Lights") && !current.contains("Insights"));
    assert!(current.contains("Console") && !current.contains("Power"));
    assert!(registry.set("dark").unwrap().capabilities.is_empty());
    let on: BTreeSet<String> = ["Reactor".to_owned()].into();
    assert!(registry.is_known("Power", &on) && !registry.is_known("Power", &BTreeSet::new()));
}

#[test]
fn a_platform_that_is_not_openshift_knows_only_its_own_names() {
    let mut registry = CapabilityRegistry::built_in();
    let found = registry.declare(&[
        manifest(&json!({ "omitBuiltIn": true, "capabilities": [{ "name": "Lights" }] })),
        manifest(&json!({ "capabilities": [{ "name": "Console", "requires": ["Lights"] }],
                          "sets": [{ "name": "vCurrent", "capabilities": ["Lights"] }] })),
    ]);
    assert_eq!(found, []);
    let names: Vec<&str> = registry.capabilities().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["Console", "Lights"]);
    let sets: Vec<&str> = registry.sets().iter().map(|it| it.name.as_str()).collect();
    assert_eq!(sets, ["None", "vCurrent"]);
    assert_eq!(joined(&registry.set(CURRENT).unwrap().capabilities), "Lights");
}

#[test]
fn what_is_wrong_with_a_declaration_is_reported_with_its_field() {
    let check = |spec: Value, expected: &str| assert_eq!(problems(&[spec]), expected);
    check(
        json!({ "capabilites": [] }),
        "0: spec: unknown field `capabilites`, expected one of `omitBuiltIn`, `capabilities`, `sets`",
    );
    check(json!({ "capabilities": [{}] }), "0: spec: missing field `name`");
    check(
        json!({ "capabilities": [{ "name": "A+B" }, { "name": "" }] }),
        "0: spec.capabilities[0].name: \"A+B\" is not a name: use letters, digits, `-`, `.` and `_`\n\
         0: spec.capabilities[1].name: \"\" is not a name: use letters, digits, `-`, `.` and `_`",
    );
    check(
        json!({ "capabilities": [{ "name": "A", "requires": ["Consle"] }, { "name": "A" }] }),
        "0: spec.capabilities[1].name: \"A\" is declared twice\n\
         0: spec.capabilities[0].requires[0]: there is no capability \"Consle\", did you mean \"Console\"?",
    );
    check(
        json!({ "sets": [{ "name": "v4.11" }, { "name": "x", "extends": "v4.1", "capabilities": ["Q"] }] }),
        "0: spec.sets[0].name: set v4.11 never changes, only vCurrent does; declare one of another name\n\
         0: spec.sets[1].capabilities[0]: there is no capability \"Q\"\n\
         0: spec.sets[1].extends: there is no set \"v4.1\", did you mean \"v4.11\"?",
    );
    let twice = json!({ "capabilities": [{ "name": "A" }] });
    assert_eq!(
        problems(&[twice.clone(), twice]),
        "1: spec.capabilities[0].name: \"A\" is declared twice",
    );
    let mut later = manifest(&json!({}));
    later.version = "v2".to_owned();
    assert_eq!(
        CapabilityRegistry::built_in().declare(&[later])[0].1.to_string(),
        "version v2 of ReleaseCapabilities is not known, write apiVersion: plimsoll.io/v1alpha1",
    );
}
