//! MutatingAdmissionPolicies on both clusters.
use k8s_testkit::{ClusterKind, clusters, poll};
use kube::Client;
use serde_json::{Map, Value, json};

use super::{Answer, MAPS, ask, merge, parse};

/// The cases: each the spec of a policy, its mutations as expressions, and of a binding, further
/// policies, an object that is created at a path, and the answer of kube-apiserver. Those without an
/// object are refused.
const CASES: &str = include_str!("mutations.json");

const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies";
const BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings";
const REQUESTS: &str = "/apis/mutations.test/v1/namespaces/default/requests";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// The schema of `spec` of the custom resource.
const SPEC: &str = r#"{"type": "object", "properties": {
    "size": {"type": "integer", "maximum": 100},
    "mode": {"type": "string", "default": "slow"},
    "requester": {"type": "object", "properties": {
        "username": {"type": "string"},
        "groups": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}}},
    "atomic": {"type": "array", "items": {"type": "string"}},
    "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": {"type": "string"}}},
    "named": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
        "items": {"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string"}, "value": {"type": "integer"}}}},
    "labels": {"type": "object", "additionalProperties": {"type": "string"}}}}"#;

fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "requests.mutations.test"},
        "spec": {
            "group": "mutations.test",
            "scope": "Namespaced",
            "names": {"plural": "requests", "kind": "Request"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
                "openAPIV3Schema": {"type": "object", "properties": {"spec": parse(SPEC)}},
            }}],
        },
    })
}

/// A mutation with this expression: a JSON patch if that is a list.
fn mutation(expression: &Value) -> Value {
    let Some(text) = expression.as_str() else { return expression.clone() };
    if text.starts_with('[') {
        json!({"patchType": "JSONPatch", "jsonPatch": {"expression": text}})
    } else {
        json!({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": text}})
    }
}

fn policy(name: &str, spec: &Value) -> Value {
    let mut complete = json!({
        "reinvocationPolicy": "Never",
        "matchConstraints": {
            "resourceRules": [{
                "operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"],
                "resources": ["configmaps", "requests", "deployments"],
            }],
            "objectSelector": {"matchExpressions": [{"key": "probe", "operator": "DoesNotExist"}]},
        },
    });
    merge(&mut complete, spec);
    if let Some(mutations) = complete["mutations"].as_array_mut() {
        mutations.iter_mut().for_each(|expression| *expression = mutation(expression));
    }
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": complete,
    })
}

/// Creates a policy and its binding; returns the refusal if one of them is refused.
async fn create(client: &Client, name: &str, spec: &Value, bound: &Value) -> Result<(), Answer> {
    let mut binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name},
    });
    merge(&mut binding["spec"], bound);
    for (path, object) in [(BINDINGS, binding), (POLICIES, policy(name, spec))] {
        let answer = ask(client, &format!("POST {path}"), &object).await;
        if answer.status != 201 {
            return Err(answer);
        }
    }
    Ok(())
}

/// Waits until a policy that was created after those of a case changes a probe, and until the server
/// knows the fields of the custom resource.
async fn wait_for_probe(client: &Client, index: usize) {
    let label = format!("probe-{index}");
    let expression = format!(
        "Object{{metadata: Object.metadata{{labels: Object.metadata.labels{{probe: \"{label}\"}}}}}}"
    );
    let spec = json!({
        "mutations": [expression],
        "matchConstraints": {
            "resourceRules": [{
                "operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"],
                "resources": ["configmaps", "requests"],
            }],
            "objectSelector": {"matchLabels": {"probe": "yes"}},
        },
    });
    create(client, "probe", &spec, &json!({})).await.expect("the probe is as it should be");
    let mut probe = json!({"metadata": {"name": "probe", "labels": {"probe": "yes"}}});
    for path in [MAPS, REQUESTS] {
        if path == REQUESTS {
            merge(&mut probe, &json!({"apiVersion": "mutations.test/v1", "kind": "Request"}));
        }
        let has_effect = || async {
            let answer = ask(client, &format!("POST {path}?dryRun=All"), &probe).await;
            (answer.body["metadata"]["labels"]["probe"] == label.as_str()).then_some(())
        };
        poll("the effect of the policy", has_effect).await.expect("it takes effect");
    }
}

/// What of an answer is compared: the error, or what policies may have changed.
fn shown(answer: Answer) -> Value {
    let Answer { status, body, .. } = answer;
    if body["kind"] == "Status" {
        return json!({"status": status, "body": body});
    }
    let mut shown = Map::from_iter([("status".to_owned(), json!(status))]);
    for pointer in ["/metadata/labels", "/metadata/annotations", "/data", "/immutable", "/spec"] {
        if let Some(value) = body.pointer(pointer) {
            shown.insert(pointer[1..].to_owned(), value.clone());
        }
    }
    Value::Object(shown)
}

async fn run(kind: ClusterKind, cases: &[Value]) -> Vec<Value> {
    let cluster = kind.start().await.expect("the cluster starts");
    let client = cluster.client();
    let answer = ask(&client, &format!("POST {DEFINITIONS}"), &definition()).await;
    assert_eq!(answer.status, 201, "{}", answer.body);
    let params = json!({"metadata": {"name": "params"}, "data": {"k": "from params"}});
    let answer = ask(&client, &format!("POST {MAPS}"), &params).await;
    assert_eq!(answer.status, 201, "{}", answer.body);
    let mut answers = Vec::new();
    for (index, case) in cases.iter().enumerate() {
        let mut refused = None;
        let mut configured = Vec::new();
        let binding = if case["binding"].is_null() { json!({}) } else { case["binding"].clone() };
        let others = case["others"].as_object().cloned().unwrap_or_default();
        let first = [("case".to_owned(), case["policy"].clone())];
        for (name, spec) in first.into_iter().chain(others) {
            let bound = if name == "case" { binding.clone() } else { json!({}) };
            configured.push(format!("{BINDINGS}/{name}"));
            match create(&client, &name, &spec, &bound).await {
                Ok(()) => configured.push(format!("{POLICIES}/{name}")),
                Err(refusal) => refused = Some(refusal),
            }
        }
        let answer = match (refused, case["path"].as_str()) {
            (Some(refusal), _) => refusal,
            (None, None) => ask(&client, &format!("GET {POLICIES}/case"), &Value::Null).await,
            (None, Some(path)) => {
                configured.extend([format!("{BINDINGS}/probe"), format!("{POLICIES}/probe")]);
                wait_for_probe(&client, index).await;
                let path = path.replace("MAPS", MAPS).replace("REQUESTS", REQUESTS);
                ask(&client, &format!("POST {path}?dryRun=All"), &case["object"]).await
            }
        };
        answers.push(shown(answer));
        for path in configured {
            // One that was refused is not there.
            ask(&client, &format!("DELETE {path}"), &Value::Null).await;
        }
    }
    answers
}

/// Every case has the same answer on every cluster, and the one that is written down.
#[tokio::test(flavor = "multi_thread")]
async fn mutating_policies_change_objects_alike_on_all_clusters() {
    let cases = parse(CASES);
    let cases = cases.as_array().expect("the file is a list of cases");
    let mut wrong = Vec::new();
    for kind in clusters() {
        for (found, case) in run(kind, cases).await.iter().zip(cases) {
            let expected = &case["expected"];
            if found != expected {
                let policy = &case["policy"];
                wrong.push(format!("{kind}: {policy}\n  found    {found}\n  expected {expected}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
