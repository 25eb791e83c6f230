//! The state of the ActionClasses of a cluster: whether each can be served, and what its status
//! says.

use std::collections::BTreeMap;

use jiff::Timestamp;
use plimsoll_api::olm::action::{ActionClassSpec, ActionClassStatus};
use plimsoll_api::{ConditionStatus, Reason};
use plimsoll_operators::actions::attributes::NamedClass;
use plimsoll_operators::actions::classes::acceptance;
use plimsoll_operators::conditions::{ConditionDraft, condition};
use serde::Deserialize as _;
use serde_json::Value;

/// The type of the condition of an ActionClass that tells whether it can be served.
const ACCEPTED: &str = "Accepted";

/// The states of all classes, by name.
#[derive(Debug, Default)]
pub(super) struct ClassStates {
    states: BTreeMap<String, ClassState>,
}

/// The state of a class.
#[derive(Debug)]
struct ClassState {
    revision: String,
    generation: i64,
    status: ActionClassStatus,
    /// Why it cannot be served.
    verdict: Result<(), String>,
}

/// A status to write.
#[derive(Debug)]
pub(super) struct ChangedClass {
    pub(super) name: String,
    pub(super) revision: String,
    pub(super) status: ActionClassStatus,
}

impl ClassStates {
    /// Records the current state of a class, or that it is gone, and updates the readable classes,
    /// which are in the order of their names. Returns whether a spec has changed.
    pub(super) fn observe(
        &mut self,
        name: &str,
        object: Option<&Value>,
        classes: &mut Vec<NamedClass>,
    ) -> bool {
        if let (Some(known), Some(object)) = (self.states.get(name), object)
            && number(object) < known.revision.parse().unwrap_or_default()
        {
            // The watch shows later what was written.
            return false;
        }
        let before = classes.iter().position(|it| it.name == name).map(|at| classes.remove(at));
        let read = object.map(|it| ActionClassSpec::deserialize(&it["spec"]));
        let mut error = None;
        match read {
            Some(Ok(spec)) => {
                let at = classes.partition_point(|it| it.name.as_str() < name);
                classes.insert(at, NamedClass::new(name, spec));
            }
            Some(Err(reason)) => error = Some(format!("spec: {reason}")),
            None => {}
        }
        let is_changed = before.as_ref() != classes.iter().find(|it| it.name == name);
        match object {
            None => drop(self.states.remove(name)),
            Some(object) => {
                let metadata = &object["metadata"];
                let revision = metadata["resourceVersion"].as_str().unwrap_or_default();
                let state = ClassState {
                    revision: revision.to_owned(),
                    generation: metadata["generation"].as_i64().unwrap_or_default(),
                    status: ActionClassStatus::deserialize(&object["status"]).unwrap_or_default(),
                    verdict: error.map_or(Ok(()), Err),
                };
                self.states.insert(name.to_owned(), state);
            }
        }
        // Two classes that have one name depend on each other.
        for class in &*classes {
            if let Some(state) = self.states.get_mut(&class.name) {
                state.verdict = acceptance(class, classes);
            }
        }
        is_changed
    }

    /// Returns why a class cannot be served; `None` if it can.
    pub(super) fn refusal(&self, name: &str) -> Option<&str> {
        self.states.get(name)?.verdict.as_ref().err().map(String::as_str)
    }

    /// Returns the statuses that are not what they should be.
    pub(super) fn changed(&self, now: Timestamp) -> Vec<ChangedClass> {
        let changed = self.states.iter().filter_map(|(name, state)| {
            let before = &state.status.conditions;
            let (is_accepted, reason, message) = match &state.verdict {
                Ok(()) => (ConditionStatus::True, Reason::Accepted, "it can be served".to_owned()),
                Err(error) => (ConditionStatus::False, Reason::InvalidActionClass, error.clone()),
            };
            let draft = ConditionDraft { type_: ACCEPTED, status: is_accepted, reason, message };
            let accepted = condition(draft, before, state.generation, now);
            // The controller of the class may have conditions of its own.
            let mut conditions = before.clone();
            match conditions.iter_mut().find(|it| it.type_ == ACCEPTED) {
                Some(there) => *there = accepted,
                None => conditions.insert(0, accepted),
            }
            (conditions != *before).then(|| ChangedClass {
                name: name.clone(),
                revision: state.revision.clone(),
                status: ActionClassStatus { conditions },
            })
        });
        changed.collect()
    }
}

/// Returns the resourceVersion of an object as a number.
fn number(object: &Value) -> u64 {
    let revision = object["metadata"]["resourceVersion"].as_str();
    revision.and_then(|it| it.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn class(controller: &Value, status: &Value) -> Value {
        json!({
            "metadata": { "name": "backup", "resourceVersion": "5", "generation": 2 },
            "spec": { "controller": controller },
            "status": status,
        })
    }

    #[test]
    fn the_status_of_a_class_is_written_once_for_each_verdict() {
        let (mut states, mut classes) = (ClassStates::default(), Vec::new());
        let now = "2026-01-02T03:00:00Z".parse().unwrap();
        for (controller, is_accepted, reason) in [
            (json!("example.com/backups"), "True", "Accepted"),
            (json!(1), "False", "InvalidActionClass"),
            (json!("example.com/backups"), "True", "Accepted"),
        ] {
            let other = json!({
                "type": "Ready", "status": "True", "reason": "R", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            });
            let status = json!({ "conditions": [other] });
            let object = class(&controller, &status);
            assert!(states.observe("backup", Some(&object), &mut classes), "{controller}");
            let changed = states.changed(now);
            assert_eq!(changed.len(), 1, "{controller}");
            let status = json!(changed[0].status);
            let [accepted, ready] = [0, 1].map(|at| status["conditions"][at].clone());
            assert_eq!(accepted["status"], is_accepted, "{controller}");
            assert_eq!(accepted["reason"], reason, "{controller}");
            assert_eq!(accepted["observedGeneration"], 2, "{controller}");
            assert_eq!(ready["type"], "Ready", "{controller}");
            assert_eq!(states.refusal("backup").is_none(), is_accepted == "True");
            let written = class(&controller, &status);
            assert!(
                !states.observe("backup", Some(&written), &mut classes),
                "only the status is new"
            );
            assert!(states.changed(now).is_empty(), "{controller}");
        }
        assert!(states.observe("backup", None, &mut classes));
        assert!(classes.is_empty() && states.changed(now).is_empty());
    }
}
