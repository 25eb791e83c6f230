//! Snapshots: what is in them, and what comes back out of them.
use std::error::Error as _;
use std::sync::Arc;

use k8s_apiserver::{ApiServer, Options};

use crate::cluster::{Ask, TestClock, TestCluster};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const THINGS: &str = "/apis/example.com/v1/namespaces/default/things";

const DEFINITION: &str = r#"{
    "metadata": {"name": "things.example.com"},
    "spec": {
        "group": "example.com", "scope": "Namespaced",
        "names": {"plural": "things", "kind": "Thing"},
        "versions": [
            {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object",
                "properties": {"spec": {"type": "object", "properties": {
                    "size": {"type": "integer", "default": 3}
                }}}
            }}}
        ]
    }
}"#;

/// A life of some length: objects of all sorts come, change and go.
fn play(cluster: &TestCluster) {
    cluster.check("POST /api/v1/namespaces", r#"{"metadata": {"name": "a"}}"#, 201, "");
    cluster.check(&format!("POST {DEFINITIONS}"), DEFINITION, 201, "");
    let owner = cluster.check(
        &format!("POST {CONFIG_MAPS}"),
        r#"{"metadata": {"generateName": "owner-", "labels": {"b": "1", "a": "2"}}}"#,
        201,
        "",
    );
    cluster.clock.advance(5);
    let thing = format!(
        r#"{{
            "apiVersion": "example.com/v1", "kind": "Thing",
            "metadata": {{"name": "t", "ownerReferences": [{{
                "apiVersion": "v1", "kind": "ConfigMap", "name": {}, "uid": {}
            }}]}},
            "spec": {{}}
        }}"#,
        owner["metadata"]["name"], owner["metadata"]["uid"]
    );
    cluster.check(&format!("POST {THINGS}"), &thing, 201, r#"{"spec": {"size": 3}}"#);
    cluster.apply(
        &format!("{CONFIG_MAPS}/applied"),
        "another-client",
        r#"{
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "applied"}, "data": {"k": "v"}
        }"#,
        201,
        "",
    );
    cluster.check(
        "POST /api/v1/namespaces/a/configmaps",
        r#"{"metadata": {"name": "x"}}"#,
        201,
        "",
    );
    cluster.clock.advance(1);
    cluster.check("DELETE /api/v1/namespaces/a", "", 200, "");
}

fn snapshot(server: &ApiServer) -> String {
    let mut bytes = Vec::new();
    server.snapshot(&mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

fn restore(text: &str, clock: &TestClock) -> TestCluster {
    let options = Options { clock: Arc::new(clock.clone()), seed: 99, ..Options::default() };
    let server = ApiServer::restore(text.as_bytes(), options).unwrap();
    TestCluster::of(server, clock.clone())
}

#[test]
fn the_same_requests_clock_and_seed_give_the_same_snapshot() {
    let [one, two] = [(), ()].map(|()| {
        let cluster = TestCluster::new();
        play(&cluster);
        snapshot(&cluster.server)
    });
    assert_eq!(one, two);
    assert!(one.lines().count() > 10);
    assert!(one.starts_with(r#"{"format":"k8s-apiserver-snapshot","version":1,"revision":"#));
}

#[test]
fn a_restored_cluster_is_the_same_and_goes_on_the_same() {
    let cluster = TestCluster::new();
    play(&cluster);
    let text = snapshot(&cluster.server);
    let restored = restore(&text, &cluster.clock);
    assert_eq!(snapshot(&restored.server), text);
    assert_eq!(restored.server.resource_version(), cluster.server.resource_version());
    for path in
        ["/api/v1/configmaps", THINGS, DEFINITIONS, "/apis/example.com/v1", "/api/v1/secrets"]
    {
        let line = format!("GET {path}");
        let ask = Ask { line: &line, ..Ask::default() };
        assert_eq!(restored.ask(ask), cluster.ask(ask), "{path}");
    }
    // Identifiers and revisions go on, defaults and owners are known.
    for cluster in [&cluster, &restored] {
        cluster.check(
            &format!("POST {CONFIG_MAPS}"),
            r#"{"metadata": {"generateName": "g-"}}"#,
            201,
            "",
        );
        let thing = r#"{"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "u"}, "spec": {}}"#;
        cluster.check(&format!("POST {THINGS}"), thing, 201, r#"{"spec": {"size": 3}}"#);
        let selected = "labelSelector=a%3D2";
        cluster.check(&format!("DELETE {CONFIG_MAPS}?{selected}"), "", 200, "");
        cluster.check(&format!("GET {THINGS}/t"), "", 404, "");
    }
    assert_eq!(snapshot(&restored.server), snapshot(&cluster.server));
}

#[test]
fn what_was_before_a_snapshot_has_expired() {
    let cluster = TestCluster::new();
    let before = cluster.server.resource_version();
    play(&cluster);
    let restored = restore(&snapshot(&cluster.server), &cluster.clock);
    let now = restored.server.resource_version();
    let exact = |revision| {
        format!("GET {CONFIG_MAPS}?resourceVersion={revision}&resourceVersionMatch=Exact")
    };
    restored.check(&exact(before), "", 410, r#"{"reason": "Expired"}"#);
    restored.check(&exact(now), "", 200, "");
}

#[track_caller]
fn check_refused(text: &str, line: usize, expected: &str) {
    let error = ApiServer::restore(text.as_bytes(), Options::default()).err().expect(expected);
    let cause = error.source().map(ToString::to_string).unwrap_or_default();
    let place = format!("line {line} of the snapshot cannot be used");
    assert!(error.to_string().ends_with(&place), "{error}");
    assert!(cause.contains(expected), "{cause}");
}

#[test]
fn a_defective_snapshot_is_refused_with_line_and_cause() {
    let cluster = TestCluster::new();
    let text = snapshot(&cluster.server);
    let lines: Vec<&str> = text.lines().collect();
    let with = |index: usize, line: &str| {
        let mut lines = lines.clone();
        lines[index] = line;
        lines.join("\n")
    };
    check_refused("", 1, "EOF");
    check_refused("hello\n", 1, "expected value");
    check_refused("{}", 1, "the format is ``");
    check_refused(&with(0, &lines[0].replace("\"version\":1", "\"version\":2")), 1, "version 2");
    check_refused(&lines[..lines.len() - 1].join("\n"), 1, "objects, not");
    check_refused(&with(2, "{\"resource\":"), 3, "EOF");
    check_refused(&with(2, lines[1]), 3, "there already");
    let stray = lines[1].replacen("\"resource\":\"", "\"resource\":\"no", 1);
    check_refused(&with(1, &stray), 2, "there is no resource `no");
    let future = lines[1].replacen("\"resourceVersion\":\"", "\"resourceVersion\":\"9999", 1);
    check_refused(&with(1, &future), 2, "revision `9999");
    let nameless = lines[1].replacen("\"name\":", "\"nome\":", 1);
    check_refused(&with(1, &nameless), 2, "no name");
    let anonymous = lines[1].replacen("\"uid\":", "\"id\":", 1);
    check_refused(&with(1, &anonymous), 2, "no uid");
    for (field, name) in [("name", "../a"), ("name", ".."), ("namespace", "a/b"), ("name", "a%2fb")]
    {
        let line = format!(
            r#"{{"resource":"configmaps","object":{{"metadata":{{"name":"a","{field}":"{name}","uid":"u","resourceVersion":"1"}}}}}}"#
        );
        check_refused(&with(1, &line), 2, &format!("`{name}` is not a valid name"));
    }
}

/// A snapshot with one object more, whose metadata goes on with `rest`.
fn with_object(resource: &str, namespace: &str, rest: &str) -> String {
    let text = snapshot(&TestCluster::new().server);
    let (header, objects) = text.split_once('\n').unwrap();
    let mut header: serde_json::Value = serde_json::from_str(header).unwrap();
    header["objects"] = (header["objects"].as_u64().unwrap() + 1).into();
    let object = format!(
        r#"{{"metadata":{{{namespace}"name":"web","uid":"u","resourceVersion":"1"}}{rest}}}"#
    );
    format!("{header}\n{{\"resource\":\"{resource}\",\"object\":{object}}}\n{objects}")
}

const IN_DEFAULT: &str = r#""namespace":"default","#;

#[test]
fn an_object_that_no_server_can_have_stored_is_refused_by_its_name() {
    let deep = format!(r#","data":{}{}"#, "[".repeat(200), "]".repeat(200));
    let three = r#","spec":{"replicas":"three"}"#;
    for (resource, namespace, rest, expected) in [
        ("deployments.apps", IN_DEFAULT, three, "cannot unmarshal string into Go struct field"),
        ("configmaps", IN_DEFAULT, r#","data":{"k":"a","k":"b"}"#, r#"duplicate field "data.k""#),
        ("configmaps", IN_DEFAULT, r#","kind":"ConfigMap""#, "the field `kind`"),
        ("configmaps", "", "", "the object has no namespace"),
        ("things.example.com", IN_DEFAULT, "", "there is no resource `things.example.com`"),
        ("namespaces", IN_DEFAULT, "", "has the namespace `default`"),
        (
            "resourcequotas",
            IN_DEFAULT,
            r#","spec":{"hard":{"pods":"many"}}"#,
            "quantities must match the regular expression",
        ),
        ("configmaps", IN_DEFAULT, deep.as_str(), "recursion limit"),
    ] {
        let text = with_object(resource, namespace, rest);
        check_refused(&text, 2, expected);
        let error = ApiServer::restore(text.as_bytes(), Options::default()).err().unwrap();
        let name = if namespace.is_empty() { "`web`" } else { "`default/web`" };
        let is_readable = expected != "recursion limit";
        assert_eq!(
            error.to_string().starts_with(&format!("{name} of {resource} in line 2")),
            is_readable,
            "{error}"
        );
    }
}

#[test]
fn an_object_that_only_validation_refuses_is_kept() {
    // Older rules may have allowed it, as a server that reads it from etcd assumes.
    let text = with_object("deployments.apps", IN_DEFAULT, r#","spec":{"replicas":-1}"#);
    let restored = restore(&text, &TestCluster::new().clock);
    let path = "GET /apis/apps/v1/namespaces/default/deployments/web";
    restored.check(path, "", 200, r#"{"spec": {"replicas": -1}}"#);
}
