//! Tests of what is written for a dependency as a table: the requirements of its dependant, the versions that a
//! catalog offers, and the version or range.

use plimsoll_content::diagnostic::LoadoutCode;
use plimsoll_resolve::{Property, bundle_from_properties};
use serde_json::{Value, json};

use super::*;
use crate::RequestedPackage;
use crate::install::{InstallPlan, InstallRequest, plan_install};
use crate::lint::{LintInputs, lint};
use crate::loadout::{Loadout, LoadoutFile};
use crate::manifest::{ChangeSetEdit, OperatorManifest};
use crate::tests::{NoExpressions, catalogs, facts, inputs, operators};

/// Returns the dependencies that the lint of Operators reports as wrong: their version is not what dependants
/// require, or their range is not.
pub(crate) fn wrong_dependencies(
    of: &[CatalogPart],
    current: &BTreeMap<String, RequestedOperator>,
    declared: &BTreeMap<String, RequestedOperator>,
) -> BTreeSet<(String, String)> {
    let manifests = declared.iter().map(|(name, it)| {
        let mut manifest = OperatorManifest {
            name: name.clone(),
            is_dependency: it.is_dependency,
            change_set: it.change_set.clone().map(ChangeSetEdit::Set).unwrap_or_default(),
            ..OperatorManifest::default()
        }
        .object();
        manifest["spec"] = json!(it.spec);
        LoadoutFile { path: format!("{name}.json"), text: manifest.to_string() }
    });
    let findings = lint(LintInputs {
        loadout: &Loadout::read(manifests.collect()),
        path: "loadout",
        base: None,
        current,
        catalogs: of,
        unavailable: &BTreeMap::new(),
        unknown: &BTreeMap::new(),
        facts: &facts(30),
        unsafe_definitions: &BTreeMap::new(),
        refused_fields: &BTreeMap::new(),
        expressions: &NoExpressions,
    });
    let codes = [LoadoutCode::DependencyOutOfRange, LoadoutCode::DependencyRange];
    let findings = findings.into_iter().filter(|it| codes.iter().any(|code| it.code == *code));
    findings.map(|it| (it.code.into_owned(), it.package)).collect()
}

/// Returns the plan of installing a package in the newest version of a range.
fn plan(
    of: &[CatalogPart],
    operators: &BTreeMap<String, RequestedOperator>,
    package: &str,
    range: Option<&str>,
) -> InstallPlan {
    let request = InstallRequest {
        packages: vec![RequestedPackage::named(package)],
        version_range: range.map(str::to_owned),
        ..InstallRequest::default()
    };
    plan_install(inputs(operators), of, &request).expect("a plan")
}

fn package(range: &str) -> Value {
    json!({ "package": { "packageName": "bar", "versionRange": range } })
}

fn compound(kind: &str, members: &[Value]) -> Value {
    json!({ (kind): { "constraints": members } })
}

/// Checks what is written for bar, of which `offered` are the versions, when foo requires all of `required`.
#[track_caller]
fn check_written(required: &[Value], offered: &str, expected: &str) {
    let mut catalog = "main 0 foo/stable\n1.0.0 provides Foo\nmain 0 bar/stable\n".to_owned();
    let mut before = None;
    for entry in offered.split("; ") {
        let (version, parts) = entry.split_once(' ').unwrap_or((entry, "provides Bar"));
        let replaces = before.map(|it| format!("<{it}, ")).unwrap_or_default();
        catalog.push_str(&format!("{version} {replaces}{parts}\n"));
        before = Some(version);
    }
    let mut of = catalogs(&catalog);
    let property = |it: &Value| Property { kind: "olm.constraint".to_owned(), value: it.clone() };
    let properties: Vec<Property> = required.iter().map(property).collect();
    let foo = bundle_from_properties("foo.v1.0.0", "foo", &properties);
    of[0].packages[0].bundles[0].requires = foo.requires;
    let installed = plan(&of, &BTreeMap::new(), "foo", Some("1"));
    let written = installed.operators.iter().find(|it| it.name == "bar").expect("a dependency");
    assert_eq!(written.range, expected, "{required:?} of {offered}");
    let lines = installed.operators.iter().map(|it| {
        let dependency = if it.is_dependency { "; dependency" } else { "" };
        format!("{}: version {}{dependency}\n", it.name, it.range)
    });
    let declared = operators(&of, &lines.collect::<String>());
    let wrong = wrong_dependencies(&of, &BTreeMap::new(), &declared);
    assert!(wrong.is_empty(), "{required:?} of {offered}: {wrong:?}");
    let pinned = plan(&of, &BTreeMap::new(), "foo", None);
    assert_eq!(pinned.operators[1].range, written.version.to_string());
}

#[test]
fn a_range_has_only_versions_that_all_dependants_accept() {
    let both = "1.2.5; 1.2.7";
    for exact in ["1.2.5", "=1.2.5", "1.2.5 || 1.2.3", ">= 1.2.3 < 1.2.6", ">=1.2.3 <1.2.6-0"] {
        check_written(&[package(exact)], both, "1.2.5");
    }
    check_written(&[package(">=1.2.3 !=1.2.7")], both, ">=1.2.5, <1.2.7");
    check_written(&[package(">=1.2.3 !=1.2.7")], "1.2.6; 1.2.7", "1.2.6");
    check_written(&[package(">=1.2.3 !=1.2.7")], "1.2.7; 1.2.8", ">=1.2.8, <1.3.0");
    check_written(&[package(">=1.2.3")], both, ">=1.2.7, <1.3.0");
    check_written(&[package(">=1.2.3"), package("<1.2.7")], both, ">=1.2.5, <1.2.7");
    check_written(&[package("<=1.2.8")], both, ">=1.2.7, <1.2.9");
    check_written(&[package("<1.2.6 || >=1.2.9")], both, "1.2.5");
    check_written(&[package("1.2.x || 2.x")], both, ">=1.2.7, <1.3.0");
    check_written(&[package(">=1.2.3")], "1.2.5; 1.3.0-rc.1", "1.3.0-rc.1");
}

#[test]
fn a_compound_constraint_restricts_a_range() {
    let (both, low) = ("1.2.5; 1.2.7", package(">=1.2.3"));
    let not = |range| compound("not", &[package(range)]);
    check_written(&[compound("all", &[low.clone(), not("1.2.7")])], both, ">=1.2.5, <1.2.7");
    check_written(&[compound("all", &[low.clone(), not(">=1.2.6")])], both, "1.2.5");
    check_written(&[compound("any", &[package("1.2.5"), package(">=1.4.0")])], both, "1.2.5");
    check_written(&[compound("any", &[low.clone(), package("<1.2.0")])], both, ">=1.2.7, <1.3.0");
    let all = compound("all", &[low.clone(), package("<1.2.6")]);
    check_written(&[compound("any", &[all, package("1.4.0")])], both, "1.2.5");
    // The versions that an expression accepts are unknown.
    let expression = json!({ "cel": { "rule": "true" } });
    check_written(&[compound("any", &[low, expression])], both, "1.2.7");
}

#[test]
fn a_range_ends_before_a_version_that_provides_less_or_requires_more() {
    let api = [json!({ "gvk": { "group": "example.com", "version": "v1", "kind": "Bar" } })];
    check_written(&api, "1.2.5; 1.2.8 provides Other", ">=1.2.5, <1.2.8");
    check_written(&api, "1.2.5; 1.2.7; 1.3.0", ">=1.3.0, <1.4.0");
    let more = "1.2.5; 1.2.8 provides Bar, requires qux >=1.0.0";
    check_written(&[package(">=1.2.3")], more, ">=1.2.5, <1.2.8");
}

#[test]
fn an_installation_revises_the_range_of_a_dependency_and_keeps_that_of_a_user() {
    let of = catalogs(
        "main 0 foo/stable
           1.0.0 provides Foo, requires bar <=1.2.5
         main 0 bar/stable
           1.2.5 provides Bar
           1.2.7 <1.2.5, provides Bar, kubernetes 1.99.0",
    );
    let check = |present: &str, expected: &[(&str, &str)]| {
        let operators = operators(&of, present);
        let planned = plan(&of, &operators, "foo", None);
        let planned: Vec<(&str, &str)> =
            planned.operators.iter().map(|it| (it.name.as_str(), it.range.as_str())).collect();
        assert_eq!(planned, expected, "{present}");
    };
    let revised = [("foo", "1.0.0"), ("bar", "1.2.5")];
    check("bar: version >=1.2.5, <1.3; at 1.2.5; dependency", &revised);
    for present in ["bar: version ~1.2; at 1.2.5", "bar: version 1.2.5; at 1.2.5; dependency"] {
        check(present, &revised[..1]);
    }
}
