//! What is counted since the process started, for metrics.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_api::ConditionStatus;
use plimsoll_api::config::ClusterOperatorStatus;
use serde::Deserialize;
use serde_json::Value;

use crate::plan::Action;
use crate::progress::StepOutcome;

/// What happened since the process started.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Counters {
    /// Steps executed, by action (`apply`, `create`, `delete`, `migrate`) and result (`success`, `blocked`,
    /// `error`).
    pub executions: BTreeMap<(&'static str, &'static str), u64>,
    /// Executions that failed, by version of the release.
    pub payload_errors: BTreeMap<String, u64>,
    /// The statuses of the ClusterOperators as last seen, by name.
    pub operators: BTreeMap<String, ClusterOperatorStatus>,
    /// How often a condition of a ClusterOperator changed its status, appeared or disappeared, by
    /// name and type of the condition.
    pub transitions: BTreeMap<(String, String), u64>,
}

impl Counters {
    /// A step of release `version` was executed.
    pub fn executed(&mut self, action: &Action, version: &str, outcome: &StepOutcome) {
        let action = match action {
            Action::Delete => "delete",
            Action::Migrate => "migrate",
            Action::CreateOnly => "create",
            Action::Apply | Action::Gate | Action::Refuse(_) => "apply",
        };
        let result = match outcome {
            StepOutcome::Applied(_) | StepOutcome::Continued(_) | StepOutcome::Deleted(_) => {
                "success"
            }
            StepOutcome::Blocked(_) => "blocked",
            StepOutcome::Failed(_) => "error",
        };
        *self.executions.entry((action, result)).or_default() += 1;
        if let StepOutcome::Failed(_) = outcome {
            *self.payload_errors.entry(version.to_owned()).or_default() += 1;
        }
    }

    /// A ClusterOperator was seen; `None` when it is gone.
    pub fn operator(&mut self, name: &str, object: Option<&Value>) {
        let read = |object: &Value| -> ClusterOperatorStatus {
            ClusterOperatorStatus::deserialize(&object["status"]).unwrap_or_default()
        };
        let after = object.map(read);
        let is_known = self.operators.contains_key(name);
        let before = statuses(self.operators.get(name));
        let now = statuses(after.as_ref());
        let types: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
        for type_ in types {
            if is_known && before.get(type_) != now.get(type_) {
                *self.transitions.entry((name.to_owned(), type_.clone())).or_default() += 1;
            }
        }
        match after {
            Some(status) => self.operators.insert(name.to_owned(), status),
            None => self.operators.remove(name),
        };
    }
}

/// The steps of a plan by state, as the ClusterVersion reports them; each step is in one state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StepCounts {
    /// Applied, and ready where that is awaited.
    pub done: usize,
    /// Not begun, or being executed.
    pub pending: usize,
    /// Waiting for something that is expected to happen without intervention.
    pub waiting: usize,
    /// Failed, so that the ClusterVersion is failing; an administrator may have to intervene.
    pub failed: usize,
}

fn statuses(operator: Option<&ClusterOperatorStatus>) -> BTreeMap<String, ConditionStatus> {
    let conditions = operator.map(|status| status.conditions.as_slice()).unwrap_or_default();
    conditions.iter().map(|condition| (condition.type_.clone(), condition.status)).collect()
}

#[cfg(test)]
mod tests {
    //! What is counted once, and what not.

    use plimsoll_api::Reason;
    use serde_json::json;

    use super::*;
    use crate::progress::{Deleted, StepBlocker, Transience, TryError};

    /// Shows one ClusterOperator after the other, conditions as `TYPE=STATUS` words and `gone` for
    /// none, and compares the counted transitions of a type.
    #[track_caller]
    fn check(shown: &[&str], type_: &str, transitions: u64) {
        let mut counters = Counters::default();
        for conditions in shown {
            let conditions: Vec<Value> = conditions
                .split_whitespace()
                .filter_map(|condition| condition.split_once('='))
                .map(|(type_, status)| {
                    json!({ "type": type_, "status": status,
                            "lastTransitionTime": "2026-01-01T00:00:00Z" })
                })
                .collect();
            let object = json!({ "status": { "conditions": conditions } });
            let is_gone = shown.last() == Some(&"gone") && conditions.is_empty();
            counters.operator("dns", (!is_gone).then_some(&object));
        }
        let key = ("dns".to_owned(), type_.to_owned());
        let counted = counters.transitions.get(&key).copied().unwrap_or_default();
        assert_eq!(counted, transitions, "{shown:?}");
    }

    #[test]
    fn a_condition_that_changes_appears_or_disappears_counts_as_a_transition() {
        check(&["Available=True"], "Available", 0);
        check(&["Available=True", "Available=True"], "Available", 0);
        check(&["Available=True", "Available=False"], "Available", 1);
        check(&["Available=True", "Available=False", "Available=True"], "Available", 2);
        check(&["Available=True", "Available=True Degraded=True"], "Degraded", 1);
        check(&["Available=True Degraded=True", "Available=True"], "Degraded", 1);
        check(&["Available=True Degraded=True", "Available=True"], "Available", 0);
        check(&["Available=True", "gone"], "Available", 1);
    }

    #[test]
    fn an_operator_that_is_gone_is_forgotten() {
        let mut counters = Counters::default();
        counters.operator("dns", Some(&json!({})));
        assert_eq!(counters.operators.len(), 1);
        counters.operator("dns", None);
        assert_eq!(counters.operators.len(), 0);
    }

    #[test]
    fn executions_are_counted_by_action_and_result() {
        #[track_caller]
        fn check(action: &Action, outcome: &StepOutcome, expected: (&'static str, &'static str)) {
            let mut counters = Counters::default();
            counters.executed(action, "1.0.0", outcome);
            assert_eq!(counters.executions, BTreeMap::from([(expected, 1)]));
            let errors = u64::from(expected.1 == "error");
            assert_eq!(counters.payload_errors.values().sum::<u64>(), errors);
        }
        let failed = StepOutcome::Failed(TryError {
            reason: Reason::UpdatePayloadFailed,
            cause: String::new(),
            transience: Transience::Lasting,
            retry_after: None,
        });
        let blocker = StepOutcome::Blocked(StepBlocker::NamespaceMissing("x".to_owned()));
        let deleted = StepOutcome::Deleted(Deleted::Gone);
        check(&Action::Delete, &deleted, ("delete", "success"));
        check(&Action::Delete, &failed, ("delete", "error"));
        check(&Action::Apply, &failed, ("apply", "error"));
        check(&Action::Gate, &blocker, ("apply", "blocked"));
        check(&Action::CreateOnly, &failed, ("create", "error"));
        check(&Action::CreateOnly, &blocker, ("create", "blocked"));
    }
}
