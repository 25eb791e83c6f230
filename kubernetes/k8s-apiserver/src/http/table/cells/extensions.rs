//! Cells of what extends the API.
use serde_json::Value;

use super::{Context, items, string};

/// Upstream: k8s.io/apiextensions-apiserver/pkg/registry/customresourcedefinition/tableconvertor/tableconvertor.go: ConvertToTable
pub(in crate::http::table) fn definition_versions(versions: &Value, _: &Context) -> Value {
    items(versions)
        .iter()
        .map(|version| {
            let name = string(&version["name"]);
            if version["storage"] == true { format!("{name}(storage)") } else { name.to_owned() }
        })
        .collect::<Vec<_>>()
        .join(",")
        .into()
}

/// Upstream: k8s.io/kube-aggregator/pkg/registry/apiservice/etcd/etcd.go: ConvertToTable
pub(in crate::http::table) fn api_service_available(conditions: &Value, _: &Context) -> Value {
    items(conditions).iter().find(|condition| condition["type"] == "Available").map_or_else(
        || "Unknown".into(),
        |condition| match string(&condition["status"]) {
            "True" => "True".into(),
            status => format!("{status} ({})", string(&condition["reason"])).into(),
        },
    )
}

/// Upstream: k8s.io/kubernetes/pkg/printers/internalversion/printers.go: printValidatingAdmissionPolicy
pub(in crate::http::table) fn policy_parameter_kind(kind: &Value, _: &Context) -> Value {
    format!("{}/{}", string(&kind["apiVersion"]), string(&kind["kind"])).into()
}

/// Upstream: k8s.io/kubernetes/pkg/printers/internalversion/printers.go: printValidatingAdmissionPolicyBinding
pub(in crate::http::table) fn policy_parameter(parameter: &Value, _: &Context) -> Value {
    match string(&parameter["namespace"]) {
        "" => string(&parameter["name"]).into(),
        namespace => format!("{namespace}/{}", string(&parameter["name"])).into(),
    }
}
