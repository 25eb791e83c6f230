//! A controller that ends anywhere is followed by one that goes on where it was.

use std::sync::Arc;
use std::time::Duration;

use k8s_testkit::faults::Requests;
use k8s_testkit::{ClusterKind, Fault, Faults};
use kube::api::{Patch, PatchParams};
use plimsoll_api::{CLUSTER_OPERATOR, CLUSTER_VERSION};
use plimsoll_content::Payload;
use plimsoll_plan::progress::parse_ranges;
use plimsoll_simulation::simulated_operators::Faults as OperatorFaults;
use serde_json::{Value, json};

use crate::events::reported;
use crate::harness::{
    Harness, OperatorSetup, condition, on_any_cluster, on_each_cluster, sample_payloads,
};

/// The plan on record, and the steps recorded as done.
async fn recorded(harness: &Harness) -> (String, Vec<usize>) {
    let progress = harness.progress().await;
    let text = |field: &str| progress[field].as_str().unwrap_or_default().to_owned();
    (text("planHash"), parse_ranges(&text("doneSteps"), usize::MAX))
}

/// The first release of the sample, installed by operators that take their time, and the second.
async fn installed(kind: ClusterKind) -> (Harness, Arc<Payload>) {
    let (first, second) = sample_payloads();
    let operators = OperatorSetup(Duration::from_millis(50), OperatorFaults::default());
    let payloads = [Arc::clone(&first), Arc::clone(&second)];
    let mut harness = Harness::start(kind, &payloads, operators).await;
    harness.control();
    harness.completed(&first.release.version).await;
    (harness, second)
}

#[test]
fn an_update_that_is_killed_again_and_again_goes_on_where_it_was() {
    on_each_cluster(|kind| async move {
        let (mut harness, second) = installed(kind).await;
        harness.release(&second);
        let mut before = (String::new(), Vec::new());
        for share in 1..6 {
            let version = second.release.version.clone();
            let view = harness
                .until(|v| v.completed || v.version == version && v.done * 6 >= v.total * share)
                .await;
            if view.completed && view.version == version {
                break;
            }
            harness.kill().await;
            let now = recorded(&harness).await;
            let same_plan = before.0 == now.0;
            let kept = before.1.iter().all(|step| now.1.contains(step));
            assert!(!same_plan || kept, "{before:?} then {now:?}");
            before = now;
            harness.control();
        }
        harness.completed(&second.release.version).await;
        let history = harness.get(CLUSTER_VERSION, "version").await["status"]["history"].clone();
        assert_eq!(history.as_array().map(Vec::len), Some(2), "{history:#}");
        harness.stop().await;
    });
}

#[test]
fn a_record_that_is_wrongly_said_to_be_missing_is_found_all_the_same() {
    on_any_cluster(|kind| async move {
        let (mut harness, second) = installed(kind).await;
        // It waits there, so that the records before and after are of the same plan. The pause is to be
        // seen before the release.
        harness.stop().await;
        harness.pause(json!("50")).await;
        harness.release(&second);
        harness.control();
        let paused = |status: &Value| condition(status, "Progressing")["reason"] == "UpdatePaused";
        harness.cluster_version_until(paused).await;
        harness.kill().await;
        let (_, done) = recorded(&harness).await;
        assert!(!done.is_empty());

        let wrong = Faults::none();
        let first_read = Requests::any().verb("get").resource("releaseprogresses").times(1);
        wrong.add(first_read, Fault::refused(404));
        harness.control_with(harness.cluster.client_with_faults(wrong.clone()));
        let version = second.release.version.clone();
        harness.until(|view| view.version == version && view.done > 0).await;
        assert_eq!(wrong.fired().len(), 1);
        harness.kill().await;
        let (_, after) = recorded(&harness).await;
        assert!(done.iter().all(|step| after.contains(step)), "{done:?} then {after:?}");
        harness.pause(Value::Null).await;
        harness.control();
        harness.completed(&version).await;
        harness.stop().await;
    });
}

#[test]
fn a_controller_that_restarts_at_rest_reports_no_progress() {
    on_any_cluster(|kind| async move {
        let (first, _) = sample_payloads();
        let mut harness = Harness::installed(kind, &[Arc::clone(&first)]).await;
        harness.stop().await;
        let before = harness.get(CLUSTER_VERSION, "version").await["status"].clone();
        harness.control();
        harness.until(|view| view.completed).await;
        harness.stop().await;
        let after = harness.get(CLUSTER_VERSION, "version").await["status"].clone();
        assert_eq!(before, after);
    });
}

#[test]
fn what_is_not_seen_yet_keeps_its_reports_and_is_not_said_to_fail() {
    on_any_cluster(|kind| async move {
        let (first, _) = sample_payloads();
        let mut harness = Harness::installed(kind, &[first]).await;
        harness.stop().await;
        let before = reported(&harness).await.remove("FailureResolved");
        let mut harness = harness.without_operators();
        let related = json!([{ "group": "", "resource": "namespaces", "name": "of-its-own" }]);
        let report = Patch::Merge(json!({ "status": { "relatedObjects": related } }));
        let operators = harness.api(CLUSTER_OPERATOR);
        operators
            .patch_status("beacon", &PatchParams::default(), &report)
            .await
            .expect("a report is accepted");

        let slow = Faults::none();
        let listings = Requests::any().verb("list").always();
        slow.add(listings, Fault::Delayed(Duration::from_secs(1)));
        harness.control_with(harness.cluster.client_with_faults(slow));
        harness.until(|view| view.total > 0 && view.done == view.total).await;
        harness.stop().await;
        let status = harness.get(CLUSTER_OPERATOR, "beacon").await["status"].clone();
        assert_eq!(status["relatedObjects"], related, "{status:#}");
        assert_eq!(reported(&harness).await.remove("FailureResolved"), before);
    });
}
