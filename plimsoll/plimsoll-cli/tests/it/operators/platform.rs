//! Operators and the platform that they run on.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_testkit::faults::Requests;
use k8s_testkit::{Fault, Faults};
use plimsoll_content::inclusion::DEFAULT_PROFILE;
use plimsoll_plan::update::preconditions::FailedPrecondition;
use plimsoll_simulation::cluster_state::ClusterState;
use plimsoll_simulation::sample;
use plimsoll_source::store::{PayloadSet, Signature};
use serde_json::{Value, json};

use super::{AddOns, Fixture, Named};
use crate::harness::{condition, on_any_cluster, on_each_cluster, sample_payloads, until};
use crate::install::create_cluster_version;

#[test]
fn an_incompatible_operator_blocks_the_next_minor_version_of_the_platform() {
    on_any_cluster(|kind| async move {
        let mut add_ons = AddOns::without_catalog(kind, "[]").await;
        let store = PayloadSet::new();
        let first = store.add(sample::v1(), None, Signature::NotSigned).expect("in order");
        let second = store.add(sample::v2(), None, Signature::NotSigned).expect("in order");
        add_ons.harness.store = Some(Arc::new(store));
        // The kind of Operators is defined later.
        add_ons.harness.control();
        add_ons.harness.completed(&first.release.version).await;
        add_ons.control();
        let path = add_ons.catalog.path().to_owned();
        add_ons.add_catalog("fixture", &path).await;
        Fixture::publish(&path, "lamp", "1.0.0");
        add_ons.request("lamp", json!({ "version": ">=1" })).await;
        add_ons.expect("lamp", &[("Installed", "True")]).await;
        let held = add_ons
            .harness
            .cluster_version_until(|status| {
                condition(status, "Upgradeable")["reason"] == "IncompatibleOperatorsInstalled"
            })
            .await;
        let message = condition(&held, "Upgradeable")["message"].to_string();
        assert!(
            message.contains("Operator lamp 1.0.0: it runs on OpenShift 1.0 at most"),
            "{message}"
        );
        let version = &second.release.version;
        let message = add_ons.rejected_update(version).await;
        assert!(message.contains("lamp"), "{message}");
        // So says the plan of an update.
        let cluster = ClusterState::read(&add_ons.harness.client).await.expect("it can be read");
        let (_, next) = sample_payloads();
        let target = cluster.target(DEFAULT_PROFILE, None, Timestamp::now());
        let findings = cluster.findings(&next, &target, Timestamp::now());
        let is_it = |it: &FailedPrecondition| it.blocking && it.message.contains("lamp 1.0.0");
        assert!(findings.iter().any(is_it), "{findings:#?}");
        // A version that runs on it ends the wait.
        Fixture::publish(&path, "lamp", "1.1.0");
        add_ons.harness.cluster_version_until(|it| it["desired"]["version"] == *version).await;
        add_ons.stop().await;
        add_ons.harness.stop().await;
    });
}

#[test]
fn operators_that_may_not_be_listed_hold_up_updates_of_the_platform() {
    on_each_cluster(|kind| async move {
        let mut add_ons = AddOns::without_catalog(kind, "[]").await;
        let store = PayloadSet::new();
        let first = store.add(sample::v1(), None, Signature::NotSigned).expect("in order");
        let second = store.add(sample::v2(), None, Signature::NotSigned).expect("in order");
        add_ons.harness.store = Some(Arc::new(store));
        let forbidden = Faults::none();
        forbidden.add(Requests::any().resource("operators").always(), Fault::refused(403));
        add_ons.harness.control_with(add_ons.harness.cluster.client_with_faults(forbidden.clone()));
        add_ons.harness.completed(&first.release.version).await;
        let definition =
            Named::parse("apiextensions.k8s.io/v1 CustomResourceDefinition operators.olm.io");
        assert_eq!(add_ons.object(&definition).await, Value::Null);
        // Nothing is watched before there is such a kind.
        let before = forbidden.fired().len();
        add_ons.control();
        until(
            "the watch of Operators is refused",
            || async { forbidden.fired().len() },
            // It is tried again once the refusal was reported: what is requested later is seen later.
            |fired| *fired >= before + 2,
        )
        .await;
        let version = &second.release.version;
        let message = add_ons.rejected_update(version).await;
        assert!(message.contains("grant get, list and watch on operators.olm.io"), "{message}");
        forbidden.stop();
        add_ons.harness.cluster_version_until(|it| it["desired"]["version"] == *version).await;
        add_ons.stop().await;
        add_ons.harness.stop().await;
    });
}

#[test]
fn a_capability_that_is_enabled_lets_an_operator_be_installed() {
    on_any_cluster(|kind| async move {
        let mut add_ons = AddOns::without_catalog(kind, "[]").await;
        let capabilities = json!({ "baselineCapabilitySet": "None" });
        create_cluster_version(&add_ons.harness, &capabilities).await;
        add_ons.harness.control();
        add_ons.harness.completed("1.0.0").await;
        add_ons.control();
        let path = add_ons.catalog.path().to_owned();
        add_ons.add_catalog("fixture", &path).await;
        Fixture::publish(&path, "plug", "1.0.0");
        add_ons.request("plug", json!({})).await;
        add_ons.expect("plug", &[("Progressing", "False ClusterIncompatible")]).await;
        let enabled = json!({ "baselineCapabilitySet": "None", "additionalEnabledCapabilities": ["Console"] });
        add_ons.harness.set_spec(json!({ "capabilities": enabled })).await;
        add_ons.expect("plug", &[("Installed", "True")]).await;
        add_ons.stop().await;
        add_ons.harness.stop().await;
    });
}
