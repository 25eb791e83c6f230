//! Documents about the API.
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
