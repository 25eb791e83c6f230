//! Gates by condition: what an object must report before the release, or the rollout of an Operator, goes on.
//!
//! The annotation [`READY_WHEN`] of a manifest is a rule in CEL, or [`CONVENTIONS`]. A rule has one variable,
//! `self`, the object as the server has it, and must have the type bool.

use std::fmt;

use k8s_cel::{Bindings, Budget, EXPRESSION_COST_LIMIT, Environment, Program, Type, Value};
use plimsoll_api::ObjectKey;
use serde_json::Value as Json;

/// Annotation: when the object is ready.
pub const READY_WHEN: &str = "plimsoll.io/ready-when";
/// The value of the annotation for what the conditions of the object say by convention.
pub const CONVENTIONS: &str = "conditions";

/// The maximum length of a rule, in bytes.
const RULE_BYTES_MAX: usize = 4096;

/// Kinds whose readiness does not depend on the annotation, by group.
const UNGATED_KINDS: [(&str, &str); 3] = [
    ("", "Namespace"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
    ("config.openshift.io", "ClusterOperator"),
];

/// Whether an object of this kind can have a gate by condition.
pub fn may_be_gated(key: &ObjectKey) -> bool {
    !UNGATED_KINDS.contains(&(key.group.as_str(), key.kind.as_str()))
}

/// Checks the value of the annotation.
///
/// # Errors
/// Why it is neither a rule nor [`CONVENTIONS`], as a clause whose subject is the value.
pub fn check(value: &str) -> Result<(), String> {
    if value == CONVENTIONS { Ok(()) } else { compile(value).map(|_| ()) }
}

/// Returns what keeps a gate from meaning something for an object, as a clause whose subject is the gate; `None`
/// if nothing does.
pub fn problem(key: &ObjectKey, value: &str) -> Option<String> {
    if !may_be_gated(key) {
        return Some(format!("has no effect on objects of kind {}", key.group_kind()));
    }
    let error = check(value).err()?;
    Some(format!(
        "is neither `{CONVENTIONS}` nor a rule such as `self.status.phase == 'Ready'`: {error}"
    ))
}

/// Evaluates a rule on an object.
///
/// # Errors
/// Why it has no value: it is no rule, or the object lacks a field that it reads.
pub fn holds(rule: &str, object: &Json) -> Result<bool, String> {
    let program = compile(rule)?;
    let bindings = Bindings::new().with("self", Value::from_json(object));
    let outcome = program.evaluate(&bindings, &mut Budget::new(EXPRESSION_COST_LIMIT));
    let value = outcome.map_err(|error| error.to_string())?;
    Ok(matches!(value, Value::Bool(true)))
}

fn compile(rule: &str) -> Result<Program, String> {
    if rule.len() > RULE_BYTES_MAX {
        return Err(format!("it has {} bytes, at most {RULE_BYTES_MAX}", rule.len()));
    }
    let environment = Environment::for_stored_expressions().with_variable("self", Type::Dyn);
    let program = environment.compile(rule).map_err(|errors| one_line(&errors))?;
    if *program.result_type() != Type::Bool {
        return Err(format!("its type is {}, not bool", program.result_type()));
    }
    Ok(program)
}

/// Returns the errors of the compiler without the picture of the place.
fn one_line(errors: &impl fmt::Display) -> String {
    let text = errors.to_string();
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with('|'));
    lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    //! Rules, and the objects that they hold for.

    use serde_json::json;

    use super::*;

    #[test]
    fn a_rule_holds_for_an_object_or_not() {
        let object =
            json!({ "spec": { "size": 3 }, "status": { "phase": "Running", "members": 3 } });
        let check = |rule: &str, expected: bool| {
            assert_eq!(holds(rule, &object), Ok(expected), "{rule}");
        };
        check("self.status.phase == 'Running'", true);
        check("self.status.phase == 'Failed'", false);
        check("self.status.members == self.spec.size", true);
        check("has(self.status.conditions)", false);
        assert!(holds("self.status.conditions.size() > 0", &object).is_err());
    }

    #[test]
    fn what_is_no_rule_is_refused() {
        assert_eq!(check(CONVENTIONS), Ok(()));
        assert_eq!(check("self.status.ready == true"), Ok(()));
        for value in ["", "self.status.phase = 'Running'", "object.status.ready == true", "'yes'"] {
            assert!(check(value).is_err(), "{value}");
        }
        assert_eq!(check("1 + 1"), Err("its type is int, not bool".to_owned()));
    }
}
