//! Cells of autoscalers.
use serde_json::Value;

use super::{Context, UNKNOWN, items, shown, string};

/// Upstream: k8s.io/kubernetes/pkg/printers/internalversion/printers.go: formatHPAMetrics
pub(in crate::http::table) fn autoscaler_targets(spec: &Value, _: &Context) -> Value {
    if let Some(percentage) = spec["targetCPUUtilizationPercentage"].as_i64() {
        return format!("cpu: {UNKNOWN}/{percentage}%").into();
    }
    let targets: Vec<String> = items(&spec["metrics"])
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
    targets.join(", ").into()
}
