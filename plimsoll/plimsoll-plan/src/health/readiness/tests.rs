//! Workloads at every stage of their rollout.

use plimsoll_api::{Effect, Reason, Verdict};
use serde_json::{Value, json};

use super::workload;

/// Judges an object of a kind with a spec and a status; it is `ns/x` at generation 2.
#[expect(clippy::needless_pass_by_value, reason = "json! makes values")]
fn judge(kind: &str, spec: Value, status: Value) -> Verdict {
    let group = match kind {
        "Job" => "batch",
        "CustomResourceDefinition" => "apiextensions.k8s.io",
        "Certificate" => "cert-manager.io",
        "PersistentVolumeClaim" => "",
        "APIService" => "apiregistration.k8s.io",
        _ => "apps",
    };
    let live = json!({
        "metadata": {"name": "x", "namespace": "ns", "generation": 2},
        "spec": spec,
        "status": status,
    });
    workload(group, kind, &live).expect("the kind is awaited")
}

fn check(kind: &str, spec: Value, status: Value, expected: (Effect, Reason, &str)) {
    let (effect, reason, message) = expected;
    let expected =
        Verdict::Waiting { effect, reason, message: format!("{kind} \"ns/x\" {message}") };
    assert_eq!(judge(kind, spec, status), expected);
}

fn condition(type_: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({"type": type_, "status": status, "reason": reason, "message": message})
}

#[test]
fn a_deployment_is_awaited_until_it_is_rolled_out() {
    let waits = |status, message| {
        let expected = (Effect::None, Reason::WorkloadProgressing, message);
        check("Deployment", json!({"replicas": 3}), status, expected);
    };
    waits(json!({}), "has generation 2, of which its controller has seen 0");
    waits(
        json!({"observedGeneration": 1, "updatedReplicas": 3, "availableReplicas": 3}),
        "has generation 2, of which its controller has seen 1",
    );
    waits(
        json!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 1}),
        "has 1 of 3 replicas updated",
    );
    waits(
        json!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "availableReplicas": 2}),
        "has 2 of 3 replicas available",
    );
    waits(
        json!({"observedGeneration": 2, "replicas": 4, "updatedReplicas": 3, "availableReplicas": 3}),
        "still runs 1 outdated replicas",
    );
    let rolled_out = json!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "availableReplicas": 3});
    assert_eq!(judge("Deployment", json!({"replicas": 3}), rolled_out), Verdict::Ready);
    let scaled_down = json!({"observedGeneration": 2});
    assert_eq!(judge("Deployment", json!({"replicas": 0}), scaled_down), Verdict::Ready);
}

#[test]
fn a_deployment_that_is_stuck_says_why() {
    let fails = |conditions: Value, reason, message| {
        let status = json!({"observedGeneration": 2, "conditions": conditions});
        check("Deployment", json!({}), status, (Effect::Fail, reason, message));
    };
    fails(
        json!([condition("ReplicaFailure", "True", "FailedCreate", "quota exceeded")]),
        Reason::WorkloadNotProgressing,
        "cannot create its replicas: FailedCreate: quota exceeded",
    );
    fails(
        json!([
            condition("Available", "False", "MinimumReplicasUnavailable", "no minimum"),
            condition("Progressing", "False", "ProgressDeadlineExceeded", "timed out"),
        ]),
        Reason::WorkloadNotAvailable,
        "is not available (no minimum) and makes no progress: ProgressDeadlineExceeded: timed out",
    );
    fails(
        json!([
            condition("Available", "True", "", ""),
            condition("Progressing", "False", "ProgressDeadlineExceeded", ""),
        ]),
        Reason::WorkloadNotProgressing,
        "makes no progress: ProgressDeadlineExceeded",
    );
}

#[test]
fn an_unavailable_deployment_that_progresses_is_only_waited_for() {
    let status = json!({"observedGeneration": 2, "replicas": 1, "updatedReplicas": 1, "conditions": [
        condition("Available", "False", "MinimumReplicasUnavailable", ""),
        condition("Progressing", "True", "ReplicaSetUpdated", ""),
    ]});
    let expected = (Effect::None, Reason::WorkloadProgressing, "has 0 of 1 replicas available");
    check("Deployment", json!({}), status, expected);
}

#[test]
fn a_daemon_set_is_awaited_on_every_node() {
    let waits = |status, message| {
        let expected = (Effect::None, Reason::WorkloadProgressing, message);
        check("DaemonSet", json!({}), status, expected);
    };
    waits(
        json!({"observedGeneration": 2, "desiredNumberScheduled": 5, "updatedNumberScheduled": 4}),
        "has 4 of 5 pods updated",
    );
    waits(
        json!({"observedGeneration": 2, "desiredNumberScheduled": 5, "updatedNumberScheduled": 5,
               "numberAvailable": 3}),
        "has 3 of 5 pods available",
    );
    // No node for it: nothing to wait for.
    assert_eq!(judge("DaemonSet", json!({}), json!({"observedGeneration": 2})), Verdict::Ready);
    let on_delete = json!({"updateStrategy": {"type": "OnDelete"}});
    let outdated =
        json!({"observedGeneration": 2, "desiredNumberScheduled": 2, "numberAvailable": 2});
    assert_eq!(judge("DaemonSet", on_delete, outdated), Verdict::Ready);
}

#[test]
fn a_stateful_set_counts_what_its_strategy_updates() {
    let status = |updated: i64| json!({"observedGeneration": 2, "updatedReplicas": updated, "availableReplicas": 3});
    let expected = (Effect::None, Reason::WorkloadProgressing, "has 1 of 3 replicas updated");
    check("StatefulSet", json!({"replicas": 3}), status(1), expected);
    let partition = json!({"replicas": 3, "updateStrategy": {"rollingUpdate": {"partition": 2}}});
    assert_eq!(judge("StatefulSet", partition, status(1)), Verdict::Ready);
}

#[test]
fn a_job_is_awaited_until_it_succeeded() {
    let runs = |status, message| {
        check("Job", json!({}), status, (Effect::None, Reason::JobRunning, message));
    };
    runs(json!({}), "has not started a pod yet");
    runs(json!({"active": 1}), "is running: 0 of 1 pods succeeded");
    runs(json!({"active": 1, "failed": 2}), "is running: 0 of 1 pods succeeded, 2 failed");
    // A pod failed and the next one is not there yet: the Job controller has the last word.
    runs(json!({"failed": 1}), "is running: 0 of 1 pods succeeded, 1 failed");
    let failed =
        json!({"conditions": [condition("Failed", "True", "DeadlineExceeded", "too slow")]});
    let expected = (Effect::Fail, Reason::JobFailed, "failed: DeadlineExceeded: too slow");
    check("Job", json!({}), failed, expected);
    let complete = json!({"conditions": [condition("Complete", "True", "", "")]});
    assert_eq!(judge("Job", json!({}), complete), Verdict::Ready);
}

#[test]
fn a_definition_is_awaited_until_it_is_established() {
    let kind = "CustomResourceDefinition";
    let reason = Reason::CustomResourceDefinitionNotEstablished;
    check(kind, json!({}), json!({}), (Effect::None, reason, "is not established yet"));
    let conflict =
        json!({"conditions": [condition("NamesAccepted", "False", "ListKindConflict", "taken")]});
    let expected = (Effect::Fail, reason, "cannot be served: ListKindConflict: taken");
    check(kind, json!({}), conflict, expected);
    let established = json!({"conditions": [condition("Established", "True", "", "")]});
    assert_eq!(judge(kind, json!({}), established), Verdict::Ready);
}

#[test]
fn an_object_that_is_being_deleted_is_not_ready() {
    for (group, kind) in [("apps", "Deployment"), ("apps", "DaemonSet"), ("batch", "Job")] {
        let live = json!({"metadata": {"name": "x", "deletionTimestamp": "2026-01-01T00:00:00Z"}});
        assert_eq!(
            workload(group, kind, &live),
            Some(Verdict::Waiting {
                effect: Effect::None,
                reason: Reason::ObjectTerminating,
                message: format!("{kind} \"x\" is being deleted"),
            })
        );
    }
    assert_eq!(workload("", "ConfigMap", &json!({})), None);
}

#[test]
fn a_claim_is_awaited_unless_it_waits_for_a_pod() {
    let kind = "PersistentVolumeClaim";
    let pending = || json!({"phase": "Pending"});
    let waits = |spec| {
        let message = "is not bound to a volume yet";
        check(kind, spec, pending(), (Effect::None, Reason::WorkloadProgressing, message));
    };
    waits(json!({"storageClassName": ""}));
    waits(json!({"storageClassName": "fast", "volumeName": "v"}));
    // So does one of a storage class with `WaitForFirstConsumer`.
    assert_eq!(judge(kind, json!({"storageClassName": "fast"}), pending()), Verdict::Ready);
    let provisioned = json!({
        "metadata": {"name": "x", "annotations": {
            "volume.kubernetes.io/storage-provisioner": "csi.example.com",
        }},
        "spec": {"storageClassName": "fast"},
        "status": pending(),
    });
    assert_eq!(
        workload("", kind, &provisioned),
        Some(Verdict::Waiting {
            effect: Effect::None,
            reason: Reason::WorkloadProgressing,
            message: "PersistentVolumeClaim \"x\" is not bound to a volume yet".to_owned(),
        })
    );
    assert_eq!(judge(kind, json!({"volumeName": "v"}), json!({"phase": "Bound"})), Verdict::Ready);
    let lost = (Effect::Fail, Reason::WorkloadNotAvailable, "has lost its volume");
    check(kind, json!({}), json!({"phase": "Lost"}), lost);
}

#[test]
fn a_certificate_is_awaited_until_it_is_issued() {
    let kind = "Certificate";
    let waits = |status, message| {
        check(kind, json!({}), status, (Effect::None, Reason::WorkloadProgressing, message));
    };
    waits(json!({}), "has not been issued yet");
    let failed = condition("Ready", "False", "DoesNotExist", "no Secret");
    waits(json!({"conditions": [failed]}), "is not ready: DoesNotExist: no Secret");
    let mut ready = condition("Ready", "True", "Ready", "");
    assert_eq!(judge(kind, json!({}), json!({"conditions": [ready]})), Verdict::Ready);
    ready["observedGeneration"] = json!(1);
    let message = "has generation 2, of which its controller has seen 1";
    waits(json!({"conditions": [ready]}), message);
}

#[test]
fn an_api_service_is_awaited_until_it_is_available() {
    let kind = "APIService";
    let waits = |status, message| {
        check(kind, json!({}), status, (Effect::None, Reason::WorkloadProgressing, message));
    };
    waits(json!({}), "has not been tried yet");
    let missing = condition("Available", "False", "MissingEndpoints", "no endpoints");
    waits(json!({"conditions": [missing]}), "is not available: MissingEndpoints: no endpoints");
    let available = json!({"conditions": [condition("Available", "True", "Passed", "")]});
    assert_eq!(judge(kind, json!({}), available), Verdict::Ready);
}
