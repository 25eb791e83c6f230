//! Parsing of the objects that configure the add-on layer, as watches show them.

use std::fmt;
use std::time::Duration;

use plimsoll_api::olm::{CatalogSpec, OperatorRevisionSpec, OperatorSpec, RollbackPolicy};
use plimsoll_api::{ConditionStatus, Reason, duration};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::ready_when::{InvalidRule, problems};

/// The reason that a spec cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct InvalidSpec {
    /// The path of the field, such as `spec.deletion.crds`.
    field: String,
    /// What is wrong with the field, as a clause.
    cause: String,
}

impl fmt::Display for InvalidSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.cause)
    }
}

impl InvalidSpec {
    /// Returns the status, reason and message of the condition [`INVALID`](crate::conditions::INVALID).
    /// `otherwise` says what becomes of the object if no spec of it is known; `None` if one is, which stays in
    /// force.
    pub(super) fn reported(&self, otherwise: Option<&str>) -> (ConditionStatus, Reason, String) {
        let effect = otherwise.unwrap_or("what was requested before stays in force");
        (ConditionStatus::True, Reason::InvalidSpec, format!("{self}; {effect}"))
    }
}

/// The progress deadline of an Operator with `rollback: Automatic` that does not specify one: that of
/// Deployments.
const ROLLBACK_DEADLINE: &str = "10m";

/// Returns the progress deadline of an Operator; empty for no deadline.
pub(super) fn progress_deadline(spec: &OperatorSpec) -> &str {
    match (spec.progress_deadline.as_str(), spec.rollback) {
        ("", RollbackPolicy::Automatic) => ROLLBACK_DEADLINE,
        (deadline, RollbackPolicy::Automatic | RollbackPolicy::Manual) => deadline,
    }
}

/// Reads the spec of an Operator and its progress deadline, `None` for no deadline.
///
/// # Errors
///
/// The first field that cannot be read.
pub(super) fn operator(object: &Value) -> Result<(OperatorSpec, Option<Duration>), InvalidSpec> {
    let spec: OperatorSpec = spec(object)?;
    if let Some(InvalidRule { field, cause }) = problems(&spec.ready_when).into_iter().next() {
        return Err(InvalidSpec { field, cause });
    }
    let deadline = optional_duration("spec.progressDeadline", progress_deadline(&spec))?;
    Ok((spec, deadline))
}

/// Reads the spec of a Catalog and its poll interval, `None` if it is not set.
///
/// # Errors
///
/// The first field that cannot be read.
pub(super) fn catalog(object: &Value) -> Result<(CatalogSpec, Option<Duration>), InvalidSpec> {
    let spec: CatalogSpec = spec(object)?;
    let interval = optional_duration("spec.pollInterval", &spec.poll_interval)?;
    Ok((spec, interval))
}

/// Reads the spec of an OperatorRevision.
///
/// # Errors
///
/// The first field that cannot be read.
pub(super) fn revision(object: &Value) -> Result<OperatorRevisionSpec, InvalidSpec> {
    read(&object["spec"])
}

fn spec<T: DeserializeOwned + Default>(object: &Value) -> Result<T, InvalidSpec> {
    match object.get("spec").filter(|it| !it.is_null()) {
        Some(spec) => read(spec),
        None => Ok(T::default()),
    }
}

fn read<T: DeserializeOwned>(spec: &Value) -> Result<T, InvalidSpec> {
    serde_path_to_error::deserialize(spec).map_err(|error| {
        let path = error.path().to_string();
        let field = if path == "." { "spec".to_owned() } else { format!("spec.{path}") };
        InvalidSpec { field, cause: error.into_inner().to_string() }
    })
}

fn optional_duration(field: &str, text: &str) -> Result<Option<Duration>, InvalidSpec> {
    if text.is_empty() {
        return Ok(None);
    }
    let invalid = |cause| InvalidSpec { field: field.to_owned(), cause };
    duration::parse(text).map(Some).map_err(invalid)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use plimsoll_plan::reconciler::Uptime;
    use serde_json::json;

    use super::super::{Moment, OperatorReconciler};
    use super::*;

    #[test]
    fn what_cannot_be_read_is_named_with_its_field() {
        let check = |object: &Value, expected: &str| {
            let found = operator(object).map(|_| String::new());
            assert_eq!(found.unwrap_or_else(|error| error.to_string()), expected, "{object}");
        };
        check(&json!({}), "");
        check(&json!({ "spec": null }), "");
        check(&json!({ "spec": { "version": "^1", "unknown": 1 } }), "");
        check(
            &json!({ "spec": { "version": 1 } }),
            "spec.version: invalid type: integer `1`, expected a string",
        );
        check(
            &json!({ "spec": { "deletion": { "crds": "Keep" } } }),
            "spec.deletion.crds: unknown variant `Keep`, expected `Delete` or `Orphan`",
        );
        check(
            &json!({ "spec": { "progressDeadline": "soon" } }),
            "spec.progressDeadline: `soon` is not a duration; use units, such as 90s, 40m, 1h30m or \
             2d",
        );
        check(
            &json!({ "spec": { "readyWhen": [{ "kind": "ConfigMap", "rule": "'yes'" }] } }),
            "spec.readyWhen[0].rule: \"'yes'\" is neither `conditions` nor a rule such as \
             `self.status.phase == 'Ready'`: its type is string, not bool",
        );
        check(
            &json!({ "spec": 5 }),
            "spec: invalid type: integer `5`, expected struct OperatorSpec",
        );
        let catalog = catalog(&json!({ "spec": { "pollInterval": "1x" } })).unwrap_err();
        assert_eq!(catalog.field, "spec.pollInterval");
        let (_, deadline) = operator(&json!({ "spec": { "progressDeadline": "90s" } })).unwrap();
        assert_eq!(deadline, Some(Duration::from_secs(90)));
        let (_, deadline) = operator(&json!({ "spec": { "rollback": "Automatic" } })).unwrap();
        assert_eq!(deadline, Some(Duration::from_mins(10)));
        assert_eq!(operator(&json!({ "spec": { "rollback": "Manual" } })).unwrap().1, None);
    }

    #[test]
    fn the_last_spec_that_could_be_read_stays_in_force() {
        let uptime = Uptime::from_start(Duration::ZERO);
        let moment = Moment { time: Timestamp::UNIX_EPOCH, steady: Timestamp::UNIX_EPOCH, uptime };
        let mut reconciler = OperatorReconciler::default();
        let mut show = |name: &str, spec: Value| {
            let object = json!({ "metadata": { "uid": name }, "spec": spec });
            reconciler.operator_changed(name, Some(&object), moment);
            let spec = &reconciler.requested[name].spec;
            let invalid = reconciler.operators[name].object.invalid.as_ref();
            (spec.version.clone(), spec.paused, invalid.map(|it| it.field.clone()))
        };
        assert_eq!(show("a", json!({ "version": "^1" })), ("^1".to_owned(), false, None));
        let field = |name: &str| Some(format!("spec.{name}"));
        let kept = ("^1".to_owned(), false, field("paused"));
        assert_eq!(show("a", json!({ "version": "^2", "paused": "no" })), kept);
        assert_eq!(show("a", json!({ "version": "^2" })), ("^2".to_owned(), false, None));
        // An Operator without a previous spec is paused.
        assert_eq!(show("b", json!({ "version": 2 })), (String::new(), true, field("version")));
    }
}
