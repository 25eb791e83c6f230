//! Generated requests of users with few permissions: every verb on every kind of path, encoded and
//! repeated parameters. Both servers allow and refuse the same.
//!
//! Only whether and how a request is refused is compared: the status, and the message of a refusal
//! by authorization. What is answered is the matter of the other comparisons.
use http_body_util::BodyExt as _;
use k8s_testkit::{ClusterKind, TestCluster, clusters};
use kube::Client;
use serde_json::Value;

use super::random::Random;
use super::setting;
use crate::access::{content_type, set_up};

/// Requests of a run, unless set otherwise.
const REQUESTS: usize = 2_000;

const USERS: [&str; 6] = ["nobody", "wanda", "mia", "vera", "pat", "una"];
const METHODS: [&str; 10] =
    ["GET", "GET", "GET", "GET", "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];
const ROOTS: [&str; 6] =
    ["/api/v1", "/api/v1", "/api/v1", "/apis/apps/v1", "/%61pi/v1", "/api%2Fv1"];
const PREFIXES: [&str; 5] = ["", "", "", "/watch", "/%77atch"];
const SCOPES: [&str; 5] =
    ["", "/namespaces/default", "/namespaces/default", "/namespaces/none", "/%6eamespaces/default"];
const RESOURCES: [&str; 10] = [
    "secrets",
    "secrets",
    "secrets",
    "sec%72ets",
    "configmaps",
    "pods",
    "serviceaccounts",
    "namespaces",
    "deployments",
    "nothing",
];
const NAMES: [&str; 6] = ["", "", "/mine", "/other", "/m%69ne", "/default"];
const SUBRESOURCES: [&str; 6] = ["", "", "/status", "/token", "/scale", "/nothing"];
const PARAMETERS: [&str; 18] = [
    "watch",
    "watch=true",
    "wat%63h=true",
    "watch=false",
    "watch=FALSE",
    "watch=0",
    "fieldSelector=metadata.name%3Dmine",
    "fieldSelector=metadata.name%3Dmine",
    "field%53elector=metadata.name%3Dmine",
    "fieldSelector=metadata.name%3Dother",
    "fieldSelector=",
    "field%53elector=",
    "fieldSelector=%zz",
    "labelSelector=((",
    "limit=x",
    "limit=1",
    "dryRun=All",
    "fieldManager=f",
];

/// A generated request.
#[derive(Clone, Debug)]
struct GeneratedRequest {
    user: &'static str,
    method: &'static str,
    target: String,
    body: String,
}

fn generate(random: &mut Random) -> GeneratedRequest {
    let method = *random.pick(&METHODS);
    let (resource, name) = (*random.pick(&RESOURCES), *random.pick(&NAMES));
    let subresource = if name.is_empty() { "" } else { *random.pick(&SUBRESOURCES) };
    let mut target = format!(
        "{}{}{}/{resource}{name}{subresource}",
        random.pick(&ROOTS),
        random.pick(&PREFIXES),
        random.pick(&SCOPES)
    );
    for index in 0..random.below(4) {
        target.push_str(if index == 0 { "?" } else { "&" });
        target.push_str(random.pick::<&str>(&PARAMETERS));
    }
    let kind = match resource {
        "configmaps" => "ConfigMap",
        "pods" => "Pod",
        "serviceaccounts" => "ServiceAccount",
        "namespaces" => "Namespace",
        _ => "Secret",
    };
    let name = name.trim_start_matches('/').replace("%69", "i");
    let body = match method {
        "POST" | "PUT" | "PATCH" => {
            format!(r#"{{"apiVersion": "v1", "kind": "{kind}", "metadata": {{"name": "{name}"}}}}"#)
        }
        _ => String::new(),
    };
    let user = *random.pick(&USERS);
    GeneratedRequest { user, method, target, body }
}

/// The status of the response, and the message where authorization refused the request.
async fn send(client: &Client, request: &GeneratedRequest) -> (u16, String) {
    let GeneratedRequest { user, method, target, body } = request;
    let request = http::Request::builder()
        .method(*method)
        .uri(target)
        .header("content-type", content_type(method, target))
        .header("impersonate-user", *user)
        .body(kube::client::Body::from(body.clone().into_bytes()))
        .expect("it is well-formed");
    let response = client.send(request).await.expect("the server answers");
    let status = response.status().as_u16();
    // A watch has no end.
    if status != 403 || *method == "HEAD" {
        return (status, String::new());
    }
    let bytes = response.into_body().collect().await.expect("it ends").to_bytes();
    let answer: Value = serde_json::from_slice(&bytes).expect("a Status");
    (status, answer["message"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn users_with_few_permissions_reach_the_same_on_both_servers() {
    if !clusters().contains(&ClusterKind::ControlPlane) {
        return;
    }
    let embedded = TestCluster::embedded();
    let real = TestCluster::control_plane().await.expect("the control plane starts");
    let (embedded, real) = (embedded.client(), real.client());
    set_up(&embedded).await;
    set_up(&real).await;
    let count = setting("PLIMSOLL_DIFFERENTIAL_REQUESTS", REQUESTS);
    let seed = setting("PLIMSOLL_DIFFERENTIAL_SEED", 0);
    let mut random = Random::new(seed as u64, 3);
    let mut differences = Vec::new();
    for _ in 0..count {
        let request = generate(&mut random);
        let (ours, theirs) = (send(&embedded, &request).await, send(&real, &request).await);
        if ours != theirs {
            differences.push(format!("{request:?}\n  embedded {ours:?}\n  real     {theirs:?}"));
        }
    }
    assert!(
        differences.is_empty(),
        "{} of {count} requests (seed {seed}) differ:\n{}",
        differences.len(),
        differences.join("\n")
    );
}
