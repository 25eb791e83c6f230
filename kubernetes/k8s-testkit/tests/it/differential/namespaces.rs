//! Random namespaces that are deleted with what is in them: what is left, and what the namespace says
//! of it, has to be the same.
//!
//! A real namespace controller takes its time, so the real server is asked until it says what the
//! embedded one says, or patience ends.

use k8s_testkit::{ClusterKind, TestCluster, clusters, poll};
use kube::Client;
use serde_json::{Map, Value, json};

use super::random::Random;
use super::request::{Body, Request};
use super::run::send;

/// Namespaces of a run.
const NAMESPACES: u64 = 16;
/// What lies in a namespace: the collection, and a body without its name.
const KINDS: [(&str, &str); 4] = [
    ("/api/v1/namespaces/NS/configmaps", r#"{"metadata": {}}"#),
    ("/api/v1/namespaces/NS/secrets", r#"{"metadata": {}, "type": "Opaque"}"#),
    ("/apis/coordination.k8s.io/v1/namespaces/NS/leases", r#"{"metadata": {}, "spec": {}}"#),
    (
        "/api/v1/namespaces/NS/services",
        r#"{"metadata": {}, "spec": {"clusterIP": "None", "ports": [{"port": 80}]}}"#,
    ),
];
const FINALIZERS: [&str; 2] = ["example.com/one", "example.com/two"];

/// An object and its finalizers.
struct Member {
    collection: String,
    name: String,
    body: Value,
}

struct Story {
    namespace: String,
    /// Whether the namespace itself is held by a finalizer of its metadata.
    held: bool,
    members: Vec<Member>,
}

fn story(seed: u64) -> Story {
    let mut random = Random::new(seed, 7);
    let namespace = format!("n{seed}");
    let members = (0..random.below(6))
        .map(|index| {
            let (collection, body) = *random.pick(&KINDS);
            let name = format!("m{index}");
            let mut body: Value = serde_json::from_str(body).expect("the bodies are JSON");
            body["metadata"]["name"] = name.clone().into();
            let finalizers: Vec<&str> =
                FINALIZERS.into_iter().filter(|_| random.percent(35)).collect();
            if !finalizers.is_empty() {
                body["metadata"]["finalizers"] = json!(finalizers);
            }
            Member { collection: collection.replace("NS", &namespace), name, body }
        })
        .collect();
    Story { namespace, held: random.percent(25), members }
}

async fn ask(
    client: &Client,
    method: &'static str,
    path: &str,
    body: Option<Value>,
) -> (u16, Value) {
    let patch = "application/merge-patch+json";
    let request = Request {
        method,
        target: path.to_owned(),
        content_type: if method == "PATCH" { patch } else { "application/json" },
        body: body.map_or(Body::Nothing, Body::Document),
    };
    let answer = send(client, &request, &Value::Null, "").await.expect("the server answers");
    (answer.code, answer.body)
}

async fn make(client: &Client, story: &Story) {
    let mut metadata = json!({"name": story.namespace});
    if story.held {
        metadata["finalizers"] = json!(["example.com/held"]);
    }
    let namespace = json!({"metadata": metadata});
    let (code, answer) = ask(client, "POST", "/api/v1/namespaces", Some(namespace)).await;
    assert_eq!(code, 201, "{answer}");
    for member in &story.members {
        let (code, answer) =
            ask(client, "POST", &member.collection, Some(member.body.clone())).await;
        assert_eq!(code, 201, "{answer}");
    }
}

/// What is left: the namespace with its conditions, and the objects with their finalizers.
async fn left(client: &Client, story: &Story) -> Value {
    let mut out = Map::new();
    let path = format!("/api/v1/namespaces/{}", story.namespace);
    let (code, namespace) = ask(client, "GET", &path, None).await;
    if code == 200 {
        let mut status = namespace["status"].clone();
        for condition in status["conditions"].as_array_mut().into_iter().flatten() {
            condition["lastTransitionTime"].take();
        }
        let finalizers = namespace["metadata"]["finalizers"].clone();
        out.insert("namespace".to_owned(), json!([status, finalizers, namespace["spec"]]));
    }
    for member in &story.members {
        let path = format!("{}/{}", member.collection, member.name);
        let (code, object) = ask(client, "GET", &path, None).await;
        if code == 200 {
            let is_ending = object["metadata"].get("deletionTimestamp").is_some();
            out.insert(path, json!([is_ending, object["metadata"]["finalizers"]]));
        }
    }
    Value::Object(out)
}

async fn agree(embedded: &Client, real: &Client, story: &Story) -> Result<(), String> {
    let agreed = poll("the same on both servers", || async {
        (left(embedded, story).await == left(real, story).await).then_some(())
    });
    if agreed.await.is_ok() {
        return Ok(());
    }
    let (ours, theirs) = (left(embedded, story).await, left(real, story).await);
    Err(format!("\n  embedded {ours}\n  real     {theirs}"))
}

async fn check(embedded: Client, real: Client, seed: u64) -> Option<String> {
    let story = story(seed);
    let path = format!("/api/v1/namespaces/{}", story.namespace);
    for client in [&embedded, &real] {
        make(client, &story).await;
        let (code, answer) = ask(client, "DELETE", &path, None).await;
        assert_eq!(code, 200, "{answer}");
    }
    let tell = |when: &str, why: String| Some(format!("namespace {seed}, {when}:{why}"));
    if let Err(why) = agree(&embedded, &real, &story).await {
        return tell("deleted", why);
    }
    // One finalizer after the other goes, and with the last the namespace.
    let nothing = json!({"metadata": {"finalizers": null}});
    let held = story.members.iter().filter(|it| it.body["metadata"].get("finalizers").is_some());
    let mut paths: Vec<String> =
        held.map(|member| format!("{}/{}", member.collection, member.name)).collect();
    if story.held {
        paths.push(path.clone());
    }
    for held in paths {
        for client in [&embedded, &real] {
            ask(client, "PATCH", &held, Some(nothing.clone())).await;
        }
        if let Err(why) = agree(&embedded, &real, &story).await {
            return tell(&format!("{held} let go"), why);
        }
    }
    let (code, answer) = ask(&embedded, "GET", &path, None).await;
    (code != 404).then(|| format!("namespace {seed} is still there: {answer}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_namespaces_end_as_a_real_namespace_controller_ends_them() {
    if !clusters().contains(&ClusterKind::ControlPlane) {
        return;
    }
    let embedded = TestCluster::embedded();
    let real = TestCluster::control_plane().await.expect("the control plane starts");
    let (ours, theirs) = (embedded.client(), real.client());
    let checks = (0..NAMESPACES).map(|seed| check(ours.clone(), theirs.clone(), seed));
    let failures: Vec<String> =
        futures::future::join_all(checks).await.into_iter().flatten().collect();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}
