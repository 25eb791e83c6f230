//! Finalizers, owners, namespaces.
use serde_json::Value;

use crate::cluster::{Ask, TestCluster};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn create(cluster: &TestCluster, name: &str, metadata: &str) -> Value {
    let body = format!(r#"{{"metadata": {{"name": "{name}"{metadata}}}}}"#);
    cluster.check(&format!("POST {CONFIG_MAPS}"), &body, 201, "")
}

fn owned_by(owner: &Value, extra: &str) -> String {
    format!(
        r#", "ownerReferences": [{{"apiVersion": "v1", "kind": "ConfigMap", "name": {}, "uid": {}{extra}}}]"#,
        owner["metadata"]["name"], owner["metadata"]["uid"]
    )
}

fn exists(cluster: &TestCluster, name: &str) -> bool {
    let (status, _) =
        cluster.ask(Ask { line: &format!("GET {CONFIG_MAPS}/{name}"), ..Ask::default() });
    status == 200
}

#[test]
fn a_finalizer_keeps_a_deleted_object() {
    let cluster = TestCluster::new();
    create(&cluster, "a", r#", "finalizers": ["example.com/hold"]"#);
    cluster.check(
        &format!("DELETE {CONFIG_MAPS}/a"),
        "",
        200,
        r#"{"kind": "ConfigMap", "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 0}}"#,
    );
    cluster.check(
        &format!("PATCH {CONFIG_MAPS}/a"),
        r#"{"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}}"#,
        422,
        r#"{"message": "ConfigMap \"a\" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{\"example.com/more\"}"}"#,
    );
    cluster.check(
        &format!("PATCH {CONFIG_MAPS}/a"),
        r#"{"metadata": {"finalizers": null}}"#,
        200,
        "",
    );
    assert!(!exists(&cluster, "a"));
}

#[test]
fn a_delete_is_answered_with_a_status() {
    let cluster = TestCluster::new();
    create(&cluster, "a", "");
    cluster.check(
        &format!("DELETE {CONFIG_MAPS}/a"),
        r#"{"preconditions": {"uid": "other"}}"#,
        409,
        r#"{"reason": "Conflict"}"#,
    );
    cluster.check(
        &format!("DELETE {CONFIG_MAPS}/a"),
        "",
        200,
        r#"{"kind": "Status", "status": "Success", "details": {"name": "a", "kind": "configmaps"}}"#,
    );
}

#[test]
fn dependents_go_with_their_last_owner() {
    let cluster = TestCluster::new();
    let owner = create(&cluster, "owner", "");
    create(&cluster, "child", &owned_by(&owner, ""));
    let child = cluster.check(&format!("GET {CONFIG_MAPS}/child"), "", 200, "");
    create(&cluster, "grandchild", &owned_by(&child, ""));
    cluster.check(&format!("DELETE {CONFIG_MAPS}/owner"), "", 200, "");
    assert!(!exists(&cluster, "child"));
    assert!(!exists(&cluster, "grandchild"));
}

#[test]
fn an_object_without_any_living_owner_is_collected() {
    let cluster = TestCluster::new();
    let owner = create(&cluster, "owner", "");
    cluster.check(&format!("DELETE {CONFIG_MAPS}/owner"), "", 200, "");
    create(&cluster, "late", &owned_by(&owner, ""));
    assert!(!exists(&cluster, "late"));
}

#[test]
fn orphans_stay_without_an_owner() {
    let cluster = TestCluster::new();
    let owner = create(&cluster, "owner", "");
    create(&cluster, "child", &owned_by(&owner, ""));
    cluster.check(&format!("DELETE {CONFIG_MAPS}/owner?propagationPolicy=Orphan"), "", 200, "");
    assert!(!exists(&cluster, "owner"));
    let child = cluster.check(&format!("GET {CONFIG_MAPS}/child"), "", 200, "");
    assert!(child["metadata"].get("ownerReferences").is_none());
}

#[test]
fn a_foreground_deletion_waits_for_blocking_dependents() {
    let cluster = TestCluster::new();
    let owner = create(&cluster, "owner", "");
    let extra = format!(
        r#"{}, "finalizers": ["example.com/hold"]"#,
        owned_by(&owner, r#", "blockOwnerDeletion": true"#)
    );
    create(&cluster, "child", &extra);
    cluster.check(
        &format!("DELETE {CONFIG_MAPS}/owner?propagationPolicy=Foreground"),
        "",
        200,
        r#"{"metadata": {"finalizers": ["foregroundDeletion"]}}"#,
    );
    assert!(exists(&cluster, "owner"));
    cluster.check(
        &format!("PATCH {CONFIG_MAPS}/child"),
        r#"{"metadata": {"finalizers": null}}"#,
        200,
        "",
    );
    assert!(!exists(&cluster, "child"));
    assert!(!exists(&cluster, "owner"));
}

#[test]
fn a_circle_of_owners_is_deleted_in_the_foreground() {
    let cluster = TestCluster::new();
    let names = ["a", "b", "c"];
    for name in names {
        create(&cluster, name, "");
    }
    for (name, owner) in [("a", "c"), ("b", "a"), ("c", "b")] {
        let owner = cluster.check(&format!("GET {CONFIG_MAPS}/{owner}"), "", 200, "");
        let owners = owned_by(&owner, r#", "blockOwnerDeletion": true"#);
        let patch = format!(r#"{{"metadata": {{{}}}}}"#, owners.trim_start_matches([',', ' ']));
        cluster.check(&format!("PATCH {CONFIG_MAPS}/{name}"), &patch, 200, "");
    }
    cluster.check(&format!("DELETE {CONFIG_MAPS}/a?propagationPolicy=Foreground"), "", 200, "");
    assert_eq!(names.map(|name| exists(&cluster, name)), [false; 3]);
}

#[test]
fn a_collection_is_deleted_by_selector() {
    let cluster = TestCluster::new();
    create(&cluster, "a", r#", "labels": {"x": "y"}"#);
    create(&cluster, "b", "");
    cluster.check(
        &format!("DELETE {CONFIG_MAPS}?labelSelector=x%3Dy"),
        "",
        200,
        r#"{"kind": "ConfigMapList", "items": [{"metadata": {"name": "a"}}]}"#,
    );
    assert!(!exists(&cluster, "a"));
    assert!(exists(&cluster, "b"));
}

#[test]
fn a_namespace_begins_filled_and_ends_empty() {
    let cluster = TestCluster::new();
    cluster.check(
        "POST /api/v1/namespaces",
        r#"{"metadata": {"name": "n"}}"#,
        201,
        r#"{
            "metadata": {"labels": {"kubernetes.io/metadata.name": "n"}},
            "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}
        }"#,
    );
    cluster.check("GET /api/v1/namespaces/n/serviceaccounts/default", "", 200, "");
    cluster.check("GET /api/v1/namespaces/n/configmaps/kube-root-ca.crt", "", 200, "");
    cluster.check(
        "POST /api/v1/namespaces/n/configmaps",
        r#"{"metadata": {"name": "held", "finalizers": ["example.com/hold"]}}"#,
        201,
        "",
    );
    cluster.check(
        "DELETE /api/v1/namespaces/n",
        "",
        200,
        r#"{"kind": "Namespace", "status": {"phase": "Terminating"}}"#,
    );
    let ending = cluster.check("GET /api/v1/namespaces/n", "", 200, "");
    assert_eq!(
        ending["status"]["conditions"][3]["message"],
        "Some resources are remaining: configmaps. has 1 resource instances"
    );
    cluster.check(
        "POST /api/v1/namespaces/n/configmaps",
        r#"{"metadata": {"name": "late"}}"#,
        403,
        r#"{
            "message": "configmaps \"late\" is forbidden: unable to create new content in namespace n because it is being terminated",
            "details": {"causes": [{"reason": "NamespaceTerminating"}]}
        }"#,
    );
    cluster.check(
        "PATCH /api/v1/namespaces/n/configmaps/held",
        r#"{"metadata": {"finalizers": null}}"#,
        200,
        "",
    );
    cluster.check("GET /api/v1/namespaces/n", "", 404, "");
    cluster.check("DELETE /api/v1/namespaces/default", "", 403, "");
}

#[test]
fn nothing_is_created_in_a_missing_namespace() {
    let cluster = TestCluster::new();
    cluster.check(
        "POST /api/v1/namespaces/none/configmaps",
        r#"{"metadata": {"name": "a"}}"#,
        404,
        r#"{"message": "namespaces \"none\" not found", "details": {"name": "none", "kind": "namespaces"}}"#,
    );
}
