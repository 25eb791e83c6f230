//! Cells of nodes, volumes and quotas.
use serde_json::Value;

use super::{Context, UNKNOWN, items, joined, shown, string};

/// Upstream: k8s.io/kubernetes/pkg/printers/internalversion/printers.go: printNode
pub(in crate::http::table) fn node_status(object: &Value, _: &Context) -> Value {
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

/// Upstream: k8s.io/kubernetes/pkg/printers/internalversion/printers.go: findNodeRoles
pub(in crate::http::table) fn node_roles(labels: &Value, _: &Context) -> Value {
    let roles: Vec<&str> = labels
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| {
            key.strip_prefix("node-role.kubernetes.io/")
                .or_else(|| (key == "kubernetes.io/role").then(|| string(value)))
        })
        .filter(|role| !role.is_empty())
        .collect();
    roles.join(",").into()
}

/// Upstream: k8s.io/kubernetes/pkg/printers/internalversion/printers.go: getNodeInternalIP
pub(in crate::http::table) fn node_address(addresses: &Value, ctx: &Context) -> Value {
    items(addresses)
        .iter()
        .find(|address| address["type"] == ctx.argument)
        .map_or(Value::Null, |address| address["address"].clone())
}

/// Upstream: k8s.io/kubernetes/pkg/apis/core/helper/helpers.go: GetAccessModesAsString
pub(in crate::http::table) fn access_modes(modes: &Value, _: &Context) -> Value {
    joined(items(modes).iter().map(|mode| match string(mode) {
        "ReadWriteOnce" => "RWO",
        "ReadOnlyMany" => "ROX",
        "ReadWriteMany" => "RWX",
        "ReadWriteOncePod" => "RWOP",
        other => other,
    }))
    .into()
}

/// Upstream: k8s.io/kubernetes/pkg/printers/internalversion/printers.go: printResourceQuota
pub(in crate::http::table) fn quota(status: &Value, ctx: &Context) -> Value {
    status["hard"]
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(name, _)| name.starts_with("limits.") == (ctx.argument == "limits"))
        .map(|(name, hard)| {
            let used = status["used"].get(name).map_or("0".to_owned(), shown);
            format!("{name}: {used}/{}", shown(hard))
        })
        .collect::<Vec<_>>()
        .join(", ")
        .into()
}

/// Upstream: k8s.io/kubernetes/pkg/printers/internalversion/printers.go: printNode
pub(in crate::http::table) fn kernel_version(info: &Value, _: &Context) -> Value {
    let version = Some(string(&info["kernelVersion"])).filter(|version| !version.is_empty());
    let version = version.unwrap_or(UNKNOWN);
    match string(&info["architecture"]) {
        "" => version.into(),
        architecture => format!("{version} ({architecture})").into(),
    }
}
