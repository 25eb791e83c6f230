//! Whatever is asked of the server, it answers: what it refuses, it refuses with a `Status`, or with
//! the text of kube-apiserver for unknown paths. And whatever a user with few permissions asks,
//! nothing is written and nothing is shown that they may not see.
//!
//! The input is a request for each paragraph: a line of method and target, a line with the content
//! type, and the body.
#![no_main]

use futures::FutureExt as _;
use futures::executor::block_on;
use http::Request;
use http_body_util::{BodyExt, Full};
use k8s_apiserver::{ApiServer, Options, UserInfo};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use tokio::runtime::Builder;
use tower::ServiceExt;

/// Most requests of one input.
const REQUESTS_MAX: usize = 8;

/// Most frames that are read of a response: a watch has no end.
const FRAMES_MAX: usize = 16;

/// What the user must not see.
const HIDDEN: &str = "hidden-from-the-user";

/// What the user may do: watch everything but secrets, and read one secret.
const ROLE: &str = r#"{"metadata": {"name": "few"}, "rules": [
    {"verbs": ["watch"], "apiGroups": ["*"], "resources": ["pods", "namespaces", "nodes", "roles",
        "serviceaccounts", "deployments", "customresourcedefinitions", "leases", "configmaps/status"]},
    {"verbs": ["get", "list", "watch"], "apiGroups": [""], "resources": ["secrets"],
        "resourceNames": ["mine"]},
    {"verbs": ["update", "patch"], "apiGroups": ["coordination.k8s.io"], "resources": ["leases"]}
]}"#;

fuzz_target!(|text: &str| {
    // Watches set timers; nothing here waits for them.
    let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime starts");
    let _entered = runtime.enter();
    let server = ApiServer::new(Options::default());
    for request in requests(text, None) {
        send(&server, request);
    }
    let server = prepared();
    let before = server.resource_version();
    let user = UserInfo::new("fuzz", ["system:authenticated"]);
    for request in requests(text, Some(&user)) {
        let shown = send(&server, request);
        assert!(!String::from_utf8_lossy(&shown).contains(HIDDEN), "{text}");
    }
    assert_eq!(server.resource_version(), before, "{text}");
});

/// A server with something to see, and a user with few permissions.
fn prepared() -> ApiServer {
    let server = ApiServer::new(Options::default());
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let secret = |name: &str, value: &str| {
        format!(r#"{{"metadata": {{"name": "{name}", "labels": {{"value": "{value}"}}}}}}"#)
    };
    for (path, body) in [
        ("/api/v1/namespaces/default/secrets", secret("mine", "shown")),
        ("/api/v1/namespaces/default/secrets", secret("other", HIDDEN)),
        ("/api/v1/namespaces/default/configmaps", secret("other", HIDDEN)),
        (&format!("{rbac}/clusterroles"), ROLE.to_owned()),
        (
            &format!("{rbac}/clusterrolebindings"),
            r#"{"metadata": {"name": "few"}, "subjects": [{"kind": "User", "name": "fuzz"}],
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "few"}}"#
                .to_owned(),
        ),
    ] {
        let request = Request::post(path).header("content-type", "application/json");
        let body = Full::new(std::io::Cursor::new(body.into_bytes()));
        send(&server, request.body(body).expect("it is well-formed"));
    }
    server
}

type FuzzRequest = Request<Full<std::io::Cursor<Vec<u8>>>>;

/// The requests of an input, by a user if there is one.
fn requests(text: &str, user: Option<&UserInfo>) -> Vec<FuzzRequest> {
    let paragraphs = text.split("\n\n").take(REQUESTS_MAX);
    let requests = paragraphs.filter_map(|paragraph| {
        let mut lines = paragraph.splitn(3, '\n');
        let mut words = lines.next().unwrap_or_default().split(' ');
        let (method, target) = (words.next().unwrap_or("GET"), words.next().unwrap_or("/"));
        let content_type = lines.next().unwrap_or_default();
        let body = lines.next().unwrap_or_default().as_bytes().to_vec();
        let mut request =
            Request::builder().method(method).uri(target).header("content-type", content_type);
        if let Some(user) = user {
            request = request.extension(user.clone());
        }
        request.body(Full::new(std::io::Cursor::new(body))).ok()
    });
    requests.collect()
}

/// Sends a request, checks the form of a refusal, and returns what is there of the response.
fn send(server: &ApiServer, request: FuzzRequest) -> Vec<u8> {
    let is_head = request.method() == "HEAD";
    let Ok(response) = block_on(server.clone().oneshot(request));
    let is_refusal = response.status().as_u16() >= 400 && !is_head;
    let mut body = response.into_body();
    let mut shown = Vec::new();
    for _ in 0..FRAMES_MAX {
        let Some(Some(Ok(frame))) = body.frame().now_or_never() else { break };
        shown.extend(frame.into_data().unwrap_or_default());
    }
    if is_refusal && shown != b"404 page not found\n" {
        let status: Option<Value> = serde_json::from_slice(&shown).ok();
        let is_status = status.is_some_and(|status| status["kind"] == "Status");
        assert!(is_status, "{}", String::from_utf8_lossy(&shown));
    }
    shown
}
