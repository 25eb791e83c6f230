//! Updates that are asked for: found in a store, accepted or rejected, held, turned around.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use jiff::{Timestamp, ToSpan as _, Unit};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::api::events::v1::Event;
use k8s_testkit::ClusterKind;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use plimsoll_api::{CLUSTER_VERSION, MAINTENANCE_WINDOW};
use plimsoll_content::inclusion::DEFAULT_PROFILE;
use plimsoll_controller::{Leadership, WindowController};
use plimsoll_simulation::cluster_state::ClusterState;
use plimsoll_simulation::sample;
use plimsoll_simulation::simulated_operators::Faults;
use plimsoll_source::read_directory;
use plimsoll_source::store::{PayloadSet, Signature};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use tokio_util::sync::CancellationToken;

use crate::harness::{
    Harness, OperatorSetup, PATIENCE, ShiftedClock, Terminal, condition, on_any_cluster,
    on_each_cluster, outside_payload, sample_payload, sample_payloads, until,
};
use crate::install::create_cluster_version;

fn says(status: &Value, type_: &str, value: &str, reason: &str) -> bool {
    let found = condition(status, type_);
    found["status"] == value && found["reason"].as_str().unwrap_or_default() == reason
}

/// Versions and states of the history, newest first: `1.1.0 Partial`.
fn history(status: &Value) -> Vec<String> {
    let entries = status["history"].as_array().map(Vec::as_slice).unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    entries.iter().map(|it| format!("{} {}", text(&it["version"]), text(&it["state"]))).collect()
}

/// A store with both versions of the sample, of which the second has a signature or not.
pub(crate) fn store(signature: Signature) -> Arc<PayloadSet> {
    let store = PayloadSet::new();
    store.add(sample::v1(), None, Signature::NotSigned).expect("the sample is in order");
    store.add(sample::v2(), None, signature).expect("the sample is in order");
    Arc::new(store)
}

/// A cluster at the first version whose controller has a store of both.
async fn installed(kind: ClusterKind, signature: Signature, operators: OperatorSetup) -> Harness {
    let (first, second) = sample_payloads();
    let mut harness = Harness::start(kind, &[Arc::clone(&first), second], operators).await;
    harness.store = Some(store(signature));
    harness.control();
    harness.completed(&first.release.version).await;
    harness
}

async fn ask(harness: &Harness, update: Value) {
    harness.set_spec(json!({ "desiredUpdate": update })).await;
}

/// Reasons of the Events about the ClusterVersion.
async fn events(harness: &Harness) -> Vec<String> {
    let api: Api<Event> = Api::namespaced(harness.client.clone(), "default");
    let list = api.list(&ListParams::default()).await.expect("events are served");
    let about = |event: &Event| {
        event.regarding.as_ref().and_then(|it| it.kind.as_deref()) == Some("ClusterVersion")
    };
    list.items.into_iter().filter(about).filter_map(|event| event.reason).collect()
}

#[test]
fn an_available_update_is_asked_for_by_its_version() {
    on_any_cluster(|kind| async move {
        let mut harness = installed(kind, Signature::NotSigned, OperatorSetup::default()).await;
        let status =
            harness.cluster_version_until(|status| status["availableUpdates"].is_array()).await;
        assert_eq!(status["availableUpdates"][0]["version"], "1.1.0", "{status:#}");
        assert!(says(&status, "RetrievedUpdates", "True", ""), "{status:#}");
        ask(&harness, json!({ "version": "1.1.0" })).await;
        harness.completed("1.1.0").await;
        let status = harness
            .cluster_version_until(|status| {
                says(status, "ReleaseAccepted", "True", "PayloadLoaded")
            })
            .await;
        assert_eq!(history(&status), ["1.1.0 Completed", "1.0.0 Completed"]);
        assert_eq!(condition(&status, "Invalid"), &Value::Null, "{status:#}");
        harness.stop().await;
        let progress = harness.progress().await;
        assert_eq!(progress["completedUpdates"][0]["to"], "1.1.0", "{progress:#}");
        let levels = progress["update"]["levels"].as_array().expect("levels").len();
        assert!(levels > 3, "{progress:#}");
        // Written by a task of its own, which may be a little later.
        let is_last = |reason: &String| reason == "UpdateCompleted";
        let reasons = until(
            "the end is reported",
            || events(&harness),
            |reasons| reasons.iter().any(is_last),
        )
        .await;
        for reason in ["RetrievePayload", "UpdateStarted", "UpdateCompleted"] {
            assert!(reasons.iter().any(|it| it == reason), "{reason}: {reasons:?}");
        }
    });
}

#[test]
fn a_request_during_the_installation_waits_for_its_end() {
    on_any_cluster(|kind| async move {
        let (first, second) = sample_payloads();
        let operators = OperatorSetup(Duration::from_millis(100), Faults::default());
        let mut harness = Harness::start(kind, &[first, Arc::clone(&second)], operators).await;
        harness.store = Some(store(Signature::NotSigned));
        harness.control();
        harness.until(|view| view.total > 0 && !view.completed).await;
        ask(&harness, json!({ "image": second.image })).await;
        harness.completed("1.1.0").await;
        let status = harness.get(CLUSTER_VERSION, "version").await["status"].clone();
        assert_eq!(history(&status), ["1.1.0 Completed", "1.0.0 Completed"]);
        harness.stop().await;
    });
}

#[test]
fn a_rejected_release_disturbs_nothing_else_of_the_request() {
    on_any_cluster(|kind| async move {
        let mut harness = installed(kind, Signature::NotSigned, OperatorSetup::default()).await;
        let image = format!("nowhere.example/release@sha256:{}", "0".repeat(64));
        harness
            .set_spec(json!({
                "desiredUpdate": { "image": image },
                "overrides": [{
                    "group": "", "kind": "ConfigMap", "namespace": "harbour-crane", "name": "x",
                    "unmanaged": true,
                }],
            }))
            .await;
        let status = harness
            .cluster_version_until(|status| {
                says(status, "ReleaseAccepted", "False", "RetrievePayload")
                    && says(status, "Upgradeable", "False", "ClusterVersionOverridesSet")
                    && says(status, "Progressing", "False", "")
            })
            .await;
        assert_eq!(status["desired"]["version"], "1.0.0");
        assert!(says(&status, "Available", "True", ""), "{status:#}");
        assert_eq!(history(&status), ["1.0.0 Completed"]);
        // The store is repaired, and no new request is needed: by now, preconditions are in the way.
        let store = PayloadSet::new();
        store.add(sample::v1(), None, Signature::NotSigned).expect("in order");
        store.add(sample::v2(), Some(&image), Signature::NotSigned).expect("in order");
        harness.stop().await;
        harness.store = Some(Arc::new(store));
        harness.control();
        let status = harness
            .cluster_version_until(|status| {
                says(status, "ReleaseAccepted", "False", "PreconditionChecks")
            })
            .await;
        let message = condition(&status, "ReleaseAccepted")["message"].to_string();
        assert!(message.contains("ClusterVersionOverridesSet"), "{message}");
        ask(&harness, Value::Null).await;
        harness
            .cluster_version_until(|status| {
                says(status, "ReleaseAccepted", "True", "PayloadLoaded")
            })
            .await;
        ask(&harness, json!({ "image": image })).await;
        harness
            .cluster_version_until(|status| {
                says(status, "ReleaseAccepted", "False", "PreconditionChecks")
            })
            .await;
        // What stood in the way is removed, and that is enough.
        harness.set_spec(json!({ "overrides": null })).await;
        harness.completed("1.1.0").await;
        harness.stop().await;
    });
}

#[test]
fn an_unverified_release_is_taken_by_force_and_that_is_on_record() {
    on_any_cluster(|kind| async move {
        let signature = Signature::Failed("no signature is good".to_owned());
        let mut harness = installed(kind, signature, OperatorSetup::default()).await;
        ask(&harness, json!({ "version": "1.1.0" })).await;
        let status = harness
            .cluster_version_until(|status| {
                says(status, "ReleaseAccepted", "False", "RetrievePayload")
            })
            .await;
        let message = condition(&status, "ReleaseAccepted")["message"].to_string();
        assert!(message.contains("no signature is good"), "{message}");
        ask(&harness, json!({ "version": "1.1.0", "force": true })).await;
        harness.completed("1.1.0").await;
        harness.stop().await;
        // The record outlives the process.
        harness.control();
        harness.until(|view| view.completed).await;
        harness.stop().await;
        let status = harness.get(CLUSTER_VERSION, "version").await["status"].clone();
        assert_eq!(status["history"][0]["verified"], false);
        let risks = status["history"][0]["acceptedRisks"].as_str().unwrap_or_default();
        assert!(risks.contains("cannot be verified"), "{risks}");
    });
}

#[test]
fn an_update_is_held_before_a_run_level_across_restarts() {
    on_each_cluster(|kind| async move {
        let mut harness = installed(kind, Signature::NotSigned, OperatorSetup::default()).await;
        harness.pause(json!("30")).await;
        ask(&harness, json!({ "version": "1.1.0" })).await;
        let held = |status: &Value| {
            let message = condition(status, "Progressing")["message"].as_str().unwrap_or_default();
            says(status, "Progressing", "True", "UpdatePaused")
                && message.ends_with("paused before run level 30")
        };
        let status = harness.cluster_version_until(held).await;
        assert_eq!(history(&status), ["1.1.0 Partial", "1.0.0 Completed"]);
        let done = harness.progress().await["done"].as_u64();
        // The event follows the status, unless the process is killed meanwhile.
        let is_reported = |reasons: &Vec<String>| reasons.iter().any(|it| it == "UpdatePaused");
        until("the pause is reported", || events(&harness), is_reported).await;
        // A controller that is given another release goes on where the cluster is.
        harness.kill().await;
        harness.control();
        harness.until(|view| view.version == "1.1.0").await;
        harness.cluster_version_until(held).await;
        // The first one may have recorded more after it was read.
        let is_resumed = |it: &Value| it["done"].as_u64() >= done;
        let progress = until("it goes on there", || harness.progress(), is_resumed).await;
        assert_eq!(progress["update"]["pausedBefore"], 30, "{progress:#}");
        harness.pause(Value::Null).await;
        harness.completed("1.1.0").await;
        harness.stop().await;
    });
}

#[test]
fn an_update_begins_in_its_maintenance_window_and_is_carried_to_its_end() {
    on_each_cluster(|kind| async move {
        let (first, second) = sample_payloads();
        let payloads = [first, Arc::clone(&second)];
        let mut harness = Harness::start(kind, &payloads, OperatorSetup::default()).await;
        let clock = Arc::new(ShiftedClock::default());
        harness.clock = Arc::clone(&clock) as _;
        harness.store = Some(store(Signature::NotSigned));
        harness.control();
        let (client, stop) = (harness.client.clone(), CancellationToken::new());
        let (windows, leadership) = (Arc::clone(&clock) as _, Leadership::Alone);
        let windows = WindowController { client, clock: windows, leadership };
        let windows = tokio::spawn(windows.run(stop.clone()));
        harness.completed("1.0.0").await;

        harness.annotate("plimsoll.io/maintenance-window", json!("nights")).await;
        harness.pause(json!("30")).await;
        ask(&harness, json!({ "version": "1.1.0" })).await;
        let waits = |status: &Value, reason: &str, why: &str| {
            let message = condition(status, "ReleaseAccepted")["message"].as_str();
            says(status, "ReleaseAccepted", "False", reason)
                && message.is_some_and(|it| it.contains(why))
        };
        let missing = "there is no MaintenanceWindow nights: create it, or name another one";
        let is_missing = |status: &Value| waits(status, "PreconditionChecks", missing);
        harness.cluster_version_until(is_missing).await;
        let opens = Timestamp::now().round(Unit::Second).expect("a time") + 1.hours();
        freeze(&harness, opens).await;
        let closed = format!(
            "\"MaintenanceWindowClosed\": MaintenanceWindow nights is not open (a freeze), it opens {opens}"
        );
        let is_closed = |status: &Value| waits(status, "MaintenanceWindowClosed", &closed);
        let status = harness.cluster_version_until(is_closed).await;
        assert_eq!(history(&status), ["1.0.0 Completed"]);
        let cluster = ClusterState::read(&harness.client).await.expect("there is a ClusterVersion");
        let target = cluster.target(DEFAULT_PROFILE, None, Timestamp::now());
        let findings = cluster.findings(&second, &target, Timestamp::now());
        assert_eq!(findings[0].reason, "MaintenanceWindowClosed", "{findings:?}");
        let is_closed = |it: &Value| it["open"] == false && it["nextOpening"] == opens.to_string();
        let shown = || async { harness.get(MAINTENANCE_WINDOW, "nights").await["status"].clone() };
        until("its status says so", shown, is_closed).await;

        // It opens, and closes again once the update has begun.
        clock.0.store(7200, Ordering::SeqCst);
        harness.cluster_version_until(|it| says(it, "Progressing", "True", "UpdatePaused")).await;
        freeze(&harness, opens + 1000.hours()).await;
        until("it is closed again", shown, |it| it["open"] == false).await;
        harness.pause(Value::Null).await;
        harness.completed("1.1.0").await;
        let status = harness.cluster_version_until(|_| true).await;
        assert_eq!(history(&status), ["1.1.0 Completed", "1.0.0 Completed"]);
        assert_eq!(status["history"][0]["acceptedRisks"], Value::Null, "{status:#}");
        harness.stop().await;
        stop.cancel();
        windows.await.expect("it does not panic").expect("it ends well");
    });
}

/// Applies the MaintenanceWindow `nights`, which is closed until a time, once its kind is served.
pub(crate) async fn freeze(harness: &Harness, until_time: Timestamp) {
    let window = json!({
        "apiVersion": MAINTENANCE_WINDOW.api_version(),
        "kind": MAINTENANCE_WINDOW.kind,
        "metadata": { "name": "nights" },
        "spec": {
            "windows": [{ "schedule": "0 0 * * *", "duration": "24h" }],
            "exclusions": [
                { "from": "2026-01-01T00:00:00Z", "until": until_time, "reason": "a freeze" },
            ],
        },
    });
    let api = harness.api(MAINTENANCE_WINDOW);
    let (parameters, patch) = (PatchParams::apply("administrator"), Patch::Apply(window));
    let applied = || async { api.patch("nights", &parameters, &patch).await.is_ok() };
    until("the window is applied", applied, |it| *it).await;
}

#[test]
fn commands_that_wait_for_an_update_end_with_it() {
    on_each_cluster(|kind| async move {
        let mut harness = installed(kind, Signature::NotSigned, OperatorSetup::default()).await;
        harness.cluster_version_until(|status| status["availableUpdates"].is_array()).await;
        let terminal = Terminal::open(&harness.cluster).await;
        // Nothing is under way: the status is shown once.
        let idle = terminal.run("update status --watch -o jsonpath={.assessment}").await;
        assert_eq!(idle, "Idle", "{kind}");
        harness.pause(json!("30")).await;
        let waiting = terminal.command("update to 1.1.0 --wait").spawn().expect("it runs");
        harness.cluster_version_until(|it| says(it, "Progressing", "True", "UpdatePaused")).await;
        let mut watching = terminal
            .command("update status --watch -o jsonpath={.assessment}")
            .spawn()
            .expect("it runs");
        let mut seen = vec![0];
        let output = watching.stdout.as_mut().expect("it is piped");
        output.read_exact(&mut seen).await.expect("it is shown while the update is paused");
        harness.pause(Value::Null).await;
        harness.completed("1.1.0").await;
        for (child, end) in [(waiting, "The update is completed\n"), (watching, "Idle")] {
            let output = tokio::time::timeout(PATIENCE, child.wait_with_output()).await;
            let output = output.expect("it ends").expect("it runs");
            let printed = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && printed.ends_with(end), "{kind}: {output:?}");
        }
        harness.stop().await;
    });
}

#[test]
fn an_update_is_reversed_by_force_only_and_resumes_when_withdrawn() {
    on_any_cluster(|kind| async move {
        let operators = OperatorSetup(Duration::from_millis(50), Faults::default());
        let mut harness = installed(kind, Signature::NotSigned, operators).await;
        let (first, _) = sample_payloads();
        harness.pause(json!("50")).await;
        ask(&harness, json!({ "version": "1.1.0" })).await;
        let held = |status: &Value| says(status, "Progressing", "True", "UpdatePaused");
        harness.cluster_version_until(held).await;
        ask(&harness, Value::Null).await;
        let status = harness.cluster_version_until(held).await;
        assert_eq!(status["desired"]["version"], "1.1.0", "it goes on, paused or not");
        ask(&harness, json!({ "image": first.image })).await;
        let status = harness
            .cluster_version_until(|status| {
                says(status, "ReleaseAccepted", "False", "PreconditionChecks")
            })
            .await;
        let message = condition(&status, "ReleaseAccepted")["message"].to_string();
        assert!(message.contains("LowDesiredVersion"), "{message}");
        harness.pause(Value::Null).await;
        ask(&harness, json!({ "image": first.image, "force": true })).await;
        harness.completed("1.0.0").await;
        let status = harness.get(CLUSTER_VERSION, "version").await["status"].clone();
        let versions = history(&status);
        assert_eq!(versions.len(), 3, "{versions:?}");
        assert_eq!(versions[0], "1.0.0 Completed");
        assert!(versions[1].starts_with("1.1.0"), "{versions:?}");
        assert!(status["history"][1]["completionTime"].is_string(), "{status:#}");
        harness.stop().await;
    });
}

#[test]
fn an_administrator_gate_holds_a_minor_update_until_acknowledged() {
    on_any_cluster(|kind| async move {
        let (first, second) = acknowledged_payloads();
        let payloads = [&first, &second].map(|files| sample_payload(files));
        let mut harness = Harness::start(kind, &payloads, OperatorSetup::default()).await;
        let store = PayloadSet::new();
        for files in [first, second] {
            store.add(files, None, Signature::NotSigned).expect("in order");
        }
        harness.store = Some(Arc::new(store));
        harness.control();
        harness.completed("4.3.0").await;
        config_map(&harness, "openshift-config-managed", "admin-gates", "Read the notes.").await;
        config_map(&harness, "openshift-config", "admin-acks", "false").await;
        harness
            .cluster_version_until(|status| {
                says(status, "Upgradeable", "False", "AdminAckRequired")
            })
            .await;
        ask(&harness, json!({ "version": "4.4.0" })).await;
        let status = harness
            .cluster_version_until(|status| {
                says(status, "ReleaseAccepted", "False", "PreconditionChecks")
            })
            .await;
        let message = condition(&status, "ReleaseAccepted")["message"].to_string();
        assert!(message.contains("Read the notes."), "{message}");
        config_map(&harness, "openshift-config", "admin-acks", "true").await;
        harness.completed("4.4.0").await;
        harness.stop().await;
    });
}

/// The sample under versions that have gates.
fn acknowledged_payloads()
-> (Vec<plimsoll_content::payload::SourceFile>, Vec<plimsoll_content::payload::SourceFile>) {
    let renamed = |files: Vec<plimsoll_content::payload::SourceFile>| {
        files.into_iter().map(|mut file| {
            let text = String::from_utf8_lossy(&file.bytes).into_owned();
            file.bytes = text.replace("1.0.0", "4.3.0").replace("1.1.0", "4.4.0").into();
            file
        })
    };
    (renamed(sample::v1()).collect(), renamed(sample::v2()).collect())
}

async fn config_map(harness: &Harness, namespace: &str, name: &str, value: &str) {
    let namespaces: Api<Namespace> = Api::all(harness.client.clone());
    let mut object = Namespace::default();
    object.metadata.name = Some(namespace.to_owned());
    // There already from the second time on.
    let _ = namespaces.create(&PostParams::default(), &object).await;
    let api: Api<ConfigMap> = Api::namespaced(harness.client.clone(), namespace);
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name },
        "data": { "ack-4.3-notes": value },
    });
    let parameters = PatchParams::apply("test").force();
    api.patch(name, &parameters, &Patch::Apply(&object)).await.expect("a ConfigMap");
}

#[test]
fn payloads_from_outside_are_updated_through_the_cluster_version() {
    let (Some(first), Some(next)) =
        (outside_payload("PLIMSOLL_PAYLOAD"), outside_payload("PLIMSOLL_PAYLOAD_NEXT"))
    else {
        return;
    };
    let store = PayloadSet::new();
    for variable in ["PLIMSOLL_PAYLOAD", "PLIMSOLL_PAYLOAD_NEXT"] {
        let path = std::env::var_os(variable).expect("it is set");
        let files = read_directory(path.as_ref()).expect("the payload can be read");
        store.add(files, None, Signature::NotSigned).expect("the payload says what it is");
    }
    let store = Arc::new(store);
    on_any_cluster(|kind| {
        let (first, next, store) = (Arc::clone(&first), Arc::clone(&next), Arc::clone(&store));
        async move {
            let payloads = [Arc::clone(&first), Arc::clone(&next)];
            let mut harness = Harness::start(kind, &payloads, OperatorSetup::default()).await;
            harness.store = Some(store);
            create_cluster_version(&harness, &json!({})).await;
            harness.control();
            harness.completed(&first.release.version).await;
            // The overrides that the test needs object to a minor update.
            ask(&harness, json!({ "version": next.release.version })).await;
            harness
                .cluster_version_until(|status| {
                    says(status, "ReleaseAccepted", "False", "PreconditionChecks")
                })
                .await;
            ask(&harness, json!({ "version": next.release.version, "force": true })).await;
            harness.completed(&next.release.version).await;
            let status = harness.get(CLUSTER_VERSION, "version").await["status"].clone();
            let risks = status["history"][0]["acceptedRisks"].as_str().unwrap_or_default();
            assert!(risks.starts_with("Forced through blocking failures:"), "{risks}");
            harness.stop().await;
        }
    });
}
