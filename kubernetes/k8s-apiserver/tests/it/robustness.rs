//! Requests that make no sense, and a server that survives them.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;
use k8s_apiserver::{ApiServer, Clock, Options};

use crate::cluster::{Ask, TestCluster};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A clock that breaks the request that looks at it, once.
struct BrokenClock(AtomicBool);

impl Clock for BrokenClock {
    fn now(&self) -> Timestamp {
        assert!(!self.0.swap(false, Ordering::Relaxed), "the clock is broken");
        Timestamp::UNIX_EPOCH
    }
}

#[test]
fn a_panic_ends_one_request_and_nothing_else() {
    let clock = Arc::new(BrokenClock(AtomicBool::new(false)));
    let server = ApiServer::new(Options { clock: Arc::clone(&clock) as _, ..Options::default() });
    let cluster = TestCluster::of(server, TestCluster::new().clock);
    clock.0.store(true, Ordering::Relaxed);
    let message =
        r#"{"reason": "InternalError", "message": "This request caused apiserver to panic..."}"#;
    cluster.check(&format!("GET {CONFIG_MAPS}"), "", 500, message);
    cluster.check(&format!("POST {CONFIG_MAPS}"), r#"{"metadata": {"name": "a"}}"#, 201, "");
    cluster.check(&format!("GET {CONFIG_MAPS}/a"), "", 200, "");
}

#[test]
fn objects_have_bounds_in_size_and_depth() {
    let cluster = TestCluster::new();
    let definition = r#"{"metadata": {"name": "things.example.com"}, "spec": {
        "group": "example.com", "scope": "Namespaced",
        "names": {"plural": "things", "kind": "Thing"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
            "type": "object", "x-kubernetes-preserve-unknown-fields": true
        }}}]
    }}"#;
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    cluster.check(&format!("POST {definitions}"), definition, 201, "");
    let things = "/apis/example.com/v1/namespaces/default/things";
    let thing = |name: &str, x: &str| {
        format!(
            r#"{{"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {{"name": "{name}"}}, "x": {x}}}"#
        )
    };
    let text = |length: usize| format!("\"{}\"", "a".repeat(length));
    let create = format!("POST {things}");
    let too_large = r#"{"message": "etcdserver: request is too large"}"#;
    cluster.check(&create, &thing("large", &text(1_500_000)), 201, "");
    cluster.check(&create, &thing("larger", &text(1_600_000)), 500, too_large);
    // A patch copies what is there.
    let copy = r#"[{"op": "copy", "from": "/x", "path": "/y"}]"#;
    let patch = |name: &str, body: &str, status: u16, expected: &str| {
        let line = format!("PATCH {things}/{name}");
        let ask =
            Ask { line: &line, body, content_type: "application/json-patch+json", accept: "" };
        cluster.check_with(ask, status, expected);
    };
    patch("large", copy, 500, too_large);
    let doubled = r#"{"op": "copy", "from": "/x", "path": "/x/-"}"#;
    cluster.check(&create, &thing("list", "[1]"), 201, "");
    let forty = format!("[{}]", vec![doubled; 40].join(","));
    patch("list", &forty, 422, r#"{"reason": "Invalid"}"#);

    // Whatever was stored can be read and written again.
    for levels in 90..128 {
        let name = format!("deep-{levels}");
        let nested = format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels));
        let line = format!("POST {things}");
        let ask = Ask { line: &line, body: &thing(&name, &nested), ..Ask::default() };
        let status = cluster.ask(ask).0;
        assert!(status == 201 || status == 400, "{levels} levels: {status}");
        if status == 201 {
            patch(&name, r#"[{"op": "add", "path": "/y", "value": 1}]"#, 200, "");
        }
    }
    cluster.check(&format!("GET {things}"), "", 200, "");
}

#[test]
fn bodies_that_are_too_large_or_too_deep_are_refused() {
    let cluster = TestCluster::new();
    let create = format!("POST {CONFIG_MAPS}");
    let large = "a".repeat((3 << 20) + 1);
    let too_large = r#"{"reason": "RequestEntityTooLarge", "message": "Request entity too large: limit is 3145728"}"#;
    cluster.check(&create, &large, 413, too_large);
    let nested = |open: &str, close: &str| {
        format!(
            r#"{{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {{"name": "a"}}, "data": {}1{}}}"#,
            open.repeat(100_000),
            close.repeat(100_000)
        )
    };
    for body in [nested("[", "]"), nested("{\"a\":", "}")] {
        cluster.check(&create, &body, 400, r#"{"reason": "BadRequest"}"#);
        for content_type in [
            "application/merge-patch+json",
            "application/strategic-merge-patch+json",
            "application/json-patch+json",
            "application/apply-patch+yaml",
        ] {
            let line = format!("PATCH {CONFIG_MAPS}/kube-root-ca.crt?fieldManager=a");
            let ask = Ask { line: &line, body: &body, content_type, accept: "" };
            cluster.check_with(ask, 400, r#"{"kind": "Status"}"#);
        }
    }
}
