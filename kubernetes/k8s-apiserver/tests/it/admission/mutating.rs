//! MutatingAdmissionPolicies: what they change, in which order, and how they go with webhooks. The cases
//! of one policy are in `k8s-testkit`, whose tests compare them with kube-apiserver.
use serde_json::json;

use super::hooks::{cluster, configure, webhook};
use crate::cluster::TestCluster;

const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const REQUESTS: &str = "/apis/policies.test/v1/namespaces/default/requests";

/// Creates a policy with one mutation and binds it to everything that it matches.
fn bind(cluster: &TestCluster, name: &str, reinvocation: &str, expression: &str) {
    let mutation = if expression.starts_with('[') {
        json!({"patchType": "JSONPatch", "jsonPatch": {"expression": expression}})
    } else {
        json!({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}})
    };
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "reinvocationPolicy": reinvocation,
            "matchConstraints": {"resourceRules": [{
                "operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"],
            }]},
            "mutations": [mutation],
        },
    });
    cluster.check(&format!("POST {GROUP}/mutatingadmissionpolicies"), &policy.to_string(), 201, "");
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name},
    });
    let path = format!("POST {GROUP}/mutatingadmissionpolicybindings");
    cluster.check(&path, &binding.to_string(), 201, "");
}

#[test]
fn policies_stamp_the_user_into_custom_resources() {
    let requester = json!({"type": "object", "properties": {
        "username": {"type": "string"},
        "groups": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
    }});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "requests.policies.test"},
        "spec": {
            "group": "policies.test",
            "scope": "Namespaced",
            "names": {"plural": "requests", "kind": "Request"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
                "openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {"requester": requester}},
                }},
            }}],
        },
    });
    let requester = "Object.spec.requester{username: request.userInfo.username, groups: request.userInfo.groups}";
    for expression in [
        format!("[JSONPatch{{op: 'add', path: '/spec/requester', value: {requester}}}]"),
        format!("Object{{spec: Object.spec{{requester: {requester}}}}}"),
    ] {
        let cluster = TestCluster::new();
        let path = "POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        cluster.check(path, &definition.to_string(), 201, "");
        bind(&cluster, "stamp", "Never", &expression);
        let forged = r#"{"apiVersion": "policies.test/v1", "kind": "Request", "metadata": {"name": "a"},
            "spec": {"requester": {"username": "somebody"}}}"#;
        let expected = r#"{"spec": {"requester": {"username": "system:admin", "groups": ["system:masters", "system:authenticated"]}}}"#;
        cluster.check(&format!("POST {REQUESTS}"), forged, 201, expected);
        cluster.check(&format!("GET {REQUESTS}/a"), "", 200, expected);
    }
}

/// An expression that appends to the text at `data.trace`.
fn trace(text: &str) -> String {
    format!(
        "Object{{data: {{'trace': (has(object.data) && 'trace' in object.data ? object.data.trace : '') + '{text}'}}}}"
    )
}

#[test]
fn policies_run_in_the_order_of_their_names_and_again_when_later_ones_changed_the_object() {
    for (policies, expected) in [
        (vec![("b", "Never"), ("a", "Never"), ("c", "Never")], "abc"),
        (vec![("b", "IfNeeded"), ("a", "Never"), ("c", "Never")], "abcb"),
        (vec![("b", "IfNeeded"), ("a", "IfNeeded"), ("c", "IfNeeded")], "abcabc"),
    ] {
        let cluster = TestCluster::new();
        for (name, reinvocation) in policies {
            bind(&cluster, name, reinvocation, &trace(name));
        }
        let expected = json!({"data": {"trace": expected}}).to_string();
        cluster.check(&format!("POST {MAPS}"), r#"{"metadata": {"name": "a"}}"#, 201, &expected);
    }
}

#[test]
fn policies_run_before_webhooks_and_each_is_called_again_for_the_other() {
    // The webhook replaces the data by the number of labels that it finds.
    let label = "Object{metadata: Object.metadata{labels: {'l' + string(has(object.metadata.labels) ? size(object.metadata.labels) : 0): 'x'}}}";
    for (of_policy, of_webhook, calls, labels, counted) in [
        ("Never", "Never", 1, 1, "1"),
        ("IfNeeded", "Never", 1, 2, "1"),
        ("IfNeeded", "IfNeeded", 2, 2, "2"),
    ] {
        let (cluster, asked) = cluster();
        bind(&cluster, "label", of_policy, label);
        let extra = json!({"reinvocationPolicy": of_webhook}).to_string();
        configure(&cluster, "Mutating", "hooks", &[webhook("/count", &extra)]);
        let expected = json!({"data": {"labels": counted}}).to_string();
        let map = r#"{"metadata": {"name": "a"}}"#;
        let made = cluster.check(&format!("POST {MAPS}"), map, 201, &expected);
        assert_eq!(made["metadata"]["labels"].as_object().map(serde_json::Map::len), Some(labels));
        assert_eq!(asked.take().len(), calls, "{of_policy} {of_webhook}");
    }
}

#[test]
fn what_configures_admission_and_deletions_are_not_changed() {
    let cluster = TestCluster::new();
    bind(&cluster, "a", "Never", "Object{metadata: Object.metadata{labels: {'l': 'x'}}}");
    bind(&cluster, "b", "Never", "Object{}");
    let path = format!("GET {GROUP}/mutatingadmissionpolicies/b");
    let policy = cluster.check(&path, "", 200, "");
    assert_eq!(policy["metadata"].get("labels"), None);
    let labelled = r#"{"metadata": {"labels": {"l": "x"}}}"#;
    cluster.check(&format!("POST {MAPS}"), r#"{"metadata": {"name": "a"}}"#, 201, labelled);
    cluster.check(&format!("DELETE {MAPS}/a"), "", 200, "");
}
