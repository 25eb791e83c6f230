//! Cells of scaling and scheduling.
use serde_json::Value;

use super::{UNKNOWN, UNSET, items, number, or_none, shown, string};

fn amount_or(value: &Value, missing: &str) -> Value {
    if value.is_null() { missing.into() } else { shown(value).into() }
}

pub(in crate::http::table) fn budget_min(object: &Value) -> Value {
    amount_or(&object["spec"]["minAvailable"], "N/A")
}

pub(in crate::http::table) fn budget_max(object: &Value) -> Value {
    amount_or(&object["spec"]["maxUnavailable"], "N/A")
}

pub(in crate::http::table) fn priority_is_default(object: &Value) -> Value {
    (object["globalDefault"] == true).into()
}

pub(in crate::http::table) fn autoscaler_reference(object: &Value) -> Value {
    let target = &object["spec"]["scaleTargetRef"];
    format!("{}/{}", string(&target["kind"]), string(&target["name"])).into()
}

pub(in crate::http::table) fn autoscaler_min(object: &Value) -> Value {
    amount_or(&object["spec"]["minReplicas"], UNSET)
}

pub(in crate::http::table) fn autoscaler_replicas(object: &Value) -> Value {
    number(&object["status"]["currentReplicas"]).into()
}

pub(in crate::http::table) fn autoscaler_targets(object: &Value) -> Value {
    if let Some(percentage) = object["spec"]["targetCPUUtilizationPercentage"].as_i64() {
        return format!("cpu: {UNKNOWN}/{percentage}%").into();
    }
    let targets: Vec<String> = items(&object["spec"]["metrics"])
        .iter()
        .map(|metric| {
            let resource = &metric["resource"];
            let target = &resource["target"];
            let wanted = target["averageUtilization"]
                .as_i64()
                .map_or_else(|| shown(&target["averageValue"]), |percent| format!("{percent}%"));
            format!("{}: {UNKNOWN}/{wanted}", string(&resource["name"]))
        })
        .collect();
    or_none(targets.join(", "))
}
