//! Requests that a compiled policy and the controller judge, of users who may do nothing by hand.

use std::collections::BTreeSet;

use k8s_cel::{Bindings, Budget, EXPRESSION_COST_LIMIT, Environment, Type, Value as CelValue};
use plimsoll_api::olm::action::{ActionRequester, ActionSpec};
use serde_json::{Value, json};

use super::{CompiledPolicies, compiled};
use crate::actions::attributes::NamedClass;
use crate::actions::files::{ActionFiles, built_in_classes};
use crate::actions::policy::{PolicyRequest, judge};
use crate::actions::tests::{CURATED, POLICIES, at};
use crate::loadout::LoadoutFile;
use plimsoll_plan::windows::MaintenanceWindows;

const EXAMPLE: &str = include_str!("../../../../../../examples/self-service/policies.yaml");
const SUBJECTS: &str = r"
apiVersion: olm.io/v1
kind: ActionPolicy
metadata: {name: accounts}
spec:
  subjects: [{kind: ServiceAccount, name: ci, namespace: tea}, {kind: User, name: 'a\nb'}]
  namespaces: [tea, coffee-*]
  classes: [operator-installation, resolution-debug, seal]
  enforce:
    attributes:
    - {name: dryRun, required: true}
    - {name: channel, forbidden: true}
    - {name: ensureConstraintSatisfiability, values: ['true']}
    - {name: parameters.namespace, values: [$(namespace), '$(namespace)-*']}
    - {name: parameters.collisionProtection, fixed: Prevent}
    - {name: parameters.size, values: ['3', '4']}
    - {name: parameters.list, required: true}
    - {name: parameters.any, forbidden: true}
    - {name: parameters.maybe, values: ['1']}
---
apiVersion: olm.io/v1
kind: ActionPolicy
metadata: {name: labels}
spec:
  subjects: [{kind: Group, name: dev}]
  namespaceSelector:
    matchLabels: {tenant: 'true'}
    matchExpressions:
    - {key: tier, operator: In, values: [dev, test]}
    - {key: frozen, operator: DoesNotExist}
    - {key: region, operator: NotIn, values: [eu]}
    - {key: tenant, operator: Exists}
  classes: [operator-delete]
  enforce: {packages: [foo, bar-*]}
---
apiVersion: olm.io/v1
kind: ActionClass
metadata: {name: seal}
spec:
  controller: example.com/seal
  attributes: [dryRun]
  schema: {type: object, properties: {size: {type: integer}, list: {type: array, items: {type: string}},
    maybe: {type: integer, nullable: true}, any: {x-kubernetes-preserve-unknown-fields: true}, namespace: {type: string}, packages: {type: integer}}}
";

/// A request: user, groups, namespace, its labels, the spec.
type Request = (&'static str, &'static [&'static str], &'static str, Value, Value);

fn requests() -> Vec<Request> {
    let install = |more: Value| {
        let mut spec = json!({ "actionClass": "operator-install", "package": "foo" });
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        spec
    };
    let seal = |more: Value| json!({ "actionClass": "seal", "dryRun": true, "parameters": more });
    let delete = |name: &str| json!({ "actionClass": "operator-delete", "package": name });
    let (dev, tenants): (&[&str], &[&str]) = (&["dev"], &["tenants"]);
    let tenant = || json!({ "tenant": "true" });
    let ci = "system:serviceaccount:tea:ci";
    let mut requests: Vec<Request> = Vec::new();
    for more in [
        json!({}),
        json!({ "installDependencies": true }),
        json!({ "installDependencies": false }),
        json!({ "package": "baz" }),
        json!({ "package": "bar-tender" }),
        json!({ "version": "1.2.3", "repository": "curated" }),
        json!({ "repository": "community" }),
        json!({ "repository": "team-x", "channel": "stable" }),
        json!({ "channel": "beta" }),
        json!({ "ensureConstraintSatisfiability": false }),
        json!({ "parameters": { "force": true } }),
        json!({ "parameters": { "force": false } }),
        json!({ "parameters": { "packages": ["bar-tender@1"] } }),
        json!({ "parameters": { "packages": ["baz@1"] } }),
        json!({ "parameters": { "namespace": "tea" } }),
        json!({ "parameters": { "namespace": "team-b" } }),
        json!({ "parameters": { "collisionProtection": "None" } }),
        json!({ "dryRun": true, "parameters": { "namespace": "tea", "collisionProtection": "Prevent" } }),
        json!({ "dryRun": true, "parameters": { "namespace": "tea-2", "collisionProtection": "None" } }),
        json!({ "dryRun": true, "channel": "c" }),
    ] {
        for (user, groups, namespace, labels) in [
            ("alice", dev, "tea", json!({})),
            ("alice", tenants, "team-a", tenant()),
            ("alice", tenants, "team-a", json!({ "tenant": "false" })),
            (ci, &[][..], "tea", json!({})),
            (ci, &[][..], "coffee-1", json!({})),
            (ci, &[][..], "milk", json!({})),
            (r"a\nb", &[][..], "tea", json!({})),
        ] {
            requests.push((user, groups, namespace, labels, install(more.clone())));
        }
    }
    for (parameters, namespace) in [
        (json!({ "size": 3 }), "tea"),
        (json!({ "size": 5 }), "tea"),
        (json!({ "size": 4, "namespace": "tea" }), "tea"),
        (json!({ "size": 4, "namespace": "milk", "packages": 3 }), "tea"),
        (json!({ "size": 4, "namespace": "tea", "list": ["a"], "maybe": 1 }), "tea"),
        (
            json!({ "size": 4, "namespace": "tea", "list": ["a"], "any": {"a": 1}, "maybe": 1 }),
            "tea",
        ),
    ] {
        requests.push((ci, &[], namespace, json!({}), seal(parameters)));
    }
    for labels in [
        json!({ "tenant": "true", "tier": "dev" }),
        json!({ "tenant": "true", "tier": "prod" }),
        json!({ "tenant": "true", "tier": "test", "region": "eu" }),
        json!({ "tenant": "true", "tier": "test", "region": "us" }),
        json!({ "tenant": "true", "tier": "test", "frozen": "" }),
        json!({ "tier": "test" }),
        json!({}),
    ] {
        requests.push(("alice", dev, "tea", labels.clone(), delete("foo")));
        requests.push(("alice", dev, "tea", labels, delete("baz")));
    }
    requests.push(("bob", &["system:authenticated"], "team-a", tenant(), delete("foo")));
    requests.push(("alice", dev, "tea", json!({}), json!({ "actionClass": "autoremove" })));
    requests
}

/// Evaluates a compiled policy; returns whether it allows a request, or `None` if it is not about it.
fn evaluate(compiled: &CompiledPolicies, request: &Request) -> Option<bool> {
    let (user, groups, namespace, labels, action) = request;
    let spec = &compiled.objects[0]["spec"];
    let mut variables = json!({});
    let evaluate = |expression: &str, variables: &Value| {
        let mut environment = Environment::for_stored_expressions();
        let bound = [
            ("object", json!({ "spec": action })),
            ("oldObject", Value::Null),
            (
                "request",
                json!({
                    "resource": { "resource": "actions" }, "operation": "CREATE",
                    "namespace": namespace, "userInfo": { "username": user, "groups": groups },
                }),
            ),
            ("namespaceObject", json!({ "metadata": { "labels": labels } })),
            ("variables", variables.clone()),
        ];
        let mut bindings = Bindings::new();
        for (name, value) in &bound {
            environment = environment.with_variable(name, Type::Dyn);
            bindings = bindings.with(name, CelValue::from_json(value));
        }
        let program = environment.compile(expression);
        let program = program.unwrap_or_else(|error| panic!("{expression}: {error}"));
        let value = program.evaluate(&bindings, &mut Budget::new(EXPRESSION_COST_LIMIT));
        let value = value.unwrap_or_else(|error| panic!("{expression}: {error}"));
        value.to_json().unwrap()
    };
    for condition in spec["matchConditions"].as_array().unwrap() {
        if evaluate(condition["expression"].as_str().unwrap(), &variables) == false {
            return None;
        }
    }
    for variable in spec["variables"].as_array().unwrap() {
        let (name, expression) = (&variable["name"], variable["expression"].as_str().unwrap());
        let expression = if name == "byHand" { "false" } else { expression };
        let value = evaluate(expression, &variables);
        variables[name.as_str().unwrap()] = value;
    }
    let validation = &spec["validations"][0];
    let message = evaluate(validation["messageExpression"].as_str().unwrap(), &variables);
    assert!(message.as_str().unwrap().starts_with("no ActionPolicy grants"));
    Some(evaluate(validation["expression"].as_str().unwrap(), &variables) == true)
}

#[test]
fn a_compiled_policy_decides_as_the_controller_does() {
    let mut counts = [0; 2];
    for text in [POLICIES, CURATED, EXAMPLE, SUBJECTS] {
        let file = LoadoutFile { path: "policies.yaml".into(), text: text.into() };
        let files = ActionFiles::read(&[file]).unwrap();
        let classes: Vec<NamedClass> =
            files.classes.iter().cloned().chain(built_in_classes()).collect();
        let compiled = compiled(&files.policies, &classes);
        for request in requests() {
            let (user, groups, namespace, labels, action) = &request;
            let spec: ActionSpec = serde_json::from_value(action.clone()).unwrap();
            let Some(class) = NamedClass::find(&classes, &spec.action_class) else { continue };
            let requester = ActionRequester {
                username: (*user).to_owned(),
                groups: groups.iter().map(|it| (*it).to_owned()).collect(),
            };
            let judged = judge(
                &PolicyRequest {
                    namespace,
                    labels: &serde_json::from_value(labels.clone()).unwrap(),
                    requester: &requester,
                    spec: &spec,
                    class,
                    active: 0,
                    created: &BTreeSet::new(),
                    may_directly: Some(false),
                    plan: None,
                    planned: &[],
                    digest: None,
                    windows: &MaintenanceWindows::default(),
                    now: at("2026-01-01T00:00:00Z"),
                },
                &files.policies,
            );
            let is_of_range = judged.decisions.iter().any(|it| it.rule.ends_with(".range"));
            let granted = judged.granted;
            match evaluate(&compiled, &request) {
                None => assert!(granted.is_err(), "{request:?}: {granted:?}"),
                Some(is_allowed) if is_of_range => assert!(is_allowed, "{request:?}"),
                Some(is_allowed) => {
                    assert_eq!(is_allowed, granted.is_ok(), "{request:?}: {granted:?}");
                    counts[usize::from(is_allowed)] += 1;
                }
            }
        }
    }
    assert!(counts.iter().all(|it| *it > 40), "{counts:?}");
}

#[test]
fn what_is_left_to_the_controller_is_listed() {
    let file = LoadoutFile { path: "policies.yaml".into(), text: POLICIES.into() };
    let files = ActionFiles::read(&[file]).unwrap();
    let found = compiled(&files.policies, &built_in_classes());
    assert_eq!(
        found.left,
        [
            "dev: attributes[version].range",
            "dev: preconditions",
            "dev: maxActive",
            "dev: packages of the plan",
            "dev: warn"
        ]
    );
}
