//! Rehearsals: how they end, on what, and that they touch nothing.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_cli::render::rehearsal::RehearsalReport;
use plimsoll_content::Payload;
use plimsoll_content::inclusion::DEFAULT_PROFILE;
use plimsoll_plan::forecast::{Forecast, StepChange, StepChangeKind};
use plimsoll_simulation::rehearsal::{
    ClusterSnapshot, InitialState, Rehearsal, RehearsalEnd, RehearsalResult,
};
use plimsoll_simulation::sample;
use plimsoll_simulation::simulated_operators::Faults;
use plimsoll_source::store::{PayloadSet, Signature};
use serde_json::{Value, json};

use super::forecast;
use crate::harness::{
    Harness, OperatorSetup, condition, on_any_cluster, on_each_cluster, sample_payloads,
};

fn rehearsal(initial_state: InitialState, next: &Arc<Payload>, faults: &str) -> Rehearsal {
    Rehearsal {
        initial_state,
        next: Arc::clone(next),
        profile: DEFAULT_PROFILE.to_owned(),
        feature_set: None,
        delay: Duration::from_secs(60),
        faults: if faults.is_empty() {
            Faults::default()
        } else {
            Faults::parse(faults).expect("a list of faults")
        },
    }
}

#[test]
fn a_way_back_is_rehearsed_to_its_end_and_succeeds_when_it_is_forced() {
    let (first, second) = sample_payloads();
    let initial_state = InitialState::Release(second);
    let mut result = rehearsal(initial_state, &first, "").run().expect("it can be rehearsed");
    assert_eq!(result.timeline.end, RehearsalEnd::Complete);
    let report = RehearsalReport::of(&result, String::new());
    assert!(!report.succeeds && report.done == report.total, "it is not forced");
    let blockers: Vec<&str> = report.plan.blockers.iter().map(|it| it.reason.as_str()).collect();
    assert_eq!(blockers, ["LowDesiredVersion"]);
    result.forecast = result.forecast.forced();
    assert!(RehearsalReport::of(&result, String::new()).succeeds);
}

fn reported(result: &RehearsalResult) -> String {
    let report = RehearsalReport::of(result, "a stage".to_owned());
    serde_json::to_string_pretty(&report).expect("it is JSON")
}

#[test]
fn the_same_rehearsal_is_reported_in_the_same_words() {
    let (first, second) = sample_payloads();
    let faults = "[{operator: crane, fault: Degraded, minutes: 3}]";
    let rehearse = || {
        let initial_state = InitialState::Release(Arc::clone(&first));
        rehearsal(initial_state, &second, faults).run().expect("it can be rehearsed")
    };
    let result = rehearse();
    assert_eq!(result.timeline.end, RehearsalEnd::Complete);
    let report = RehearsalReport::of(&result, String::new());
    assert!(report.succeeds, "{:?}", report.failing_conditions);
    assert!(report.deviations.is_empty(), "{:?}", report.deviations);
    assert_eq!(reported(&result), reported(&rehearse()));
}

#[test]
fn a_rehearsal_tells_where_an_update_would_stop_and_why() {
    let (first, second) = sample_payloads();
    let check = |faults: &str, condition: &str, reason: &str, level: u32| {
        let initial_state = InitialState::Release(Arc::clone(&first));
        let result = rehearsal(initial_state, &second, faults).run().expect("it is rehearsed");
        let report = RehearsalReport::of(&result, String::new());
        assert!(!report.succeeds && report.done < report.total, "{faults}");
        let condition_report = report.failing_conditions.iter().find(|it| it.type_ == "Failing");
        let condition_report = condition_report.expect("Failing tells of it");
        assert_eq!(
            (condition_report.status, condition_report.reason.as_str()),
            (condition, reason),
            "{faults}"
        );
        let stopped = report.plan.levels.iter().find(|it| it.completed.is_none()).expect("a level");
        assert_eq!(stopped.level, Some(level), "{faults}");
        assert!(report.plan.levels.last().expect("levels").began.is_none(), "{faults}");
    };
    let crane = |fault: &str| format!("[{{operator: crane, fault: {fault}}}]");
    check(&crane("NeverAvailable"), "True", "ClusterOperatorNotAvailable", 30);
    check(&crane("VersionStuck"), "Unknown", "SlowClusterOperator", 30);
    let degraded = "[{operator: lookout, fault: Degraded, minutes: 90}]";
    check(degraded, "True", "ClusterOperatorDegraded", 50);
}

#[test]
fn a_cluster_is_rehearsed_on_without_being_touched() {
    on_each_cluster(|kind| async move {
        let (first, second) = sample_payloads();
        let mut harness =
            Harness::installed(kind, &[Arc::clone(&first), Arc::clone(&second)]).await;
        harness.stop().await;
        // What it requests of its own controller is not requested of the copy's.
        harness.pause(json!("30")).await;
        let image = format!("nowhere.example/release@sha256:{}", "0".repeat(64));
        harness.set_spec(json!({ "desiredUpdate": { "image": image } })).await;
        let (client, log) = harness.cluster.client_with_log();
        let copy = ClusterSnapshot::of_cluster(&client, &second).await.expect("it can be copied");
        assert_eq!(log.count_writes(), 0, "{:#?}", log.requests());
        assert!(copy.not_copied.is_empty(), "{:?}", copy.not_copied);
        let predicted = forecast(&harness, &second).await;
        let next = Arc::clone(&second);
        let result = tokio::task::spawn_blocking(move || {
            rehearsal(InitialState::Cluster(copy), &next, "").run()
        });
        let result = result.await.expect("no panic").expect("it can be rehearsed");
        let report = RehearsalReport::of(&result, String::new());
        assert!(report.succeeds, "{kind}: {:?}", report.failing_conditions);
        assert!(report.deviations.is_empty(), "{kind}: {:?}", report.deviations);
        assert_eq!(report.plan.from.as_deref(), Some(first.release.version.as_str()));
        assert_eq!(kinds(&result.changes), kinds(&predicted.changes), "{kind}");
        assert_eq!(result.forecast.plan.hash, predicted.plan.hash);
        let waited = report.plan.levels.iter().flat_map(|level| &level.components);
        assert!(
            waited.flat_map(|component| &component.waits).count() > 0,
            "operators take their time"
        );
    });
}

#[test]
fn what_would_not_begin_is_rehearsed_as_if_it_were_forced() {
    on_any_cluster(|kind| async move {
        let (first, second) = sample_payloads();
        let payloads = [first, Arc::clone(&second)];
        let mut harness = Harness::start(kind, &payloads, OperatorSetup::default()).await;
        let store = PayloadSet::new();
        for files in [sample::v1(), sample::v2()] {
            store.add(files, None, Signature::NotSigned).expect("the sample is in order");
        }
        harness.store = Some(Arc::new(store));
        harness.control();
        harness.completed("1.0.0").await;
        harness
            .set_spec(json!({"overrides": [{
                "group": "", "kind": "ConfigMap", "namespace": "harbour-crane", "name": "x",
                "unmanaged": true,
            }]}))
            .await;
        let objects = |status: &Value| {
            ["Upgradeable", "Progressing"]
                .iter()
                .all(|it| condition(status, it)["status"] == "False")
        };
        harness.cluster_version_until(objects).await;
        harness.stop().await;
        let predicted = forecast(&harness, &second).await;
        let stops = |forecast: &Forecast| -> Vec<String> {
            forecast.stops().into_iter().map(|stop| stop.reason).collect()
        };
        assert_eq!(stops(&predicted), ["ClusterVersionOverridesSet"], "{kind}");
        assert!(predicted.forced().stops().is_empty());
        let copy =
            ClusterSnapshot::of_cluster(&harness.client, &second).await.expect("it can be copied");
        let result = tokio::task::spawn_blocking(move || {
            rehearsal(InitialState::Cluster(copy), &second, "").run()
        });
        let mut result = result.await.expect("no panic").expect("it can be rehearsed");
        let report = RehearsalReport::of(&result, String::new());
        assert!(
            !report.succeeds && report.failing_conditions.is_empty(),
            "{:?}",
            report.failing_conditions
        );
        assert_eq!(report.plan.blockers.len(), 1, "{:?}", report.plan.blockers);
        assert_eq!(report.done, report.total);
        result.forecast = result.forecast.forced();
        assert!(RehearsalReport::of(&result, String::new()).succeeds);
    });
}

fn kinds(changes: &[StepChange]) -> Vec<StepChangeKind> {
    changes.iter().map(StepChange::kind).collect()
}

#[test]
fn an_installation_is_rehearsed_on_nothing() {
    let (first, _) = sample_payloads();
    let result = rehearsal(InitialState::Empty, &first, "").run().expect("it is rehearsed");
    let report = RehearsalReport::of(&result, String::new());
    assert!(report.succeeds, "{:?}", report.failing_conditions);
    assert!(report.deviations.is_empty(), "{:?}", report.deviations);
    assert_eq!(report.plan.from, None);
    assert_eq!(report.plan.counts.get("created"), Some(&report.total));
}

#[test]
fn an_installation_is_rehearsed_on_a_bare_cluster() {
    on_each_cluster(|kind| async move {
        let (first, _) = sample_payloads();
        let cluster = kind.start().await.expect("the cluster starts");
        let copy = ClusterSnapshot::of_cluster(&cluster.client(), &first).await;
        let copy = copy.expect("it can be copied");
        let rehearse = move || rehearsal(InitialState::Cluster(copy), &first, "").run();
        let result = tokio::task::spawn_blocking(rehearse).await.expect("no panic");
        let result = result.expect("it can be rehearsed");
        let report = RehearsalReport::of(&result, String::new());
        assert!(report.succeeds, "{kind}: {:?}", report.failing_conditions);
        assert!(report.deviations.is_empty(), "{kind}: {:?}", report.deviations);
        assert_eq!(report.plan.from, None);
        assert_eq!(report.plan.counts.get("created"), Some(&report.total));
    });
}
