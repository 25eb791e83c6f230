//! Statuses of workloads that have rolled out, for kinds that only nodes bring to life.

use jiff::Timestamp;
use serde_json::{Value, json};

/// Kinds of workloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum WorkloadKind {
    /// `apps/v1` Deployment.
    Deployment,
    /// `apps/v1` DaemonSet.
    DaemonSet,
    /// `apps/v1` StatefulSet.
    StatefulSet,
    /// `batch/v1` Job.
    Job,
    /// `apiregistration.k8s.io/v1` APIService that a service answers.
    ApiService,
}

impl WorkloadKind {
    /// All of them.
    pub(super) const ALL: [Self; 5] =
        [Self::Deployment, Self::DaemonSet, Self::StatefulSet, Self::Job, Self::ApiService];

    /// API group, version and kind.
    pub(super) fn names(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Deployment => ("apps", "v1", "Deployment"),
            Self::DaemonSet => ("apps", "v1", "DaemonSet"),
            Self::StatefulSet => ("apps", "v1", "StatefulSet"),
            Self::Job => ("batch", "v1", "Job"),
            Self::ApiService => ("apiregistration.k8s.io", "v1", "APIService"),
        }
    }

    /// The kind of a manifest, if it is one of ours.
    pub(super) fn of(group: &str, kind: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|workload| {
            let (its_group, _, its_kind) = workload.names();
            its_group == group && its_kind == kind
        })
    }
}

/// Returns whether the workload's status says that its present generation has rolled out.
pub(super) fn rolled_out(kind: WorkloadKind, object: &Value) -> bool {
    let status = &object["status"];
    let wanted = match kind {
        WorkloadKind::Job => return has_condition(status, "Complete", "True"),
        WorkloadKind::ApiService => return has_condition(status, "Available", "True"),
        WorkloadKind::Deployment => {
            let done = has_condition(status, "Available", "True")
                && has_condition(status, "Progressing", "True");
            if !done || number(&status["replicas"]) != replicas(object) {
                return false;
            }
            &["updatedReplicas", "readyReplicas", "availableReplicas"][..]
        }
        WorkloadKind::StatefulSet => {
            &["replicas", "updatedReplicas", "readyReplicas", "availableReplicas"]
        }
        WorkloadKind::DaemonSet => {
            if number(&status["desiredNumberScheduled"]) != NODES {
                return false;
            }
            &["currentNumberScheduled", "updatedNumberScheduled", "numberAvailable", "numberReady"]
        }
    };
    let count = if kind == WorkloadKind::DaemonSet { NODES } else { replicas(object) };
    status["observedGeneration"] == object["metadata"]["generation"]
        && wanted.iter().all(|field| number(&status[*field]) == count)
}

/// The status to write, as a merge patch, for a workload that has not rolled out; `None` if there
/// is nothing to do.
pub(super) fn simulated_status(
    kind: WorkloadKind,
    object: &Value,
    now: Timestamp,
) -> Option<Value> {
    if rolled_out(kind, object) || !object["metadata"]["deletionTimestamp"].is_null() {
        return None;
    }
    let generation = &object["metadata"]["generation"];
    let count = replicas(object);
    let status = match kind {
        WorkloadKind::Deployment => json!({
            "observedGeneration": generation,
            "replicas": count,
            "updatedReplicas": count,
            "readyReplicas": count,
            "availableReplicas": count,
            "unavailableReplicas": null,
            "conditions": deployment_conditions(now),
        }),
        WorkloadKind::DaemonSet => json!({
            "observedGeneration": generation,
            "desiredNumberScheduled": NODES,
            "currentNumberScheduled": NODES,
            "updatedNumberScheduled": NODES,
            "numberAvailable": NODES,
            "numberReady": NODES,
            "numberMisscheduled": 0,
            "numberUnavailable": null,
        }),
        WorkloadKind::StatefulSet => {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let revision = format!("{name}-{generation}");
            json!({
                "observedGeneration": generation,
                "replicas": count,
                "updatedReplicas": count,
                "currentReplicas": count,
                "readyReplicas": count,
                "availableReplicas": count,
                "currentRevision": revision,
                "updateRevision": revision,
            })
        }
        WorkloadKind::Job => {
            if object["spec"]["suspend"] == true {
                return None;
            }
            let completions = object["spec"]["completions"].as_i64().unwrap_or(1);
            json!({
                "startTime": now,
                "completionTime": now,
                "active": null,
                "ready": 0,
                "terminating": 0,
                "succeeded": completions,
                "uncountedTerminatedPods": {},
                "conditions": job_conditions(now),
            })
        }
        WorkloadKind::ApiService => json!({ "conditions": [available_condition(now)] }),
    };
    Some(json!({ "status": status }))
}

/// Nodes that a DaemonSet believes in: one, as in the smallest cluster.
const NODES: i64 = 1;

fn deployment_conditions(now: Timestamp) -> Value {
    json!([
        {
            "type": "Available",
            "status": "True",
            "reason": "MinimumReplicasAvailable",
            "message": "All replicas are available (simulated)",
            "lastTransitionTime": now,
            "lastUpdateTime": now,
        },
        {
            "type": "Progressing",
            "status": "True",
            "reason": "NewReplicaSetAvailable",
            "message": "The rollout is complete (simulated)",
            "lastTransitionTime": now,
            "lastUpdateTime": now,
        },
    ])
}

/// The condition of an APIService that is answered.
fn available_condition(now: Timestamp) -> Value {
    json!({
        "type": "Available",
        "status": "True",
        "reason": "Passed",
        "message": "All checks passed (simulated)",
        "lastTransitionTime": now,
    })
}

fn job_conditions(now: Timestamp) -> Value {
    let condition = |type_: &str| {
        json!({
            "type": type_,
            "status": "True",
            "reason": "CompletionsReached",
            "message": "All completions are reached (simulated)",
            "lastTransitionTime": now,
            "lastProbeTime": now,
        })
    };
    json!([condition("SuccessCriteriaMet"), condition("Complete")])
}

fn has_condition(status: &Value, type_: &str, value: &str) -> bool {
    let conditions = status["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    conditions.iter().any(|condition| condition["type"] == type_ && condition["status"] == value)
}

fn replicas(object: &Value) -> i64 {
    object["spec"]["replicas"].as_i64().unwrap_or(1)
}

/// A count in a status, where zero is left out.
fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or(0)
}

#[cfg(test)]
mod tests;
