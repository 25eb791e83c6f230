//! Cells of what the control plane is set up with: certificates, drivers, flow control, devices.
use serde_json::Value;

use super::{NONE, UNSET, has_condition, items, joined, or_none, string};

pub(in crate::http::table) fn kernel_version(object: &Value) -> Value {
    let info = &object["status"]["nodeInfo"];
    let version = Some(string(&info["kernelVersion"])).filter(|version| !version.is_empty());
    let version = version.unwrap_or(super::UNKNOWN);
    match string(&info["architecture"]) {
        "" => version.into(),
        architecture => format!("{version} ({architecture})").into(),
    }
}

pub(in crate::http::table) fn flow_schema_dangles(object: &Value) -> Value {
    items(&object["status"]["conditions"])
        .iter()
        .find(|condition| condition["type"] == "Dangling")
        .map_or_else(|| "?".into(), |condition| condition["status"].clone())
}

fn limited<'a>(object: &'a Value, field: &str) -> &'a Value {
    match field {
        "nominalConcurrencyShares" => &object["spec"]["limited"][field],
        _ => &object["spec"]["limited"]["limitResponse"]["queuing"][field],
    }
}

fn limit(object: &Value, field: &str) -> Value {
    let value = limited(object, field);
    if value.is_null() { NONE.into() } else { value.clone() }
}

pub(in crate::http::table) fn level_shares(object: &Value) -> Value {
    limit(object, "nominalConcurrencyShares")
}

pub(in crate::http::table) fn level_queues(object: &Value) -> Value {
    limit(object, "queues")
}

pub(in crate::http::table) fn level_hand_size(object: &Value) -> Value {
    limit(object, "handSize")
}

pub(in crate::http::table) fn level_queue_length(object: &Value) -> Value {
    limit(object, "queueLengthLimit")
}

fn flag(value: &Value, default: bool) -> Value {
    value.as_bool().unwrap_or(default).into()
}

pub(in crate::http::table) fn driver_attaches(object: &Value) -> Value {
    flag(&object["spec"]["attachRequired"], true)
}

pub(in crate::http::table) fn driver_wants_pod(object: &Value) -> Value {
    flag(&object["spec"]["podInfoOnMount"], false)
}

pub(in crate::http::table) fn driver_tells_capacity(object: &Value) -> Value {
    flag(&object["spec"]["storageCapacity"], false)
}

pub(in crate::http::table) fn driver_republishes(object: &Value) -> Value {
    flag(&object["spec"]["requiresRepublish"], false)
}

pub(in crate::http::table) fn driver_tokens(object: &Value) -> Value {
    match object["spec"]["tokenRequests"].as_array() {
        Some(requests) => {
            joined(requests.iter().map(|request| string(&request["audience"]))).into()
        }
        None => UNSET.into(),
    }
}

pub(in crate::http::table) fn driver_modes(object: &Value) -> Value {
    or_none(joined(items(&object["spec"]["volumeLifecycleModes"]).iter().map(string)))
}

pub(in crate::http::table) fn node_drivers(object: &Value) -> Value {
    items(&object["spec"]["drivers"]).len().into()
}

pub(in crate::http::table) fn attachment_is_attached(object: &Value) -> Value {
    flag(&object["status"]["attached"], false)
}

pub(in crate::http::table) fn request_duration(object: &Value) -> Value {
    match object["spec"]["expirationSeconds"].as_i64() {
        Some(seconds) => crate::http::table::age::format_seconds(seconds).into(),
        None => NONE.into(),
    }
}

pub(in crate::http::table) fn request_condition(object: &Value) -> Value {
    let has = |condition_type: &str| {
        let conditions = items(&object["status"]["conditions"]);
        conditions.iter().any(|condition| condition["type"] == condition_type)
    };
    let mut state = match (has("Denied"), has("Approved")) {
        (true, _) => "Denied",
        (false, true) => "Approved",
        (false, false) => "Pending",
    }
    .to_owned();
    if has("Failed") {
        state.push_str(",Failed");
    }
    if !string(&object["status"]["certificate"]).is_empty() {
        state.push_str(",Issued");
    }
    state.into()
}

pub(in crate::http::table) fn address_parent(object: &Value) -> Value {
    let parent = &object["spec"]["parentRef"];
    if parent.is_null() {
        return NONE.into();
    }
    let mut text = string(&parent["resource"]).to_lowercase();
    for (separator, field) in [(".", "group"), ("/", "namespace"), ("/", "name")] {
        let part = string(&parent[field]);
        if !part.is_empty() {
            text.push_str(separator);
            text.push_str(part);
        }
    }
    text.into()
}

pub(in crate::http::table) fn networks(object: &Value) -> Value {
    joined(items(&object["spec"]["cidrs"]).iter().map(string)).into()
}

pub(in crate::http::table) fn claim_state(object: &Value) -> Value {
    let is_deleted = !object["metadata"]["deletionTimestamp"].is_null();
    let status = &object["status"];
    let mut states = Vec::new();
    if is_deleted {
        states.push("deleted");
    }
    if status["allocation"].is_null() {
        if !is_deleted {
            states.push("pending");
        }
    } else {
        states.push("allocated");
        if !items(&status["reservedFor"]).is_empty() {
            states.push("reserved");
        }
    }
    joined(states).into()
}

pub(in crate::http::table) fn migrated_resource(object: &Value) -> Value {
    let resource = &object["spec"]["resource"];
    match string(&resource["group"]) {
        "" => string(&resource["resource"]).into(),
        group => format!("{}.{group}", string(&resource["resource"])).into(),
    }
}

pub(in crate::http::table) fn migration_state(object: &Value) -> Value {
    let state = ["Running", "Failed", "Succeeded"]
        .into_iter()
        .rfind(|condition_type| has_condition(object, condition_type));
    state.unwrap_or("Unknown").into()
}

pub(in crate::http::table) fn mutation_count(object: &Value) -> Value {
    items(&object["spec"]["mutations"]).len().into()
}
