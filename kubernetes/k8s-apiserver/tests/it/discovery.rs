//! Documents about the API.
use futures::FutureExt as _;
use http_body_util::BodyExt as _;

use crate::cluster::{Ask, TestCluster};

#[test]
fn groups_and_resources_are_discovered() {
    let cluster = TestCluster::new();
    cluster.check("GET /api", "", 200, r#"{"kind": "APIVersions", "versions": ["v1"]}"#);
    cluster.check("GET /apis/apps", "", 200, r#"{"kind": "APIGroup", "name": "apps"}"#);
    cluster.check("GET /apis/none", "", 404, "");
    let resources = cluster.check(
        "GET /apis/apps/v1",
        "",
        200,
        r#"{"kind": "APIResourceList", "groupVersion": "apps/v1"}"#,
    );
    let names: Vec<&str> = resources["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|resource| resource["name"].as_str().unwrap())
        .collect();
    assert!(names.contains(&"deployments/scale"), "{names:?}");
}

#[test]
fn aggregated_discovery_is_negotiated() {
    let response = TestCluster::new().send(Ask {
        line: "GET /apis",
        accept: "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json",
        ..Ask::default()
    });
    assert_eq!(
        response.headers()["content-type"],
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    );
}

#[test]
fn the_server_tells_its_version_and_health() {
    let cluster = TestCluster::new();
    cluster.check("GET /version", "", 200, r#"{"major": "1", "gitVersion": "v1...."}"#);
    for path in ["/healthz", "/readyz", "/livez", "/readyz/ping"] {
        let (status, body) = cluster.ask(Ask { line: &format!("GET {path}"), ..Ask::default() });
        assert_eq!((status, body.as_str()), (200, Some("ok")), "{path}");
    }
    cluster.check(
        "GET /openapi/v3",
        "",
        200,
        r#"{"paths": {"apis/apps/v1": {"serverRelativeURL": "/openapi/v3/apis/apps/v1?hash=..."}}}"#,
    );
    cluster.check("GET /openapi/v3/apis/apps/v1", "", 200, r#"{"openapi": "3.0.0"}"#);
}

#[test]
fn discovery_is_in_the_order_that_scripts_compare() {
    let cluster = TestCluster::new();
    let cases = [
        (
            "/api/v1",
            r#"{"name":"configmaps","singularName":"configmap","namespaced":true,"kind":"ConfigMap","verbs":["create","delete","deletecollection","get","list","patch","update","watch"],"shortNames":["cm"],"storageVersionHash":"#,
        ),
        ("/api/v1", r#""shortNames":["po"],"categories":["all"],"storageVersionHash":"#),
        ("/api/v1", r#"{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"#),
        (
            "/apis/apps/v1",
            r#"{"name":"deployments/scale","singularName":"","namespaced":true,"group":"autoscaling","version":"v1","kind":"Scale","verbs":"#,
        ),
        (
            "/apis/apps",
            r#"{"kind":"APIGroup","apiVersion":"v1","name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"}],"preferredVersion":{"groupVersion":"apps/v1","version":"v1"}}"#,
        ),
        ("/apis", r#"{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"#),
        ("/api", r#"{"kind":"APIVersions","versions":["v1"],"serverAddressByClientCIDRs":"#),
    ];
    for (path, expected) in cases {
        let response = cluster.send(Ask { line: &format!("GET {path}"), ..Ask::default() });
        let body = response.into_body().collect().now_or_never().unwrap().unwrap().to_bytes();
        let text = String::from_utf8_lossy(&body);
        assert!(text.contains(expected), "{path}: {text}");
    }
}
