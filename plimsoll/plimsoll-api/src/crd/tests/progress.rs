//! What a ReleaseProgress says.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::check;
use crate::config::ClusterVersionSpec;
use crate::progress::{
    BegunPlanRecord, CapabilitiesProgress, ClusterVersionRecord, CompletedJob, CompletedUpdate,
    Deletion, ImpliedCapability, InventoryPart, LevelDuration, LevelProgress, OperatorsProgress,
    Orphan, OverrideProgress, OverrideState, ReleaseProgressStatus, StepProgress, UpdateProgress,
};
use crate::{ObjectKey, RELEASE_PROGRESS};

fn update_progress() -> UpdateProgress {
    let time = Timestamp::from_second(1).ok();
    let level = LevelProgress {
        level: Some(10),
        done: 3,
        total: 4,
        started_time: time,
        completion_time: time,
    };
    UpdateProgress {
        unchanged: 4,
        from: "0.9.0".into(),
        to: "1.0.0".into(),
        image: "example.com/release".into(),
        started_time: Timestamp::from_second(1).unwrap(),
        completion_time: time,
        paused_before: Some(20),
        levels: vec![level],
    }
}

fn step() -> StepProgress {
    StepProgress {
        file: "0000_10_pier_01.yaml".into(),
        document: 1,
        object: "deployment \"pier/pier\"".into(),
        state: "Waiting".into(),
        reason: "WorkloadProgressing".into(),
        message: "0 of 1 available".into(),
        attempts: 2,
        since: Timestamp::from_second(1).unwrap(),
    }
}

fn deletion(key: &ObjectKey, now: Timestamp) -> Deletion {
    Deletion {
        terminating_since: Some(now),
        finalizers: vec!["example.com/hold".into()],
        completed_at: Some(now),
        message: "held".into(),
        ..Deletion::new(key, "0000_10_pier_02.yaml", "1.0.0", now)
    }
}

fn capabilities() -> CapabilitiesProgress {
    CapabilitiesProgress {
        implied: vec![ImpliedCapability {
            capability: "Lights".into(),
            version: "1.1.0".into(),
            file: "0000_10_pier_01.yaml".into(),
            document: 1,
            object: "configmap \"pier/lamps\"".into(),
            manifests: 2,
            since: Timestamp::from_second(1).unwrap(),
        }],
        withheld: vec!["Lights".into()],
        reason: "CapabilityNameRefused".into(),
        message: "Lights is in force all the same".into(),
    }
}

#[test]
fn everything_a_release_progress_says_is_declared() {
    let key = ObjectKey {
        group: "apps".into(),
        kind: "Deployment".into(),
        namespace: "pier".into(),
        name: "crane".into(),
    };
    let now = Timestamp::from_second(2).unwrap();
    let status = ReleaseProgressStatus {
        version: "1.0.0".into(),
        image: "example.com/release".into(),
        plan_hash: "abc=".into(),
        mode: "Updating".into(),
        feature_set: Some("Default".into()),
        total: 60,
        done: 19,
        done_steps: "0-17,20".to_owned(),
        steps: vec![step()],
        update: Some(update_progress()),
        completed_updates: vec![CompletedUpdate {
            from: "0.9.0".into(),
            to: "1.0.0".into(),
            started_time: Timestamp::from_second(1).unwrap(),
            seconds: 60,
            levels: vec![LevelDuration { level: Some(10), steps: 4, seconds: 60 }],
        }],
        operators: Some(OperatorsProgress {
            total: 4,
            updated: 1,
            updating: vec!["pier".into()],
            missing: vec!["buoy".into()],
            unavailable: vec!["crane".into()],
            degraded: vec!["lock".into()],
        }),
        inventory: InventoryPart::of(&BTreeSet::from([&key])),
        completed_jobs: vec![CompletedJob { object: key.clone(), manifest_hash: "abc=".into() }],
        deletions: vec![deletion(&key, now)],
        orphans: vec![Orphan::new(&key, "v1", "0000_10_pier_03.yaml", "0.9.0", "gone", now)],
        capabilities: capabilities(),
        cluster_version: Some(ClusterVersionRecord {
            spec: ClusterVersionSpec { cluster_id: "a".into(), ..Default::default() },
            ..Default::default()
        }),
        overrides: vec![OverrideProgress {
            object: key,
            state: OverrideState::InForce,
            reason: "being repaired".into(),
            expires: Some(now),
        }],
        begun_plan: Some(BegunPlanRecord {
            image: "quay.io/example@sha256:5".to_owned(),
            plan_hash: "h".to_owned(),
            done_steps: "0-3".to_owned(),
        }),
    };
    check(RELEASE_PROGRESS, "status", &status);
    check(RELEASE_PROGRESS, "status", &ReleaseProgressStatus::default());
}
