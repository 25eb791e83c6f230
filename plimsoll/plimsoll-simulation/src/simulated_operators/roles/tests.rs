//! Roles follow from manifests.

use std::collections::BTreeSet;

use plimsoll_api::GroupKind;
use plimsoll_content::Manifest;
use serde_json::{Value, json};

use super::{Roles, SimulatedRelease};

fn manifest(file: &str, object: &Value) -> Manifest {
    Manifest::read(file.into(), 0, object).expect("a manifest")
}

fn object(api_version: &str, kind: &str, namespace: &str, name: &str) -> Value {
    let mut object =
        json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": name } });
    if !namespace.is_empty() {
        object["metadata"]["namespace"] = json!(namespace);
    }
    object
}

fn roles(manifests: Vec<Manifest>) -> Roles {
    let cluster_kinds = BTreeSet::from([GroupKind::new("example.com", "Wide")]);
    Roles::new(&[SimulatedRelease { version: "1.0.0".into(), manifests, cluster_kinds }])
}

#[test]
fn an_operator_waits_for_the_workloads_before_it_in_its_component() {
    let operator = || object("config.openshift.io/v1", "ClusterOperator", "", "crane");
    let mut ending = object("apps/v1", "Deployment", "crane", "tombstone");
    ending["metadata"]["annotations"] = json!({ "release.openshift.io/delete": "true" });
    let roles = roles(vec![
        manifest("0000_20_crane_01.yaml", &object("apps/v1", "Deployment", "crane", "other-level")),
        manifest("0000_30_crane_01.yaml", &object("apps/v1", "Deployment", "crane", "before")),
        manifest("0000_30_crane_02.yaml", &object("apps/v1", "DaemonSet", "crane", "before-too")),
        manifest("0000_30_crane_03.yaml", &ending),
        manifest("0000_30_crane_04.yaml", &object("batch/v1", "Job", "crane", "job")),
        manifest("0000_30_pilot_01.yaml", &object("apps/v1", "Deployment", "pilot", "pilot")),
        manifest("0000_30_crane_08.yaml", &operator()),
        manifest("0000_30_crane_09.yaml", &object("apps/v1", "Deployment", "crane", "after")),
    ]);
    let workloads: Vec<&str> =
        roles.operators["crane"].0[&0].workloads.keys().map(|key| key.name.as_str()).collect();
    assert_eq!(workloads, ["before-too", "before"]);
}

#[test]
fn namespaces_that_no_manifest_creates_are_created_at_run_time() {
    let roles = roles(vec![
        manifest("a.yaml", &object("v1", "Namespace", "", "made")),
        manifest("b.yaml", &object("v1", "ConfigMap", "made", "a")),
        manifest("b.yaml", &object("v1", "ConfigMap", "operand", "a")),
        manifest("b.yaml", &object("v1", "ConfigMap", "kube-system", "a")),
        manifest("b.yaml", &object("example.com/v1", "Wide", "written-in-vain", "a")),
    ]);
    assert_eq!(roles.namespaces.iter().map(String::as_str).collect::<Vec<_>>(), ["operand"]);
}

#[test]
fn kinds_that_the_payload_does_not_define_are_external() {
    let mut definition =
        object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "berths.example.com");
    definition["spec"] = json!({ "group": "example.com", "names": { "kind": "Berth" } });
    let roles = roles(vec![
        manifest("a.yaml", &definition),
        manifest("b.yaml", &object("example.com/v1", "Berth", "", "north")),
        manifest("b.yaml", &object("apps/v1", "Deployment", "crane", "crane")),
        manifest("b.yaml", &object("image.example.com/v1", "Picture", "crane", "a")),
        // The controller defines it, with a status.
        manifest("b.yaml", &object("config.openshift.io/v1", "ClusterOperator", "", "crane")),
    ]);
    let external: Vec<(&str, &str, bool)> = roles
        .external_kinds
        .iter()
        .map(|it| (it.group.as_str(), it.kind.as_str(), it.namespaced))
        .collect();
    let expected = [
        ("apiextensions.k8s.io", "CustomResourceDefinition", false),
        ("image.example.com", "Picture", true),
    ];
    assert_eq!(external, expected);
}
