//! A release waits for the condition that a manifest names.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::harness::{Harness, OperatorSetup, on_any_cluster, sample_payloads, sample_with, until};

const FILE: &str = "0000_20_lamp_30_lamp.configmap.yaml";
const LAMP: &str = r#"
apiVersion: v1
kind: ConfigMap
metadata:
  name: lamp
  namespace: default
  annotations:
    include.release.openshift.io/self-managed-high-availability: "true"
    plimsoll.io/ready-when: "'lit' in self.metadata.annotations"
data: { of: ours }
"#;

#[test]
fn a_release_is_complete_when_the_conditions_of_its_manifests_hold() {
    on_any_cluster(|kind| async move {
        let payload = sample_with(&[(FILE.to_owned(), LAMP.to_owned())]);
        let mut harness = Harness::start(kind, &[payload], OperatorSetup::default()).await;
        harness.control();
        let progress = || async { harness.progress().await.to_string() };
        let message = "is not ready: 'lit' in self.metadata.annotations is false";
        until("it waits for the lamp", progress, |found| found.contains(message)).await;
        let version = harness.get(plimsoll_api::CLUSTER_VERSION, "version").await;
        assert_eq!(version["status"]["history"][0]["state"], "Partial");
        let maps: Api<ConfigMap> = Api::namespaced(harness.client.clone(), "default");
        let patch = Patch::Merge(json!({ "metadata": { "annotations": { "lit": "true" } } }));
        maps.patch("lamp", &PatchParams::default(), &patch).await.expect("a patch");
        harness.completed("1.0.0").await;
        harness.stop().await;
    });
}

#[test]
fn a_condition_that_another_client_names_holds_up_nothing() {
    on_any_cluster(|kind| async move {
        let (first, next) = sample_payloads();
        let mut harness = Harness::installed(kind, &[Arc::clone(&first), Arc::clone(&next)]).await;
        let deployments: Api<Deployment> = Api::namespaced(harness.client.clone(), "harbour-crane");
        let annotations = json!({ "plimsoll.io/ready-when": "false" });
        let patch = Patch::Merge(json!({ "metadata": { "annotations": annotations } }));
        let parameters = PatchParams {
            field_manager: Some("kubectl-annotate".to_owned()),
            ..PatchParams::default()
        };
        deployments.patch("crane", &parameters, &patch).await.expect("a patch");
        harness.release(&next);
        harness.completed(&next.release.version).await;
        harness.stop().await;
    });
}
