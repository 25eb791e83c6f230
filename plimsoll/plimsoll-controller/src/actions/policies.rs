//! The ActionPolicies of a cluster: whether each can do what it says.

use jiff::Timestamp;
use plimsoll_api::Reason;
use plimsoll_api::olm::policy::ActionPolicySpec;
use plimsoll_operators::actions::attributes::NamedClass;
use plimsoll_operators::actions::policy::NamedPolicy;
use plimsoll_operators::actions::policy::problems::{problems, unknown_classes};
use serde::Deserialize as _;
use serde_json::Value;

use super::acceptance::{Acceptance, ChangedConditions};

/// The states of all policies, by name.
#[derive(Debug, Default)]
pub(super) struct PolicyStates {
    states: Acceptance,
}

impl PolicyStates {
    /// Records the current state of a policy, or that it is gone, and updates the readable policies, which are in the
    /// order of their names. Returns whether a spec has changed.
    pub(super) fn observe(
        &mut self,
        name: &str,
        object: Option<&Value>,
        policies: &mut Vec<NamedPolicy>,
        classes: &[NamedClass],
    ) -> bool {
        if object.is_some_and(|it| self.states.is_old(name, it)) {
            return false;
        }
        let before = policies.iter().position(|it| it.name == name).map(|at| policies.remove(at));
        let read = object.map(|it| ActionPolicySpec::deserialize(&it["spec"]));
        let verdict = match read {
            Some(Ok(spec)) => {
                let policy = NamedPolicy { name: name.to_owned(), spec };
                let verdict = verdict(&policy, classes);
                policies.insert(policies.partition_point(|it| it.name.as_str() < name), policy);
                verdict
            }
            Some(Err(error)) => Err(format!("spec: {error}")),
            None => Ok(()),
        };
        self.states.observe(name, object, verdict);
        before.as_ref() != policies.iter().find(|it| it.name == name)
    }

    /// Judges policies anew after classes have changed.
    pub(super) fn classes_changed(&mut self, policies: &[NamedPolicy], classes: &[NamedClass]) {
        for policy in policies {
            self.states.judge(&policy.name, verdict(policy, classes));
        }
    }

    /// Returns the conditions that are not what they should be.
    pub(super) fn changed(&self, now: Timestamp) -> Vec<ChangedConditions> {
        self.states.changed("it can do what it says", Reason::InvalidActionPolicy, now)
    }
}

/// Returns why a policy cannot do what it says.
fn verdict(policy: &NamedPolicy, classes: &[NamedClass]) -> Result<(), String> {
    let mut found = problems(&policy.spec);
    found.extend(unknown_classes(&policy.spec, classes));
    if found.is_empty() { Ok(()) } else { Err(found.join("; ")) }
}

#[cfg(test)]
mod tests {
    use plimsoll_operators::actions::files::built_in_classes;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_policy_that_cannot_do_what_it_says_is_not_accepted() {
        let (mut states, mut policies) = (PolicyStates::default(), Vec::new());
        let classes = built_in_classes();
        let now = "2026-01-02T03:00:00Z".parse().unwrap();
        let policy = |class: &str, conditions: &Value| {
            json!({
                "metadata": { "name": "dev", "resourceVersion": "5", "generation": 2 },
                "spec": { "subjects": [{ "kind": "Group", "name": "dev" }], "classes": [class], "enforce": {} },
                "status": { "conditions": conditions },
            })
        };
        let mut observe = |states: &mut PolicyStates, class: &str, conditions: &Value| {
            states.observe("dev", Some(&policy(class, conditions)), &mut policies, &classes)
        };
        assert!(observe(&mut states, "operator-instal", &json!([])));
        let changed = states.changed(now);
        let written = json!(changed[0].conditions);
        assert_eq!(written[0]["reason"], "InvalidActionPolicy");
        let message = written[0]["message"].as_str().unwrap();
        assert!(message.starts_with("spec.classes[0]: there is no ActionClass `operator-instal`"));
        // The status is no change of the policy.
        assert!(!observe(&mut states, "operator-instal", &written));
        assert!(states.changed(now).is_empty());
        assert!(observe(&mut states, "operator-install", &written));
        assert_eq!(json!(states.changed(now)[0].conditions)[0]["status"], "True");
        states.classes_changed(&policies, &[]);
        assert_eq!(json!(states.changed(now)[0].conditions)[0]["status"], "False");
        assert!(states.observe("dev", None, &mut policies, &[]));
        assert!(policies.is_empty() && states.changed(now).is_empty());
    }
}
