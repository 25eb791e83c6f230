//! Lists: selectors, pages, views.
use serde_json::Value;

use crate::cluster::{Ask, TestCluster};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn filled() -> TestCluster {
    let cluster = TestCluster::new();
    for (name, labels) in [("a", r#"{"x": "1"}"#), ("b", r#"{"x": "2"}"#), ("c", "{}")] {
        let body = format!(r#"{{"metadata": {{"name": "{name}", "labels": {labels}}}}}"#);
        cluster.check(&format!("POST {CONFIG_MAPS}"), &body, 201, "");
    }
    cluster
}

fn names(list: &Value) -> Vec<&str> {
    list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["metadata"]["name"].as_str().unwrap())
        .collect()
}

#[test]
fn selectors_select() {
    let cluster = filled();
    for (query, expected) in [
        ("labelSelector=x", &["a", "b"][..]),
        ("labelSelector=x%20in%20(1,3)", &["a"]),
        ("labelSelector=x!%3D1", &["b", "c", "kube-root-ca.crt"]),
        ("labelSelector=!x", &["c", "kube-root-ca.crt"]),
        ("fieldSelector=metadata.name%3Db", &["b"]),
        ("&limit=500", &["a", "b", "c", "kube-root-ca.crt"]),
    ] {
        let list = cluster.check(&format!("GET {CONFIG_MAPS}?{query}"), "", 200, "");
        assert_eq!(names(&list), expected, "{query}");
    }
}

#[test]
fn items_of_built_in_lists_do_not_repeat_their_type() {
    let list = filled().check(
        &format!("GET {CONFIG_MAPS}"),
        "",
        200,
        r#"{"kind": "ConfigMapList", "apiVersion": "v1"}"#,
    );
    assert!(list["items"][0].get("kind").is_none());
}

#[test]
fn pages_show_one_state() {
    let cluster = filled();
    let first = cluster.check(
        &format!("GET {CONFIG_MAPS}?limit=2"),
        "",
        200,
        r#"{"metadata": {"remainingItemCount": 2}}"#,
    );
    assert_eq!(names(&first), ["a", "b"]);
    cluster.check(&format!("DELETE {CONFIG_MAPS}/c"), "", 200, "");
    let token = first["metadata"]["continue"].as_str().unwrap();
    let second = cluster.check(&format!("GET {CONFIG_MAPS}?limit=2&continue={token}"), "", 200, "");
    assert_eq!(names(&second), ["c", "kube-root-ca.crt"]);
    assert_eq!(first["metadata"]["resourceVersion"], second["metadata"]["resourceVersion"]);
}

#[test]
fn metadata_views_leave_the_rest_out() {
    let cluster = filled();
    let accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    let list = cluster.check_with(
        Ask { line: &format!("GET {CONFIG_MAPS}"), accept, ..Ask::default() },
        200,
        r#"{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1"}"#,
    );
    assert_eq!(list["items"][0]["kind"], "PartialObjectMetadata");
    assert!(list["items"][0].get("data").is_none());
}

#[test]
fn large_answers_are_compressed_for_those_who_can_read_it() {
    let cluster = TestCluster::new();
    let body = format!(
        r#"{{"metadata": {{"name": "large"}}, "data": {{"a": "{}"}}}}"#,
        "x".repeat(200 << 10)
    );
    cluster.check(&format!("POST {CONFIG_MAPS}"), &body, 201, "");
    let request = http::Request::builder()
        .uri(format!("{CONFIG_MAPS}/large"))
        .header("accept-encoding", "gzip")
        .body(http_body_util::Full::new(bytes::Bytes::new()))
        .unwrap();
    let response = futures::FutureExt::now_or_never(tower::Service::call(
        &mut cluster.server.clone(),
        request,
    ))
    .unwrap()
    .unwrap();
    assert_eq!(response.headers()["content-encoding"], "gzip");
}
