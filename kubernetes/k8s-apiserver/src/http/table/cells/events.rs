//! Cells of events.
use jiff::Timestamp;
use serde_json::Value;

use super::{Context, number, string};
use crate::http::table::age;

fn time_since(times: &[&Value], now: Timestamp) -> Value {
    let time = times.iter().find_map(|time| time.as_str());
    age::since(time, now).into()
}

/// Upstream: k8s.io/kubernetes/pkg/printers/internalversion/printers.go: printEvent
pub(in crate::http::table) fn event_last_seen(object: &Value, ctx: &Context) -> Value {
    time_since(
        &[
            &object["series"]["lastObservedTime"],
            &object["lastTimestamp"],
            &object["deprecatedLastTimestamp"],
            &object["eventTime"],
        ],
        ctx.now,
    )
}

/// Upstream: k8s.io/kubernetes/pkg/printers/internalversion/printers.go: printEvent
pub(in crate::http::table) fn event_first_seen(object: &Value, ctx: &Context) -> Value {
    time_since(
        &[&object["firstTimestamp"], &object["deprecatedFirstTimestamp"], &object["eventTime"]],
        ctx.now,
    )
}

fn either<'a>(object: &'a Value, one: &str, other: &str) -> &'a Value {
    object.get(one).unwrap_or(&object[other])
}

/// Upstream: k8s.io/kubernetes/pkg/printers/internalversion/printers.go: printEvent
pub(in crate::http::table) fn event_object(reference: &Value, _: &Context) -> Value {
    format!("{}/{}", string(&reference["kind"]).to_lowercase(), string(&reference["name"])).into()
}

/// Upstream: k8s.io/kubernetes/pkg/printers/internalversion/printers.go: formatEventSource
pub(in crate::http::table) fn event_source(object: &Value, _: &Context) -> Value {
    let source = either(object, "source", "deprecatedSource");
    let reporting = |field: &str, newer: &str| string(either(object, field, newer));
    let first = |one: &'_ str, other: &'_ str| if one.is_empty() { other } else { one }.to_owned();
    let component =
        first(string(&source["component"]), reporting("reportingComponent", "reportingController"));
    let instance = first(string(&source["host"]), string(&object["reportingInstance"]));
    if instance.is_empty() { component } else { format!("{component}, {instance}") }.into()
}

/// Upstream: k8s.io/kubernetes/pkg/printers/internalversion/printers.go: printEvent
pub(in crate::http::table) fn event_count(object: &Value, _: &Context) -> Value {
    let series = number(&object["series"]["count"]);
    let count = number(either(object, "count", "deprecatedCount"));
    series.max(count).max(1).into()
}
