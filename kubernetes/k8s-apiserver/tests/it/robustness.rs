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
