//! Cells of nodes, volumes and quotas.
use serde_json::Value;

use super::{NONE, items, joined, or_none, shown, string};

pub(in crate::http::table) fn node_status(object: &Value) -> Value {
    let ready = items(&object["status"]["conditions"])
        .iter()
        .find(|condition| condition["type"] == "Ready");
    let mut text = match ready.map(|condition| string(&condition["status"])) {
        Some("True") => "Ready".to_owned(),
        Some(_) => "NotReady".to_owned(),
        None => "Unknown".to_owned(),
    };
    if object["spec"]["unschedulable"] == true {
        text.push_str(",SchedulingDisabled");
    }
    text.into()
}

pub(in crate::http::table) fn node_roles(object: &Value) -> Value {
    let roles: Vec<&str> = object["metadata"]["labels"]
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| {
            key.strip_prefix("node-role.kubernetes.io/")
                .or_else(|| (key == "kubernetes.io/role").then(|| string(value)))
        })
        .filter(|role| !role.is_empty())
        .collect();
    or_none(roles.join(","))
}

fn node_address(object: &Value, kind: &str) -> Value {
    items(&object["status"]["addresses"])
        .iter()
        .find(|address| address["type"] == kind)
        .map_or_else(|| NONE.into(), |address| address["address"].clone())
}

pub(in crate::http::table) fn node_internal_address(object: &Value) -> Value {
    node_address(object, "InternalIP")
}

pub(in crate::http::table) fn node_external_address(object: &Value) -> Value {
    node_address(object, "ExternalIP")
}

pub(in crate::http::table) fn access_modes(object: &Value) -> Value {
    joined(items(&object["spec"]["accessModes"]).iter().map(|mode| match string(mode) {
        "ReadWriteOnce" => "RWO",
        "ReadOnlyMany" => "ROX",
        "ReadWriteMany" => "RWX",
        "ReadWriteOncePod" => "RWOP",
        other => other,
    }))
    .into()
}

pub(in crate::http::table) fn volume_claim(object: &Value) -> Value {
    let claim = &object["spec"]["claimRef"];
    if claim.is_null() {
        return "".into();
    }
    format!("{}/{}", string(&claim["namespace"]), string(&claim["name"])).into()
}

pub(in crate::http::table) fn storage_expands(object: &Value) -> Value {
    (object["allowVolumeExpansion"] == true).into()
}

fn quota(object: &Value, limits: bool) -> Value {
    object["status"]["hard"]
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(name, _)| name.starts_with("limits.") == limits)
        .map(|(name, hard)| {
            let used = object["status"]["used"].get(name).map_or("0".to_owned(), shown);
            format!("{name}: {used}/{}", shown(hard))
        })
        .collect::<Vec<_>>()
        .join(", ")
        .into()
}

pub(in crate::http::table) fn quota_requests(object: &Value) -> Value {
    quota(object, false)
}

pub(in crate::http::table) fn quota_limits(object: &Value) -> Value {
    quota(object, true)
}
