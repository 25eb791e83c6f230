//! Admission on both clusters: the same webhooks, the same cases, the same answers.
use std::time::Duration;

use http::{Method, Request};
use http_body_util::BodyExt as _;
use k8s_testkit::{ClusterKind, clusters, poll};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use self::hooks::Hooks;

mod cases;
mod conversion;
mod hooks;
mod mutations;
mod policies;

/// How long anything may take before a test gives up.
const PATIENCE: Duration = Duration::from_secs(60);

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// An answer of a cluster.
#[derive(Debug)]
struct Answer {
    status: u16,
    warnings: Vec<String>,
    body: Value,
}

async fn ask(client: &Client, line: &str, body: &Value) -> Answer {
    let (method, path) = line.split_once(' ').expect("a method and a path");
    let content_type = match method {
        "PATCH" => "application/merge-patch+json",
        _ => "application/json",
    };
    let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let request = Request::builder()
        .method(Method::from_bytes(method.as_bytes()).expect("a method"))
        .uri(path)
        .header("content-type", content_type)
        .body(Body::from(bytes))
        .expect("a request");
    let answered = tokio::time::timeout(PATIENCE, client.send(request));
    let response = answered.await.expect("an answer in time").expect("an answer");
    let status = response.status().as_u16();
    let warnings = response
        .headers()
        .get_all("warning")
        .iter()
        .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
        .collect();
    let bytes = response.into_body().collect().await.expect("a body").to_bytes();
    Answer { status, warnings, body: serde_json::from_slice(&bytes).unwrap_or_default() }
}

/// Configures the webhook of a case, and waits until it is in effect: a second webhook of the same
/// configuration refuses a probe from then on.
async fn configure(client: &Client, hooks: &Hooks, case: &cases::Case, index: usize) {
    let resource = if case.mutating { "mutating" } else { "validating" };
    let config =
        |path: &str| json!({"url": format!("{}{path}", hooks.url), "caBundle": hooks.ca_bundle});
    let mut webhook = json!({
        "name": "case.hooks.test",
        "clientConfig": config(case.path),
        "rules": [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 30,
        "objectSelector": {"matchExpressions": [{"key": "probe", "operator": "DoesNotExist"}]},
    });
    merge(&mut webhook, &parse(case.extra));
    let probe = json!({
        "name": format!("probe{index}.hooks.test"),
        "clientConfig": config("/deny"),
        "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "objectSelector": {"matchLabels": {"probe": "yes"}},
    });
    let kind = if case.mutating { "Mutating" } else { "Validating" };
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": format!("{kind}WebhookConfiguration"),
        "metadata": {"name": "case"},
        "webhooks": [webhook, probe],
    });
    let path = format!("/apis/admissionregistration.k8s.io/v1/{resource}webhookconfigurations");
    let answer = ask(client, &format!("POST {path}"), &configuration).await;
    assert_eq!(answer.status, 201, "{}: {}", case.path, answer.body);
    let wanted = format!(
        "admission webhook \"probe{index}.hooks.test\" denied the request without explanation"
    );
    let has_effect = || async {
        let answer = ask_probe(client).await;
        (answer.body["message"] == wanted.as_str()).then_some(())
    };
    poll("the effect of the configuration", has_effect).await.expect("it takes effect");
}

/// Asks whether an object with the label of probes may be created.
async fn ask_probe(client: &Client) -> Answer {
    let map = json!({"metadata": {"name": "probe", "labels": {"probe": "yes"}}});
    ask(client, &format!("POST {MAPS}?dryRun=All"), &map).await
}

/// Deletes the configuration of a case, and waits until it is no longer in effect. That of the next
/// case may be of the other kind, which takes effect independently.
async fn deconfigure(client: &Client, case: &cases::Case) {
    let resource = if case.mutating { "mutating" } else { "validating" };
    let path =
        format!("/apis/admissionregistration.k8s.io/v1/{resource}webhookconfigurations/case");
    deleted(client, &path).await;
    let is_over = || async {
        let answer = ask_probe(client).await;
        (answer.status == 201).then_some(())
    };
    poll("the end of the configuration", is_over).await.expect("it ends");
}

async fn deleted(client: &Client, path: &str) {
    let answer = ask(client, &format!("DELETE {path}"), &Value::Null).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
}

fn parse(text: &str) -> Value {
    serde_json::from_str(text).expect("the cases are JSON")
}

/// Puts the fields of one document into another.
fn merge(into: &mut Value, fields: &Value) {
    for (field, value) in fields.as_object().expect("fields") {
        into[field] = value.clone();
    }
}

/// What of an answer is compared.
fn shown(answer: Answer, hooks: &Hooks) -> Value {
    let Answer { status, warnings, mut body } = answer;
    if body["kind"] != "Status" {
        body = json!({"labels": body["metadata"]["labels"], "data": body["data"]});
    }
    let text = json!({"status": status, "warnings": warnings, "body": body}).to_string();
    serde_json::from_str(&text.replace(&hooks.url, "https://hooks")).expect("JSON stays JSON")
}

/// Makes the pod `p`, as soon as there is a service account for it.
async fn make_pod(client: &Client) {
    let pod = json!({
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "main", "image": "main"}]},
    });
    let is_made = || async {
        let answer = ask(client, "POST /api/v1/namespaces/default/pods", &pod).await;
        (answer.status == 201).then_some(())
    };
    poll("the pod", is_made).await.expect("it is created");
}

async fn run(kind: ClusterKind) -> Vec<(String, Value)> {
    let cluster = kind.start().await.expect("the cluster starts");
    let client = cluster.client();
    let hooks = Hooks::listen().await;
    let answer = ask(
        &client,
        &format!("POST {MAPS}"),
        &json!({"metadata": {"name": "old"}, "data": {"k": "v"}}),
    )
    .await;
    assert_eq!(answer.status, 201);
    make_pod(&client).await;
    let mut answers = Vec::new();
    for (index, case) in cases::CASES.iter().enumerate() {
        configure(&client, &hooks, case, index).await;
        let answer = ask(&client, &case.line.replace("MAPS", MAPS), &parse(case.body)).await;
        answers.push((
            format!("{index} {} {} {}", case.path, case.line, case.extra),
            shown(answer, &hooks),
        ));
        deconfigure(&client, case).await;
    }
    answers
}

/// Every case has the same answer on every cluster, and the one that is written down.
#[tokio::test(flavor = "multi_thread")]
async fn webhooks_decide_alike_on_all_clusters() {
    let mut wrong = Vec::new();
    for kind in clusters() {
        for ((name, found), case) in run(kind).await.into_iter().zip(cases::CASES) {
            let expected = parse(case.expected);
            if found != expected {
                wrong.push(format!("{kind}: {name}\n  found    {found}\n  expected {expected}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
