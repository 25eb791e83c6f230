//! Installation and update, to the last manifest.

#![expect(clippy::panic, reason = "how a test fails")]

use std::sync::Arc;

use kube::Api;
use kube::core::DynamicObject;
use kube::discovery::{Discovery, Scope};
use plimsoll_api::{CLUSTER_VERSION, crd};
use plimsoll_content::Payload;
use plimsoll_content::inclusion::{DEFAULT_FEATURE_SET, DEFAULT_PROFILE, Decision, decide};
use plimsoll_plan::plan::DELETE;
use serde_json::{Value, json};

use crate::harness::{
    DEFINITION, Harness, OperatorSetup, Terminal, on_any_cluster, on_each_cluster, outside_payload,
    sample_payloads, until,
};

/// Every included manifest of a payload is in the cluster, but for the named ones.
pub(crate) async fn assert_present(harness: &Harness, payload: &Payload, except: &[&str]) {
    let discovery =
        Discovery::new(harness.client.clone()).run_aggregated().await.expect("discovery");
    let context = payload.context(DEFAULT_PROFILE, DEFAULT_FEATURE_SET);
    let mut missing = Vec::new();
    let mut present = 0;
    for manifest in &payload.manifests {
        let included = matches!(decide(manifest, &context), Decision::Included);
        let unwanted = manifest.annotations.contains_key(DELETE)
            || except.contains(&manifest.key.name.as_str());
        if !included || unwanted {
            continue;
        }
        let key = &manifest.key;
        let gvk = kube::core::GroupVersionKind::gvk(&key.group, &manifest.version, &key.kind);
        let Some((resource, capabilities)) = discovery.resolve_gvk(&gvk) else {
            missing.push(format!("{key}: kind not served"));
            continue;
        };
        let namespaced = capabilities.scope == Scope::Namespaced;
        let api: Api<DynamicObject> = if namespaced {
            Api::namespaced_with(harness.client.clone(), &key.namespace, &resource)
        } else {
            Api::all_with(harness.client.clone(), &resource)
        };
        match api.get_metadata_opt(&key.name).await.expect("the server answers") {
            Some(_) => present += 1,
            None => missing.push(key.to_string()),
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
    assert!(present > 0, "a payload has manifests");
}

#[test]
fn a_run_until_complete_ends_with_the_installation() {
    on_any_cluster(|kind| async move {
        let (first, _) = sample_payloads();
        let harness = Harness::start(kind, &[Arc::clone(&first)], OperatorSetup::default()).await;
        let release = std::path::absolute("../../examples/payloads/v1.0.0").expect("a path");
        let terminal = Terminal::open(&harness.cluster).await;
        let line = format!("run --create --until-complete --plain --release {}", release.display());
        terminal.run(&line).await;
        let version = harness.get(CLUSTER_VERSION, "version").await;
        let newest = &version["status"]["history"][0];
        assert_eq!((&newest["version"], &newest["state"]), (&json!("1.0.0"), &json!("Completed")));
        assert_present(&harness, &first, &[]).await;
    });
}

#[test]
fn the_sample_is_installed_and_updated() {
    on_each_cluster(|kind| async move {
        let (first, second) = sample_payloads();
        let mut harness =
            Harness::installed(kind, &[Arc::clone(&first), Arc::clone(&second)]).await;
        assert_present(&harness, &first, &[]).await;
        harness.release(&second);
        harness.completed(&second.release.version).await;
        assert_present(&harness, &second, &[]).await;
        let status = harness.get(CLUSTER_VERSION, "version").await["status"].clone();
        assert_eq!(status["history"].as_array().map(Vec::len), Some(2), "{status:#}");
        assert_eq!(status["desired"]["version"], second.release.version);
        for operator in harness.operators().await {
            let versions = operator.data["status"]["versions"].as_array().expect("versions");
            assert!(
                versions.iter().any(|v| v["version"] == second.release.version.as_str()),
                "{versions:?}"
            );
        }
        harness.stop().await;
    });
}

/// What OpenShift's API server completes and others refuse (both lack required fields).
const INCOMPLETE: [&str; 2] = ["machine-api-termination-handler", "insights-runtime-extractor-scc"];

#[test]
fn payloads_from_outside_are_installed_and_updated() {
    let Some(first) = outside_payload("PLIMSOLL_PAYLOAD") else { return };
    let next = outside_payload("PLIMSOLL_PAYLOAD_NEXT");
    on_any_cluster(|kind| {
        let (first, next) = (Arc::clone(&first), next.clone());
        async move {
            let payloads: Vec<_> =
                [Some(Arc::clone(&first)), next.clone()].into_iter().flatten().collect();
            let mut harness = Harness::start(kind, &payloads, OperatorSetup::default()).await;
            create_cluster_version(&harness, &json!({})).await;
            harness.control();
            harness.completed(&first.release.version).await;
            assert_present(&harness, &first, &INCOMPLETE).await;
            if let Some(next) = &next {
                harness.release(next);
                harness.completed(&next.release.version).await;
                assert_present(&harness, next, &INCOMPLETE).await;
            }
            harness.stop().await;
        }
    });
}

/// Creates the ClusterVersion as an installer would, with overrides for what only OpenShift's own
/// server completes; no capabilities are those of `vCurrent`.
pub(crate) async fn create_cluster_version(harness: &Harness, capabilities: &Value) {
    create_with_overrides(harness, capabilities, &[]).await;
}

/// As [`create_cluster_version`], with more overrides: group, kind, and name.
pub(crate) async fn create_with_overrides(
    harness: &Harness,
    capabilities: &Value,
    more: &[(&str, &str, &str)],
) {
    let definitions = harness.api(DEFINITION);
    for manifest in crd::manifests() {
        let object: DynamicObject = serde_json::from_value(manifest).expect("a manifest");
        match definitions.create(&Default::default(), &object).await {
            Ok(_) => {}
            // A controller may have been there before.
            Err(kube::Error::Api(status)) if status.is_already_exists() => {}
            Err(error) => panic!("the CRD is accepted: {error}"),
        }
    }
    let incomplete = INCOMPLETE
        .iter()
        .map(|&name| ("security.openshift.io", "SecurityContextConstraints", name));
    let overrides: Vec<_> = incomplete
        .chain(more.iter().copied())
        .map(|(group, kind, name)| {
            json!({
                "group": group,
                "kind": kind,
                "namespace": "-",
                "name": name,
                "unmanaged": true,
            })
        })
        .collect();
    let object: DynamicObject = serde_json::from_value(json!({
        "apiVersion": "config.openshift.io/v1",
        "kind": "ClusterVersion",
        "metadata": { "name": "version" },
        "spec": {
            "clusterID": "9e5b9d2c-6b7e-4f0a-9d56-3c0a4f9b7a11",
            "overrides": overrides,
            "capabilities": capabilities,
        },
    }))
    .expect("an object");
    let api = harness.api(CLUSTER_VERSION);
    let created = || async { api.create(&Default::default(), &object).await.is_ok() };
    until("the kind is served", created, |is| *is).await;
}
