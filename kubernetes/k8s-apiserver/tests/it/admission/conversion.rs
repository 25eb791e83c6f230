//! Custom resources that a webhook converts between their versions.
use std::collections::VecDeque;

use futures::StreamExt as _;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use super::hooks::{Asked, HOST, cluster};
use crate::cluster::{Ask, TestCluster};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const V1: &str = "/apis/hooks.test/v1/namespaces/default/gauges";
const V2: &str = "/apis/hooks.test/v2/namespaces/default/gauges";

fn definition(path: &str, storage: &str) -> Value {
    let version = |name: &str, field: &str| {
        json!({
            "name": name,
            "served": true,
            "storage": name == storage,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {
                "type": "object",
                "properties": {field: {"type": "integer", "maximum": 100}},
            }}}},
        })
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "gauges.hooks.test"},
        "spec": {
            "group": "hooks.test",
            "scope": "Namespaced",
            "names": {"plural": "gauges", "singular": "gauge", "kind": "Gauge", "listKind": "GaugeList"},
            "versions": [version("v1", "size"), version("v2", "width")],
            "conversion": {"strategy": "Webhook", "webhook": {
                "clientConfig": {"url": format!("https://{HOST}{path}")},
                "conversionReviewVersions": ["v1"],
            }},
        },
    })
}

/// A cluster with two gauges that were written in version `v1`, where they rest.
fn with_gauges() -> (TestCluster, Asked) {
    let (cluster, asked) = cluster();
    cluster.check(
        &format!("POST {DEFINITIONS}"),
        &definition("/convert", "v1").to_string(),
        201,
        "",
    );
    for (name, size) in [("a", 1), ("b", 2)] {
        cluster.check(&format!("POST {V1}"), &gauge("v1", name, "size", size), 201, "");
    }
    assert!(asked.take().is_empty());
    (cluster, asked)
}

fn gauge(version: &str, name: &str, field: &str, value: u32) -> String {
    json!({
        "apiVersion": format!("hooks.test/{version}"),
        "kind": "Gauge",
        "metadata": {"name": name},
        "spec": {field: value},
    })
    .to_string()
}

#[test]
fn reads_of_another_version_are_converted() {
    let (cluster, asked) = with_gauges();
    let read = cluster.check(
        &format!("GET {V2}/a"),
        "",
        200,
        r#"{"apiVersion": "hooks.test/v2", "spec": {"width": 1}, "metadata": {"annotations": {"converted": "hooks.test/v2"}}}"#,
    );
    assert!(read["metadata"].get("finalizers").is_none());
    assert_eq!(asked.take().len(), 1);
    cluster.check(
        &format!("GET {V2}"),
        "",
        200,
        r#"{"kind": "GaugeList", "apiVersion": "hooks.test/v2", "items": [{"spec": {"width": 1}}, {"spec": {"width": 2}}]}"#,
    );
    let reviews = asked.take();
    assert_eq!(reviews.len(), 1, "a list is one batch");
    assert_eq!(reviews[0].1["request"]["objects"].as_array().unwrap().len(), 2);
    cluster.check(&format!("GET {V1}"), "", 200, r#"{"items": [{"spec": {"size": 1}}, {}]}"#);
    assert!(asked.take().is_empty(), "nothing is converted that rests in the version asked for");
}

#[test]
fn writes_in_another_version_rest_in_the_storage_version() {
    let (cluster, asked) = with_gauges();
    for (line, body, expected) in [
        (format!("POST {V2}"), gauge("v2", "c", "width", 3), 3),
        (format!("PATCH {V2}/c"), r#"{"spec": {"width": 4}}"#.to_owned(), 4),
    ] {
        let status = if line.starts_with("POST") { 201 } else { 200 };
        cluster.check(
            &line,
            &body,
            status,
            &format!(r#"{{"apiVersion": "hooks.test/v2", "spec": {{"width": {expected}}}}}"#),
        );
        asked.take();
        let rests = format!(r#"{{"spec": {{"size": {expected}}}}}"#);
        cluster.check(&format!("GET {V1}/c"), "", 200, &rests);
        assert!(asked.take().is_empty());
    }
    cluster.check(&format!("PATCH {V2}/c"), r#"{"spec": {"width": 101}}"#, 422, "");
    cluster.apply(
        &format!("{V2}/c"),
        "me&force=true",
        &gauge("v2", "c", "width", 5),
        200,
        r#"{"spec": {"width": 5}}"#,
    );
    cluster.check(&format!("DELETE {V2}/c"), "", 200, r#"{"status": "Success"}"#);
    cluster.check(&format!("GET {V1}/c"), "", 404, "");
}

#[test]
fn objects_stay_in_the_version_that_they_were_stored_in() {
    let (cluster, asked) = with_gauges();
    let path = format!("{DEFINITIONS}/gauges.hooks.test");
    cluster.apply(&path, "me&force=true", &definition("/convert", "v2").to_string(), 200, "");
    cluster.check(&format!("GET {V1}/a"), "", 200, r#"{"spec": {"size": 1}}"#);
    assert!(asked.take().is_empty());
    cluster.check(&format!("GET {V2}/a"), "", 200, r#"{"spec": {"width": 1}}"#);
    assert_eq!(asked.take().len(), 1);
    // The next write brings it into the storage version.
    cluster.check(
        &format!("PATCH {V1}/a"),
        r#"{"spec": {"size": 7}}"#,
        200,
        r#"{"spec": {"size": 7}}"#,
    );
    asked.take();
    cluster.check(&format!("GET {V2}/a"), "", 200, r#"{"spec": {"width": 7}}"#);
    assert!(asked.take().is_empty());
    // So does one that changes nothing.
    cluster.check(&format!("PATCH {V1}/b"), "{}", 200, r#"{"spec": {"size": 2}}"#);
    asked.take();
    cluster.check(&format!("GET {V2}/b"), "", 200, r#"{"spec": {"width": 2}}"#);
    assert!(asked.take().is_empty());
}

#[test]
fn answers_that_break_the_rules_are_refused() {
    for (path, why) in [
        ("/convert-refuse", "failed: too wide"),
        ("/convert-silent", "failed: response.result.status was 'Failure', not 'Success'"),
        ("/convert-drop", "returned 0 objects, expected 1"),
        ("/convert-rename", "returned invalid object: must have the same name: a != other"),
        (
            "/convert-wrong",
            "returned invalid object at index 0: invalid groupVersion (expected hooks.test/v2, received hooks.test/v3)",
        ),
        ("/lost", r#"failed: Post \"https://hooks.test/lost?timeout=30s\": the line is cut"#),
    ] {
        let (cluster, _) = cluster();
        cluster.check(&format!("POST {DEFINITIONS}"), &definition(path, "v1").to_string(), 201, "");
        cluster.check(&format!("POST {V1}"), &gauge("v1", "a", "size", 1), 201, "");
        let expected = format!(
            r#"{{"message": "conversion webhook for hooks.test/v1, Kind=Gauge {why}", "code": 500}}"#
        );
        cluster.check(&format!("GET {V2}/a"), "", 500, &expected);
        cluster.check(&format!("POST {V2}"), &gauge("v2", "b", "width", 1), 500, "");
        cluster.check(&format!("GET {V1}/b"), "", 404, "");
    }
}

#[test]
fn a_watch_of_another_version_is_converted_in_its_stream() {
    let (cluster, _) = with_gauges();
    let response = cluster.send(Ask { line: &format!("GET {V2}?watch=true"), ..Ask::default() });
    let mut stream = response.into_body().into_data_stream();
    let mut lines: VecDeque<Value> = VecDeque::new();
    let mut next = || -> Value {
        while lines.is_empty() {
            let bytes = cluster.wait(stream.next()).unwrap().unwrap();
            let events = serde_json::Deserializer::from_slice(&bytes).into_iter();
            lines.extend(events.map(Result::unwrap));
        }
        lines.pop_front().unwrap()
    };
    let mut check = |change: &str, name: &str, width: u32| {
        let event = next();
        assert_eq!(event["type"], change);
        assert_eq!(event["object"]["metadata"]["name"], name);
        assert_eq!(event["object"]["spec"]["width"], width);
    };
    check("ADDED", "a", 1);
    check("ADDED", "b", 2);
    cluster.check(&format!("PATCH {V1}/a"), r#"{"spec": {"size": 9}}"#, 200, "");
    cluster.check(&format!("DELETE {V1}/b"), "", 200, "");
    check("MODIFIED", "a", 9);
    check("DELETED", "b", 2);
}
