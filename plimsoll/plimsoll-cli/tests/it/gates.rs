//! ClusterOperators gate: what waits says so, and what it waits for is not done again.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use plimsoll_api::{CLUSTER_OPERATOR, CLUSTER_VERSION};
use plimsoll_cli::render::update::UpdateStatus;
use plimsoll_content::Payload;
use plimsoll_simulation::cluster_state::ClusterState;
use plimsoll_simulation::simulated_operators::Faults;
use serde_json::{Value, json};

use crate::harness::{
    Harness, OperatorSetup, condition, on_any_cluster, on_each_cluster, sample_payloads, until,
};

/// Reports for every operator of a payload but one.
async fn report(harness: &Harness, payload: &Payload, except: &str) {
    for manifest in payload.manifests.iter().filter(|m| m.key.kind == "ClusterOperator") {
        if manifest.key.name != except {
            report_one(harness, payload, &manifest.key.name, "False").await;
        }
    }
}

async fn report_one(harness: &Harness, payload: &Payload, name: &str, degraded: &str) {
    let manifest = payload
        .manifests
        .iter()
        .find(|m| m.key.kind == "ClusterOperator" && m.key.name == name)
        .expect("an operator of the payload");
    let condition = |type_: &str, status: &str| {
        json!({ "type": type_, "status": status, "reason": "AsExpected",
            "lastTransitionTime": "2026-01-01T00:00:00Z", "message": "As the test wants it" })
    };
    let status = json!({ "status": {
        "versions": manifest.object()["status"]["versions"],
        "conditions": [condition("Available", "True"), condition("Progressing", "False"),
            condition("Degraded", degraded)],
    }});
    let api = harness.api(CLUSTER_OPERATOR);
    // An operator of a disabled capability is not there.
    if api.get_opt(name).await.expect("the server answers").is_some() {
        api.patch_status(name, &PatchParams::default(), &Patch::Merge(&status))
            .await
            .expect("a report");
    }
}

#[test]
fn an_update_waits_for_an_operator_and_names_it() {
    on_each_cluster(|kind| async move {
        let (first, second) = sample_payloads();
        let mut harness = Harness::installed(kind, &[Arc::clone(&first)]).await;
        // The simulated operators only know the first version: no operator reports the second one.
        harness.release(&second);
        let status = harness
            .cluster_version_until(|status| {
                let message = condition(status, "Progressing")["message"].as_str().unwrap_or("");
                message.contains("waiting on")
            })
            .await;
        let progressing = condition(&status, "Progressing");
        assert_eq!(progressing["status"], "True", "{progressing}");
        assert_eq!(condition(&status, "Failing")["status"], "False");
        assert_eq!(condition(&status, "Available")["status"], "True");
        assert_eq!(status["history"][0]["state"], "Partial");
        harness.stop().await;
    });
}

#[test]
fn update_status_names_an_operator_that_is_behind_and_not_available() {
    on_any_cluster(|kind| async move {
        let (first, second) = sample_payloads();
        let mut harness = Harness::installed(kind, &[Arc::clone(&first)]).await.without_operators();
        harness.release(&second);
        let updating = || async { harness.progress().await["operators"]["updating"][0].clone() };
        let name = until("an operator is waited for", updating, Value::is_string).await;
        let name = name.as_str().expect("a name");
        let condition = json!({ "type": "Available", "status": "False", "reason": "Crashing",
            "lastTransitionTime": "2026-01-01T00:00:00Z", "message": "It crashes" });
        let status = json!({ "status": { "conditions": [condition] } });
        let operators = harness.api(CLUSTER_OPERATOR);
        let reported =
            operators.patch_status(name, &PatchParams::default(), &Patch::Merge(&status)).await;
        reported.expect("a report");

        let status = || async {
            let cluster = ClusterState::read(&harness.client).await.expect("the cluster is read");
            let mut out = Vec::new();
            UpdateStatus::of(&cluster, Timestamp::now()).print(false, &mut out).expect("memory");
            String::from_utf8(out).expect("text")
        };
        let trouble = format!(
            "Cluster operator {name} is updating versions and is not available since \
             2026-01-01T00:00:00Z (Crashing)"
        );
        let is_named = |text: &String| text.contains(&trouble);
        let text = until("the operator is named", status, is_named).await;
        assert!(text.contains(&format!("1 Unavailable ({name})")), "{text}");
        harness.stop().await;
    });
}

#[test]
fn an_operator_that_degrades_later_fails_the_reconciliation() {
    on_any_cluster(|kind| async move {
        let (first, _) = sample_payloads();
        let mut harness = Harness::installed(kind, &[Arc::clone(&first)]).await;
        harness.stop().await;
        let mut harness = harness.without_operators();
        report(&harness, &first, "").await;
        let name = harness.operators().await[0].metadata.name.clone().expect("a name");
        harness.control();
        harness.until(|view| view.completed).await;
        report_one(&harness, &first, &name, "True").await;
        let status = harness
            .cluster_version_until(|status| condition(status, "Failing")["status"] == "True")
            .await;
        assert_eq!(condition(&status, "Failing")["reason"], "ClusterOperatorDegraded");
        assert_eq!(condition(&status, "Progressing")["status"], "False");
        assert_eq!(status["history"][0]["state"], "Completed");
        report_one(&harness, &first, &name, "False").await;
        harness
            .cluster_version_until(|status| condition(status, "Failing")["status"] == "False")
            .await;
        harness.stop().await;
    });
}

#[test]
fn a_version_that_an_installation_did_not_wait_for_is_reported_afterwards() {
    on_any_cluster(|kind| async move {
        let (first, _) = sample_payloads();
        let faults = Faults::parse("- { operator: beacon, fault: VersionStuck }\n")
            .expect("a list of faults");
        let operators = OperatorSetup(Duration::ZERO, faults);
        let mut harness = Harness::start(kind, &[Arc::clone(&first)], operators).await;
        harness.control();
        harness.until(|view| view.completed).await;
        let status = harness
            .cluster_version_until(|status| {
                let failing = condition(status, "Failing");
                failing["status"] == "True" && failing["reason"] == "ClusterOperatorUpdating"
            })
            .await;
        assert_eq!(status["history"][0]["state"], "Completed");
        harness.stop().await;
    });
}

#[test]
fn a_release_that_is_nowhere_is_not_accepted_and_disturbs_nothing() {
    on_any_cluster(|kind| async move {
        let (first, _) = sample_payloads();
        let mut harness = Harness::installed(kind, &[Arc::clone(&first)]).await;
        harness
            .set_spec(json!({ "desiredUpdate": { "version": "9.9.9", "image": "x@sha256:0" } }))
            .await;
        let accepted = |status: &Value| condition(status, "ReleaseAccepted")["status"].clone();
        let status = harness.cluster_version_until(|status| accepted(status) == "False").await;
        assert_eq!(condition(&status, "ReleaseAccepted")["reason"], "RetrievePayload");
        assert_eq!(condition(&status, "Progressing")["status"], "False");
        assert_eq!(status["desired"]["version"], first.release.version);
        harness.set_spec(json!({ "desiredUpdate": null })).await;
        harness.cluster_version_until(|status| accepted(status) == "True").await;
        assert!(harness.get(CLUSTER_VERSION, "version").await.is_object());
        harness.stop().await;
    });
}
