//! `/metrics`.
use serde_json::Value;

use crate::cluster::{Ask, TestCluster};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn metrics(cluster: &TestCluster) -> String {
    let (status, body) = cluster.ask(Ask { line: "GET /metrics", ..Ask::default() });
    assert_eq!(status, 200);
    let Value::String(text) = body else { panic!("not a text: {body}") };
    text
}

#[tokio::test(start_paused = true)]
async fn requests_watches_and_objects_are_counted() {
    let cluster = TestCluster::new();
    cluster.check(&format!("POST {CONFIG_MAPS}"), r#"{"metadata": {"name": "a"}}"#, 201, "");
    cluster.check(&format!("POST {CONFIG_MAPS}"), r#"{"metadata": {"name": "a"}}"#, 409, "");
    cluster.check("GET /api/v1/namespaces/default/nonsense/with/a", "", 404, "");
    let line = format!("GET {CONFIG_MAPS}?watch=true");
    let watch = cluster.send(Ask { line: &line, ..Ask::default() });
    let labels = r#"component="apiserver",dry_run="",group="",resource="configmaps",scope="resource",subresource="",verb="POST",version="v1""#;
    let watching = r#"apiserver_longrunning_requests{component="apiserver",group="",resource="configmaps",scope="namespace",subresource="",verb="WATCH",version="v1"}"#;
    let text = metrics(&cluster);
    for expected in [
        format!("apiserver_request_total{{code=\"201\",{labels}}} 1"),
        format!("apiserver_request_total{{code=\"409\",{labels}}} 1"),
        format!("apiserver_request_duration_seconds_count{{{labels}}} 2"),
        format!("{watching} 1"),
        r#"apiserver_resource_objects{group="",resource="configmaps"} 5"#.to_owned(),
        r#"apiserver_storage_objects{resource="deployments.apps"} 0"#.to_owned(),
        r#"apiserver_current_inflight_requests{request_kind="readOnly"} 1"#.to_owned(),
    ] {
        assert!(text.lines().any(|line| line == expected), "{expected}\n{text}");
    }
    assert!(text.contains("kubernetes_build_info{"));
    assert!(!text.contains("nonsense"), "what does not exist is no label");
    drop(watch);
    let text = metrics(&cluster);
    assert!(text.contains(&format!("{watching} 0")), "{text}");
    assert!(
        text.lines()
            .any(|line| line.starts_with("apiserver_request_total{") && line.contains("WATCH"))
    );
}
