//! Tests of plans of each kind as the one value.

use std::fmt::Write as _;

use plimsoll_api::olm::{BundleReference, DependencyStatus, OperatorStatus, RemainingObjects};
use serde_json::json;

use super::*;
use crate::RequestedPackage;
use crate::deletion_plan::DeletionRequest;
use crate::install::plan_install;
use crate::tests::{FIXTURE, catalogs, deletion_request, inputs, operators};
use crate::update::{UpdateRequest, plan_update};

const FOO_FOLLOWS: &str = "
    foo: version ~1.2; at 1.2.5
    bar: version >=1.2.5, <1.3; at 1.2.5; dependency";

/// Returns a text, or a dash for none.
fn shown(text: &str) -> &str {
    if text.is_empty() { "-" } else { text }
}

fn rendered(plan: &ChangePlan) -> String {
    let mut text = String::new();
    for OperatorChange { planned: it, required_by, displaced_by, held_back, deletion } in
        &plan.changes
    {
        let (before, after) = (shown(&it.version_before), shown(&it.version));
        let (was, requested) = (shown(&it.requested_before), shown(&it.requested));
        let catalog = if it.bundle.is_empty() { "" } else { " of main" };
        assert_eq!(it.catalog.is_empty(), catalog.is_empty(), "{it:?}");
        let dependency = if it.dependency { " dependency" } else { "" };
        let name = &it.operator;
        let _ = writeln!(
            text,
            "{:?} {name} {before} -> {after} by {was} -> {requested}{catalog}{dependency}",
            it.operation
        );
        for by in required_by {
            let _ = writeln!(text, "needed by {}: {}", by.operator, by.requirement);
        }
        for requirement in displaced_by {
            let _ = writeln!(text, "displaced by {requirement}");
        }
        if let Some(why) = held_back {
            let _ = writeln!(text, "held back: {why}");
        }
        for it in &it.workloads {
            let _ = writeln!(text, "with {} {}", it.count, it.kind);
        }
        assert_eq!(deletion.is_some(), it.operation == ChangeOperation::Delete);
    }
    for it in &plan.kept {
        let dependency = if it.dependency { " dependency" } else { "" };
        let _ = writeln!(text, "keeps {} {}{dependency}", it.operator, shown(&it.version));
        if let Some(why) = &it.held_back {
            let _ = writeln!(text, "held back: {why}");
        }
    }
    for PlannedDependency { operator, on, version, requirement, broken } in &plan.dependencies {
        let broken = if *broken { ", broken" } else { "" };
        let _ = writeln!(text, "{operator} {version} depends on {on}: {requirement}{broken}");
    }
    for it in &plan.unsatisfied {
        let _ = writeln!(text, "{} lacks {}", it.operator, it.requirement);
    }
    for it in &plan.orphans {
        let _ = writeln!(text, "orphan {it}");
    }
    for it in plan.notes.iter().chain(&plan.warnings) {
        let _ = writeln!(text, "* {it}");
    }
    text
}

#[track_caller]
fn check(plan: &ChangePlan, expected: &str) {
    let expected: Vec<&str> = expected.lines().map(str::trim).collect();
    assert_eq!(rendered(plan).trim_end(), expected.join("\n"));
    assert_eq!(plan.digest.split(':').next(), Some("sha256"), "{}", plan.digest);
}

fn installation(present: &str, request: &InstallRequest) -> ChangePlan {
    installation_of(FIXTURE, present, request)
}

fn installation_of(catalog: &str, present: &str, request: &InstallRequest) -> ChangePlan {
    let of = catalogs(catalog);
    let operators = operators(&of, present);
    let inputs = inputs(&operators);
    let plan = plan_install(inputs, &of, request).unwrap();
    ChangePlan::of_install(&plan, request, inputs, &of)
}

fn update(present: &str, ranges: &[(&str, &str)]) -> ChangePlan {
    let of = catalogs(FIXTURE);
    let operators = operators(&of, present);
    let inputs = inputs(&operators);
    let ranges = ranges.iter().map(|(name, range)| ((*name).to_owned(), (*range).to_owned()));
    let ranges: BTreeMap<String, String> = ranges.collect();
    let request = UpdateRequest { ranges: ranges.clone(), ..UpdateRequest::default() };
    let plan = plan_update(inputs, &of, &request).unwrap();
    ChangePlan::of_update(&plan, &ranges, inputs, &of)
}

#[test]
fn an_installation_has_its_dependencies_and_what_it_leaves_unsatisfied() {
    let package = |name: &str, range: Option<&str>| InstallRequest {
        packages: vec![RequestedPackage { name: name.to_owned(), range: range.map(str::to_owned) }],
        ..InstallRequest::default()
    };
    let foo = package("foo", Some("~1.2"));
    let plan = installation("", &foo);
    check(
        &plan,
        "Create bar - -> 1.2.7 by - -> >=1.2.7, <1.3.0 of main dependency
         needed by foo: bar >=1.2.7
         Create foo - -> 1.2.9 by - -> ~1.2 of main
         foo 1.2.9 depends on bar: bar >=1.2.7
         * ~1.2 is >= v1.2.0 < v1.3.0",
    );
    let manifest = plan.changes[1].planned.manifest.as_ref().unwrap();
    assert_eq!(manifest["spec"], json!({ "version": "~1.2" }));
    check(
        &installation("", &InstallRequest { no_dependencies: true, ..foo }),
        "Create foo - -> 1.2.9 by - -> ~1.2 of main
         foo lacks bar >=1.2.7
         * ~1.2 is >= v1.2.0 < v1.3.0",
    );
    // What is there and has a part in it.
    check(
        &installation(
            "foo: version 1.2.2; at 1.2.2
             baz: version 1.2.4; at 1.2.4; dependency",
            &package("bar", None),
        ),
        "Create bar - -> 1.2.7 by - -> 1.2.7 of main
         needed by foo: bar >=1.2.3
         keeps baz 1.2.4 dependency
         keeps foo 1.2.2
         foo 1.2.2 depends on bar: bar >=1.2.3
         orphan baz",
    );
}

#[test]
fn an_update_has_what_is_written_what_follows_and_what_stays() {
    check(
        &update(FOO_FOLLOWS, &[]),
        "Update bar 1.2.5 -> 1.2.7 by >=1.2.5, <1.3 -> >=1.2.7, <1.3.0 of main dependency
         needed by foo: bar >=1.2.7
         Await foo 1.2.5 -> 1.2.9 by ~1.2 -> ~1.2 of main
         held back: v2.0.1 is outside the range \"~1.2\"
         foo 1.2.9 depends on bar: bar >=1.2.7",
    );
    let present = "foo: version ~1.2; at 1.2.9
                   bar: version 1.2.7; at 1.2.7; dependency";
    let plan = update(present, &[("foo", "^2")]);
    check(
        &plan,
        "Create baz - -> 1.5.6 by - -> >=1.5.6, <1.6.0 of main dependency
         needed by foo: baz >=1.5.0
         Update foo 1.2.9 -> 2.0.1 by ~1.2 -> ^2 of main
         keeps bar 1.2.7 dependency
         foo 2.0.1 depends on baz: baz >=1.5.0
         orphan bar
         * ^2 is >= v2.0.0 < v3.0.0",
    );
    assert_eq!(update(present, &[("foo", "^2")]).digest, plan.digest);
    let json = serde_json::to_value(&plan).unwrap();
    assert_eq!(json["operation"], "update");
    assert_eq!(
        json["changes"][1],
        json!({
            "operator": "foo", "operation": "Update", "state": "Planned",
            "requestedBefore": "~1.2", "requested": "^2", "versionBefore": "1.2.9", "version": "2.0.1",
            "bundle": "foo.v2.0.1", "catalog": "main",
        })
    );
    assert_eq!(
        json["dependencies"],
        json!([{
            "operator": "foo", "on": "baz", "version": "2.0.1", "requirement": "baz >=1.5.0",
            "broken": false,
        }])
    );
}

#[test]
fn a_dependant_that_moves_is_no_dependency() {
    let catalog = "
        main 0 lib/stable
          1.0.0 provides Lib
          2.0.0 <1.0.0, provides Lib
        main 0 app/stable
          1.0.0 provides App, requires lib <2.0.0
          2.0.0 <1.0.0, provides App, requires lib >=2.0.0
        main 0 tool/stable
          1.0.0 provides Tool, requires lib >=2.0.0
        main 0 top/stable
          1.0.0 provides Top, requires app >=1.0.0";
    let request = InstallRequest {
        packages: vec!["tool@1.0.0".parse().unwrap()],
        ..InstallRequest::default()
    };
    let present = "app: version 1.0.0; at 1.0.0
                   lib: version 1.0.0; at 1.0.0; dependency";
    let mut plan = installation_of(catalog, present, &request);
    plan.changes.sort_by(|one, other| one.planned.operator.cmp(&other.planned.operator));
    check(
        &plan,
        "Update app 1.0.0 -> 2.0.0 by 1.0.0 -> 2.0.0 of main
         displaced by lib <2.0.0
         Update lib 1.0.0 -> 2.0.0 by 1.0.0 -> 2.0.0 of main dependency
         needed by app: lib >=2.0.0
         needed by tool: lib >=2.0.0
         Create tool - -> 1.0.0 by - -> 1.0.0 of main
         app 2.0.0 depends on lib: lib >=2.0.0
         tool 1.0.0 depends on lib: lib >=2.0.0",
    );
    // An update says why one moves that it does not name.
    let of = catalogs(catalog);
    let present = "app: version 1.0.0; at 1.0.0; dependency
                   lib: version 1.0.0; at 1.0.0; dependency
                   top: version 1.0.0; at 1.0.0";
    let operators = operators(&of, present);
    let ranges = BTreeMap::from([("lib".to_owned(), "2.0.0".to_owned())]);
    let request = UpdateRequest { ranges: ranges.clone(), ..UpdateRequest::default() };
    let plan = plan_update(inputs(&operators), &of, &request).unwrap();
    let text = plan.text(&ranges);
    assert!(text.contains("* app v2.0.0 depends on lib >= v2.0.0\n"), "{text}");
    assert!(text.contains("* app cannot stay at v1.0.0: it depends on lib < v2.0.0\n"), "{text}");
    let plan = ChangePlan::of_update(&plan, &ranges, inputs(&operators), &of);
    let app = plan.changes.iter().find(|it| it.planned.operator == "app").unwrap();
    assert_eq!(app.displaced_by, ["lib <2.0.0"]);
}

#[test]
fn a_pin_that_is_taken_back_moves_no_bundle() {
    let waits = "bar: version 1.2.7; at 1.2.5";
    let taken_back = "Update bar 1.2.5 -> 1.2.5 by 1.2.7 -> 1.2.5 of main";
    check(&update(waits, &[("bar", "1.2.5")]), taken_back);
    let request = InstallRequest {
        packages: vec!["bar@1.2.5".parse().unwrap()],
        ..InstallRequest::default()
    };
    check(&installation(waits, &request), taken_back);
}

/// Returns two Operators: foo, and its dependency bar.
fn foo_and_bar() -> BTreeMap<String, ObservedOperator> {
    let bundle = BundleReference { version: "1.2.5".to_owned(), ..BundleReference::default() };
    let operator = |name: &str| ObservedOperator {
        uid: format!("uid of {name}"),
        status: OperatorStatus { bundle: Some(bundle.clone()), ..OperatorStatus::default() },
        ..ObservedOperator::default()
    };
    let (mut foo, mut bar) = (operator("foo"), operator("bar"));
    let requirement = "bar >=1.2.3".to_owned();
    bar.is_dependency = true;
    bar.status.dependants =
        vec![Dependant { operator: "foo".to_owned(), requirement: requirement.clone() }];
    foo.status.dependencies = vec![DependencyStatus {
        requirement,
        satisfied: true,
        operator: "bar".to_owned(),
        ..DependencyStatus::default()
    }];
    BTreeMap::from([("foo".to_owned(), foo), ("bar".to_owned(), bar)])
}

fn deletion(operators: &BTreeMap<String, ObservedOperator>, names: &[&str]) -> ChangePlan {
    let workload =
        RemainingObjects { kind: "Foo.example.com".to_owned(), count: 2, ..Default::default() };
    let plan = DeletionPlan::new(&DeletionRequest {
        workloads: &BTreeMap::from([("foo".to_owned(), vec![workload])]),
        ..deletion_request(operators, &names.iter().map(|it| (*it).to_owned()).collect())
    });
    ChangePlan::of_deletion(&plan, operators)
}

#[test]
fn a_deletion_has_what_goes_what_breaks_and_what_is_left() {
    let operators = foo_and_bar();
    let plan = deletion(&operators, &["bar"]);
    check(
        &plan,
        "Delete bar 1.2.5 -> - by - -> -
         needed by foo: bar >=1.2.3
         keeps foo 1.2.5
         foo 1.2.5 depends on bar: bar >=1.2.3, broken
         foo lacks bar >=1.2.3",
    );
    assert_eq!(plan.unsatisfied[0].text(), "foo requires bar >=1.2.3, but bar is deleted");
    assert_eq!(plan.changes[0].planned.uid, "uid of bar");
    check(
        &deletion(&operators, &["foo"]),
        "Delete foo 1.2.5 -> - by - -> -
         with 2 Foo.example.com
         keeps bar 1.2.5 dependency
         foo 1.2.5 depends on bar: bar >=1.2.3
         orphan bar",
    );
}

#[test]
fn the_plan_of_an_action_is_that_of_its_status() {
    let planned = PlannedChange { operator: "foo".to_owned(), ..PlannedChange::default() };
    let status = ActionStatus {
        plan: vec![planned.clone()],
        plan_digest: "sha256:1".to_owned(),
        explanation: vec!["foo is installed".to_owned()],
        ..ActionStatus::default()
    };
    let plan = ChangePlan::of_action(&status);
    assert_eq!((plan.digest.as_str(), &plan.notes), ("sha256:1", &status.explanation));
    assert_eq!(plan.changes[0].planned, planned);
    let failed = json!({
        "type": "ActionSucceeded", "status": "False", "reason": "ConstraintsUnmet",
        "message": "foo requires bar", "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    let failed: ActionStatus =
        serde_json::from_value(json!({ "conditions": [failed] })).expect("it is a status");
    let plan = ChangePlan::of_action(&failed);
    assert_eq!((plan.digest.as_str(), plan.notes), ("", vec!["foo requires bar".to_owned()]));
    let nothing = ChangePlan::nothing(PlannedOperation::Update);
    assert_eq!(rendered(&nothing), "");
}
