//! The ActionClasses of a cluster: whether each can be served.

use jiff::Timestamp;
use plimsoll_api::Reason;
use plimsoll_api::olm::action::ActionClassSpec;
use plimsoll_operators::actions::attributes::NamedClass;
use plimsoll_operators::actions::classes::acceptance;
use serde::Deserialize as _;
use serde_json::Value;

use super::acceptance::{Acceptance, ChangedConditions};

/// The states of all classes, by name.
#[derive(Debug, Default)]
pub(super) struct ClassStates {
    states: Acceptance,
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
        if object.is_some_and(|it| self.states.is_old(name, it)) {
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
        self.states.observe(name, object, error.map_or(Ok(()), Err));
        // Two classes that have one name depend on each other.
        for class in &*classes {
            self.states.judge(&class.name, acceptance(class, classes));
        }
        is_changed
    }

    /// Returns why a class cannot be served; `None` if it can.
    pub(super) fn refusal(&self, name: &str) -> Option<&str> {
        self.states.refusal(name)
    }

    /// Returns the conditions that are not what they should be.
    pub(super) fn changed(&self, now: Timestamp) -> Vec<ChangedConditions> {
        self.states.changed("it can be served", Reason::InvalidActionClass, now)
    }
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
            let status = json!({ "conditions": changed[0].conditions });
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
