//! Cells of pods and workloads.
use serde_json::Value;

use super::{Context, items, label_selector, labels, number, string};

pub(in crate::http::table) fn selector(selector: &Value, _: &Context) -> Value {
    if selector.get("matchLabels").is_some() || selector.get("matchExpressions").is_some() {
        label_selector(selector)
    } else {
        labels(selector)
    }
    .into()
}

/// Upstream: k8s.io/kubernetes/pkg/printers/internalversion/printers.go: printDeployment
pub(in crate::http::table) fn ready_of_desired(object: &Value, _: &Context) -> Value {
    let desired = object["spec"]["replicas"].as_i64().unwrap_or(1);
    format!("{}/{desired}", number(&object["status"]["readyReplicas"])).into()
}

/// Upstream: k8s.io/kubernetes/pkg/printers/internalversion/printers.go: printControllerRevision
pub(in crate::http::table) fn controller(owners: &Value, _: &Context) -> Value {
    items(owners).iter().find(|owner| owner["controller"] == true).map_or_else(
        || Value::Null,
        |owner| {
            let kind = string(&owner["kind"]).to_lowercase();
            let group = string(&owner["apiVersion"])
                .split_once('/')
                .map_or(String::new(), |(group, _)| format!(".{group}"));
            format!("{kind}{group}/{}", string(&owner["name"])).into()
        },
    )
}

/// Upstream: k8s.io/kubernetes/pkg/printers/internalversion/printers.go: printPod
pub(in crate::http::table) fn pod_ready(object: &Value, _: &Context) -> Value {
    let ready = items(&object["status"]["containerStatuses"])
        .iter()
        .filter(|status| status["ready"] == true)
        .count();
    format!("{ready}/{}", items(&object["spec"]["containers"]).len()).into()
}

/// Upstream: k8s.io/kubernetes/pkg/printers/internalversion/printers.go: printPod
pub(in crate::http::table) fn pod_status(object: &Value, _: &Context) -> Value {
    if object["metadata"].get("deletionTimestamp").is_some() {
        return "Terminating".into();
    }
    let waiting = items(&object["status"]["containerStatuses"]).iter().rev().find_map(|status| {
        ["waiting", "terminated"]
            .iter()
            .find_map(|state| status["state"][*state]["reason"].as_str())
    });
    waiting
        .or_else(|| object["status"]["reason"].as_str())
        .or_else(|| object["status"]["phase"].as_str())
        .unwrap_or_default()
        .into()
}

/// Upstream: k8s.io/kubernetes/pkg/printers/internalversion/printers.go: printPod
pub(in crate::http::table) fn pod_restarts(statuses: &Value, _: &Context) -> Value {
    items(statuses)
        .iter()
        .map(|status| number(&status["restartCount"]))
        .sum::<i64>()
        .to_string()
        .into()
}
