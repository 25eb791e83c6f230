//! Actions of `alice`, judged by policies.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_api::Reason;
use plimsoll_api::olm::RemainingObjects;
use plimsoll_api::olm::action::{ActionClassSpec, ActionSpec, ChangeOperation, PlannedChange};
use plimsoll_api::olm::policy::PolicyRules;
use serde_json::{Value, json};

use super::{PolicyRequest, PolicyVerdict, judge};
use crate::actions::attributes::NamedClass;
use crate::actions::check::effective;
use crate::actions::plan::{ActionPlan, Exactness};
use crate::actions::tests::{CURATED, POLICIES, alice, at, class, read_policies};
use plimsoll_plan::windows::MaintenanceWindows;

/// Judges an Action by `alice` of group `dev` in namespace `tea` by the policies in a text.
fn judged(
    policies: &str,
    action: Value,
    plan: Option<&ActionPlan>,
    may_directly: bool,
) -> PolicyVerdict {
    let class = class(action["actionClass"].as_str().unwrap());
    judged_of(&class, policies, action, plan, may_directly)
}

/// The same of an Action of a class.
fn judged_of(
    class: &NamedClass,
    policies: &str,
    action: Value,
    plan: Option<&ActionPlan>,
    may_directly: bool,
) -> PolicyVerdict {
    let spec: ActionSpec = serde_json::from_value(action).unwrap();
    let requester = alice();
    let labels = [("tier".to_owned(), "dev".to_owned())].into();
    let request = PolicyRequest {
        namespace: "tea",
        labels: &labels,
        requester: &requester,
        spec: &spec,
        class,
        active: 2,
        created: &BTreeSet::new(),
        may_directly: Some(may_directly),
        plan,
        planned: &[],
        digest: None,
        windows: &MaintenanceWindows::default(),
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
        Err(
            "ActionPolicy dev: attribute installDependencies is true, allowed: false (attributes[installDependencies].values)",
        ),
    );
    check(
        install(json!({"package": "baz"})),
        Err("ActionPolicy dev: package baz is not among foo and bar-* (packages)"),
    );
    check(
        install(json!({"package": "foo", "version": "2.0.0"})),
        Err(
            "ActionPolicy dev: attribute version is 2.0.0, which is not in range <2 (attributes[version].range)",
        ),
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
        Err("ActionPolicy dev: package baz is not among foo and bar-* (packages)"),
    );
    // The spelling of the command is judged as the attribute.
    check(
        POLICIES,
        json!({ "force": true }),
        Err(
            "ActionPolicy dev: attribute ensureConstraintSatisfiability is false, allowed: true (attributes[ensureConstraintSatisfiability].values)",
        ),
    );
    for (name, value) in [("namespace", "tea"), ("collisionProtection", "None")] {
        let parameters = json!({ (name): value });
        let says = format!(
            "ActionPolicy dev: it has no rule that grants attribute parameters.{name} (attributes)"
        );
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
        "ActionPolicy dev: package secret is not among foo and bar-* (packages)",
    );
    check(
        &plan(vec![change("foo", "2.1.0")]),
        "ActionPolicy dev: foo v2.1.0 is not in range <2 (attributes[version].range)",
    );
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
    let missing = "ActionPolicy named: attribute parameters.cascade is required, allowed: false (attributes[parameters.cascade].values)";
    check(json!({}), Err(missing));
}

#[test]
fn a_catalog_that_an_action_names_is_one_of_the_policy() {
    let named = json!({
        "actionClass": "operator-install", "package": "foo", "repository": "community",
    });
    let denied = judged(CURATED, named, None, false).granted.unwrap_err();
    let message =
        "ActionPolicy curated: catalog community is not among curated and team-* (catalogs)";
    assert_eq!(denied.message, message);
}

#[test]
fn nothing_is_deleted_that_has_workloads() {
    let delete = json!({"actionClass": "operator-delete", "package": "foo"});
    let workload = RemainingObjects {
        kind: "Foo.example.com".into(),
        namespace: "t1".into(),
        count: 3,
        names: vec!["a".into(), "b".into()],
    };
    let change = PlannedChange {
        operator: "foo".into(),
        operation: ChangeOperation::Delete,
        workloads: vec![workload],
        ..PlannedChange::default()
    };
    let plan = ActionPlan { changes: vec![change], ..ActionPlan::default() };
    let failure = judged(POLICIES, delete.clone(), Some(&plan), false).granted.unwrap_err();
    assert_eq!(failure.reason, Reason::WorkloadsRunning);
    let expected = "3 Foo.example.com in t1 of foo (a, b and 1 more) would go";
    assert!(failure.message.contains(expected), "{}", failure.message);
    // An approval is of their number.
    let mut other = plan.clone();
    other.changes[0].workloads[0].names.pop();
    assert_eq!(plan.digest(), other.digest());
    other.changes[0].workloads[0].count = 2;
    assert_ne!(plan.digest(), other.digest());
    // A user who may delete it directly is not blocked.
    assert!(judged(POLICIES, delete, Some(&plan), true).granted.is_ok());
}

#[test]
fn a_warning_holds_nothing_up() {
    let install = json!({"actionClass": "operator-install", "package": "foo"});
    let verdict = judged(POLICIES, install, None, false);
    assert!(verdict.granted.is_ok());
    let warnings: Vec<String> = verdict.warnings().collect();
    assert_eq!(
        warnings,
        ["ActionPolicy dev: attribute version is required (attributes[version].required)"]
    );
}

/// Returns a policy for `alice` about installations, with `more` in its spec.
fn policy(name: &str, more: &Value) -> String {
    let mut policy = json!({
        "apiVersion": "olm.io/v1", "kind": "ActionPolicy", "metadata": { "name": name },
        "spec": {
            "subjects": [{ "kind": "User", "name": "alice" }], "classes": ["operator-install"],
        },
    });
    for (field, value) in more.as_object().unwrap() {
        policy["spec"][field] = value.clone();
    }
    policy.to_string()
}

#[test]
fn a_policy_is_about_the_namespaces_with_its_labels() {
    let install = json!({"actionClass": "operator-install", "package": "foo"});
    let check = |more: Value, expected: bool| {
        let mut spec = json!({ "enforce": {} });
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let verdict = judged(&policy("a", &spec), install.clone(), None, false);
        assert_eq!(verdict.granted.is_ok(), expected, "{more}");
    };
    check(json!({}), true);
    check(json!({ "namespaceSelector": { "matchLabels": { "tier": "dev" } } }), true);
    check(json!({ "namespaceSelector": { "matchLabels": { "tier": "prod" } } }), false);
    let selector = json!({ "matchLabels": { "tier": "dev" } });
    check(json!({ "namespaces": ["tea"], "namespaceSelector": selector }), true);
    check(json!({ "namespaces": ["coffee"], "namespaceSelector": selector }), false);
}

#[test]
fn a_fixed_attribute_has_one_value_whether_it_is_given_or_not() {
    let fixed = policy(
        "a",
        &json!({ "enforce": { "attributes": [{ "name": "installDependencies", "fixed": false }] } }),
    );
    let install = |dependencies: Value| {
        let mut action = json!({"actionClass": "operator-install", "package": "foo"});
        action["installDependencies"] = dependencies;
        judged(&fixed, action, None, false)
    };
    for given in [Value::Null, Value::Bool(false)] {
        let granted = install(given).granted.unwrap();
        assert_eq!(granted.action.get("installDependencies"), Some(&Value::Bool(false)));
    }
    let verdict = install(Value::Bool(true));
    assert_eq!(verdict.decisions[0].rule, "attributes[installDependencies].fixed");
    assert_eq!(
        verdict.granted.unwrap_err().message,
        "ActionPolicy a: attribute installDependencies is true, and has to be false (attributes[installDependencies].fixed)"
    );
}

#[test]
fn an_attribute_may_have_the_namespace_of_the_action() {
    let rule = json!({ "name": "parameters.namespace", "fixed": "$(namespace)" });
    let own = policy("a", &json!({ "enforce": { "attributes": [rule] } }));
    let listed =
        json!({ "name": "parameters.namespace", "values": ["$(namespace)", "$(namespace)-*"] });
    let beside = policy("a", &json!({ "enforce": { "attributes": [listed] } }));
    let check = |text: &str, parameters: Value, expected: Result<&str, &str>| {
        let action = json!({
            "actionClass": "operator-install", "package": "foo", "parameters": parameters,
        });
        let granted = judged(text, action, None, false).granted;
        let found = granted.as_ref().map(|it| it.action.text("parameters.namespace"));
        assert_eq!(found.map_err(|it| it.message.as_str()), expected);
    };
    check(&own, json!({}), Ok("tea"));
    check(&own, json!({ "namespace": "tea" }), Ok("tea"));
    let other = "ActionPolicy a: attribute parameters.namespace is coffee, and has to be tea (attributes[parameters.namespace].fixed)";
    check(&own, json!({ "namespace": "coffee" }), Err(other));
    check(&beside, json!({ "namespace": "tea-dev" }), Ok("tea-dev"));
    let other = "ActionPolicy a: attribute parameters.namespace is coffee, allowed: tea and tea-* (attributes[parameters.namespace].values)";
    check(&beside, json!({ "namespace": "coffee" }), Err(other));
}

#[test]
fn channels_are_those_of_the_whole_plan_and_are_kept() {
    let policy = policy("a", &json!({ "enforce": { "channels": ["stable", "lts-*"] } }));
    let change = |operator: &str, channel: &str| PlannedChange {
        operator: operator.into(),
        operation: ChangeOperation::Create,
        version: "1.0.0".into(),
        channel: channel.into(),
        manifest: Some(json!({ "spec": {} })),
        ..PlannedChange::default()
    };
    let check = |named: &str, changes: Vec<PlannedChange>, expected: Result<(), &str>| {
        let action = json!({"actionClass": "operator-install", "package": "foo", "channel": named});
        let mut plan = ActionPlan { changes, ..ActionPlan::default() };
        let granted = judged(&policy, action, Some(&plan), false).granted;
        assert_eq!(granted.as_ref().map(|_| ()).map_err(|it| it.message.as_str()), expected);
        let Ok(grant) = granted else { return };
        plan.grant(grant.exact);
        for change in plan.changes {
            assert_eq!(change.manifest.unwrap()["spec"]["channel"], change.channel.as_str());
        }
    };
    check("", vec![change("bar", "lts-1"), change("foo", "stable")], Ok(()));
    check(
        "",
        vec![change("bar", "beta"), change("foo", "stable")],
        Err(
            "ActionPolicy a: bar is of channel beta, which is not among stable and lts-* (channels)",
        ),
    );
    check(
        "beta",
        vec![],
        Err("ActionPolicy a: channel beta is not among stable and lts-* (channels)"),
    );
    check(
        "",
        vec![change("foo", "")],
        Err("ActionPolicy a: foo is of no channel, allowed: stable and lts-* (channels)"),
    );
}

#[test]
fn a_grant_without_a_missing_approval_comes_first() {
    let plan = ActionPlan::default();
    let check = |policies: &[(&str, Value)], approvals: Value, expected: Option<&str>| {
        let texts: Vec<String> = policies
            .iter()
            .map(|(name, rules)| policy(name, &json!({ "enforce": rules })))
            .collect();
        let action = json!({
            "actionClass": "operator-install", "package": "foo", "approvals": approvals,
            "requester": { "username": "alice" },
        });
        let spec: ActionSpec = serde_json::from_value(action).unwrap();
        let class = class(&spec.action_class);
        // The plan was made with the attributes of the first policy.
        let policies = read_policies(&texts.join("\n---\n"));
        let request = PolicyRequest {
            namespace: "tea",
            labels: &BTreeMap::new(),
            requester: &alice(),
            spec: &spec,
            class: &class,
            active: 0,
            created: &BTreeSet::new(),
            may_directly: Some(false),
            plan: Some(&plan),
            planned: &[],
            digest: None,
            windows: &MaintenanceWindows::default(),
            now: at("2026-01-01T00:00:00Z"),
        };
        let planned = judge(&request, &policies[..1]).granted.unwrap().action.listed();
        let request = PolicyRequest { planned: &planned, ..request };
        let granted = judge(&request, &policies).granted.unwrap();
        assert_eq!(granted.approval.map(|it| it.demand()).as_deref(), expected);
    };
    let of = |group: &str| json!({ "approvers": [{ "kind": "Group", "name": group }] });
    check(&[("a", of("sre")), ("b", json!({}))], json!([]), None);
    let both = [("a", of("sre")), ("b", of("ops"))];
    check(&both, json!([]), Some("an approval of group sre"));
    let by_ops = json!([{ "approver": "carol", "groups": ["ops"], "plan": plan.digest() }]);
    check(&both, by_ops.clone(), Some("an approval of group ops"));
    // An approval of a plan with other attributes is none for this policy.
    let mut other = of("ops");
    other["attributes"] = json!([{ "name": "installDependencies", "fixed": true }]);
    check(&[("a", of("sre")), ("b", other)], by_ops, Some("an approval of group sre"));
}

#[test]
fn a_decision_names_the_rule() {
    let rules = json!({
        "attributes": [
            { "name": "version", "required": true, "range": "<2" },
            { "name": "channel", "forbidden": true },
            { "name": "repository", "values": ["main"] },
        ],
        "packages": ["foo"], "catalogs": ["main"], "channels": ["stable"], "maxActive": 1,
        "preconditions": { "noOrphans": true },
    });
    let check = |more: Value, is_active: bool, expected: &str| {
        let mut rules = rules.clone();
        if !is_active {
            rules["maxActive"] = 5.into();
        }
        let mut action = json!({
            "actionClass": "operator-install", "package": "foo", "version": "1.0.0", "repository": "main",
        });
        action.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let plan = ActionPlan {
            orphans: if expected.starts_with("pre") { vec!["bar".into()] } else { vec![] },
            ..ActionPlan::default()
        };
        let text = policy("a", &json!({ "enforce": rules }));
        let verdict = judged(&text, action, Some(&plan), false);
        assert_eq!(verdict.decisions[0].rule, expected, "{}", verdict.decisions[0].message);
        assert_eq!(verdict.granted.is_ok(), expected.is_empty());
    };
    check(json!({}), false, "");
    check(json!({ "version": "" }), false, "attributes[version].required");
    check(json!({ "version": "2.0.0" }), false, "attributes[version].range");
    check(json!({ "channel": "stable" }), false, "attributes[channel].forbidden");
    check(json!({ "repository": "other" }), false, "attributes[repository].values");
    check(json!({ "package": "bar" }), false, "packages");
    check(json!({}), true, "maxActive");
    check(json!({}), false, "preconditions.noOrphans");
}

#[test]
fn a_plan_that_creates_operators_beyond_a_quota_is_denied() {
    let check = |created: &[&str], changes: &[(&str, ChangeOperation)], expected: Option<&str>| {
        let text = policy("a", &json!({ "enforce": { "maxOperators": 2 } }));
        let action = json!({ "actionClass": "operator-install", "package": "foo" });
        let spec: ActionSpec = serde_json::from_value(action).unwrap();
        let changes = changes.iter().map(|(name, operation)| PlannedChange {
            operator: (*name).to_owned(),
            operation: *operation,
            ..PlannedChange::default()
        });
        let plan = ActionPlan { changes: changes.collect(), ..ActionPlan::default() };
        let request = PolicyRequest {
            namespace: "tea",
            labels: &BTreeMap::new(),
            requester: &alice(),
            spec: &spec,
            class: &class("operator-install"),
            active: 0,
            created: &created.iter().map(|it| (*it).to_owned()).collect(),
            may_directly: Some(false),
            plan: Some(&plan),
            planned: &[],
            digest: None,
            windows: &MaintenanceWindows::default(),
            now: at("2026-01-01T00:00:00Z"),
        };
        let verdict = judge(&request, &read_policies(&text));
        let denied = verdict.granted.err().map(|it| it.message);
        let expected = expected
            .map(|it| format!("ActionPolicy a: Actions of namespace tea have created {it}"));
        assert_eq!(denied, expected);
        let rule = if denied.is_some() { "maxOperators" } else { "" };
        assert_eq!(verdict.decisions[0].rule, rule);
    };
    let (create, update) = (ChangeOperation::Create, ChangeOperation::Update);
    check(&[], &[("foo", create), ("bar", create)], None);
    check(&["baz"], &[("foo", create)], None);
    let beyond = "1 Operator, this one creates 2, at most 2 may be there (maxOperators)";
    check(&["baz"], &[("foo", create), ("bar", create)], Some(beyond));
    // What is about to be created is not counted twice, and what creates nothing is not limited.
    check(&["foo", "baz"], &[("foo", create)], None);
    check(&["a", "b", "c"], &[("a", update)], None);
    let full = "3 Operators, this one creates 1, at most 2 may be there (maxOperators)";
    check(&["a", "b", "c"], &[("foo", create), ("a", update)], Some(full));
}

#[test]
fn a_refusal_names_each_policy_that_could_have_granted_it() {
    let of_channel = |name: &str, channel: &str| {
        let rule = json!({ "name": "channel", "values": [channel] });
        policy(name, &json!({ "enforce": { "attributes": [rule] } }))
    };
    let text = [of_channel("a", "stable"), of_channel("b", "fast")].join("\n---\n");
    let action = json!({"actionClass": "operator-install", "package": "foo", "channel": "beta"});
    assert_eq!(
        judged(&text, action, None, false).granted.unwrap_err().message,
        "ActionPolicy a: attribute channel is beta, allowed: stable (attributes[channel].values); ActionPolicy b: attribute channel is beta, allowed: fast (attributes[channel].values)"
    );
}

#[test]
fn what_may_bring_no_permissions_is_requested_as_it_was_inspected() {
    let no_new = json!({ "preconditions": { "noNewClusterPermissions": true } });
    let check = |rules: &Value, request: &Value, expected: Exactness| {
        let text = policy("a", &json!({ "enforce": rules, "warn": no_new, "audit": no_new }));
        let mut action = json!({ "actionClass": "operator-install", "package": "foo" });
        action.as_object_mut().unwrap().extend(request.as_object().unwrap().clone());
        let grant = judged(&text, action, None, false).granted.unwrap();
        assert_eq!(grant.exact, expected, "{rules} {request}");
    };
    let (none, content) = (Exactness::default(), true);
    let all = Exactness { versions: true, catalogs: true, content, channels: false };
    check(&no_new, &json!({}), all);
    check(&json!({ "preconditions": { "noWorkloadRemoval": true } }), &json!({}), none);
    // Only the requester asks for it.
    check(&json!({}), &no_new, Exactness { content, ..none });
}

#[test]
fn what_only_reports_does_not_bind_what_is_requested() {
    let inspected = |operator: &str, requested_before: &str, repository: &str| PlannedChange {
        operator: operator.into(),
        operation: ChangeOperation::Update,
        version: "1.1.0".into(),
        requested: "~1.1".into(),
        requested_before: requested_before.into(),
        repository: repository.into(),
        catalog: "curated".into(),
        inspected: BTreeMap::from([("curated/foo.v1.1.0".into(), "sha256:a".into())]),
        ..PlannedChange::default()
    };
    let changes = vec![inspected("foo", "~1.0", ""), inspected("bar", "~1.1", "")];
    let changes = [changes, vec![inspected("baz", "~1.1", "curated")]].concat();
    let plan = ActionPlan { changes, ..ActionPlan::default() };
    let granted = |exact: Exactness| {
        let mut plan = plan.clone();
        plan.grant(exact);
        plan
    };
    let reported = granted(Exactness::default());
    assert!(reported.changes.iter().all(|it| it.inspected.is_empty() && it.requested == "~1.1"));
    let bound = Exactness { versions: true, catalogs: true, content: true, channels: false };
    let demanded = granted(bound);
    assert!(demanded.changes.iter().all(|it| !it.inspected.is_empty()));
    let requested: Vec<&str> = demanded.changes.iter().map(|it| it.requested.as_str()).collect();
    assert_eq!(requested, ["1.1.0", "~1.1", "1.1.0"], "a change of the catalog pins it as well");
    // What is bound to more than a policy demands is as exact.
    assert!(demanded.is_exact(Exactness::default()) && demanded.is_exact(bound));
}

#[test]
fn rules_that_only_report_need_none_for_what_they_do_not_mention() {
    let rules = json!({ "packages": ["foo"] });
    let named = json!({ "attributes": [{ "name": "parameters.namespace" }] });
    let text = policy("a", &json!({ "enforce": named, "warn": rules, "audit": rules }));
    let action = json!({
        "actionClass": "operator-install", "package": "foo", "parameters": { "namespace": "tools" },
    });
    let verdict = judged(&text, action.clone(), None, false);
    let decided = verdict.decisions.iter().map(|it| (it.mode.as_str(), it.allowed));
    assert!(decided.eq([("Enforce", true), ("Warn", true), ("Audit", true)]), "{verdict:?}");
    let verdict = judged(&policy("a", &json!({ "enforce": rules })), action, None, false);
    assert_eq!(
        verdict.decisions[0].message,
        "it has no rule that grants attribute parameters.namespace"
    );
}

#[test]
fn a_refusal_has_all_rules_that_do_not_hold() {
    let rules = json!([{ "name": "channel", "values": ["stable"] }, { "name": "version", "required": true }]);
    let text = policy("a", &json!({ "enforce": { "attributes": rules, "packages": ["foo"] } }));
    let action = json!({ "actionClass": "operator-install", "package": "bar", "channel": "beta" });
    let failure = judged(&text, action, None, false).granted.unwrap_err();
    assert_eq!(
        failure.message,
        "ActionPolicy a: attribute channel is beta, allowed: stable (attributes[channel].values); attribute version is \
         required (attributes[version].required); package bar is not among foo (packages)"
    );
}

#[test]
fn what_policies_set_is_for_the_classes_that_have_the_parameter() {
    let rule = json!({ "name": "parameters.namespace", "fixed": "$(namespace)" });
    let mut spec = json!({ "enforce": { "attributes": [rule] } });
    spec["classes"] = json!(["operator-install", "operator-delete"]);
    let text = policy("a", &spec);
    let of = |class: &str| {
        let action = json!({ "actionClass": class, "package": "foo" });
        let granted = judged(&text, action, None, false).granted.unwrap();
        granted.action.text("parameters.namespace").to_owned()
    };
    assert_eq!(of("operator-install"), "tea");
    assert_eq!(of("operator-delete"), "");
}

#[test]
fn what_a_policy_sets_of_another_type_grants_nothing() {
    let check = |name: &str, value: Value, expected: Option<&str>| {
        for field in ["fixed", "default"] {
            let rules = json!({ "attributes": [{ "name": name, field: value }] });
            let rules: PolicyRules = serde_json::from_value(rules).unwrap();
            let spec = ActionSpec { package: "foo".into(), ..ActionSpec::default() };
            let found = effective(&spec, &class("operator-install"), Some(("a", &rules)));
            let found = found.err().map(|it| it.message);
            assert_eq!(found.as_deref(), expected);
        }
    };
    check("dryRun", json!(true), None);
    let expected = "spec.dryRun is \"true\", as policy a sets it: it is true or false";
    check("dryRun", json!("true"), Some(expected));
    check("channel", json!(5), Some("spec.channel is 5, as policy a sets it: it is a text"));
}

#[test]
fn a_class_with_any_parameter_has_those_that_a_policy_sets() {
    let of = |schema: Value| {
        let controller = "example.com/backups".to_owned();
        let schema = Some(schema);
        let spec = ActionClassSpec { controller, schema, ..ActionClassSpec::default() };
        let rule = json!({ "name": "parameters.target", "fixed": "tea" });
        let text =
            policy("a", &json!({ "classes": ["backup"], "enforce": { "attributes": [rule] } }));
        let action = json!({ "actionClass": "backup" });
        judged_of(&NamedClass::new("backup", spec), &text, action, None, false).granted.is_ok()
    };
    assert!(of(json!({ "type": "object" })));
    assert!(of(json!({ "type": "object", "additionalProperties": false })));
    for open in [json!(true), json!({ "type": "string" })] {
        assert!(!of(json!({ "type": "object", "additionalProperties": open })));
    }
    assert!(!of(json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })));
}

/// Returns why a policy of a class of another controller, which has a default for one parameter, does not grant an Action.
fn of_another_controller(rules: &Value, parameters: &Value) -> Option<String> {
    let property = json!({ "type": "string" });
    let spec = ActionClassSpec {
        attributes: vec!["package".to_owned()],
        controller: "example.com/backups".to_owned(),
        schema: Some(
            json!({ "type": "object", "properties": { "target": property, "mode": property } }),
        ),
        defaults: Some(json!({ "parameters.mode": "full" })),
        ..ActionClassSpec::default()
    };
    let class = NamedClass::new("backup", spec);
    let text = policy("a", &json!({ "classes": ["backup"], "enforce": rules }));
    let action = json!({ "actionClass": "backup", "parameters": parameters });
    let granted = judged_of(&class, &text, action, None, false).granted;
    granted.err().map(|it| it.message)
}

#[test]
fn a_class_of_another_controller_is_granted_by_what_is_requested_alone() {
    let check = |rules: Value, parameters: Value, expected: Option<&str>| {
        let found = of_another_controller(&rules, &parameters);
        assert_eq!(
            found.as_ref().map(|it| it.contains(expected.unwrap_or_default())),
            expected.map(|_| true),
            "{found:?}"
        );
    };
    check(json!({}), json!({}), None);
    check(json!({ "requiresApproval": true }), json!({}), Some("it has a rule about a plan"));
    check(json!({ "maxOperators": 1 }), json!({}), Some("(maxOperators)"));
    check(json!({ "preconditions": { "consistent": true } }), json!({}), Some("(preconditions)"));
    let attribute = |rule: Value| json!({ "attributes": [rule] });
    let fixed = attribute(json!({ "name": "parameters.target", "fixed": "$(namespace)" }));
    check(
        fixed.clone(),
        json!({}),
        Some("attribute parameters.target is required: class backup is of another"),
    );
    check(
        fixed.clone(),
        json!({ "target": "coffee" }),
        Some("attribute parameters.target is coffee, and has to be tea"),
    );
    check(fixed, json!({ "target": "tea" }), None);
    // The controller of the class sets its default.
    let mode = |value: &str| attribute(json!({ "name": "parameters.mode", "fixed": value }));
    check(mode("full"), json!({}), None);
    check(mode("quick"), json!({}), Some("attribute parameters.mode is full, and has to be quick"));
    // Those that the class does not have are for other classes of the policy.
    check(attribute(json!({ "name": "parameters.size", "fixed": "5" })), json!({}), None);
    check(attribute(json!({ "name": "repository", "fixed": "curated" })), json!({}), None);
    let package = attribute(json!({ "name": "package", "fixed": "foo" }));
    check(package, json!({}), Some("attribute package is required"));
    let default = attribute(json!({ "name": "parameters.target", "default": "tea" }));
    check(default, json!({}), Some("(attributes[parameters.target].default)"));
}
