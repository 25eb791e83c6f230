//! Reads conditions and versions out of live objects, whatever they look like.
//!
//! Operators write their own status, through schemas of their own: a field that is missing or has
//! another type is treated as not reported, never as an error.

use jiff::Timestamp;
use serde_json::Value;

/// A condition as an object reports it. The status stays text: it is for the object to misspell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportedCondition<'a> {
    /// CamelCase type.
    pub type_: &'a str,
    /// `True`, `False`, `Unknown`; empty if missing.
    pub status: &'a str,
    /// CamelCase reason; empty if missing.
    pub reason: &'a str,
    /// Text for people; empty if missing.
    pub message: &'a str,
}

/// A version as an operator reports it or a manifest demands it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportedVersion<'a> {
    /// `operator`, or an operand's name.
    pub name: &'a str,
    /// Its version.
    pub version: &'a str,
}

/// The condition of a type in `status.conditions`; the first one, if it is there several times.
pub fn condition<'a>(object: &'a Value, type_: &str) -> Option<ReportedCondition<'a>> {
    conditions(object).find(|condition| condition.type_ == type_)
}

/// Since when a condition has its status; `None` if the object does not say or it is no time.
pub fn condition_since(object: &Value, type_: &str) -> Option<Timestamp> {
    let conditions = list(&object["status"]["conditions"]);
    let condition = conditions.iter().find(|condition| text(&condition["type"]) == type_)?;
    text(&condition["lastTransitionTime"]).parse().ok()
}

/// All conditions in `status.conditions`.
pub fn conditions(object: &Value) -> impl Iterator<Item = ReportedCondition<'_>> {
    list(&object["status"]["conditions"]).iter().map(|condition| ReportedCondition {
        type_: text(&condition["type"]),
        status: text(&condition["status"]),
        reason: text(&condition["reason"]),
        message: text(&condition["message"]),
    })
}

/// Whether a condition has a status; a missing condition has none.
pub fn has_condition(object: &Value, type_: &str, status: &str) -> bool {
    condition(object, type_).is_some_and(|condition| condition.status == status)
}

/// The versions in `status.versions` of a ClusterOperator or its manifest.
pub fn versions(object: &Value) -> impl Iterator<Item = ReportedVersion<'_>> {
    list(&object["status"]["versions"]).iter().map(|entry| ReportedVersion {
        name: text(&entry["name"]),
        version: text(&entry["version"]),
    })
}

/// The version that an operator reports under the name `operator`.
pub fn operator_version(cluster_operator: &Value) -> Option<&str> {
    versions(cluster_operator).find(|entry| entry.name == "operator").map(|entry| entry.version)
}

/// The object's name; empty if it has none.
pub fn name(object: &Value) -> &str {
    text(&object["metadata"]["name"])
}

/// `namespace/name`, or just the name.
pub fn namespaced_name(object: &Value) -> String {
    let namespace = text(&object["metadata"]["namespace"]);
    if namespace.is_empty() {
        name(object).to_owned()
    } else {
        format!("{namespace}/{}", name(object))
    }
}

/// Whether the deletion of the object was requested.
pub fn is_terminating(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

/// A number at a path of fields; `None` if it is not there or not a number.
pub fn number(object: &Value, path: &[&str]) -> Option<i64> {
    path.iter().try_fold(object, |value, field| value.get(field))?.as_i64()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests;
