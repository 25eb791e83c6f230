//! ValidatingAdmissionPolicies, and conditions of webhooks.
use serde_json::{Value, json};

use super::hooks::{cluster, configure, webhook};
use crate::cluster::TestCluster;

const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
const BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const MAP: &str = r#"{"metadata": {"name": "a", "labels": {"size": "5"}}, "data": {"k": "v"}}"#;

fn policy(spec: &str) -> Value {
    let mut policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "p"},
        "spec": serde_json::from_str::<Value>(spec).unwrap(),
    });
    policy["spec"]["matchConstraints"] = json!({"resourceRules": [
        {"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]},
    ]});
    policy
}

/// A cluster with a policy that is bound to everything that it matches.
fn bound(spec: &str, actions: &[&str]) -> TestCluster {
    let cluster = TestCluster::new();
    cluster.check(&format!("POST {POLICIES}"), &policy(spec).to_string(), 201, "");
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "b"},
        "spec": {"policyName": "p", "validationActions": actions},
    });
    cluster.check(&format!("POST {BINDINGS}"), &binding.to_string(), 201, "");
    cluster
}

#[test]
fn what_a_policy_says_decides() {
    for (spec, status, expected) in [
        (r#"{"validations": [{"expression": "object.data.k == 'v'"}]}"#, 201, "{}"),
        (
            r#"{"validations": [{"expression": "object.data.k == 'w'"}]}"#,
            422,
            r#"{"reason": "Invalid", "message": "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: failed expression: object.data.k == 'w'"}"#,
        ),
        (
            r#"{"validations": [{"expression": "false", "message": "never", "reason": "Forbidden"}]}"#,
            403,
            r#"{"reason": "Forbidden", "code": 403}"#,
        ),
        (
            r#"{"variables": [{"name": "size", "expression": "int(object.metadata.labels.size)"}, {"name": "twice", "expression": "variables.size * 2"}],
                "validations": [{"expression": "variables.twice < 10", "messageExpression": "'too large: ' + string(variables.twice)"}]}"#,
            422,
            r#"{"message": "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: too large: 10"}"#,
        ),
        (
            r#"{"validations": [{"expression": "object.spec.x == 1"}]}"#,
            422,
            r#"{"message": "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: expression 'object.spec.x == 1' resulted in error: no such key: spec"}"#,
        ),
        (
            r#"{"failurePolicy": "Ignore", "validations": [{"expression": "object.spec.x == 1"}]}"#,
            201,
            "{}",
        ),
        (
            r#"{"matchConditions": [{"name": "c", "expression": "request.operation != 'CREATE'"}], "validations": [{"expression": "false"}]}"#,
            201,
            "{}",
        ),
        (
            r#"{"validations": [{"expression": "authorizer.requestResource.check('create').allowed() && authorizer.group('').resource('pods').check('get').allowed()"}]}"#,
            201,
            "{}",
        ),
    ] {
        let cluster = bound(spec, &["Deny"]);
        cluster.check(&format!("POST {MAPS}"), MAP, status, expected);
    }
}

#[test]
fn a_policy_may_only_warn() {
    let cluster =
        bound(r#"{"validations": [{"expression": "false", "message": "never"}]}"#, &["Warn"]);
    let response = cluster.send(crate::cluster::Ask {
        line: &format!("POST {MAPS}"),
        body: MAP,
        ..crate::cluster::Ask::default()
    });
    assert_eq!(response.status(), 201);
    assert_eq!(
        response.headers()["warning"],
        "299 - \"Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': never\""
    );
}

#[test]
fn expressions_that_cannot_be_compiled_are_refused() {
    let cluster = TestCluster::new();
    for (spec, expected) in [
        (
            r#"{"validations": [{"expression": "1"}]}"#,
            r#"{"message": "ValidatingAdmissionPolicy.admissionregistration.k8s.io \"p\" is invalid: spec.validations[0].expression: Invalid value: \"1\": must evaluate to bool but got int"}"#,
        ),
        (
            r#"{"validations": [{"expression": "true", "messageExpression": "object.x"}]}"#,
            r#"{"message": "ValidatingAdmissionPolicy.admissionregistration.k8s.io \"p\" is invalid: spec.validations[0].messageExpression: Invalid value: \"object.x\": must evaluate to string but got dyn"}"#,
        ),
        (
            r#"{"validations": [{"expression": "nothing"}]}"#,
            r#"{"message": "ValidatingAdmissionPolicy.admissionregistration.k8s.io \"p\" is invalid: spec.validations[0].expression: Invalid value: \"nothing\": compilation failed: ERROR: <input>:1:1: undeclared reference to 'nothing'..."}"#,
        ),
    ] {
        cluster.check(&format!("POST {POLICIES}"), &policy(spec).to_string(), 422, expected);
    }
}

#[test]
fn conditions_decide_whether_a_webhook_is_asked() {
    for (conditions, status, is_asked) in [
        (r#"[{"name": "c", "expression": "object.data.k == 'v'"}]"#, 201, true),
        (r#"[{"name": "c", "expression": "object.data.k == 'w'"}]"#, 201, false),
        (r#"[{"name": "c", "expression": "object.spec.x == 1"}]"#, 403, false),
        (
            r#"[{"name": "c", "expression": "object.spec.x == 1"}, {"name": "d", "expression": "false"}]"#,
            201,
            false,
        ),
    ] {
        let (cluster, asked) = cluster();
        let extra = format!(r#"{{"matchConditions": {conditions}}}"#);
        configure(&cluster, "Validating", "hooks", &[webhook("/allow", &extra)]);
        cluster.check(&format!("POST {MAPS}"), MAP, status, "");
        assert_eq!(!asked.take().is_empty(), is_asked, "{conditions}");
    }
}
