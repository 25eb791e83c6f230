//! Defaults and nulls.
#![expect(clippy::needless_pass_by_value, reason = "tables of owned values read better")]
use serde_json::{Value, json};

use super::apply_defaults;
use crate::{Schema, builtin};

#[track_caller]
fn check(schema: &Schema, mut value: Value, expected: Value) {
    apply_defaults(schema, &mut value);
    assert_eq!(value, expected);
    let once = value.clone();
    apply_defaults(schema, &mut value);
    assert_eq!(value, once, "defaulting twice is defaulting once");
}

fn custom(properties: Value) -> Schema {
    Schema::from_crd(&json!({"type": "object", "properties": properties}), false)
        .expect("a structural schema")
}

#[test]
fn declared_defaults_fill_what_is_missing() {
    let schema = custom(json!({"spec": {"type": "object", "default": {}, "properties": {
        "mode": {"type": "string", "default": "Fast"},
        "inner": {"type": "object", "properties": {"n": {"type": "integer", "default": 0}}},
        "list": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "boolean", "default": false}}}},
    }}}));
    check(&schema, json!({}), json!({"spec": {"mode": "Fast"}}));
    check(&schema, json!({"spec": {"mode": "Slow"}}), json!({"spec": {"mode": "Slow"}}));
    check(
        &schema,
        json!({"spec": {"inner": {}, "list": [{}, {"a": true}]}}),
        json!({"spec": {"mode": "Fast", "inner": {"n": 0}, "list": [{"a": false}, {"a": true}]}}),
    );
}

#[test]
fn nulls_become_defaults_vanish_or_stay() {
    let schema = custom(json!({"spec": {"type": "object", "properties": {
        "withDefault": {"type": "string", "default": "x"},
        "without": {"type": "string"},
        "nullable": {"type": "string", "nullable": true},
        "nullableWithDefault": {"type": "string", "nullable": true, "default": "x"},
    }}}));
    check(
        &schema,
        json!({"spec": {"withDefault": null, "without": null, "nullable": null, "nullableWithDefault": null}}),
        json!({"spec": {"withDefault": "x", "nullable": null, "nullableWithDefault": null}}),
    );
}

#[test]
fn built_in_kinds_have_what_go_always_writes() {
    let service = builtin::schema("", "v1", "Service").expect("built in");
    check(
        &service,
        json!({"metadata": {"creationTimestamp": null}, "spec": {"ports": [{"port": 80}]}}),
        json!({"metadata": {}, "status": {"loadBalancer": {}},
               "spec": {"ports": [{"port": 80, "protocol": "TCP"}]}}),
    );
    let pod = builtin::schema("", "v1", "Pod").expect("built in");
    check(
        &pod,
        json!({"spec": {"nodeSelector": {}, "volumes": [], "containers": [
            {"name": "c", "env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"key": "k"}}}]}]}}),
        json!({"metadata": {}, "status": {}, "spec": {"containers": [
            {"name": "c", "resources": {}, "env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"key": "k"}}}]}]}}),
    );
    let role = builtin::schema("rbac.authorization.k8s.io", "v1", "ClusterRole").expect("built in");
    check(&role, json!({}), json!({"metadata": {}, "rules": null}));
    check(&role, json!({"rules": []}), json!({"metadata": {}, "rules": null}));
}

#[test]
fn built_in_kinds_leave_out_zero_values_that_are_no_pointers() {
    let deployment = builtin::schema("apps", "v1", "Deployment").expect("built in");
    let mut value = json!({"spec": {"replicas": 0, "minReadySeconds": 0, "paused": false}});
    apply_defaults(&deployment, &mut value);
    assert_eq!(value["spec"]["replicas"], json!(0));
    assert_eq!(value["spec"].get("minReadySeconds"), None);
    assert_eq!(value["spec"].get("paused"), None);
}
