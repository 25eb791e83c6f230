//! Forms of requests and answers: protocol buffers, YAML, indented JSON, compressed documents.
use futures::FutureExt as _;
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, IF_NONE_MATCH, LOCATION, USER_AGENT};
use http::{HeaderName, Request};
use http_body_util::{BodyExt as _, Full};
use k8s_schema::protobuf;
use serde_json::{Value, json};
use tower::Service as _;

use crate::cluster::TestCluster;

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const WIDGETS: &str = r#"{
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com", "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
            "type": "object", "description": "A widget.",
            "properties": {"spec": {"type": "object", "properties": {
                "port": {"x-kubernetes-int-or-string": true}
            }}}
        }}}]
    }
}"#;

/// An answer: status, headers in one text, body.
struct Answer {
    status: u16,
    content_type: String,
    location: String,
    tag: String,
    encoding: String,
    body: Vec<u8>,
}

fn ask(cluster: &TestCluster, line: &str, headers: &[(HeaderName, &str)], body: &[u8]) -> Answer {
    let (method, path) = line.split_once(' ').expect("a method and a path");
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(name, *value);
    }
    let request = request.body(Full::new(bytes::Bytes::copy_from_slice(body))).unwrap();
    let response =
        cluster.server.clone().call(request).now_or_never().expect("an answer at once").unwrap();
    let text = |name: &str| {
        let value = response.headers().get(name).map(|value| value.to_str().unwrap());
        value.unwrap_or_default().to_owned()
    };
    Answer {
        status: response.status().as_u16(),
        content_type: text("content-type"),
        location: text(LOCATION.as_str()),
        tag: text("etag"),
        encoding: text("content-encoding"),
        body: response.into_body().collect().now_or_never().unwrap().unwrap().to_bytes().to_vec(),
    }
}

#[test]
fn built_in_kinds_are_read_and_written_as_protocol_buffers() {
    let cluster = TestCluster::new();
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"},
    });
    let both = [(CONTENT_TYPE, PROTOBUF), (ACCEPT, PROTOBUF)];
    let path = "/api/v1/namespaces/default/configmaps";
    let created =
        ask(&cluster, &format!("POST {path}"), &both, &protobuf::encode(&object).unwrap());
    assert_eq!((created.status, created.content_type.as_str()), (201, PROTOBUF));
    let read = protobuf::decode(&created.body).unwrap();
    assert_eq!(read["data"], object["data"]);
    assert_eq!(read["metadata"]["creationTimestamp"], "2026-01-01T00:00:00Z");
    let listed = ask(&cluster, &format!("GET {path}?labelSelector=!x"), &both[1..], b"");
    let listed = protobuf::decode(&listed.body).unwrap();
    assert_eq!(listed["kind"], "ConfigMapList");
    let names: Vec<&Value> =
        listed["items"].as_array().unwrap().iter().map(|item| &item["metadata"]["name"]).collect();
    assert!(names.contains(&&json!("a")), "{names:?}");
    let missing = ask(&cluster, &format!("GET {path}/b"), &both[1..], b"");
    let status = protobuf::decode(&missing.body).unwrap();
    assert_eq!((missing.status, &status["reason"]), (404, &json!("NotFound")));
    let options =
        json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": "x"}});
    let options = protobuf::encode(&options).unwrap();
    let refused = ask(&cluster, &format!("DELETE {path}/a"), &both, &options);
    assert_eq!(refused.status, 409);
}

#[test]
fn a_body_that_is_no_protocol_buffer_is_rejected() {
    let answer =
        ask(&TestCluster::new(), "POST /api/v1/namespaces", &[(CONTENT_TYPE, PROTOBUF)], b"kkk");
    let status: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(answer.status, 400);
    assert_eq!(
        status["message"],
        "the object provided is unrecognized (must be of type Namespace): provided data does not \
         appear to be a protobuf message, expected prefix [107 56 115 0] (6b6b6b)"
    );
}

#[tokio::test]
async fn a_watch_may_be_of_frames() {
    let cluster = TestCluster::new();
    let request = Request::get("/api/v1/namespaces?watch=1&fieldSelector=metadata.name=default")
        .header(ACCEPT, "application/vnd.kubernetes.protobuf;stream=watch")
        .body(Full::new(bytes::Bytes::new()))
        .unwrap();
    let response = cluster.server.clone().call(request).await.unwrap();
    assert_eq!(
        response.headers()[CONTENT_TYPE],
        "application/vnd.kubernetes.protobuf;stream=watch"
    );
    let frame = response.into_body().frame().await.unwrap().unwrap().into_data().unwrap();
    let length = u32::from_be_bytes(frame[..4].try_into().unwrap()) as usize;
    assert_eq!(frame.len(), length + 4);
    let start = frame.windows(4).position(|bytes| bytes == b"k8s\0").unwrap();
    let object = protobuf::decode(&frame[start..]).unwrap();
    assert_eq!(object["metadata"]["name"], "default");
}

#[test]
fn custom_kinds_have_no_protocol_buffers_but_their_metadata_has() {
    let cluster = TestCluster::new();
    cluster.check("POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions", WIDGETS, 201, "");
    let path = "/apis/example.com/v1/namespaces/default/widgets";
    let refused = ask(&cluster, &format!("GET {path}"), &[(ACCEPT, PROTOBUF)], b"");
    assert_eq!(refused.status, 406);
    let accept = format!("{PROTOBUF};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1");
    let listed = ask(&cluster, &format!("GET {path}"), &[(ACCEPT, &accept)], b"");
    let listed = protobuf::decode(&listed.body).unwrap();
    assert_eq!(listed["kind"], "PartialObjectMetadataList");
    let either = format!("{PROTOBUF},application/json");
    let json = ask(&cluster, &format!("GET {path}"), &[(ACCEPT, &either)], b"");
    assert_eq!((json.status, json.content_type.as_str()), (200, "application/json"));
}

#[test]
fn answers_have_the_form_that_was_asked_for() {
    let cluster = TestCluster::new();
    let check = |line: &str, headers: &[(HeaderName, &str)], content_type: &str, start: &str| {
        let answer = ask(&cluster, line, headers, b"");
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        assert_eq!(answer.content_type, content_type, "{line}: {text}");
        assert!(text.starts_with(start), "{line}: {text}");
    };
    let json = "application/json";
    let namespace = "GET /api/v1/namespaces/default";
    check(namespace, &[], json, "{\"kind\"");
    check(namespace, &[(USER_AGENT, "curl/8")], json, "{\n  \"");
    check(&format!("{namespace}?pretty=true"), &[], json, "{\n  \"");
    check(&format!("{namespace}?pretty=0"), &[(USER_AGENT, "curl/8")], json, "{\"kind\"");
    let yaml = [(ACCEPT, "application/yaml")];
    check(namespace, &yaml, "application/yaml", "apiVersion: v1\n");
    check("GET /api/v1/namespaces/none", &yaml, "application/yaml", "apiVersion: v1\n");
    check("GET /api/v1/namespaces/none", &[(ACCEPT, "application/cbor")], json, "{\"");
}

#[test]
fn what_cannot_be_served_is_not_acceptable() {
    let cluster = TestCluster::new();
    let check = |accept: &str, message: &str| {
        let answer = ask(&cluster, "GET /api/v1/namespaces/default", &[(ACCEPT, accept)], b"");
        let status: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(answer.status, 406, "{accept}");
        assert!(status["message"].as_str().unwrap().starts_with(message), "{accept}: {status}");
    };
    check("application/cbor", "406: Not Acceptable\n\nAvailable representations:");
    check("text/html", "406: Not Acceptable\n\nAvailable representations:");
    check("application/json;as=Foo;g=meta.k8s.io;v=v1", "only the following media types are");
    check(&format!("{PROTOBUF};as=Table;g=meta.k8s.io;v=v1"), "only the following media types");
}

#[test]
fn documents_are_compressed_tagged_and_kept_by_their_digest() {
    let cluster = TestCluster::new();
    let index = ask(&cluster, "GET /openapi/v3", &[], b"");
    let index: Value = serde_json::from_slice(&index.body).unwrap();
    let url = index["paths"]["apis/apps/v1"]["serverRelativeURL"].as_str().unwrap();
    let plain = ask(&cluster, &format!("GET {url}"), &[], b"");
    let document: Value = serde_json::from_slice(&plain.body).unwrap();
    let deployment = &document["components"]["schemas"]["io.k8s.api.apps.v1.Deployment"];
    assert!(deployment["description"].as_str().unwrap().starts_with("Deployment enables"));
    let packed = ask(&cluster, &format!("GET {url}"), &[(ACCEPT_ENCODING, "gzip")], b"");
    assert_eq!(packed.encoding, "gzip");
    assert!(packed.body.len() * 4 < plain.body.len());
    let known = ask(&cluster, &format!("GET {url}"), &[(IF_NONE_MATCH, &plain.tag)], b"");
    assert_eq!((known.status, known.body.len()), (304, 0));
    // Clients take the headers of this answer over those of the one that they keep.
    assert_eq!(known.content_type, "");
    let groups = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let whole = ask(&cluster, "GET /apis", &[(ACCEPT, groups)], b"");
    assert_eq!((whole.status, whole.content_type.as_str()), (200, groups));
    let known = [(ACCEPT, groups), (IF_NONE_MATCH, whole.tag.as_str())];
    let known = ask(&cluster, "GET /apis", &known, b"");
    assert_eq!((known.status, known.content_type.as_str()), (304, ""));
    let old = ask(&cluster, "GET /openapi/v3/apis/apps/v1?hash=0", &[], b"");
    assert_eq!((old.status, old.location.as_str()), (301, url));
}

#[test]
fn custom_kinds_are_described() {
    let cluster = TestCluster::new();
    cluster.check("POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions", WIDGETS, 201, "");
    let document = cluster.check("GET /openapi/v3/apis/example.com/v1", "", 200, "");
    let schemas = &document["components"]["schemas"];
    let widget = &schemas["com.example.v1.Widget"];
    assert_eq!(widget["description"], "A widget.");
    assert_eq!(
        widget["properties"]["metadata"]["allOf"][0]["$ref"],
        "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
    );
    assert_eq!(widget["properties"]["spec"]["properties"]["port"]["anyOf"][1]["type"], "string");
    assert!(schemas["com.example.v1.WidgetList"].is_object());
    let document = cluster.check("GET /openapi/v2", "", 200, r#"{"swagger": "2.0"}"#);
    let widget = &document["definitions"]["com.example.v1.Widget"];
    assert_eq!(
        widget["properties"]["metadata"]["$ref"],
        "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
    );
    assert!(widget["properties"]["spec"]["properties"]["port"].get("anyOf").is_none());
}

#[test]
fn every_group_version_has_its_service() {
    let cluster = TestCluster::new();
    let services = "/apis/apiregistration.k8s.io/v1/apiservices";
    let expected = r#"{
        "metadata": {"labels": {"kube-aggregator.kubernetes.io/automanaged": "onstart"}},
        "spec": {"group": "apps", "groupPriorityMinimum": 17800, "versionPriority": 15},
        "status": {"conditions": [{"type": "Available", "status": "True", "reason": "Local"}]}
    }"#;
    cluster.check(&format!("GET {services}/v1.apps"), "", 200, expected);
    cluster.check(&format!("GET {services}/v1."), "", 200, "");
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    cluster.check(&format!("POST {definitions}"), WIDGETS, 201, "");
    cluster.check(&format!("GET {services}/v1.example.com"), "", 200, "");
    cluster.check(&format!("DELETE {definitions}/widgets.example.com"), "", 200, "");
    cluster.check(&format!("GET {services}/v1.example.com"), "", 404, "");
}

#[test]
fn health_is_reported_check_by_check() {
    let cluster = TestCluster::new();
    let ask = |path: &str| {
        let answer = ask(&cluster, &format!("GET {path}"), &[], b"");
        (answer.status, String::from_utf8(answer.body).unwrap())
    };
    let (status, text) = ask("/readyz?verbose&exclude=etcd");
    assert_eq!(status, 200);
    assert!(text.starts_with("[+]ping ok\n"), "{text}");
    assert!(text.contains("[+]etcd excluded: ok\n"), "{text}");
    assert!(text.ends_with("readyz check passed\n"), "{text}");
    assert_eq!(ask("/livez/etcd"), (200, "ok".to_owned()));
    assert_eq!(ask("/livez/nothing"), (404, "404 page not found\n".to_owned()));
}
