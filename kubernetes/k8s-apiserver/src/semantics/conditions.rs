//! The `conditions` of a status.
use serde_json::Value;

/// Sets a condition by its type; the time of the transition only changes with the status.
///
/// Upstream: k8s.io/apimachinery/pkg/api/meta/conditions.go: SetStatusCondition
pub(crate) fn set_condition(
    conditions: &mut Value,
    condition_type: &str,
    status: &str,
    reason: &str,
    message: &str,
    now: &str,
) {
    if !conditions.is_array() {
        *conditions = Value::Array(Vec::new());
    }
    let Some(list) = conditions.as_array_mut() else {
        return;
    };
    let mut condition = serde_json::json!({
        "type": condition_type,
        "status": status,
        "lastTransitionTime": now,
        "reason": reason,
        "message": message,
    });
    match list.iter_mut().find(|found| found["type"] == condition_type) {
        Some(found) => {
            if found["status"] == status {
                condition["lastTransitionTime"] = found["lastTransitionTime"].clone();
            }
            *found = condition;
        }
        None => list.push(condition),
    }
}
