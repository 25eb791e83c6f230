//! Whatever the selectors: a list is answered or refused with a `Status`; what is selected once is
//! selected when the selector is said twice, and is part of everything.
//!
//! The input is a label selector on the first line, and a field selector on the second.
#![no_main]

use std::sync::OnceLock;

use futures::executor::block_on;
use http::Request;
use http_body_util::{BodyExt, Full};
use libfuzzer_sys::fuzz_target;
use k8s_apiserver::{ApiServer, Options};
use serde_json::Value;
use tower::ServiceExt;

const PODS: &str = "/api/v1/namespaces/default/pods";

fn ask(server: &ApiServer, method: &str, target: &str, body: String) -> (u16, Value) {
    let body = Full::new(std::io::Cursor::new(body.into_bytes()));
    let request = Request::builder()
        .method(method)
        .uri(target)
        .header("content-type", "application/json")
        .body(body)
        .expect("the target is encoded");
    let Ok(response) = block_on(server.clone().oneshot(request));
    let status = response.status().as_u16();
    let answer = block_on(response.into_body().collect()).expect("the answer is whole").to_bytes();
    (status, serde_json::from_slice(&answer).expect("the answer is JSON"))
}

/// A server with some pods to select.
fn server() -> &'static ApiServer {
    static SERVER: OnceLock<ApiServer> = OnceLock::new();
    SERVER.get_or_init(|| {
        let server = ApiServer::new(Options::default());
        for (name, labels) in [
            ("a", r#"{}"#),
            ("b", r#"{"x":"1"}"#),
            ("c", r#"{"x":"2","y":""}"#),
            ("d", r#"{"x":"10","example.com/z":"v"}"#),
        ] {
            let pod = format!(
                r#"{{"metadata":{{"name":"{name}","labels":{labels}}},
                    "spec":{{"nodeName":"n","containers":[{{"name":"m","image":"i"}}]}}}}"#
            );
            let (status, answer) = ask(&server, "POST", PODS, pod);
            assert_eq!(status, 201, "{answer}");
        }
        server
    })
}

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

fn select(labels: &str, fields: &str) -> Option<Vec<String>> {
    let target =
        format!("{PODS}?labelSelector={}&fieldSelector={}", encoded(labels), encoded(fields));
    let (status, answer) = ask(server(), "GET", &target, String::new());
    if status != 200 {
        assert_eq!((status, &answer["kind"]), (400, &Value::from("Status")), "{answer}");
        return None;
    }
    let items = answer["items"].as_array().expect("a list has items");
    Some(items.iter().map(|item| item["metadata"]["name"].to_string()).collect())
}

fuzz_target!(|text: &str| {
    let mut lines = text.splitn(2, '\n');
    let (labels, fields) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let Some(selected) = select(labels, fields) else { return };
    let all = select("", "").expect("everything can be listed");
    assert!(selected.iter().all(|name| all.contains(name)), "{selected:?}");
    if !labels.trim().is_empty() {
        let twice = select(&format!("{labels},{labels}"), fields);
        assert_eq!(twice, Some(selected), "{labels:?} said twice");
    }
});
