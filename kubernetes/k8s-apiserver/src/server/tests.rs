//! What becomes of a cluster in which a write panics.
use futures::{FutureExt as _, StreamExt as _};
use http_body_util::Full;
use serde_json::Value;

use super::*;
use crate::semantics::cluster::admission::{Admission, WriteAttributes};
use crate::semantics::context::RequestContext;
use crate::semantics::registry::ApiResource;

const NAMESPACES: &str = "/api/v1/namespaces";
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const POISONED: &str = "the cluster is unusable: a write panicked before it was complete; restart \
                        the server or restore a snapshot";

/// Admission that panics in writes of one kind.
#[derive(Debug)]
struct PanicsOn(&'static str);

impl Admission for PanicsOn {
    fn validate(
        &self,
        _: &Cluster,
        _: &mut RequestContext,
        attributes: &WriteAttributes<'_>,
        _: Option<&Value>,
    ) -> Result<()> {
        assert_ne!(attributes.resource.kind, self.0, "a defect in admission");
        Ok(())
    }
}

fn server_that_panics_on(kind: &'static str) -> ApiServer {
    let server = ApiServer::new(Options::default());
    let replaced = server.shared.cluster.write("", |cluster| {
        cluster.admission = Arc::new(PanicsOn(kind));
        Ok(())
    });
    replaced.unwrap();
    server
}

fn send(server: &ApiServer, method: &str, path: &str, body: &str) -> Response<Body> {
    let body = Full::new(bytes::Bytes::copy_from_slice(body.as_bytes()));
    let request = Request::builder().method(method).uri(path);
    let request = request.header("content-type", "application/json").body(body).unwrap();
    let answered = server.clone().call(request).now_or_never();
    answered.expect("the server answers without waiting").unwrap()
}

/// The status of the answer and the message in it.
fn ask(server: &ApiServer, method: &str, path: &str, body: &str) -> (u16, String) {
    let response = send(server, method, path, body);
    let code = response.status().as_u16();
    let body = response.into_body().collect().now_or_never().unwrap().unwrap().to_bytes();
    let status: Value = serde_json::from_slice(&body).unwrap_or_default();
    (code, status["message"].as_str().unwrap_or_default().to_owned())
}

#[test]
fn a_panic_inside_a_write_makes_the_cluster_unusable() {
    let server = server_that_panics_on("ServiceAccount");
    let poisoned = (500, POISONED.to_owned());
    let mut watch =
        send(&server, "GET", &format!("{CONFIG_MAPS}?watch=true&resourceVersion=0"), "")
            .into_body()
            .into_stream();
    let first = watch.next().now_or_never().flatten().expect("the present state");
    assert!(first.starts_with(b"{\"type\":\"ADDED\""));
    let before = server.resource_version();

    // The namespace is written before the controllers fail to create the account in it.
    let namespace = r#"{"metadata": {"name": "half"}}"#;
    assert_eq!(ask(&server, "POST", NAMESPACES, namespace), poisoned);
    assert!(server.resource_version() > before, "part of the write was done");

    for (method, path, body) in [
        ("GET", "/api/v1/namespaces/half", ""),
        ("GET", CONFIG_MAPS, ""),
        ("POST", CONFIG_MAPS, r#"{"metadata": {"name": "a"}}"#),
        ("DELETE", "/api/v1/namespaces/half", ""),
        ("GET", "/apis", ""),
        ("GET", "/openapi/v3", ""),
        ("GET", "/readyz", ""),
        ("GET", "/metrics", ""),
    ] {
        assert_eq!(ask(&server, method, path, body), poisoned, "{method} {path}");
    }
    let error = server.snapshot(std::io::sink()).expect_err("there is nothing to rely on");
    assert_eq!(error.to_string(), POISONED);
}

#[test]
fn writes_that_do_not_panic_leave_the_cluster_usable() {
    let server = server_that_panics_on("Secret");
    let namespace = r#"{"metadata": {"name": "whole"}}"#;
    assert_eq!(ask(&server, "POST", NAMESPACES, namespace).0, 201);
    assert_eq!(ask(&server, "POST", NAMESPACES, namespace).0, 409);
    assert_eq!(ask(&server, "GET", "/readyz", "").0, 200);
}

#[test]
fn a_write_to_a_resource_that_is_no_longer_served_starts_over() {
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let definition = r#"{"metadata": {"name": "things.example.com"}, "spec": {
        "group": "example.com", "scope": "Cluster",
        "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
        "versions": [{"name": "v1", "served": true, "storage": true,
                      "schema": {"openAPIV3Schema": {"type": "object"}}}]}}"#;
    let server = ApiServer::new(Options::default());
    assert_eq!(ask(&server, "POST", definitions, definition).0, 201);
    let found = server
        .shared
        .cluster
        .read(|cluster| Ok(cluster.registry.find("example.com", "v1", "things").map(Arc::clone)));
    let resource: Arc<ApiResource> = found.unwrap().expect("it is served");
    let write = || {
        let mut context = RequestContext::default();
        let written = server.shared.cluster.write_for(&mut context, &resource, |_, _| Ok(()));
        (written.is_ok(), context.replay.take_outdated())
    };
    assert_eq!(write(), (true, false));
    // As another thread does while a request decodes its body.
    let path = format!("{definitions}/things.example.com");
    assert_eq!(ask(&server, "DELETE", &path, "").0, 200);
    assert_eq!(write(), (false, true));
    assert_eq!(ask(&server, "POST", definitions, definition).0, 201);
    assert_eq!(write(), (false, true), "another definition has taken its place");
}
