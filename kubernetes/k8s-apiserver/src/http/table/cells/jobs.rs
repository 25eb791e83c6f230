//! Cells of jobs.
use jiff::Timestamp;
use serde_json::Value;

use super::{Context, has_condition, number};
use crate::http::table::age;

/// Upstream: k8s.io/kubernetes/pkg/printers/internalversion/printers.go: printJob
pub(in crate::http::table) fn job_status(object: &Value, _: &Context) -> Value {
    for (condition, shown) in [
        ("Complete", "Complete"),
        ("Failed", "Failed"),
        ("Suspended", "Suspended"),
        ("FailureTarget", "FailureTarget"),
        ("SuccessCriteriaMet", "SuccessCriteriaMet"),
    ] {
        if has_condition(&object["status"]["conditions"], condition) {
            return shown.into();
        }
    }
    if object["metadata"].get("deletionTimestamp").is_some() {
        return "Terminating".into();
    }
    "Running".into()
}

/// Upstream: k8s.io/kubernetes/pkg/printers/internalversion/printers.go: printJob
pub(in crate::http::table) fn job_completions(object: &Value, _: &Context) -> Value {
    let succeeded = number(&object["status"]["succeeded"]);
    match object["spec"]["completions"].as_i64() {
        Some(wanted) => format!("{succeeded}/{wanted}"),
        None => match number(&object["spec"]["parallelism"]) {
            parallel if parallel > 1 => format!("{succeeded}/1 of {parallel}"),
            _ => format!("{succeeded}/1"),
        },
    }
    .into()
}

/// Upstream: k8s.io/kubernetes/pkg/printers/internalversion/printers.go: printJob
pub(in crate::http::table) fn job_duration(status: &Value, ctx: &Context) -> Value {
    let time = |field: &str| -> Option<Timestamp> {
        status[field].as_str().and_then(|text| text.parse().ok())
    };
    match (time("startTime"), time("completionTime")) {
        (Some(start), Some(end)) => age::format_seconds(end.as_second() - start.as_second()).into(),
        (Some(start), None) => age::format_seconds(ctx.now.as_second() - start.as_second()).into(),
        (None, _) => "".into(),
    }
}
