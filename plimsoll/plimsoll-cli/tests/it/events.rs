//! What happens is told in events, each thing once.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use plimsoll_controller::Leadership;
use serde_json::json;

use crate::install::create_cluster_version;
use crate::rig::{Rig, StandIns, on_each_cluster, sample_payloads, sample_with, until};

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
pub(crate) async fn told(rig: &Rig) -> BTreeMap<String, Vec<String>> {
    let events: Api<Event> = Api::namespaced(rig.client.clone(), "default");
    let list = events.list(&ListParams::default()).await.expect("a list");
    let mut told: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for event in list.items {
        if event.reporting_controller.as_deref() == Some("plimsoll.io/controller") {
            let reason = event.reason.unwrap_or_default();
            told.entry(reason).or_default().push(event.note.unwrap_or_default());
        }
    }
    told
}

/// Waits for an event whose note begins so.
async fn until_told(rig: &Rig, reason: &str, start: &str) {
    until(
        &format!("{reason} {start}"),
        || told(rig),
        |told| told.get(reason).is_some_and(|notes| notes.iter().any(|it| it.starts_with(start))),
    )
    .await;
}

#[test]
fn leaders_operators_drift_capabilities_and_conditions_are_told() {
    on_each_cluster(|kind| async move {
        let release = sample_with(&[("0000_30_moored_01.yaml".to_owned(), MAP.to_owned())]);
        let mut rig = Rig::start(kind, &[release], StandIns::default()).await;
        rig.settings.leadership = Leadership::Lease("harbour-master".to_owned());
        rig.control();
        rig.completed("1.0.0").await;
        until_told(&rig, "LeaderElected", "harbour-master keeps").await;
        until_told(&rig, "ClusterOperatorUpdated", "ClusterOperator beacon is at 1.0.0").await;

        let maps: Api<ConfigMap> = Api::namespaced(rig.client.clone(), "default");
        let patch = Patch::Merge(json!({ "data": { "of": "somebody else" } }));
        maps.patch("moored", &PatchParams::default(), &patch).await.expect("it can be changed");
        let name = "configmap \"default/moored\"";
        until_told(&rig, "DriftRepaired", &format!("{name} was changed by somebody else")).await;
        maps.delete("moored", &DeleteParams::default()).await.expect("it is there");
        until_told(&rig, "DriftRepaired", &format!("{name} was deleted by somebody else")).await;

        let spec = |entries: serde_json::Value| json!({ "overrides": entries });
        let over = json!([{ "kind": "ConfigMap", "group": "", "namespace": "default",
                            "name": "other", "unmanaged": true }]);
        rig.set_spec(spec(over)).await;
        until_told(&rig, "MinorUpdatesBlocked", "Upgradeable is False: ").await;
        rig.set_spec(spec(json!(null))).await;
        until_told(&rig, "MinorUpdatesAllowed", "").await;
        rig.stop().await;

        // What was told is not told again by another process.
        let before = told(&rig).await;
        rig.control();
        rig.until(|view| view.completed).await;
        rig.stop().await;
        let mut after = told(&rig).await;
        after.remove("LeaderElected");
        let gates = |told: &BTreeMap<String, Vec<String>>| told["ClusterOperatorUpdated"].len();
        assert_eq!(gates(&after), gates(&before));
        assert!(after.keys().all(|reason| before.contains_key(reason)), "{after:#?}");
    });
}

#[test]
fn a_capability_that_is_asked_for_is_told() {
    on_each_cluster(|kind| async move {
        let (release, _) = sample_payloads();
        let mut rig = Rig::start(kind, &[release], StandIns::default()).await;
        let asking = |more: &[&str]| json!({ "baselineCapabilitySet": "None", "additionalEnabledCapabilities": more });
        create_cluster_version(&rig, &asking(&[])).await;
        rig.control();
        rig.completed("1.0.0").await;
        rig.set_spec(json!({ "capabilities": asking(&["Console"]) })).await;
        until_told(&rig, "CapabilityEnabled", "Capability Console is enabled").await;
        // What is enabled stays so, and that is told too.
        rig.set_spec(json!({ "capabilities": asking(&[]) })).await;
        until_told(&rig, "CapabilitiesImplicitlyEnabled", "ImplicitlyEnabledCapabilities is True")
            .await;
        rig.stop().await;
    });
}
