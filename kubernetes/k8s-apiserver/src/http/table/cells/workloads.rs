//! Cells of pods and of what makes them.
use serde_json::Value;

use super::{NONE, items, joined, label_selector, labels, number, or_none, string};

fn fields_of(containers: &Value, field: &str) -> Value {
    joined(items(containers).iter().map(|container| string(&container[field]))).into()
}

pub(in crate::http::table) fn template_containers(object: &Value) -> Value {
    fields_of(&object["spec"]["template"]["spec"]["containers"], "name")
}

pub(in crate::http::table) fn template_images(object: &Value) -> Value {
    fields_of(&object["spec"]["template"]["spec"]["containers"], "image")
}

pub(in crate::http::table) fn pod_template_containers(object: &Value) -> Value {
    fields_of(&object["template"]["spec"]["containers"], "name")
}

pub(in crate::http::table) fn pod_template_images(object: &Value) -> Value {
    fields_of(&object["template"]["spec"]["containers"], "image")
}

pub(in crate::http::table) fn pod_template_labels(object: &Value) -> Value {
    or_none(labels(&object["template"]["metadata"]["labels"]))
}

pub(in crate::http::table) fn cron_containers(object: &Value) -> Value {
    fields_of(&object["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"], "name")
}

pub(in crate::http::table) fn cron_images(object: &Value) -> Value {
    fields_of(&object["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"], "image")
}

pub(in crate::http::table) fn selector(object: &Value) -> Value {
    let selector = &object["spec"]["selector"];
    or_none(
        if selector.get("matchLabels").is_some() || selector.get("matchExpressions").is_some() {
            label_selector(selector)
        } else {
            labels(selector)
        },
    )
}

fn replicas(object: &Value) -> i64 {
    object["spec"]["replicas"].as_i64().unwrap_or(1)
}

pub(in crate::http::table) fn desired_replicas(object: &Value) -> Value {
    replicas(object).into()
}

pub(in crate::http::table) fn current_replicas(object: &Value) -> Value {
    number(&object["status"]["replicas"]).into()
}

pub(in crate::http::table) fn ready_replicas(object: &Value) -> Value {
    number(&object["status"]["readyReplicas"]).into()
}

pub(in crate::http::table) fn updated_replicas(object: &Value) -> Value {
    number(&object["status"]["updatedReplicas"]).into()
}

pub(in crate::http::table) fn available_replicas(object: &Value) -> Value {
    number(&object["status"]["availableReplicas"]).into()
}

pub(in crate::http::table) fn ready_of_desired(object: &Value) -> Value {
    format!("{}/{}", number(&object["status"]["readyReplicas"]), replicas(object)).into()
}

pub(in crate::http::table) fn daemons_desired(object: &Value) -> Value {
    number(&object["status"]["desiredNumberScheduled"]).into()
}

pub(in crate::http::table) fn daemons_current(object: &Value) -> Value {
    number(&object["status"]["currentNumberScheduled"]).into()
}

pub(in crate::http::table) fn daemons_ready(object: &Value) -> Value {
    number(&object["status"]["numberReady"]).into()
}

pub(in crate::http::table) fn daemons_updated(object: &Value) -> Value {
    number(&object["status"]["updatedNumberScheduled"]).into()
}

pub(in crate::http::table) fn daemons_available(object: &Value) -> Value {
    number(&object["status"]["numberAvailable"]).into()
}

pub(in crate::http::table) fn daemons_nodes(object: &Value) -> Value {
    or_none(labels(&object["spec"]["template"]["spec"]["nodeSelector"]))
}

pub(in crate::http::table) fn controller(object: &Value) -> Value {
    items(&object["metadata"]["ownerReferences"])
        .iter()
        .find(|owner| owner["controller"] == true)
        .map_or_else(
            || NONE.into(),
            |owner| {
                let kind = string(&owner["kind"]).to_lowercase();
                let group = string(&owner["apiVersion"])
                    .split_once('/')
                    .map_or(String::new(), |(group, _)| format!(".{group}"));
                format!("{kind}{group}/{}", string(&owner["name"])).into()
            },
        )
}

pub(in crate::http::table) fn pod_ready(object: &Value) -> Value {
    let ready = items(&object["status"]["containerStatuses"])
        .iter()
        .filter(|status| status["ready"] == true)
        .count();
    format!("{ready}/{}", items(&object["spec"]["containers"]).len()).into()
}

pub(in crate::http::table) fn pod_status(object: &Value) -> Value {
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

pub(in crate::http::table) fn pod_restarts(object: &Value) -> Value {
    items(&object["status"]["containerStatuses"])
        .iter()
        .map(|status| number(&status["restartCount"]))
        .sum::<i64>()
        .to_string()
        .into()
}
