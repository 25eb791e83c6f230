//! Events: `events.k8s.io` requires more fields than the core group.
use serde_json::Value;

use super::check::{invalid, is_empty, required, text};
use crate::FieldError;

const OTHER_NAMESPACE: &str = "does not match event.namespace";

/// What is wrong with an event of either API; `live` is the event before an update.
///
/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/events.go: ValidateEventCreate
pub(super) fn check(
    group: &str,
    live: Option<&Value>,
    event: &Value,
    errors: &mut Vec<FieldError>,
) {
    let is_new = group == "events.k8s.io";
    let subject = if is_new { &event["regarding"] } else { &event["involvedObject"] };
    let has_time = !is_empty(&event["eventTime"]);
    namespace(event, subject, has_time, errors);
    if has_time {
        let controller = if is_new { "reportingController" } else { "reportingComponent" };
        for field in [controller, "reportingInstance", "action", "reason"] {
            if text(event, field).is_empty() {
                errors.push(required(field, ""));
            }
        }
    }
    if !is_new || live.is_some() {
        return;
    }
    if !has_time {
        errors.push(required("eventTime", ""));
    }
    let given = text(event, "type");
    if !matches!(given, "Normal" | "Warning") {
        errors.push(invalid("type", &"".into(), &format!("has invalid value: {given}")));
    }
    for (field, name) in [
        ("deprecatedFirstTimestamp", "firstTimestamp"),
        ("deprecatedLastTimestamp", "lastTimestamp"),
    ] {
        if !is_empty(&event[field]) {
            errors.push(invalid(name, &"".into(), "needs to be unset"));
        }
    }
    if event["deprecatedCount"].as_i64().unwrap_or_default() != 0 {
        errors.push(invalid("count", &"".into(), "needs to be unset"));
    }
}

/// An event is in the namespace of its object; events of cluster-scoped objects are in `default`.
///
/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/events.go: legacyValidateEvent
fn namespace(event: &Value, subject: &Value, has_time: bool, errors: &mut Vec<FieldError>) {
    let own = text(&event["metadata"], "namespace");
    let other = text(subject, "namespace");
    let fits = match (other, has_time) {
        ("", true) => matches!(own, "default" | "kube-system"),
        ("", false) => matches!(own, "" | "default"),
        (_, true) => true,
        (_, false) => own == other,
    };
    if !fits {
        errors.push(invalid("involvedObject.namespace", &other.into(), OTHER_NAMESPACE));
    }
}
