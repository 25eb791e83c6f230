//! Events: what happens is reported once.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use plimsoll_api::crd::DEFINITION_VERSION;
use plimsoll_controller::Leadership;
use serde_json::json;

use crate::harness::{
    Harness, OperatorSetup, on_any_cluster, on_each_cluster, sample_payloads, sample_with, until,
};
use crate::install::create_cluster_version;

const MAP: &str = r#"
apiVersion: v1
kind: ConfigMap
metadata:
  name: moored
  namespace: default
  annotations:
    include.release.openshift.io/self-managed-high-availability: "true"
data: { of: ours }
"#;

/// The notes of all events, by reason.
pub(crate) async fn reported(harness: &Harness) -> BTreeMap<String, Vec<String>> {
    let events: Api<Event> = Api::namespaced(harness.client.clone(), "default");
    let list = events.list(&ListParams::default()).await.expect("a list");
    let mut reported: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for event in list.items {
        if event.reporting_controller.as_deref() == Some("plimsoll.io/controller") {
            let reason = event.reason.unwrap_or_default();
            reported.entry(reason).or_default().push(event.note.unwrap_or_default());
        }
    }
    reported
}

/// Waits for an event whose note begins so.
async fn until_emitted(harness: &Harness, reason: &str, start: &str) {
    until(
        &format!("{reason} {start}"),
        || reported(harness),
        |reported| {
            reported.get(reason).is_some_and(|notes| notes.iter().any(|it| it.starts_with(start)))
        },
    )
    .await;
}

#[test]
fn a_definition_that_a_newer_version_installed_is_left_and_reported() {
    on_any_cluster(|kind| async move {
        let (release, _) = sample_payloads();
        let mut harness = Harness::start(kind, &[release], OperatorSetup::default()).await;
        let manifests = plimsoll_api::crd::manifests().into_iter();
        let mut newer = manifests.last().expect("it is the last one");
        newer["metadata"]["annotations"][DEFINITION_VERSION] = json!("99");
        let status = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties";
        newer.pointer_mut(status).expect("it has a status")["future"] =
            json!({ "type": "string", "description": "What a later version adds." });
        let definitions: Api<CustomResourceDefinition> = Api::all(harness.client.clone());
        let newer = serde_json::from_value(newer).expect("it is a definition");
        definitions.create(&PostParams::default(), &newer).await.expect("it can be made");
        harness.control();
        harness.completed("1.0.0").await;
        until_emitted(&harness, "DefinitionNewer", "CustomResourceDefinition releaseprogresses")
            .await;
        let left = definitions.get("releaseprogresses.plimsoll.io").await.expect("it is there");
        let left = serde_json::to_value(left).expect("it is JSON");
        assert_eq!(left["metadata"]["annotations"][DEFINITION_VERSION], "99");
        assert!(left.pointer(status).is_some_and(|it| it["future"].is_object()));
        harness.stop().await;
    });
}

#[test]
fn leaders_operators_drift_capabilities_and_conditions_are_reported() {
    on_each_cluster(|kind| async move {
        let release = sample_with(&[("0000_30_moored_01.yaml".to_owned(), MAP.to_owned())]);
        let mut harness = Harness::start(kind, &[release], OperatorSetup::default()).await;
        harness.settings.leadership = Leadership::Lease("harbour-master".to_owned());
        harness.replaces_deposed = true;
        harness.control();
        harness.completed("1.0.0").await;
        until_emitted(&harness, "LeaderElected", "harbour-master became leader").await;
        until_emitted(&harness, "ClusterOperatorUpdated", "ClusterOperator beacon is at 1.0.0")
            .await;

        let maps: Api<ConfigMap> = Api::namespaced(harness.client.clone(), "default");
        let patch = Patch::Merge(json!({ "data": { "of": "another client" } }));
        maps.patch("moored", &PatchParams::default(), &patch).await.expect("it can be changed");
        let name = "configmap \"default/moored\"";
        until_emitted(&harness, "DriftRepaired", &format!("{name} was changed by another client"))
            .await;
        // The event is emitted when the repair begins, which would also repair a deletion before its end.
        let of = || async { maps.get_opt("moored").await.ok().flatten()?.data?.remove("of") };
        until("it is reverted", of, |of| of.as_deref() == Some("ours")).await;
        maps.delete("moored", &DeleteParams::default()).await.expect("it is there");
        until_emitted(&harness, "DriftRepaired", &format!("{name} was deleted by another client"))
            .await;

        let spec = |entries: serde_json::Value| json!({ "overrides": entries });
        let over = json!([{ "kind": "ConfigMap", "group": "", "namespace": "default",
                            "name": "other", "unmanaged": true }]);
        harness.set_spec(spec(over)).await;
        until_emitted(&harness, "MinorUpdatesBlocked", "Upgradeable is False: ").await;
        harness.set_spec(spec(json!(null))).await;
        until_emitted(&harness, "MinorUpdatesAllowed", "").await;
        harness.stop().await;

        // Another process emits no event again.
        let before = reported(&harness).await;
        harness.control();
        harness.until(|view| view.completed).await;
        harness.stop().await;
        let mut after = reported(&harness).await;
        after.remove("LeaderElected");
        let gates =
            |reported: &BTreeMap<String, Vec<String>>| reported["ClusterOperatorUpdated"].len();
        assert_eq!(gates(&after), gates(&before));
        assert!(after.keys().all(|reason| before.contains_key(reason)), "{after:#?}");
    });
}

#[test]
fn a_requested_capability_is_reported() {
    on_any_cluster(|kind| async move {
        let (release, _) = sample_payloads();
        let mut harness = Harness::start(kind, &[release], OperatorSetup::default()).await;
        let asking = |more: &[&str]| json!({ "baselineCapabilitySet": "None", "additionalEnabledCapabilities": more });
        create_cluster_version(&harness, &asking(&[])).await;
        harness.control();
        harness.completed("1.0.0").await;
        harness.set_spec(json!({ "capabilities": asking(&["Console"]) })).await;
        until_emitted(&harness, "CapabilityEnabled", "Capability Console is enabled").await;
        // What is enabled stays so, and that is reported too.
        harness.set_spec(json!({ "capabilities": asking(&[]) })).await;
        until_emitted(
            &harness,
            "CapabilitiesImplicitlyEnabled",
            "ImplicitlyEnabledCapabilities is True",
        )
        .await;
        harness.stop().await;
    });
}
