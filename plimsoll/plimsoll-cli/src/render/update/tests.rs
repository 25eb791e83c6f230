//! What people read.

use jiff::{SignedDuration, Timestamp};
use plimsoll_api::config::{Release, UpdateHistory, UpdateState};
use plimsoll_api::progress::{
    CompletedUpdate, LevelDuration, LevelProgress, OperatorsProgress, StepProgress, UpdateProgress,
};
use plimsoll_api::{Condition, ConditionStatus};

use super::report::TroubleLevel;
use super::{UpdateOverview, UpdateStatus, duration};
use plimsoll_simulation::cluster_state::ClusterState;

fn at(minutes: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_mins(minutes)
}

fn condition(type_: &str, status: ConditionStatus, reason: &str, message: &str) -> Condition {
    Condition {
        type_: type_.to_owned(),
        status,
        last_transition_time: at(0),
        reason: reason.to_owned(),
        message: message.to_owned(),
    }
}

fn entry(version: &str, state: UpdateState) -> UpdateHistory {
    UpdateHistory {
        state,
        started_time: at(0),
        completion_time: None,
        version: version.to_owned(),
        image: format!("r@sha256:{version}"),
        verified: false,
        accepted_risks: String::new(),
    }
}

/// A cluster at 1.0.0 that is on its way to 1.1.0, in the second of two run levels.
fn updating() -> ClusterState {
    let mut cluster = ClusterState::default();
    let status = &mut cluster.status;
    status.desired = Release { version: "1.1.0".to_owned(), ..Release::default() };
    status.history =
        vec![entry("1.1.0", UpdateState::Partial), entry("1.0.0", UpdateState::Completed)];
    let message = "Working towards 1.1.0: 6 of 8 done (75% complete), waiting on lock";
    status.conditions = vec![
        condition("Failing", ConditionStatus::False, "", ""),
        condition("Progressing", ConditionStatus::True, "ClusterOperatorUpdating", message),
    ];
    let level = |level, done, started, completed| LevelProgress {
        level: Some(level),
        done,
        total: 4,
        started_time: Some(at(started)),
        completion_time: completed,
    };
    let progress = &mut cluster.progress;
    progress.done = 6;
    progress.total = 8;
    progress.update = Some(UpdateProgress {
        from: "1.0.0".to_owned(),
        to: "1.1.0".to_owned(),
        started_time: at(0),
        levels: vec![level(10, 4, 0, Some(at(5))), level(20, 2, 5, None)],
        ..UpdateProgress::default()
    });
    progress.completed_updates = vec![CompletedUpdate {
        levels: vec![LevelDuration { level: Some(20), steps: 4, seconds: 3600 }],
        ..CompletedUpdate::default()
    }];
    progress.operators = Some(OperatorsProgress {
        total: 4,
        updated: 2,
        updating: vec!["lock".to_owned()],
        missing: Vec::new(),
        unavailable: vec!["crane".to_owned()],
        degraded: Vec::new(),
    });
    progress.steps = vec![StepProgress {
        file: "0000_20_lock_01.yaml".to_owned(),
        document: 0,
        object: "clusteroperator \"lock\"".to_owned(),
        state: "Waiting".to_owned(),
        reason: "ClusterOperatorUpdating".to_owned(),
        message: "Cluster operator lock is updating versions".to_owned(),
        attempts: 1,
        since: at(20),
    }];
    cluster
}

#[track_caller]
fn check_status(cluster: &ClusterState, minutes: i64, expected: &str) {
    let mut out = Vec::new();
    UpdateStatus::of(cluster, at(minutes)).print(false, &mut out).expect("memory takes all");
    assert_eq!(String::from_utf8(out).expect("text"), expected);
}

#[test]
fn an_update_is_shown_with_its_remaining_time() {
    check_status(
        &updating(),
        25,
        "= Update =\n\
         Assessment:      Progressing\n\
         Target Version:  1.1.0 (from 1.0.0)\n\
         Updating:        lock\n\
         Completion:      75% (6 of 8 done; 2 operators updated, 1 updating, 1 waiting)\n\
         Run Levels:      1 of 2 complete, level 20 under way\n\
         Duration:        25m (Est. Time Remaining: 40m)\n\
         Operator Health: 3 Healthy, 1 Unavailable (crane)\n\
         \n\
         = Update Health =\n\
         SINCE   LEVEL   REASON                    MESSAGE\n\
         5m      Info    ClusterOperatorUpdating   Cluster operator lock is updating versions\n",
    );
}

#[test]
fn assessments_tell_slow_stuck_and_paused_apart() {
    let assessment = |cluster: &ClusterState, minutes| {
        let report = UpdateStatus::of(cluster, at(minutes));
        (report.assessment.as_str(), report.is_stuck())
    };
    let mut cluster = updating();
    assert_eq!(assessment(&cluster, 25), ("Progressing", false));
    assert_eq!(assessment(&cluster, 300), ("Progressing - Slow", false));
    cluster.status.conditions[0].status = ConditionStatus::Unknown;
    assert_eq!(assessment(&cluster, 25), ("Progressing - Slow", false));
    if let Some(update) = &mut cluster.progress.update {
        update.paused_before = Some(30);
    }
    assert_eq!(assessment(&cluster, 300), ("Paused", false));
    cluster.status.conditions[0].status = ConditionStatus::True;
    assert_eq!(assessment(&cluster, 25), ("Stalled", true));
    cluster.status.history[0].state = UpdateState::Completed;
    check_status(&cluster, 25, "The cluster is not updating.\n");
}

#[test]
fn what_was_done_before_the_update_is_no_progress() {
    let mut cluster = updating();
    cluster.progress.update.as_mut().expect("an update").unchanged = 4;
    let completion = UpdateStatus::of(&cluster, at(25)).completion();
    assert!(completion.starts_with("50% (2 of 4 done, 4 unchanged; "), "{completion}");
    cluster.progress.done = 4;
    let completion = UpdateStatus::of(&cluster, at(25)).completion();
    assert!(completion.starts_with("0% (0 of 4 done, 4 unchanged; "), "{completion}");
}

#[test]
fn the_cause_of_a_stall_is_an_error() {
    let level = |status, reason: &str, message: &str| {
        let mut cluster = updating();
        cluster.status.conditions[0] = condition("Failing", status, reason, message);
        UpdateStatus::of(&cluster, at(25)).troubles[0].level
    };
    let (fails, slow) = (ConditionStatus::True, ConditionStatus::Unknown);
    assert_eq!(level(fails, "ClusterOperatorUpdating", ""), TroubleLevel::Error);
    let quoted = "Multiple errors:\n* Cluster operator lock is updating versions";
    assert_eq!(level(fails, "MultipleErrors", quoted), TroubleLevel::Error);
    assert_eq!(level(fails, "UpdatePayloadFailed", "another"), TroubleLevel::Info);
    assert_eq!(level(slow, "ClusterOperatorUpdating", ""), TroubleLevel::Warning);
}

#[test]
fn a_rejected_request_is_reported() {
    let mut cluster = updating();
    cluster.status.history[0].state = UpdateState::Completed;
    let rejected = condition("ReleaseAccepted", ConditionStatus::False, "LoadPayload", "a\nb");
    cluster.status.conditions.push(rejected);
    check_status(
        &cluster,
        25,
        "The cluster is not updating.\n\nThe requested release is not accepted:\n\n  \
         Reason: LoadPayload\n  Message: a\n  b\n",
    );
}

#[test]
fn an_overview_tells_where_the_cluster_may_go() {
    let mut cluster = updating();
    let status = &mut cluster.status;
    status.available_updates = Some(vec![Release {
        version: "1.1.1".to_owned(),
        image: "r@sha256:1.1.1".to_owned(),
        ..Release::default()
    }]);
    status.conditions.push(condition(
        "Upgradeable",
        ConditionStatus::False,
        "UpdateInProgress",
        "WHY",
    ));
    status.conditions.push(condition("RetrievedUpdates", ConditionStatus::True, "", ""));
    let check = |cluster: &ClusterState, expected: &str| {
        let mut out = Vec::new();
        UpdateOverview::of(cluster).print(&mut out).expect("memory takes all");
        assert_eq!(String::from_utf8(out).expect("text"), expected);
    };
    check(
        &cluster,
        "info: An update is in progress. Working towards 1.1.0: 6 of 8 done (75% complete), \
         waiting on lock\n\
         \n\
         Upgradeable=False:\n\
         \n  Reason: UpdateInProgress\n  Message: WHY\n\
         \n\
         Recommended updates:\n\
         \n\
         VERSION   IMAGE\n\
         1.1.1     r@sha256:1.1.1\n",
    );
    let message = "Cluster version is 1.1.0";
    cluster.status.conditions = vec![
        condition("Failing", ConditionStatus::True, "UpdatePayloadFailed", "first\nsecond"),
        condition("Progressing", ConditionStatus::False, "", message),
        condition("ReleaseAccepted", ConditionStatus::False, "LoadPayload", "broken"),
    ];
    cluster.status.available_updates = None;
    check(
        &cluster,
        "Failing=True:\n\n  Reason: UpdatePayloadFailed\n  Message: first\n  second\n\n\
         Cluster version is 1.1.0\n\n\
         ReleaseAccepted=False:\n\n  Reason: LoadPayload\n  Message: broken\n\n\
         No updates available. You may still update to a specific release image with --to-image or \
         wait for new updates to be available.\n",
    );
}

#[test]
fn durations_are_short() {
    for (seconds, text) in [(45, "45s"), (60, "1m"), (3599, "59m"), (3600, "1h"), (7500, "2h5m")] {
        assert_eq!(duration(seconds), text);
    }
}

#[test]
fn operators_that_do_not_exist_are_not_healthy() {
    for (missing, unavailable, expected) in [
        ("", "", "4 Healthy"),
        ("buoy", "", "3 Healthy, 1 Missing (buoy)"),
        ("buoy tide", "crane", "1 Healthy, 1 Unavailable (crane), 2 Missing (buoy, tide)"),
        ("buoy crane lock tide", "", "0 Healthy, 4 Missing (buoy, crane, lock, tide)"),
    ] {
        let names = |list: &str| list.split_whitespace().map(str::to_owned).collect();
        let mut cluster = updating();
        let operators = cluster.progress.operators.as_mut().expect("there are operators");
        operators.missing = names(missing);
        operators.unavailable = names(unavailable);
        let mut out = Vec::new();
        UpdateStatus::of(&cluster, at(25)).print(false, &mut out).expect("memory takes all");
        let out = String::from_utf8(out).expect("text");
        let line = format!("Operator Health: {expected}\n");
        assert!(out.contains(&line), "{out}");
    }
}
