//! Cells of certificates, drivers, addresses, devices and migrations.
use serde_json::Value;

use super::{Context, UNSET, has_condition, items, joined, string};

/// Upstream: k8s.io/kubernetes/pkg/printers/internalversion/printers.go: printCSIDriver
pub(in crate::http::table) fn token_requests(requests: &Value, _: &Context) -> Value {
    match requests.as_array() {
        Some(requests) => {
            joined(requests.iter().map(|request| string(&request["audience"]))).into()
        }
        None => UNSET.into(),
    }
}

/// Upstream: k8s.io/kubernetes/pkg/printers/internalversion/printers.go: extractCSRStatus
pub(in crate::http::table) fn request_condition(status: &Value, _: &Context) -> Value {
    let has = |condition_type: &str| {
        let conditions = items(&status["conditions"]);
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
    if !string(&status["certificate"]).is_empty() {
        state.push_str(",Issued");
    }
    state.into()
}

/// Upstream: k8s.io/kubernetes/pkg/printers/internalversion/printers.go: printIPAddress
pub(in crate::http::table) fn address_parent(parent: &Value, _: &Context) -> Value {
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

/// Upstream: k8s.io/kubernetes/pkg/printers/internalversion/printers.go: resourceClaimState
pub(in crate::http::table) fn claim_state(object: &Value, _: &Context) -> Value {
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

/// Upstream: k8s.io/kubernetes/pkg/printers/internalversion/printers.go: printStorageVersionMigration
pub(in crate::http::table) fn migrated_resource(resource: &Value, _: &Context) -> Value {
    match string(&resource["group"]) {
        "" => string(&resource["resource"]).into(),
        group => format!("{}.{group}", string(&resource["resource"])).into(),
    }
}

/// Upstream: k8s.io/kubernetes/pkg/printers/internalversion/printers.go: printStorageVersionMigration
pub(in crate::http::table) fn migration_state(conditions: &Value, _: &Context) -> Value {
    let state = ["Running", "Failed", "Succeeded"]
        .into_iter()
        .rfind(|condition_type| has_condition(conditions, condition_type));
    state.unwrap_or("Unknown").into()
}
