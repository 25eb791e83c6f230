//! Feature sets and feature gates that change while the controller runs.

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use plimsoll_api::FEATURE_GATE;
use serde_json::{Value, json};

use crate::harness::{Harness, on_any_cluster, sample_with, until};

/// Belongs to the cluster where the gate `Bold` is on.
const GATED: &str = r#"
apiVersion: v1
kind: ConfigMap
metadata:
  name: gated
  namespace: default
  annotations:
    include.release.openshift.io/self-managed-high-availability: "true"
    release.openshift.io/feature-gate: Bold
"#;

/// The kind as a release would bring it, so far as it matters.
fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": "featuregates.config.openshift.io",
            "annotations": { "api-approved.kubernetes.io": "https://github.com/openshift/api" },
        },
        "spec": {
            "group": "config.openshift.io",
            "scope": "Cluster",
            "names": { "kind": "FeatureGate", "listKind": "FeatureGateList",
                       "plural": "featuregates", "singular": "featuregate" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                } },
            }],
        },
    })
}

/// Makes the FeatureGate what is given; while its kind is not served yet, again.
async fn feature(harness: &Harness, set: &str, gates: &[&str]) {
    let gates: Vec<Value> = gates.iter().map(|name| json!({ "name": name })).collect();
    let object = json!({
        "apiVersion": "config.openshift.io/v1",
        "kind": "FeatureGate",
        "metadata": { "name": "cluster" },
        "spec": { "featureSet": set },
        "status": { "featureGates": [{ "version": "1.0.0", "enabled": gates }] },
    });
    let parameters = PatchParams::apply("test").force();
    let written = || async {
        harness
            .api(FEATURE_GATE)
            .patch("cluster", &parameters, &Patch::Apply(&object))
            .await
            .is_ok()
    };
    until("the FeatureGate can be written", written, |written| *written).await;
}

/// The ConfigMaps among the orphans.
fn orphans(progress: &Value) -> Vec<String> {
    let orphans = progress["orphans"].as_array().cloned().unwrap_or_default();
    orphans.iter().map(|orphan| format!("{}: {}", orphan["name"], orphan["message"])).collect()
}

/// Defines the kind FeatureGate.
async fn define(harness: &Harness) {
    let definitions: Api<CustomResourceDefinition> = Api::all(harness.client.clone());
    let parameters = PatchParams::apply("test").force();
    definitions
        .patch("featuregates.config.openshift.io", &parameters, &Patch::Apply(&definition()))
        .await
        .expect("a definition");
}

#[test]
fn what_was_excluded_without_a_controller_is_listed_at_no_later_cost() {
    on_any_cluster(|kind| async move {
        let release = sample_with(&[("0000_30_gated_01.yaml".to_owned(), GATED.to_owned())]);
        let mut harness = Harness::installed(kind, &[release]).await;
        define(&harness).await;
        feature(&harness, "TechPreviewNoUpgrade", &["Bold"]).await;
        let preview: Api<ConfigMap> = Api::namespaced(harness.client.clone(), "harbour-pilot");
        let gated: Api<ConfigMap> = Api::namespaced(harness.client.clone(), "default");
        let are_there = || async {
            let there = [preview.get_opt("autopilot").await, gated.get_opt("gated").await];
            there.into_iter().all(|it| it.expect("the server answers").is_some())
        };
        until("both manifests are applied", are_there, |are| *are).await;
        harness.until(|view| view.completed).await;
        harness.stop().await;

        feature(&harness, "", &[]).await;
        let (client, log) = harness.cluster.client_with_log();
        // The release has none, so only a search for all orphans asks for them.
        let were_sought = || log.requests().iter().any(|it| it.contains("limitranges"));
        harness.control_with(client.clone());
        let progress = until(
            "what was applied and is excluded now is listed",
            || harness.progress(),
            |it| orphans(it).len() == 2,
        )
        .await;
        let left = orphans(&progress);
        assert!(left[0].contains("\"gated\"") && left[0].contains("Bold"), "{left:?}");
        assert!(left[1].contains("\"autopilot\"") && left[1].contains("feature-set"), "{left:?}");
        assert!(are_there().await, "they are not pruned");
        assert!(were_sought());
        harness.stop().await;

        log.clear();
        harness.control_with(client);
        harness.completed("1.0.0").await;
        assert!(!were_sought(), "the plan is the same");
        assert_eq!(orphans(&harness.progress().await), left);
        harness.stop().await;
    });
}

#[test]
fn feature_sets_and_gates_are_followed_wherever_they_come_from_and_go_to() {
    on_any_cluster(|kind| async move {
        let release = sample_with(&[("0000_30_gated_01.yaml".to_owned(), GATED.to_owned())]);
        let mut harness = Harness::installed(kind, &[release]).await;
        let preview: Api<ConfigMap> = Api::namespaced(harness.client.clone(), "harbour-pilot");
        let gated: Api<ConfigMap> = Api::namespaced(harness.client.clone(), "default");
        let is_there = |api: &Api<ConfigMap>, name: &'static str| {
            let api = api.clone();
            async move { api.get_opt(name).await.expect("the server answers").is_some() }
        };
        assert!(!is_there(&preview, "autopilot").await, "the set is the default one");
        // The kind comes while the controller runs, as with a release that brings it.
        define(&harness).await;
        feature(&harness, "TechPreviewNoUpgrade", &[]).await;
        until("the manifest of the set is applied", || is_there(&preview, "autopilot"), |is| *is)
            .await;
        assert!(!is_there(&gated, "gated").await, "its gate is off");
        feature(&harness, "TechPreviewNoUpgrade", &["Bold"]).await;
        until("the manifest of the gate is applied", || is_there(&gated, "gated"), |is| *is).await;
        // What does not belong any more stays, and is listed.
        feature(&harness, "", &["Bold"]).await;
        let progress = until(
            "what does not belong is an orphan",
            || harness.progress(),
            |it| !orphans(it).is_empty(),
        )
        .await;
        let left = orphans(&progress);
        assert!(left.len() == 1 && left[0].contains("autopilot"), "{left:?}");
        assert!(left[0].contains("feature-set"), "{left:?}");
        assert!(is_there(&preview, "autopilot").await, "it is not pruned");
        // Without the object it is as if it had never been.
        harness
            .api(FEATURE_GATE)
            .delete("cluster", &DeleteParams::default())
            .await
            .expect("it is there");
        until(
            "without FeatureGate both are orphans",
            || harness.progress(),
            |it| orphans(it).len() == 2,
        )
        .await;
        harness.stop().await;
        // A controller that starts finds it there, one with other settings does not ask.
        feature(&harness, "TechPreviewNoUpgrade", &["Bold"]).await;
        harness.control();
        until("a new process finds the set", || harness.progress(), |it| orphans(it).is_empty())
            .await;
        harness.stop().await;
        harness.settings.feature_set = Some("Default".to_owned());
        harness.control();
        harness.until(|view| view.completed).await;
        until("a new process at rest", || harness.progress(), |it| it["mode"] == "Reconciling")
            .await;
        harness.stop().await;
        let events: Api<Event> = Api::namespaced(harness.client.clone(), "default");
        let list = events.list(&ListParams::default()).await.expect("a list");
        let reported: Vec<String> = list
            .items
            .into_iter()
            .filter(|event| event.reason.as_deref() == Some("FeaturesChanged"))
            .filter_map(|event| event.note)
            .collect();
        let first = "The feature set is TechPreviewNoUpgrade, it was Default";
        assert!(reported.iter().any(|note| note.starts_with(first)), "{reported:?}");
        assert!(reported.iter().any(|note| note.contains("now enabled: Bold")), "{reported:?}");
    });
}
