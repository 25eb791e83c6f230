//! The status that is simulated counts as rolled out, and is simulated once.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{WorkloadKind, rolled_out, simulated_status};

fn object(spec: &Value) -> Value {
    json!({ "metadata": { "name": "crane", "generation": 3 }, "spec": spec, "status": {} })
}

/// Plays a workload and returns its status.
fn check(kind: WorkloadKind, spec: &Value) -> Value {
    let mut object = object(spec);
    assert!(
        !rolled_out(kind, &object),
        "{kind:?}: rolled out before anything was simulated_status"
    );
    let patch = simulated_status(kind, &object, Timestamp::UNIX_EPOCH).unwrap();
    object["status"] = patch["status"].clone();
    assert!(rolled_out(kind, &object), "{kind:?}: not rolled out by {patch}");
    assert_eq!(
        simulated_status(kind, &object, Timestamp::UNIX_EPOCH),
        None,
        "{kind:?}: simulated_status twice"
    );
    if !matches!(kind, WorkloadKind::Job | WorkloadKind::ApiService) {
        object["metadata"]["generation"] = json!(4);
        assert!(!rolled_out(kind, &object), "{kind:?}: an older generation counts");
    }
    patch["status"].clone()
}

#[test]
fn each_kind_rolls_out_once_for_each_generation() {
    let cases = [
        (WorkloadKind::Deployment, json!({ "replicas": 3 }), "availableReplicas", 3),
        (WorkloadKind::Deployment, json!({ "replicas": 0 }), "availableReplicas", 0),
        (WorkloadKind::Deployment, json!({}), "updatedReplicas", 1),
        (WorkloadKind::StatefulSet, json!({ "replicas": 2 }), "readyReplicas", 2),
        (WorkloadKind::DaemonSet, json!({}), "numberAvailable", 1),
        (WorkloadKind::Job, json!({ "completions": 2 }), "succeeded", 2),
    ];
    for (kind, spec, field, count) in cases {
        assert_eq!(check(kind, &spec)[field], count, "{kind:?}");
    }
}

#[test]
fn an_api_service_becomes_available() {
    let status = check(WorkloadKind::ApiService, &json!({ "service": { "name": "crane" } }));
    assert_eq!(status["conditions"][0]["type"], "Available");
}

#[test]
fn what_is_ending_or_suspended_is_left_alone() {
    let mut ending = object(&json!({}));
    ending["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    assert_eq!(simulated_status(WorkloadKind::Deployment, &ending, Timestamp::UNIX_EPOCH), None);
    let suspended = object(&json!({ "suspend": true }));
    assert_eq!(simulated_status(WorkloadKind::Job, &suspended, Timestamp::UNIX_EPOCH), None);
}
