//! Watches.
use std::time::Duration;

use http_body_util::BodyExt as _;
use k8s_apiserver::Body;
use serde_json::Value;

use crate::cluster::{Ask, TestCluster};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// The lines of a watch, one by one.
struct Lines {
    body: Body,
    pending: Vec<u8>,
}

impl Lines {
    fn open(cluster: &TestCluster, query: &str, accept: &str) -> Self {
        Self::open_at(cluster, &format!("{CONFIG_MAPS}?watch=true&{query}"), accept)
    }

    fn open_at(cluster: &TestCluster, path: &str, accept: &str) -> Self {
        let response = cluster.send(Ask { line: &format!("GET {path}"), accept, ..Ask::default() });
        assert_eq!(response.status(), 200);
        Self { body: response.into_body(), pending: Vec::new() }
    }

    /// The next event; none once the watch has ended.
    async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.pending.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.pending.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).unwrap());
            }
            let frame = self.body.frame().await?.unwrap();
            self.pending.extend_from_slice(&frame.into_data().unwrap());
        }
    }

    /// Type and name of the next event.
    async fn next_name(&mut self) -> String {
        let event = self.next().await.expect("the watch goes on");
        format!(
            "{} {}",
            event["type"].as_str().unwrap(),
            event["object"]["metadata"]["name"].as_str().unwrap_or("-")
        )
    }
}

fn create(cluster: &TestCluster, name: &str, labels: &str) {
    let body = format!(r#"{{"metadata": {{"name": "{name}", "labels": {labels}}}}}"#);
    cluster.check(&format!("POST {CONFIG_MAPS}"), &body, 201, "");
}

#[tokio::test(start_paused = true)]
async fn a_watch_sends_the_state_and_what_follows() {
    let cluster = TestCluster::new();
    let mut lines = Lines::open(&cluster, "", "");
    assert_eq!(lines.next_name().await, "ADDED kube-root-ca.crt");
    create(&cluster, "a", "{}");
    cluster.check(&format!("PATCH {CONFIG_MAPS}/a"), r#"{"data": {"x": "y"}}"#, 200, "");
    cluster.check(&format!("DELETE {CONFIG_MAPS}/a"), "", 200, "");
    for expected in ["ADDED a", "MODIFIED a", "DELETED a"] {
        assert_eq!(lines.next_name().await, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_a_version_sends_what_came_after() {
    let cluster = TestCluster::new();
    create(&cluster, "a", "{}");
    let revision = cluster.server.resource_version();
    create(&cluster, "b", "{}");
    let mut lines = Lines::open(&cluster, &format!("resourceVersion={revision}"), "");
    assert_eq!(lines.next_name().await, "ADDED b");
}

#[tokio::test(start_paused = true)]
async fn selectors_turn_changes_into_comings_and_goings() {
    let cluster = TestCluster::new();
    create(&cluster, "a", r#"{"x": "1"}"#);
    let mut lines = Lines::open(&cluster, "labelSelector=x%3D1", "");
    assert_eq!(lines.next_name().await, "ADDED a");
    let relabel = |value: &str| {
        let body = format!(r#"{{"metadata": {{"labels": {{"x": "{value}"}}}}}}"#);
        cluster.check(&format!("PATCH {CONFIG_MAPS}/a"), &body, 200, "");
    };
    relabel("2");
    relabel("3");
    relabel("1");
    let gone = lines.next().await.unwrap();
    assert_eq!(gone["type"], "DELETED");
    assert_eq!(gone["object"]["metadata"]["labels"]["x"], "1");
    assert_eq!(lines.next_name().await, "ADDED a");
}

#[tokio::test(start_paused = true)]
async fn initial_events_end_with_a_bookmark() {
    let cluster = TestCluster::new();
    let mut lines = Lines::open(
        &cluster,
        "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
        "",
    );
    assert_eq!(lines.next_name().await, "ADDED kube-root-ca.crt");
    let bookmark = lines.next().await.unwrap();
    assert_eq!(bookmark["type"], "BOOKMARK");
    assert_eq!(bookmark["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
}

#[tokio::test(start_paused = true)]
async fn bookmarks_come_by_the_minute_and_a_timeout_ends_the_watch() {
    let cluster = TestCluster::new();
    let revision = cluster.server.resource_version();
    let started = tokio::time::Instant::now();
    let mut lines = Lines::open(
        &cluster,
        &format!("resourceVersion={revision}&allowWatchBookmarks=true&timeoutSeconds=90"),
        "",
    );
    assert_eq!(lines.next_name().await, "BOOKMARK -");
    assert_eq!(started.elapsed(), Duration::from_secs(60));
    assert_eq!(lines.next_name().await, "BOOKMARK -");
    assert!(lines.next().await.is_none());
    assert_eq!(started.elapsed(), Duration::from_secs(90));
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_a_compacted_revision_expires() {
    let cluster = TestCluster::new();
    create(&cluster, "a", "{}");
    for round in 0..4_200 {
        let body = format!(r#"{{"data": {{"x": "{round}"}}}}"#);
        cluster.check(&format!("PATCH {CONFIG_MAPS}/a"), &body, 200, "");
    }
    let mut lines = Lines::open(&cluster, "resourceVersion=1", "");
    let event = lines.next().await.unwrap();
    assert_eq!(event["type"], "ERROR");
    assert_eq!(event["object"]["code"], 410);
    assert_eq!(event["object"]["reason"], "Expired");
    assert!(lines.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn views_apply_to_watches_too() {
    let cluster = TestCluster::new();
    let accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let mut lines = Lines::open(&cluster, "", accept);
    let event = lines.next().await.unwrap();
    assert_eq!(event["object"]["kind"], "PartialObjectMetadata");
    assert!(event["object"].get("data").is_none());
    let mut lines = Lines::open(&cluster, "", "application/json;as=Table;g=meta.k8s.io;v=v1");
    let event = lines.next().await.unwrap();
    assert_eq!(event["object"]["rows"][0]["cells"][0], "kube-root-ca.crt");
}

#[tokio::test(start_paused = true)]
async fn the_bookmark_after_the_initial_events_is_a_row_without_a_name_in_tables() {
    let cluster = TestCluster::new();
    let initial =
        "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    for (version, selector) in [("v1", ""), ("v1beta1", "&labelSelector=none")] {
        let accept = format!("application/json;as=Table;g=meta.k8s.io;v={version}");
        let mut lines = Lines::open(&cluster, &format!("{initial}{selector}"), &accept);
        if selector.is_empty() {
            assert_eq!(lines.next().await.unwrap()["type"], "ADDED");
        }
        let bookmark = lines.next().await.unwrap();
        assert_eq!(bookmark["type"], "BOOKMARK");
        let table = &bookmark["object"];
        assert_eq!(table["apiVersion"], format!("meta.k8s.io/{version}"));
        // Only the first event has columns.
        assert_eq!(table["columnDefinitions"].is_null(), selector.is_empty());
        assert_eq!(table["rows"][0]["cells"][0], "");
        let metadata = &table["rows"][0]["object"]["metadata"];
        assert_eq!(metadata["annotations"]["k8s.io/initial-events-end"], "true");
        assert_eq!(metadata["resourceVersion"], table["metadata"]["resourceVersion"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_of_a_custom_resource_sees_its_end() {
    let cluster = TestCluster::new();
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    cluster.check(
        &format!("POST {definitions}"),
        r#"{
            "metadata": {"name": "things.example.com"},
            "spec": {
                "group": "example.com", "scope": "Cluster",
                "names": {"plural": "things", "kind": "Thing"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]
            }
        }"#,
        201,
        "",
    );
    cluster.check(
        "POST /apis/example.com/v1/things",
        r#"{"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}}"#,
        201,
        "",
    );
    let mut lines = Lines::open_at(&cluster, "/apis/example.com/v1/things?watch=true", "");
    assert_eq!(lines.next_name().await, "ADDED a");
    cluster.check(&format!("DELETE {definitions}/things.example.com"), "", 200, "");
    assert_eq!(lines.next_name().await, "DELETED a");
    assert!(lines.next().await.is_none());
}
