//! Requests and preconditions of a cluster, as its server reports them.

use jiff::Timestamp;
use plimsoll_api::config::{ComponentOverride, Release, UpdateHistory, UpdateState};
use plimsoll_api::{Condition, ConditionStatus};
use plimsoll_content::inclusion::DEFAULT_PROFILE;
use plimsoll_content::payload::{TemplateContext, parse};
use plimsoll_plan::spec::overrides::OVERRIDE_TERMS;
use plimsoll_plan::update::preconditions::WINDOW_ANNOTATION;
use serde_json::json;

use super::ClusterState;
use crate::sample;

/// A cluster that is at 1.0.0, whose controller has a store or none.
fn cluster(has_store: bool) -> ClusterState {
    let mut cluster = ClusterState::default();
    let image = "r@sha256:1.0.0".to_owned();
    let version = "1.0.0".to_owned();
    cluster.status.history = vec![UpdateHistory {
        state: UpdateState::Completed,
        started_time: Timestamp::UNIX_EPOCH,
        completion_time: None,
        version: version.clone(),
        image: image.clone(),
        verified: false,
        accepted_risks: String::new(),
    }];
    cluster.status.desired = Release { version, image, ..Release::default() };
    let condition = |type_: &str, reason: &str| Condition {
        type_: type_.to_owned(),
        status: ConditionStatus::False,
        last_transition_time: Timestamp::UNIX_EPOCH,
        reason: reason.to_owned(),
        message: "WHY".to_owned(),
    };
    let retrieved = if has_store { "VersionNotFound" } else { "NoChannel" };
    cluster.status.conditions =
        vec![condition("Upgradeable", "OldNodes"), condition("RetrievedUpdates", retrieved)];
    cluster
}

#[test]
fn what_is_installed_is_what_was_completed_last() {
    let mut cluster = cluster(false);
    let version = |cluster: &ClusterState| cluster.installed().map(|it| it.version);
    assert_eq!(version(&cluster).as_deref(), Some("1.0.0"));
    // An update is under way.
    let under_way = UpdateHistory {
        state: UpdateState::Partial,
        version: "1.1.0".to_owned(),
        image: "r@sha256:1.1.0".to_owned(),
        ..cluster.status.history[0].clone()
    };
    cluster.status.history.insert(0, under_way);
    cluster.status.desired.version = "1.1.0".to_owned();
    assert_eq!(version(&cluster).as_deref(), Some("1.0.0"));
    cluster.status.history.pop();
    assert_eq!(version(&cluster), None);
}

#[test]
fn preconditions_block_where_a_controller_checks_them() {
    let next = parse(sample::v2(), &TemplateContext::default()).expect("the sample is in order");
    let check = |cluster: &ClusterState, expected: &str| {
        let target = cluster.target(DEFAULT_PROFILE, None, Timestamp::UNIX_EPOCH);
        let found: Vec<String> = cluster
            .findings(&next, &target, Timestamp::constant(88_200, 0))
            .into_iter()
            .map(|it| format!("{}{}", it.reason, if it.blocking { "!" } else { "" }))
            .collect();
        assert_eq!(found.join(" "), expected);
    };
    check(&cluster(true), "OldNodes! UnknownUpdate");
    let mut waiting = cluster(true);
    waiting.annotations.insert(WINDOW_ANNOTATION.to_owned(), "nights".to_owned());
    check(&waiting, "OldNodes! InvalidMaintenanceWindow! UnknownUpdate");
    for (schedule, expected) in [
        ("0 22 * * *", "OldNodes! MaintenanceWindowClosed! UnknownUpdate"),
        ("0 0 * * *", "OldNodes! UnknownUpdate"),
    ] {
        let windows = json!([{ "schedule": schedule, "duration": "1h" }]);
        waiting.windows.insert_object("nights", &json!({ "spec": { "windows": windows } }));
        check(&waiting, expected);
    }
    check(&cluster(false), "OldNodes");
    let with = |change: &dyn Fn(&mut ClusterState)| {
        let mut cluster = cluster(false);
        change(&mut cluster);
        cluster
    };
    let later = |cluster: &mut ClusterState| {
        cluster.status.desired.version = "1.2.0".to_owned();
        cluster.status.history[0].version = "1.2.0".to_owned();
    };
    check(&with(&later), "LowDesiredVersion!");
    // A rollback to the patch before is requested where there is a store, and refused where not.
    let rollback = |has_store: bool| {
        let mut cluster = cluster(has_store);
        let mut patched = cluster.status.history[0].clone();
        (patched.version, patched.image) = ("1.1.1".to_owned(), "r@sha256:1.1.1".to_owned());
        cluster.status.desired.version.clone_from(&patched.version);
        cluster.status.desired.image.clone_from(&patched.image);
        cluster.status.history[0].version = "1.1.0".to_owned();
        cluster.status.history.insert(0, patched);
        cluster
    };
    check(&rollback(true), "UnknownUpdate");
    check(&rollback(false), "LowDesiredVersion!");
    // A rehearsal asks as where there is a store, and its own overrides do not matter.
    check(&with(&|it| it.is_rehearsed = true), "OldNodes!");
    let overridden = |cluster: &mut ClusterState| {
        cluster.is_rehearsed = true;
        cluster.status.conditions[0].reason = "ClusterVersionOverridesSet".to_owned();
    };
    check(&with(&overridden), "");
    check(&ClusterState::default(), "");
    let mut there = cluster(true);
    there.status.desired.image.clone_from(&next.image);
    there.status.history[0].image.clone_from(&next.image);
    check(&there, "");
    let mut installing = cluster(true);
    installing.status.history[0].state = UpdateState::Partial;
    check(&installing, "");
}

#[test]
fn an_override_that_has_expired_decides_nothing() {
    let mut cluster = cluster(true);
    cluster.spec.overrides = vec![ComponentOverride {
        kind: "ConfigMap".to_owned(),
        group: String::new(),
        namespace: "pier".to_owned(),
        name: "tides".to_owned(),
        unmanaged: true,
    }];
    let expires = "2026-01-01T00:00:00Z";
    let terms = json!([
        {"kind": "ConfigMap", "namespace": "pier", "name": "tides", "expires": expires},
    ]);
    cluster.annotations.insert(OVERRIDE_TERMS.to_owned(), terms.to_string());
    let at = |time: &str| {
        let now = time.parse().expect("a time");
        cluster.target(DEFAULT_PROFILE, None, now).overrides.len()
    };
    assert_eq!((at("2025-12-31T23:59:59Z"), at(expires)), (1, 0));
}

#[test]
fn the_features_are_those_of_the_cluster_unless_others_are_named() {
    let mut cluster = cluster(true);
    let feature_gate = json!({"spec": {"featureSet": "TechPreviewNoUpgrade"}});
    cluster.features = plimsoll_plan::plan::features::Features::of_cluster(&feature_gate);
    let set = |cluster: &ClusterState, named: Option<&str>| {
        cluster.target(DEFAULT_PROFILE, named, Timestamp::UNIX_EPOCH).features.set
    };
    assert_eq!(set(&cluster, None), "TechPreviewNoUpgrade");
    assert_eq!(set(&cluster, Some("Default")), "Default");
    // What the controller was started with takes the place of the FeatureGate.
    cluster.progress.feature_set = Some("DevPreviewNoUpgrade".to_owned());
    assert_eq!(set(&cluster, None), "DevPreviewNoUpgrade");
    assert_eq!(set(&cluster, Some("Default")), "Default");
}
