//! Cells of jobs.
use jiff::Timestamp;
use serde_json::Value;

use super::{NONE, has_condition, items, number};
use crate::http::table::age;

pub(in crate::http::table) fn job_status(object: &Value) -> Value {
    for (condition, shown) in [
        ("Complete", "Complete"),
        ("Failed", "Failed"),
        ("Suspended", "Suspended"),
        ("FailureTarget", "FailureTarget"),
        ("SuccessCriteriaMet", "SuccessCriteriaMet"),
    ] {
        if has_condition(object, condition) {
            return shown.into();
        }
    }
    if object["metadata"].get("deletionTimestamp").is_some() {
        return "Terminating".into();
    }
    "Running".into()
}

pub(in crate::http::table) fn job_completions(object: &Value) -> Value {
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

pub(in crate::http::table) fn job_duration(object: &Value, now: Timestamp) -> Value {
    let time = |field: &str| -> Option<Timestamp> {
        object["status"][field].as_str().and_then(|text| text.parse().ok())
    };
    match (time("startTime"), time("completionTime")) {
        (Some(start), Some(end)) => age::format_seconds(end.as_second() - start.as_second()).into(),
        (Some(start), None) => age::format_seconds(now.as_second() - start.as_second()).into(),
        (None, _) => "".into(),
    }
}

pub(in crate::http::table) fn cron_suspended(object: &Value) -> Value {
    // Shown the way Go prints what a pointer points to.
    if object["spec"]["suspend"] == true { "True" } else { "False" }.into()
}

pub(in crate::http::table) fn cron_active(object: &Value) -> Value {
    items(&object["status"]["active"]).len().into()
}

pub(in crate::http::table) fn cron_last(object: &Value, now: Timestamp) -> Value {
    match object["status"]["lastScheduleTime"].as_str() {
        Some(time) => age::since(Some(time), now).into(),
        None => NONE.into(),
    }
}
