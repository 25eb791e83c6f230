//! Conversion webhooks on both clusters.
use k8s_testkit::{ClusterKind, clusters, poll};
use kube::Client;
use serde_json::{Value, json};

use super::ask;
use super::hooks::Hooks;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// How the webhook answers, and what comes of a read in the other version: its status, and its
/// message or what was converted.
const CASES: &[(&str, u16, &str)] = &[
    ("/convert", 200, r#"{"width":1} {"converted":"v2"} null"#),
    ("/convert-refuse", 500, "conversion webhook for GROUP/v1, Kind=Gauge failed: too wide"),
    (
        "/convert-silent",
        500,
        "conversion webhook for GROUP/v1, Kind=Gauge failed: response.result.status was 'Failure', not 'Success'",
    ),
    (
        "/convert-drop",
        500,
        "conversion webhook for GROUP/v1, Kind=Gauge returned 0 objects, expected 1",
    ),
    (
        "/convert-rename",
        500,
        "conversion webhook for GROUP/v1, Kind=Gauge returned invalid object: must have the same name: a != other",
    ),
    (
        "/convert-wrong",
        500,
        "conversion webhook for GROUP/v1, Kind=Gauge returned invalid object at index 0: invalid groupVersion (expected GROUP/v2, received hooks.test/v3)",
    ),
    (
        "/missing",
        500,
        "conversion webhook for GROUP/v1, Kind=Gauge failed: the server could not find the requested resource",
    ),
];

fn definition(hooks: &Hooks, path: &str, group: &str) -> Value {
    let version = |name: &str, field: &str| {
        json!({
            "name": name,
            "served": true,
            "storage": name == "v1",
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {
                "type": "object",
                "properties": {field: {"type": "integer"}},
            }}}},
        })
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("gauges.{group}")},
        "spec": {
            "group": group,
            "scope": "Cluster",
            "names": {"plural": "gauges", "singular": "gauge", "kind": "Gauge", "listKind": "GaugeList"},
            "versions": [version("v1", "size"), version("v2", "width")],
            "conversion": {"strategy": "Webhook", "webhook": {
                "clientConfig": {"url": format!("{}{path}", hooks.url), "caBundle": hooks.ca_bundle},
                "conversionReviewVersions": ["v1"],
            }},
        },
    })
}

async fn create_when_served(client: &Client, group: &str) {
    let object = json!({
        "apiVersion": format!("{group}/v1"),
        "kind": "Gauge",
        "metadata": {"name": "a"},
        "spec": {"size": 1},
    });
    let is_made = || async {
        let answer = ask(client, &format!("POST /apis/{group}/v1/gauges"), &object).await;
        (answer.status == 201).then_some(())
    };
    poll("the kind", is_made).await.expect("it is served");
}

async fn run(kind: ClusterKind) -> Vec<(u16, String)> {
    let cluster = kind.start().await.expect("the cluster starts");
    let client = cluster.client();
    let hooks = Hooks::listen().await;
    let mut answers = Vec::new();
    for (index, (path, _, _)) in CASES.iter().enumerate() {
        let group = format!("g{index}.hooks.test");
        let answer =
            ask(&client, &format!("POST {DEFINITIONS}"), &definition(&hooks, path, &group)).await;
        assert_eq!(answer.status, 201, "{}", answer.body);
        create_when_served(&client, &group).await;
        let answer = ask(&client, &format!("GET /apis/{group}/v2/gauges/a"), &Value::Null).await;
        let body = &answer.body;
        let shown = match body["message"].as_str() {
            // What comes before is of the storage, which the embedded server does not have.
            Some(message) => {
                let cause = message.find("conversion webhook").unwrap_or_default();
                message[cause..].replace(&group, "GROUP")
            }
            None => {
                let metadata = &body["metadata"];
                format!("{} {} {}", body["spec"], metadata["annotations"], metadata["finalizers"])
            }
        };
        answers.push((answer.status, shown));
    }
    answers
}

/// Every case has the same answer on every cluster, and the one that is written down.
#[tokio::test(flavor = "multi_thread")]
async fn conversions_are_alike_on_all_clusters() {
    let expected: Vec<(u16, String)> =
        CASES.iter().map(|(_, status, shown)| (*status, (*shown).to_owned())).collect();
    for kind in clusters() {
        let found = run(kind).await;
        assert_eq!(found, expected, "{kind}");
    }
}
