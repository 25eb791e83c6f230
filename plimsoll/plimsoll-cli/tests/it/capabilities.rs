//! Optional parts of a release on whole clusters (CAP-17 to CAP-22; CVS-55 to CVS-61).

mod implied;
mod installation;
mod names;

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_testkit::ClusterKind;
use kube::api::{Patch, PatchParams};
use plimsoll_api::{ApiKind, CLUSTER_VERSION};
use plimsoll_content::Payload;
use plimsoll_controller::{Reached, WebhookSettings};
use plimsoll_simulation::sample;
use serde_json::{Value, json};

use crate::harness::{
    DEFINITION, Harness, OperatorSetup, Terminal, condition, on_any_cluster, on_each_cluster,
    sample_payload, sample_payloads, until,
};
use crate::install::create_cluster_version;

const NAMESPACE: ApiKind =
    ApiKind { group: "", version: "v1", kind: "Namespace", plural: "namespaces" };
/// The namespace of the sample's part of capability Console.
const LOOKOUT: &str = "harbour-lookout";
/// The namespace of a part that every cluster has.
const CUSTOMS: &str = "harbour-customs";

fn enabled(status: &Value) -> BTreeSet<&str> {
    let names = status["capabilities"]["enabledCapabilities"].as_array();
    names.into_iter().flatten().filter_map(Value::as_str).collect()
}

fn asking(set: &str, additional: &[&str]) -> Value {
    json!({ "baselineCapabilitySet": set, "additionalEnabledCapabilities": additional })
}

/// A cluster at the first of some payloads that was asked for some capabilities.
async fn installed(kind: ClusterKind, payloads: &[Arc<Payload>], capabilities: &Value) -> Harness {
    let mut harness = Harness::start(kind, payloads, OperatorSetup::default()).await;
    create_cluster_version(&harness, capabilities).await;
    harness.control();
    harness.completed(&payloads[0].release.version).await;
    harness
}

async fn exists(harness: &Harness, namespace: &str) -> bool {
    harness.get(NAMESPACE, namespace).await.is_object()
}

/// The second version of the sample, where the customs belong to capability Build.
fn with_customs_optional() -> Arc<Payload> {
    let mut files = sample::v2();
    for file in files.iter_mut().filter(|file| file.name.contains("_customs_")) {
        let text = std::str::from_utf8(&file.bytes).expect("the sample is text");
        let annotated = text.replace(
            "  annotations:\n",
            "  annotations:\n    capability.openshift.io/name: Build\n",
        );
        file.bytes = annotated.into();
    }
    sample_payload(&files)
}

#[test]
fn an_admin_enables_a_capability_after_installing_and_cannot_disable_it() {
    on_any_cluster(|kind| async move {
        let (first, _) = sample_payloads();
        let mut harness = installed(kind, &[Arc::clone(&first)], &asking("None", &[])).await;
        assert!(!exists(&harness, LOOKOUT).await, "Console is not asked for");
        let status = harness.get(CLUSTER_VERSION, "version").await["status"].clone();
        assert_eq!(enabled(&status), BTreeSet::new());
        assert_eq!(status["capabilities"]["knownCapabilities"].as_array().map(Vec::len), Some(17));

        harness.set_spec(json!({ "capabilities": asking("None", &["Console"]) })).await;
        harness.cluster_version_until(|status| enabled(status).contains("Console")).await;
        harness
            .until(|view| {
                view.completed && view.mode == Some(plimsoll_plan::plan::mode::Mode::Reconciling)
            })
            .await;
        assert!(exists(&harness, LOOKOUT).await, "Console is enabled");

        let implicit = "ImplicitlyEnabledCapabilities";
        harness.set_spec(json!({ "capabilities": asking("None", &[]) })).await;
        let kept = |status: &Value| condition(status, implicit)["status"] == "True";
        let status = harness.cluster_version_until(kept).await;
        let message = "The following capabilities could not be disabled: Console";
        assert_eq!(condition(&status, implicit)["message"], message);
        assert!(exists(&harness, LOOKOUT).await);

        // CVS-56: a restart changes nothing, asking for it again does.
        harness.stop().await;
        harness.control();
        harness.until(|view| view.completed).await;
        let status = harness.get(CLUSTER_VERSION, "version").await["status"].clone();
        assert_eq!(condition(&status, implicit)["message"], message);
        harness.set_spec(json!({ "capabilities": asking("None", &["Console"]) })).await;
        harness
            .cluster_version_until(|status| condition(status, implicit)["status"] == "False")
            .await;
        harness.stop().await;
    });
}

#[test]
fn a_capability_is_enabled_by_a_command() {
    on_each_cluster(|kind| async move {
        let (first, _) = sample_payloads();
        let mut harness = installed(kind, &[first], &asking("None", &[])).await;
        let terminal = Terminal::open(&harness.cluster).await;
        let printed = terminal.run("capability enable Console --dry-run").await;
        assert_eq!(printed, "capability Console is requested (dry run)\n");
        let spec = harness.get(CLUSTER_VERSION, "version").await["spec"].clone();
        assert_eq!(spec["capabilities"]["additionalEnabledCapabilities"], json!([]), "{kind}");
        let printed = terminal.run("capability enable Console").await;
        assert_eq!(printed, "capability Console is requested\n");
        harness.cluster_version_until(|status| enabled(status).contains("Console")).await;
        until("the part exists", || exists(&harness, LOOKOUT), |it| *it).await;
        let printed = terminal.run("capability enable Console").await;
        assert_eq!(printed, "capability Console is enabled already\n");
        harness.stop().await;
    });
}

#[test]
fn filterable_resources_wait_for_the_cluster_version() {
    on_any_cluster(|kind| async move {
        let (first, _) = sample_payloads();
        let mut harness =
            Harness::start(kind, &[Arc::clone(&first)], OperatorSetup::default()).await;
        harness.settings.create = None;
        harness.control();
        let ours = || harness.get(DEFINITION, "releaseprogresses.plimsoll.io");
        until("our kind is defined", ours, |definition| !definition.is_null()).await;
        assert!(!exists(&harness, CUSTOMS).await, "nothing is applied yet");
        create_cluster_version(&harness, &asking("None", &[])).await;
        harness.completed(&first.release.version).await;
        assert!(!exists(&harness, LOOKOUT).await, "it was filtered from the first moment");
        assert!(exists(&harness, CUSTOMS).await);
        harness.stop().await;
    });
}

#[test]
fn the_webhook_answers_a_mistake_with_400_and_what_to_do() {
    on_each_cluster(|kind| async move {
        let (first, _) = sample_payloads();
        let mut harness =
            Harness::start(kind, &[Arc::clone(&first)], OperatorSetup::default()).await;
        create_cluster_version(&harness, &asking("None", &["Console"])).await;
        harness.settings.capability_webhook = Some(WebhookSettings {
            listen: "127.0.0.1:0".parse().expect("an address"),
            reached: Reached::Host("127.0.0.1".to_owned()),
        });
        harness.control();
        harness.completed(&first.release.version).await;
        for (additional, says) in [
            (vec![], "Console is enabled, and what is enabled cannot be disabled; keep it"),
            (vec!["Console", "Insigths"], "did you mean \"Insights\"?"),
            (vec!["Console", "baremetal"], "baremetal requires MachineAPI; add: MachineAPI"),
        ] {
            let error = refused(&harness, &asking("None", &additional)).await;
            assert_eq!(error.code, 400, "{error:?}");
            assert!(error.message.contains(says), "{}", error.message);
            assert!(error.message.contains("capabilities.plimsoll.io"), "{}", error.message);
        }
        harness.set_spec(json!({ "capabilities": asking("None", &["Console", "Insights"]) })).await;
        harness.cluster_version_until(|status| enabled(status).contains("Insights")).await;
        // Another one has the same certificate; without the flag there is no webhook any more.
        harness.stop().await;
        harness.settings.capability_webhook = None;
        harness.control();
        harness.until(|view| view.completed).await;
        harness.set_spec(json!({ "capabilities": asking("None", &[]) })).await;
        harness.stop().await;
    });
}

/// Asks for capabilities and is refused.
async fn refused(harness: &Harness, capabilities: &Value) -> Box<kube::core::Status> {
    let patch = Patch::Merge(json!({ "spec": { "capabilities": capabilities } }));
    let api = harness.api(CLUSTER_VERSION);
    let parameters = PatchParams::default().dry_run();
    let refusal = || async {
        match api.patch("version", &parameters, &patch).await {
            Err(kube::Error::Api(status)) => Some(status),
            Err(_) | Ok(_) => None,
        }
    };
    // A server takes up a new configuration a moment later; that it cannot ask is another error.
    let is_answer =
        |it: &Option<Box<kube::core::Status>>| it.as_ref().is_some_and(|it| it.code == 400);
    until("the write is refused", refusal, is_answer).await.expect("a refusal")
}
