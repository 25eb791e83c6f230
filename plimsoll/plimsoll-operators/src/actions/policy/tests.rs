//! Actions of `alice`, judged by policies.

use plimsoll_api::Reason;
use plimsoll_api::olm::RemainingObjects;
use plimsoll_api::olm::action::{ActionSpec, ChangeOperation, PlannedChange};
use serde_json::{Value, json};

use super::{PolicyRequest, PolicyVerdict, judge};
use crate::actions::plan::ActionPlan;
use crate::actions::tests::{CURATED, POLICIES, alice, at, class, read_policies};

/// Judges an Action by `alice` of group `dev` in namespace `tea` by the policies in a text.
fn judged(
    policies: &str,
    action: Value,
    plan: Option<&ActionPlan>,
    may_directly: bool,
) -> PolicyVerdict {
    let spec: ActionSpec = serde_json::from_value(action).unwrap();
    let class = class(&spec.action_class);
    let requester = alice();
    let request = PolicyRequest {
        namespace: "tea",
        requester: &requester,
        spec: &spec,
        class: &class,
        active: 2,
        may_directly: Some(may_directly),
        plan,
        now: at("2026-01-01T00:00:00Z"),
    };
    judge(&request, &read_policies(policies))
}

#[test]
fn one_policy_whose_rules_all_hold_is_enough() {
    let check = |action: Value, expected: Result<(), &str>| {
        let verdict = judged(POLICIES, action, None, false);
        match (verdict.granted, expected) {
            (Ok(_), Ok(())) => {}
            (Err(failure), Err(expected)) => {
                assert_eq!(failure.reason, Reason::PolicyDenied);
                assert_eq!(failure.message, expected);
            }
            (found, _) => panic!("{found:?}"),
        }
    };
    let install = |mut more: Value| {
        more["actionClass"] = "operator-install".into();
        more
    };
    check(install(json!({"package": "foo"})), Ok(()));
    check(install(json!({"package": "bar-tender", "version": "1.2.3"})), Ok(()));
    check(
        install(json!({"package": "foo", "installDependencies": true})),
        Err("ActionPolicy dev: attribute installDependencies is true, allowed: false"),
    );
    check(
        install(json!({"package": "baz"})),
        Err("ActionPolicy dev: package baz is not among foo and bar-*"),
    );
    check(
        install(json!({"package": "foo", "version": "2.0.0"})),
        Err("ActionPolicy dev: attribute version is 2.0.0, which is not in range <2"),
    );
    check(
        json!({"actionClass": "autoremove"}),
        Err(
            "no ActionPolicy allows alice an Action of class autoremove in namespace tea, and alice \
             may not do the same by hand",
        ),
    );
}

#[test]
fn a_parameter_grants_no_more_than_the_policy() {
    let check = |policies: &str, parameters: Value, expected: Result<(), &str>| {
        let action = json!({
            "actionClass": "operator-install", "package": "foo", "parameters": parameters,
        });
        let granted = judged(policies, action, None, false).granted;
        match expected {
            Ok(()) => assert!(granted.is_ok(), "{parameters}: {granted:?}"),
            Err(expected) => assert_eq!(granted.unwrap_err().message, expected, "{parameters}"),
        }
    };
    check(POLICIES, json!({ "packages": ["bar-tender"] }), Ok(()));
    check(
        POLICIES,
        json!({ "packages": ["baz@1"] }),
        Err("ActionPolicy dev: package baz is not among foo and bar-*"),
    );
    // The spelling of the command is judged as the attribute.
    check(
        POLICIES,
        json!({ "force": true }),
        Err("ActionPolicy dev: attribute ensureConstraintSatisfiability is false, allowed: true"),
    );
    for (name, value) in [("namespace", "tea"), ("collisionProtection", "None")] {
        let parameters = json!({ (name): value });
        let says =
            format!("ActionPolicy dev: it has no rule that grants attribute parameters.{name}");
        check(POLICIES, parameters.clone(), Err(&says));
        let rule = format!("attributes:\n    - {{name: parameters.{name}, values: [{value}]}}");
        check(&POLICIES.replacen("attributes:", &rule, 1), parameters, Ok(()));
    }
}

#[test]
fn policies_evaluate_the_whole_plan() {
    let install = json!({"actionClass": "operator-install", "package": "foo"});
    let change = |operator: &str, version: &str| PlannedChange {
        operator: operator.into(),
        operation: ChangeOperation::Create,
        version: version.into(),
        ..PlannedChange::default()
    };
    let plan = |changes| ActionPlan { changes, ..ActionPlan::default() };
    let check = |plan: &ActionPlan, expected: &str| {
        let failure = judged(POLICIES, install.clone(), Some(plan), false).granted.unwrap_err();
        assert_eq!(failure.message, expected);
    };
    let sound = plan(vec![change("bar-tender", "1.0.0"), change("foo", "1.9.0")]);
    assert!(judged(POLICIES, install.clone(), Some(&sound), false).granted.is_ok());
    check(
        &plan(vec![change("secret", "1.0.0"), change("foo", "1.0.0")]),
        "ActionPolicy dev: package secret is not among foo and bar-*",
    );
    check(&plan(vec![change("foo", "2.1.0")]), "ActionPolicy dev: foo v2.1.0 is not in range <2");
}

#[test]
fn an_attribute_that_is_left_out_has_none_of_the_allowed_values() {
    let check = |parameters: Value, expected: Result<(), &str>| {
        let delete = json!({
            "actionClass": "operator-delete", "package": "foo", "parameters": parameters,
        });
        let granted = judged(CURATED, delete, None, false).granted;
        assert_eq!(granted.map(|_| ()).map_err(|it| it.message), expected.map_err(str::to_owned));
    };
    check(json!({"cascade": false}), Ok(()));
    let missing = "ActionPolicy named: attribute parameters.cascade is required, allowed: false";
    check(json!({}), Err(missing));
}

#[test]
fn a_catalog_that_an_action_names_is_one_of_the_policy() {
    let named = json!({
        "actionClass": "operator-install", "package": "foo", "repository": "community",
    });
    let denied = judged(CURATED, named, None, false).granted.unwrap_err();
    let message = "ActionPolicy curated: catalog community is not among curated and team-*";
    assert_eq!(denied.message, message);
}

#[test]
fn nothing_is_deleted_that_has_workloads() {
    let delete = json!({"actionClass": "operator-delete", "package": "foo"});
    let workload =
        RemainingObjects { kind: "Foo.example.com".into(), namespace: "t1".into(), count: 2 };
    let change = PlannedChange {
        operator: "foo".into(),
        operation: ChangeOperation::Delete,
        workloads: vec![workload],
        ..PlannedChange::default()
    };
    let plan = ActionPlan { changes: vec![change], ..ActionPlan::default() };
    let failure = judged(POLICIES, delete.clone(), Some(&plan), false).granted.unwrap_err();
    assert_eq!(failure.reason, Reason::WorkloadsRunning);
    assert!(failure.message.contains("2 Foo.example.com in t1 of foo"), "{}", failure.message);
    // A user who may delete it directly is not blocked.
    assert!(judged(POLICIES, delete, Some(&plan), true).granted.is_ok());
}

#[test]
fn a_warning_holds_nothing_up() {
    let install = json!({"actionClass": "operator-install", "package": "foo"});
    let verdict = judged(POLICIES, install, None, false);
    assert!(verdict.granted.is_ok());
    let warnings: Vec<String> = verdict.warnings().collect();
    assert_eq!(warnings, ["ActionPolicy dev: attribute version is required"]);
}
