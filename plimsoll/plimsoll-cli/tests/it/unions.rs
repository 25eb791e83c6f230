//! Objects whose new manifest sets another member of a union than the former, or changes in what no update
//! changes.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::Api;
use plimsoll_plan::forecast::StepChange;
use serde_json::{Value, json};

use crate::harness::{Harness, condition, on_each_cluster, sample_with, sample_with_next};
use crate::plans::forecast;

const FILE: &str = "0000_30_tally_01.yaml";

/// A manifest of the Deployment and of the Service.
fn manifests(strategy: &Value, pod: &Value, service: &Value) -> (String, String) {
    let metadata = json!({
        "name": "tally",
        "namespace": "default",
        "annotations": { "include.release.openshift.io/self-managed-high-availability": "true" },
    });
    let labels = json!({ "app": "tally" });
    let mut deployment = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {
            "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": pod },
        },
    });
    if !strategy.is_null() {
        deployment["spec"]["strategy"] = strategy.clone();
    }
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": service,
    });
    (FILE.to_owned(), format!("{deployment}\n---\n{service}\n"))
}

fn pod(probe: &Value, variable: &Value, volumes: &Value) -> Value {
    let mut variable = variable.clone();
    variable["name"] = "TALLY".into();
    json!({
        "containers": [{
            "name": "tally",
            "image": "example.com/tally@sha256:\
                      9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            "env": [variable],
            "livenessProbe": probe,
        }],
        "volumes": volumes,
    })
}

#[test]
fn another_member_of_a_union_takes_the_place_of_the_former_and_its_defaults() {
    on_each_cluster(|kind| async move {
        let get = json!({ "httpGet": { "path": "/healthz", "port": 8080 } });
        let field = json!({ "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } } });
        let volumes = json!([
            { "name": "a", "configMap": { "name": "a" } },
            { "name": "b", "hostPath": { "path": "/b" } },
        ]);
        let ports = json!([{ "port": 80 }]);
        let before = manifests(
            &Value::Null,
            &pod(&get, &field, &volumes),
            &json!({ "type": "NodePort", "ports": ports, "selector": { "app": "tally" } }),
        );
        let volumes = json!([
            { "name": "b", "emptyDir": {} },
            { "name": "a", "secret": { "secretName": "a" } },
        ]);
        let after = manifests(
            &json!({ "type": "Recreate" }),
            &pod(&json!({ "exec": { "command": ["true"] } }), &json!({ "value": "1" }), &volumes),
            &json!({ "type": "ClusterIP", "ports": ports, "selector": { "app": "tally" } }),
        );
        let (first, next) = (sample_with(&[before]), sample_with_next(&[after]));
        let mut harness = Harness::installed(kind, &[Arc::clone(&first), Arc::clone(&next)]).await;

        let forecast = forecast(&harness, &next).await;
        for (step, change) in forecast.plan.steps.iter().zip(&forecast.changes) {
            if step.manifest.key.name == "tally" {
                assert!(matches!(change, StepChange::Changed(_)), "{change:?}");
            }
        }

        harness.release(&next);
        harness.completed(&next.release.version).await;
        let api: Api<Deployment> = Api::namespaced(harness.client.clone(), "default");
        let deployment = json!(api.get("tally").await.expect("it is there").spec);
        assert_eq!(deployment["strategy"], json!({ "type": "Recreate" }));
        let pod = &deployment["template"]["spec"];
        let container = &pod["containers"][0];
        assert_eq!(container["livenessProbe"]["exec"], json!({ "command": ["true"] }));
        assert_eq!(container["livenessProbe"].get("httpGet"), None);
        assert_eq!(container["env"], json!([{ "name": "TALLY", "value": "1" }]));
        for volume in pod["volumes"].as_array().expect("volumes") {
            let source = if volume["name"] == "a" { "secret" } else { "emptyDir" };
            let fields = volume.as_object().expect("a volume");
            assert!(fields.len() == 2 && fields.contains_key(source), "{volume}");
        }
        let api: Api<Service> = Api::namespaced(harness.client.clone(), "default");
        let service = json!(api.get("tally").await.expect("it is there").spec);
        assert_eq!(
            (&service["type"], service["ports"][0].get("nodePort")),
            (&json!("ClusterIP"), None)
        );
        harness.stop().await;
    });
}

/// A manifest of a binding that is replaced.
fn binding(role: &str, subjects: &Value) -> (String, String) {
    let mut manifest = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {
            "name": "tally",
            "annotations": {
                "include.release.openshift.io/self-managed-high-availability": "true",
                "plimsoll.io/replace": "true",
            },
        },
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role,
        },
    });
    if !subjects.is_null() {
        manifest["subjects"] = subjects.clone();
    }
    (FILE.to_owned(), manifest.to_string())
}

#[test]
fn an_object_that_no_update_changes_is_replaced_if_its_manifest_asks_for_that() {
    on_each_cluster(|kind| async move {
        let binding = |role: &str| binding(role, &Value::Null);
        let (first, next) = (sample_with(&[binding("view")]), sample_with_next(&[binding("edit")]));
        let mut harness = Harness::installed(kind, &[Arc::clone(&first), Arc::clone(&next)]).await;
        let api: Api<ClusterRoleBinding> = Api::all(harness.client.clone());
        let before = api.get("tally").await.expect("it is there");

        let forecast = forecast(&harness, &next).await;
        let mut steps = forecast.plan.steps.iter();
        let step = steps.position(|it| it.manifest.key.name == "tally").expect("it is planned");
        let StepChange::Replaced { because, fields } = &forecast.changes[step] else {
            panic!("it is replaced")
        };
        let paths: Vec<&str> = fields.iter().map(|it| it.path.as_str()).collect();
        assert_eq!(
            (because.as_slice(), paths),
            (["roleRef".to_owned()].as_slice(), vec!["roleRef.name"])
        );

        harness.release(&next);
        harness.completed(&next.release.version).await;
        let after = api.get("tally").await.expect("it is there");
        assert_eq!(after.role_ref.name, "edit");
        assert_ne!(after.metadata.uid, before.metadata.uid);
        harness.stop().await;
    });
}

#[test]
fn an_object_whose_replacement_is_refused_is_not_deleted() {
    on_each_cluster(|kind| async move {
        let subjects = json!([{ "kind": "ServiceAccount", "name": "tally" }]);
        let (first, next) = (
            sample_with(&[binding("view", &Value::Null)]),
            sample_with_next(&[binding("edit", &subjects)]),
        );
        let mut harness = Harness::installed(kind, &[Arc::clone(&first), Arc::clone(&next)]).await;
        let api: Api<ClusterRoleBinding> = Api::all(harness.client.clone());
        let before = api.get("tally").await.expect("it is there");

        let forecast = forecast(&harness, &next).await;
        let mut steps = forecast.plan.steps.iter();
        let step = steps.position(|it| it.manifest.key.name == "tally").expect("it is planned");
        let StepChange::Refused { message, .. } = &forecast.changes[step] else {
            panic!("it is refused")
        };
        assert!(message.contains("subjects[0].namespace: Required value"), "{message}");

        harness.release(&next);
        harness
            .cluster_version_until(|status| condition(status, "Failing")["status"] == "True")
            .await;
        let after = api.get("tally").await.expect("it is there still");
        assert_eq!(
            (after.role_ref.name, after.metadata.uid),
            ("view".to_owned(), before.metadata.uid)
        );
        harness.stop().await;
    });
}
