//! What Go leaves out, and what it writes always.

use serde_json::{Value, json};

use super::go_round_trip;
use crate::builtin;

#[track_caller]
fn check(group: &str, version: &str, kind: &str, given: Value, expected: Result<Value, &str>) {
    let schema = builtin::schema(group, version, kind).expect("the kind is built in");
    let mut value = given;
    let result = go_round_trip(&schema, &mut value).map(|()| value);
    match expected {
        Ok(expected) => assert_eq!(result, Ok(expected)),
        Err(part) => assert!(result.clone().is_err_and(|text| text.contains(part)), "{result:?}"),
    }
}

#[test]
fn structs_are_written_and_unknown_fields_are_not() {
    let given = json!({"metadata": {"name": "d", "labels": {}}, "spec": {"oops": 1, "paused": false,
        "selector": {"matchLabels": {"a": "b"}}, "template": {"spec": {"containers": [
            {"name": "c", "env": [], "resources": {"limits": {"cpu": 1, "memory": "0.5Gi"}}}]}}}});
    let expected = json!({"metadata": {"name": "d"}, "status": {}, "spec": {"strategy": {},
        "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {}, "spec": {"containers": [
            {"name": "c", "resources": {"limits": {"cpu": "1", "memory": "512Mi"}}}]}}}});
    check("apps", "v1", "Deployment", given, Ok(expected));
}

#[test]
fn required_lists_keep_the_difference_between_null_and_empty() {
    for (given, expected) in [
        (json!({}), json!({"metadata": {}, "rules": null})),
        (json!({"rules": []}), json!({"metadata": {}, "rules": []})),
        (
            json!({"rules": [{"verbs": [], "apiGroups": []}, {"resources": ["pods"]}]}),
            json!({"metadata": {}, "rules": [{"verbs": []}, {"resources": ["pods"], "verbs": null}]}),
        ),
    ] {
        check("rbac.authorization.k8s.io", "v1", "Role", given, Ok(expected));
    }
}

#[test]
fn fields_of_embedded_structs_are_left_out_at_zero() {
    let pod = |secret: Value, projected: Value| {
        let reference = |more: &Value| {
            let mut key = json!({"key": "k"});
            key.as_object_mut()
                .expect("it is one")
                .extend(more.as_object().cloned().unwrap_or_default());
            key
        };
        json!({"metadata": {}, "status": {}, "spec": {
            "containers": [{"name": "c", "resources": {}, "env": [
                {"name": "E", "valueFrom": {"secretKeyRef": reference(&secret)}},
                {"name": "F", "valueFrom": {"configMapKeyRef": reference(&secret)}}]}],
            "volumes": [{"name": "v", "projected": projected}]}})
    };
    for (given, written) in [
        (json!({"sources": []}), json!({"sources": []})),
        (json!({}), json!({"sources": null})),
        (json!({"sources": [{"secret": {"name": ""}}]}), json!({"sources": [{"secret": {}}]})),
    ] {
        let expected = pod(json!({}), written);
        check("", "v1", "Pod", pod(json!({"name": ""}), given), Ok(expected));
    }
}

#[test]
fn nothing_is_defaulted() {
    let given = json!({"spec": {"ports": [{"port": 443, "targetPort": "https", "name": ""}]}});
    let expected = json!({"metadata": {}, "spec": {"ports": [{"port": 443, "targetPort": "https"}]}, "status": {"loadBalancer": {}}});
    check("", "v1", "Service", given, Ok(expected));
}

#[test]
fn bounds_of_schemas_are_floats() {
    let schema = |bound: Value, absent: Value| {
        json!({"spec": {"group": "g", "names": {"kind": "K", "plural": "ks"}, "scope": "Cluster",
            "versions": [{"name": "v1", "served": true, "storage": true, "schema":
                {"openAPIV3Schema": {"maximum": bound, "minimum": 0, "default": 0, "title": "",
                    "properties": {"a": absent}}}}]}})
    };
    let mut expected = schema(json!(9_223_372_036_854_775_808_u64), json!({}));
    let written = expected.pointer_mut("/spec/versions/0/schema/openAPIV3Schema");
    written.and_then(Value::as_object_mut).expect("it is there").remove("title");
    expected["metadata"] = json!({});
    expected["status"] = json!({"acceptedNames": {"kind": "", "plural": ""}, "conditions": null, "storedVersions": null});
    let given = schema(json!(i64::MAX), Value::Null);
    check("apiextensions.k8s.io", "v1", "CustomResourceDefinition", given, Ok(expected));
}

#[test]
fn values_of_another_type_are_refused() {
    let given = json!({"spec": {"replicas": "two"}});
    check("apps", "v1", "Deployment", given, Err("DeploymentSpec"));
    let given = json!({"spec": {"template": {"spec": {"containers": [
        {"name": "c", "resources": {"limits": {"cpu": "lots"}}}]}}}});
    check("apps", "v1", "Deployment", given, Err("quantities must match"));
}
