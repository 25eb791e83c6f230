//! Create, update, patch, apply and scale.
use crate::cluster::{Ask, TestCluster};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const DEPLOYMENT: &str = r#"{
    "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "example/web:1"}]}
        }
    }
}"#;

fn config_map(cluster: &TestCluster, name: &str) {
    let body = format!(r#"{{"metadata": {{"name": "{name}"}}, "data": {{"a": "1"}}}}"#);
    cluster.check(&format!("POST {CONFIG_MAPS}"), &body, 201, "");
}

#[test]
fn a_created_object_gets_its_metadata() {
    let cluster = TestCluster::new();
    let created = cluster.check(
        &format!("POST {CONFIG_MAPS}?fieldManager=me"),
        r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}}"#,
        201,
        r#"{"metadata": {
            "name": "a", "namespace": "default", "creationTimestamp": "2026-01-01T00:00:00Z",
            "managedFields": [{"manager": "me", "operation": "Update", "fieldsV1": {"f:data": {".": {}, "f:k": {}}}}]
        }}"#,
    );
    let uid = created["metadata"]["uid"].as_str().unwrap();
    assert_eq!(uid.len(), 36);
    let again = TestCluster::new();
    config_map(&again, "a");
    let (_, other) = again.ask(Ask { line: &format!("GET {CONFIG_MAPS}/a"), ..Ask::default() });
    assert_eq!(other["metadata"]["uid"], uid, "uids follow the seed");
}

#[test]
fn generated_names_have_the_prefix() {
    let cluster = TestCluster::new();
    let created = cluster.check(
        &format!("POST {CONFIG_MAPS}"),
        r#"{"metadata": {"generateName": "gen-"}}"#,
        201,
        r#"{"metadata": {"name": "gen-..."}}"#,
    );
    assert_eq!(created["metadata"]["name"].as_str().unwrap().len(), 9);
}

#[test]
fn a_dry_run_changes_nothing() {
    let cluster = TestCluster::new();
    let before = cluster.server.resource_version();
    cluster.check(
        &format!("POST {CONFIG_MAPS}?dryRun=All"),
        r#"{"metadata": {"name": "dry"}}"#,
        201,
        r#"{"metadata": {"name": "dry"}}"#,
    );
    cluster.check(&format!("GET {CONFIG_MAPS}/dry"), "", 404, "");
    assert_eq!(cluster.server.resource_version(), before);
}

#[test]
fn an_update_against_an_old_version_conflicts() {
    let cluster = TestCluster::new();
    config_map(&cluster, "a");
    let path = format!("{CONFIG_MAPS}/a");
    let (_, old) = cluster.ask(Ask { line: &format!("GET {path}"), ..Ask::default() });
    cluster.check(&format!("PATCH {path}"), r#"{"data": {"b": "2"}}"#, 200, "");
    cluster.check(
        &format!("PUT {path}"),
        &old.to_string(),
        409,
        r#"{"reason": "Conflict", "message": "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your changes to the latest version and try again"}"#,
    );
    cluster.check(
        &format!("PUT {path}"),
        r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"c": "3"}}"#,
        200,
        r#"{"data": {"c": "3"}}"#,
    );
}

#[test]
fn an_update_that_changes_nothing_is_no_write() {
    let cluster = TestCluster::new();
    config_map(&cluster, "a");
    let path = format!("{CONFIG_MAPS}/a");
    cluster.clock.advance(60);
    let before = cluster.server.resource_version();
    cluster.check(&format!("PATCH {path}"), r#"{"data": {"a": "1"}}"#, 200, "");
    let (_, same) = cluster.ask(Ask { line: &format!("GET {path}"), ..Ask::default() });
    cluster.check(&format!("PUT {path}"), &same.to_string(), 200, "");
    assert_eq!(cluster.server.resource_version(), before);
}

#[test]
fn patches_of_all_kinds_apply() {
    let cluster = TestCluster::new();
    cluster.check("POST /apis/apps/v1/namespaces/default/deployments", DEPLOYMENT, 201, "");
    let path = "PATCH /apis/apps/v1/namespaces/default/deployments/web";
    for (content_type, body, expected) in [
        (
            "application/strategic-merge-patch+json",
            r#"{"spec": {"template": {"spec": {"containers": [{"name": "d", "image": "example/d:1"}]}}}}"#,
            r#"{"spec": {"template": {"spec": {"containers": [{"name": "d"}, {"name": "c"}]}}}, "metadata": {"generation": 2}}"#,
        ),
        (
            "application/json-patch+json",
            r#"[{"op": "replace", "path": "/spec/replicas", "value": 3}]"#,
            r#"{"spec": {"replicas": 3}, "metadata": {"generation": 3}}"#,
        ),
        (
            "application/merge-patch+json",
            r#"{"metadata": {"labels": {"x": "y"}}}"#,
            r#"{"metadata": {"labels": {"x": "y"}, "generation": 3}}"#,
        ),
    ] {
        cluster.check_with(Ask { line: path, body, content_type, accept: "" }, 200, expected);
    }
    cluster.check_with(
        Ask {
            line: path,
            body: r#"[{"op": "test", "path": "/spec/replicas", "value": 9}]"#,
            content_type: "application/json-patch+json",
            accept: "",
        },
        422,
        r#"{"reason": "Invalid"}"#,
    );
}

#[test]
fn built_in_defaults_are_filled_in() {
    let cluster = TestCluster::new();
    cluster.check(
        "POST /apis/apps/v1/namespaces/default/deployments",
        DEPLOYMENT,
        201,
        r#"{
            "metadata": {"generation": 1},
            "spec": {"progressDeadlineSeconds": 600, "strategy": {"type": "RollingUpdate"}},
            "status": {}
        }"#,
    );
}

#[test]
fn status_and_the_rest_are_written_apart() {
    let cluster = TestCluster::new();
    cluster.check("POST /apis/apps/v1/namespaces/default/deployments", DEPLOYMENT, 201, "");
    let path = "/apis/apps/v1/namespaces/default/deployments/web";
    cluster.check(
        &format!("PATCH {path}/status"),
        r#"{"status": {"readyReplicas": 1}, "spec": {"replicas": 9}}"#,
        200,
        r#"{"status": {"readyReplicas": 1}, "spec": {"replicas": 2}, "metadata": {"generation": 1}}"#,
    );
    cluster.check(
        &format!("PATCH {path}"),
        r#"{"status": {"readyReplicas": 7}, "spec": {"replicas": 9}}"#,
        200,
        r#"{"status": {"readyReplicas": 1}, "spec": {"replicas": 9}, "metadata": {"generation": 2}}"#,
    );
}

#[test]
fn scale_reads_and_writes_replicas() {
    let cluster = TestCluster::new();
    cluster.check("POST /apis/apps/v1/namespaces/default/deployments", DEPLOYMENT, 201, "");
    let path = "/apis/apps/v1/namespaces/default/deployments/web/scale";
    cluster.check(
        &format!("GET {path}"),
        "",
        200,
        r#"{"kind": "Scale", "spec": {"replicas": 2}, "status": {"selector": "app=web"}}"#,
    );
    cluster.check(
        &format!("PATCH {path}"),
        r#"{"spec": {"replicas": 5}}"#,
        200,
        r#"{"spec": {"replicas": 5}}"#,
    );
    for replicas in ["2.0", "2.5", "\"x\"", "true", "99999999999"] {
        let scale =
            format!(r#"{{"metadata": {{"name": "web"}}, "spec": {{"replicas": {replicas}}}}}"#);
        cluster.check(&format!("PUT {path}"), &scale, 400, r#"{"reason": "BadRequest"}"#);
        cluster.check(&format!("PATCH {path}"), &scale, 400, r#"{"reason": "BadRequest"}"#);
    }
    cluster.check(
        "GET /apis/apps/v1/namespaces/default/deployments/web",
        "",
        200,
        r#"{"spec": {"replicas": 5}, "metadata": {"generation": 2}}"#,
    );
}

#[test]
fn integers_of_built_in_kinds_have_no_fraction_in_json() {
    let cluster = TestCluster::new();
    let path = "/apis/apps/v1/namespaces/default/deployments";
    let float = DEPLOYMENT.replace("\"replicas\": 2", "\"replicas\": 2.0");
    let line = format!("POST {path}");
    cluster.check(
        &line,
        &float,
        400,
        r#"{"message": "Deployment in version \"v1\" cannot be handled as a Deployment: json: cannot unmarshal number 2.0 into Go struct field DeploymentSpec.spec.replicas of type int32"}"#,
    );
    // YAML becomes JSON before it is decoded, and loses the fraction.
    let yaml = Ask { line: &line, body: &float, content_type: "application/yaml", accept: "" };
    cluster.check_with(yaml, 201, r#"{"spec": {"replicas": 2}}"#);
    for (content_type, status) in
        [("application/merge-patch+json", 422), ("application/strategic-merge-patch+json", 200)]
    {
        let ask = Ask {
            line: &format!("PATCH {path}/web"),
            body: r#"{"spec": {"replicas": 3.0}}"#,
            content_type,
            accept: "",
        };
        cluster.check_with(ask, status, "");
    }
}

#[test]
fn server_side_apply_owns_conflicts_and_drops() {
    let cluster = TestCluster::new();
    let path = format!("{CONFIG_MAPS}/a");
    let object = |data: &str| {
        format!(
            r#"{{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {{"name": "a"}}, "data": {data}}}"#
        )
    };
    cluster.apply(
        &path,
        "one",
        &object(r#"{"x": "1", "y": "1"}"#),
        201,
        r#"{"data": {"x": "1", "y": "1"}}"#,
    );
    cluster.apply(
        &path,
        "two",
        &object(r#"{"x": "2"}"#),
        409,
        r#"{
            "reason": "Conflict",
            "message": "Apply failed with 1 conflict: conflict with \"one\": .data.x",
            "details": {"causes": [{"reason": "FieldManagerConflict", "field": ".data.x"}]}
        }"#,
    );
    cluster.apply(
        &path,
        "two&force=true",
        &object(r#"{"x": "2"}"#),
        200,
        r#"{"data": {"x": "2"}}"#,
    );
    let dropped = cluster.apply(&path, "one", &object("{}"), 200, r#"{"data": {"x": "2"}}"#);
    assert!(dropped["data"].get("y").is_none());
    let before = cluster.server.resource_version();
    cluster.clock.advance(5);
    cluster.apply(&path, "two", &object(r#"{"x": "2"}"#), 200, "");
    assert_eq!(cluster.server.resource_version(), before, "the same again is no write");
}

#[test]
fn apply_reads_yaml_and_needs_a_manager() {
    let cluster = TestCluster::new();
    let path = format!("{CONFIG_MAPS}/a");
    let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  x: \"1\"\n";
    cluster.apply(&path, "me", yaml, 201, r#"{"data": {"x": "1"}}"#);
    cluster.apply(
        &path,
        "",
        yaml,
        422,
        r#"{"message": "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch"}"#,
    );
}

#[test]
fn secrets_take_plain_text_and_services_get_addresses() {
    let cluster = TestCluster::new();
    let secret = cluster.check(
        "POST /api/v1/namespaces/default/secrets",
        r#"{"metadata": {"name": "s"}, "stringData": {"a": "b"}}"#,
        201,
        r#"{"type": "Opaque", "data": {"a": "Yg=="}}"#,
    );
    assert!(secret.get("stringData").is_none());
    cluster.check(
        "POST /api/v1/namespaces/default/services",
        r#"{"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}], "type": "NodePort"}}"#,
        201,
        r#"{"spec": {
            "clusterIP": "10.96.0.2", "clusterIPs": ["10.96.0.2"], "ipFamilies": ["IPv4"],
            "ports": [{"port": 80, "targetPort": 80, "protocol": "TCP", "nodePort": 30000}]
        }}"#,
    );
    cluster.check(
        "PUT /api/v1/namespaces/default/services/s",
        r#"{"metadata": {"name": "s"}, "spec": {"ports": [{"port": 81}]}}"#,
        200,
        r#"{"spec": {"clusterIP": "10.96.0.2", "ports": [{"port": 81}]}}"#,
    );
}

#[test]
fn events_are_the_same_in_both_groups() {
    let cluster = TestCluster::new();
    cluster.check(
        "POST /apis/events.k8s.io/v1/namespaces/default/events",
        r#"{
            "metadata": {"name": "e"}, "note": "hello", "reason": "Test", "type": "Normal",
            "eventTime": "2026-01-01T00:00:00.000000Z", "action": "Testing",
            "reportingController": "test", "reportingInstance": "test-1",
            "regarding": {"kind": "ConfigMap", "name": "a", "namespace": "default"}
        }"#,
        201,
        r#"{"apiVersion": "events.k8s.io/v1", "note": "hello"}"#,
    );
    cluster.check(
        "GET /api/v1/namespaces/default/events/e",
        "",
        200,
        r#"{"apiVersion": "v1", "message": "hello", "reportingComponent": "test", "involvedObject": {"name": "a"}}"#,
    );
    cluster.check(
        "GET /api/v1/events?fieldSelector=involvedObject.name=a",
        "",
        200,
        r#"{"items": [{"reason": "Test"}]}"#,
    );
    // `kubectl describe` selects the events of a cluster-scoped object by its missing namespace.
    cluster.check(
        "POST /apis/events.k8s.io/v1/namespaces/default/events",
        r#"{
            "metadata": {"name": "c"}, "note": "hello", "reason": "Cluster", "type": "Normal",
            "eventTime": "2026-01-01T00:00:00.000000Z", "action": "Testing",
            "reportingController": "test", "reportingInstance": "test-1",
            "regarding": {"kind": "Node", "name": "n"}
        }"#,
        201,
        "{}",
    );
    cluster.check(
        "GET /api/v1/events?fieldSelector=involvedObject.namespace=,involvedObject.name=n",
        "",
        200,
        r#"{"items": [{"reason": "Cluster"}]}"#,
    );
}
