//! What is counted of the work, for metrics: the state of the cluster as last computed, and what
//! happened since this process began.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use plimsoll_api::ConditionStatus;
use plimsoll_api::config::{ClusterOperatorStatus, ClusterVersionSpec, ClusterVersionStatus};
use plimsoll_api::progress::OverrideProgress;
use plimsoll_plan::plan::Action;
use plimsoll_plan::progress::{Outcome, ProblemState, Progress};
use serde_json::Value;

/// All that metrics tell beyond the rest of a [`View`](crate::View).
#[derive(Debug, Clone, Default)]
pub struct MetricsSnapshot {
    /// What the ClusterVersion asks for.
    pub spec: ClusterVersionSpec,
    /// Its status as last computed.
    pub status: ClusterVersionStatus,
    /// When the ClusterVersion was created.
    pub created: Option<Timestamp>,
    /// When the payload was built, if it says so.
    pub payload_created: Option<Timestamp>,
    /// The steps of the plan.
    pub steps: StepCounts,
    /// Deletions that are under way.
    pub deletions_unfinished: usize,
    /// Objects that earlier releases applied and this one does not mention.
    pub orphans: usize,
    /// Objects that an administrator took out of management.
    pub overrides: Vec<OverrideProgress>,
    /// Objects repaired after somebody had changed them, since the process began.
    pub drift_repairs: u64,
    /// What happened since the process began.
    pub counts: Arc<Counters>,
}

/// How many steps are in which state; a step is in one alone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StepCounts {
    /// As they must be.
    pub done: usize,
    /// Their turn has not come, or they are under way.
    pub pending: usize,
    /// Something is expected to happen by itself.
    pub waiting: usize,
    /// Something went wrong.
    pub failed: usize,
}

impl StepCounts {
    pub(crate) fn of(progress: &Progress, now: Timestamp) -> Self {
        let problems = progress.problems(now);
        let failed = problems.iter().filter(|it| it.state == ProblemState::Failed).count();
        let done = progress.done();
        let troubled = problems.iter().filter(|it| done.binary_search(&it.step).is_ok()).count();
        let done = done.len() - troubled;
        let total = progress.plan().steps.len();
        let pending = total.saturating_sub(done + problems.len());
        Self { done, pending, waiting: problems.len() - failed, failed }
    }
}

/// What happened since the process began.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Counters {
    /// Steps carried out, by what was done and how it ended.
    pub executions: BTreeMap<(&'static str, &'static str), u64>,
    /// Failed executions, by the version of the release.
    pub payload_errors: BTreeMap<String, u64>,
    /// The ClusterOperators as last seen.
    pub operators: BTreeMap<String, ClusterOperatorStatus>,
    /// How often a condition of a ClusterOperator changed, by name and type.
    pub transitions: BTreeMap<(String, String), u64>,
}

impl Counters {
    /// A step was carried out.
    pub(crate) fn executed(&mut self, action: &Action, version: &str, outcome: &Outcome) {
        let action = match action {
            Action::Delete => "delete",
            Action::CreateOnly => "create",
            Action::Apply | Action::Gate | Action::Refuse(_) => "apply",
        };
        let ended = match outcome {
            Outcome::Applied(_) | Outcome::Deleted(_) => "success",
            Outcome::Obstacle(_) => "obstacle",
            Outcome::Failed(_) => "error",
        };
        *self.executions.entry((action, ended)).or_default() += 1;
        if let Outcome::Failed(_) = outcome {
            *self.payload_errors.entry(version.to_owned()).or_default() += 1;
        }
    }

    /// A ClusterOperator was seen, or seen to be gone.
    pub(crate) fn operator(&mut self, name: &str, object: Option<&Value>) {
        let read = |object: &Value| -> ClusterOperatorStatus {
            serde_json::from_value(object["status"].clone()).unwrap_or_default()
        };
        let after = object.map(read);
        let known = self.operators.contains_key(name);
        let before = statuses(self.operators.get(name));
        let now = statuses(after.as_ref());
        let types: std::collections::BTreeSet<&String> = before.keys().chain(now.keys()).collect();
        for type_ in types {
            if known && before.get(type_) != now.get(type_) {
                *self.transitions.entry((name.to_owned(), type_.clone())).or_default() += 1;
            }
        }
        match after {
            Some(status) => self.operators.insert(name.to_owned(), status),
            None => self.operators.remove(name),
        };
    }
}

fn statuses(operator: Option<&ClusterOperatorStatus>) -> BTreeMap<String, ConditionStatus> {
    let conditions = operator.map(|status| status.conditions.as_slice()).unwrap_or_default();
    conditions.iter().map(|condition| (condition.type_.clone(), condition.status)).collect()
}

#[cfg(test)]
mod tests {
    //! What is counted once, and what not.

    use serde_json::json;

    use super::*;

    #[test]
    fn a_condition_that_changes_comes_or_goes_counts_as_a_transition() {
        let operator = |conditions: &[(&str, &str)]| {
            let conditions: Vec<Value> = conditions
                .iter()
                .map(|(type_, status)| {
                    json!({ "type": type_, "status": status,
                            "lastTransitionTime": "2026-01-01T00:00:00Z" })
                })
                .collect();
            json!({ "status": { "conditions": conditions } })
        };
        let mut counts = Counters::default();
        let seen = [
            (operator(&[("Available", "True")]), 0),
            (operator(&[("Available", "True")]), 0),
            (operator(&[("Available", "False")]), 1),
            (operator(&[("Available", "False"), ("Degraded", "True")]), 1),
            (operator(&[("Degraded", "True")]), 2),
        ];
        let key = |type_: &str| ("dns".to_owned(), type_.to_owned());
        for (object, transitions) in seen {
            counts.operator("dns", Some(&object));
            let counted = counts.transitions.get(&key("Available")).copied().unwrap_or_default();
            assert_eq!(counted, transitions, "{object}");
        }
        assert_eq!(counts.transitions[&key("Degraded")], 1);
        counts.operator("dns", None);
        assert_eq!(counts.transitions[&key("Degraded")], 2);
        assert_eq!(counts.operators.len(), 0);
    }
}
