//! Capabilities that an update makes necessary.

use std::collections::BTreeSet;
use std::sync::Arc;

use kube::api::{Api, ListParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use plimsoll_api::CLUSTER_VERSION;
use plimsoll_content::Payload;
use plimsoll_content::inclusion::DEFAULT_PROFILE;
use plimsoll_plan::capabilities::implied_by_update;
use plimsoll_plan::plan::features::Features;
use serde_json::Value;

use super::{LOOKOUT, asking, enabled, exists, installed, with_customs_optional};
use crate::harness::{
    DEFINITION, Harness, OperatorSetup, condition, on_any_cluster, outside_payload,
    sample_payloads, until,
};
use crate::install::create_with_overrides;

/// What an update that made Build necessary has left behind.
async fn assert_build_implied(harness: &Harness, second: &Payload) {
    let status = harness.get(CLUSTER_VERSION, "version").await["status"].clone();
    assert_eq!(enabled(&status), BTreeSet::from(["Build"]));
    let implicit = condition(&status, "ImplicitlyEnabledCapabilities");
    assert_eq!(implicit["message"], "The following capabilities could not be disabled: Build");
    let implied = harness.progress().await["capabilities"]["implied"].clone();
    assert_eq!(implied.as_array().map(Vec::len), Some(1), "{implied:#}");
    assert_eq!(implied[0]["capability"], "Build");
    assert_eq!(implied[0]["version"], second.release.version);
    assert_eq!(implied[0]["file"], "0000_50_customs_00_namespace.yaml");
    assert_eq!(implied[0]["object"], "namespace \"harbour-customs\"");
}

#[test]
fn an_update_enables_what_it_makes_necessary_and_says_why() {
    on_any_cluster(|kind| async move {
        let (first, _) = sample_payloads();
        let second = with_customs_optional();
        let payloads = [Arc::clone(&first), Arc::clone(&second)];
        let mut harness = installed(kind, &payloads, &asking("None", &[])).await;
        harness.release(&second);
        harness.completed(&second.release.version).await;
        assert_build_implied(&harness, &second).await;
        // What is new in a disabled capability stays away.
        assert!(!exists(&harness, LOOKOUT).await);
        let event = || async {
            let mut events = harness.events().await.into_iter();
            events.find(|it| it["reason"] == "CapabilityImplied").unwrap_or_default()
        };
        let event = until("the event is written", event, Value::is_object).await;
        let note = event["note"].as_str().unwrap_or_default();
        assert!(note.starts_with("capability Build becomes enabled: "), "{note}");
        harness.stop().await;
    });
}

#[test]
fn starting_with_the_next_release_finds_capabilities_it_implies() {
    on_any_cluster(|kind| async move {
        let (first, _) = sample_payloads();
        let second = with_customs_optional();
        let payloads = [Arc::clone(&first), Arc::clone(&second)];
        let mut harness = installed(kind, &payloads, &asking("None", &[])).await;
        harness.stop().await;
        harness.release(&second);
        harness.control();
        harness.completed(&second.release.version).await;
        assert_build_implied(&harness, &second).await;
        harness.stop().await;
    });
}

#[test]
fn payloads_from_outside_imply_what_their_annotations_say() {
    let Some(first) = outside_payload("PLIMSOLL_PAYLOAD") else { return };
    let Some(next) = outside_payload("PLIMSOLL_PAYLOAD_NEXT") else { return };
    let enabled = |set: &str| {
        let set = first.capabilities.set(set).expect("a published set");
        set.capabilities.clone()
    };
    let check = |feature_set: &str, set: &str, expected: &[&str]| {
        let features = Features::of_set(feature_set);
        let context = |payload: &Payload| features.context(payload, DEFAULT_PROFILE);
        let found = implied_by_update(&first, &next, context, &enabled(set));
        let found: Vec<&str> = found.iter().map(|it| it.capability.as_str()).collect();
        assert_eq!(found, expected, "{feature_set} {set}");
    };
    check("Default", "v4.18", &[]);
    check("TechPreviewNoUpgrade", "v4.18", &["ClusterAPI", "CompatibilityRequirements"]);
    check("TechPreviewNoUpgrade", "vCurrent", &[]);
    // One manifest gained a capability beside them that it had lacked.
    check(
        "TechPreviewNoUpgrade",
        "None",
        &["CloudCredential", "ClusterAPI", "CompatibilityRequirements"],
    );
}

/// Definitions for previews that a kube-apiserver refuses, and what needs them: two have a rule that
/// it finds too costly to evaluate, and two drop a version that it had stored.
const REFUSED: [(&str, &str, &str); 6] = [
    (DEFINITION.group, DEFINITION.kind, "infrastructures.config.openshift.io"),
    (DEFINITION.group, DEFINITION.kind, "controllerconfigs.machineconfiguration.openshift.io"),
    (DEFINITION.group, DEFINITION.kind, "criocredentialproviderconfigs.config.openshift.io"),
    (DEFINITION.group, DEFINITION.kind, "osimagestreams.machineconfiguration.openshift.io"),
    ("config.openshift.io", "Infrastructure", "cluster"),
    ("config.openshift.io", "CRIOCredentialProviderConfig", "cluster"),
];

#[test]
fn outside_payloads_imply_two_capabilities_under_tech_preview() {
    let Some(first) = outside_payload("PLIMSOLL_PAYLOAD") else { return };
    let Some(next) = outside_payload("PLIMSOLL_PAYLOAD_NEXT") else { return };
    on_any_cluster(|kind| {
        let (first, next) = (Arc::clone(&first), Arc::clone(&next));
        async move {
            let payloads = [Arc::clone(&first), Arc::clone(&next)];
            let feature_set = "TechPreviewNoUpgrade";
            let mut harness =
                Harness::start_with(kind, &payloads, OperatorSetup::default(), feature_set).await;
            create_with_overrides(&harness, &asking("v4.18", &[]), &REFUSED).await;
            harness.control();
            harness.completed(&first.release.version).await;
            harness.release(&next);
            let expected = ["ClusterAPI", "CompatibilityRequirements"];
            let status = harness
                .cluster_version_until(|status| {
                    expected.iter().all(|it| enabled(status).contains(it))
                })
                .await;
            let implicit = condition(&status, "ImplicitlyEnabledCapabilities");
            assert_eq!(
                implicit["message"],
                "The following capabilities could not be disabled: \
                 ClusterAPI, CompatibilityRequirements",
            );
            let implied = harness.progress().await["capabilities"]["implied"].clone();
            let names = |field: &str| -> Vec<Value> {
                implied.as_array().into_iter().flatten().map(|it| it[field].clone()).collect()
            };
            assert_eq!(names("capability"), expected);
            assert_eq!(
                names("file"),
                [
                    "0000_30_cluster-api-operator_00_namespace.yaml",
                    "0000_20_crd-compatibility-checker_00_namespace.yaml",
                ],
            );
            harness.completed(&next.release.version).await;
            harness.stop().await;
        }
    });
}

impl Harness {
    /// The events of `events.k8s.io` that are about cluster-scoped objects.
    async fn events(&self) -> Vec<Value> {
        let gvk = GroupVersionKind::gvk("events.k8s.io", "v1", "Event");
        let resource = ApiResource::from_gvk_with_plural(&gvk, "events");
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), "default", &resource);
        let list = api.list(&ListParams::default()).await.expect("a list");
        list.items.into_iter().map(|it| serde_json::to_value(it).expect("it is JSON")).collect()
    }
}
