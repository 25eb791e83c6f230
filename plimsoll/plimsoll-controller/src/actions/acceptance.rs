//! The condition `Accepted` of objects of one kind: whether each can be used as it is, and what its status says.

use std::collections::BTreeMap;

use jiff::Timestamp;
use plimsoll_api::config::MetaCondition;
use plimsoll_api::{ConditionStatus, Reason};
use plimsoll_operators::conditions::{ConditionDraft, condition};
use serde::Deserialize as _;
use serde_json::Value;

/// The type of the condition.
const ACCEPTED: &str = "Accepted";

/// The states of the objects of a kind, by name.
#[derive(Debug, Default)]
pub(super) struct Acceptance {
    states: BTreeMap<String, AcceptedState>,
}

#[derive(Debug)]
struct AcceptedState {
    revision: String,
    generation: i64,
    conditions: Vec<MetaCondition>,
    /// Why it cannot be used.
    verdict: Result<(), String>,
}

/// Conditions to write.
#[derive(Debug)]
pub(super) struct ChangedConditions {
    pub(super) name: String,
    pub(super) revision: String,
    pub(super) conditions: Vec<MetaCondition>,
}

impl Acceptance {
    /// Records the current state of an object with a verdict on it, or that it is gone.
    pub(super) fn observe(
        &mut self,
        name: &str,
        object: Option<&Value>,
        verdict: Result<(), String>,
    ) {
        let Some(object) = object else { return drop(self.states.remove(name)) };
        let metadata = &object["metadata"];
        let conditions = Vec::deserialize(&object["status"]["conditions"]);
        let state = AcceptedState {
            revision: metadata["resourceVersion"].as_str().unwrap_or_default().to_owned(),
            generation: metadata["generation"].as_i64().unwrap_or_default(),
            conditions: conditions.unwrap_or_default(),
            verdict,
        };
        self.states.insert(name.to_owned(), state);
    }

    /// Returns whether an object is older than what is recorded: a watch shows later what was written.
    pub(super) fn is_old(&self, name: &str, object: &Value) -> bool {
        let known = self.states.get(name).and_then(|it| it.revision.parse().ok());
        known.is_some_and(|known: u64| number(object) < known)
    }

    /// Replaces the verdict on an object.
    pub(super) fn judge(&mut self, name: &str, verdict: Result<(), String>) {
        if let Some(state) = self.states.get_mut(name) {
            state.verdict = verdict;
        }
    }

    /// Returns why an object cannot be used; `None` if it can.
    pub(super) fn refusal(&self, name: &str) -> Option<&str> {
        self.states.get(name)?.verdict.as_ref().err().map(String::as_str)
    }

    /// Returns the conditions that are not what they should be. `accepted` is the message of those that can be used,
    /// `invalid` the reason of the others.
    pub(super) fn changed(
        &self,
        accepted: &str,
        invalid: Reason,
        now: Timestamp,
    ) -> Vec<ChangedConditions> {
        let changed = self.states.iter().filter_map(|(name, state)| {
            let before = &state.conditions;
            let (status, reason, message) = match &state.verdict {
                Ok(()) => (ConditionStatus::True, Reason::Accepted, accepted.to_owned()),
                Err(error) => (ConditionStatus::False, invalid, error.clone()),
            };
            let draft = ConditionDraft { type_: ACCEPTED, status, reason, message };
            let accepted = condition(draft, before, state.generation, now);
            // Other controllers may have conditions of their own.
            let mut conditions = before.clone();
            match conditions.iter_mut().find(|it| it.type_ == ACCEPTED) {
                Some(there) => *there = accepted,
                None => conditions.insert(0, accepted),
            }
            (conditions != *before).then(|| ChangedConditions {
                name: name.clone(),
                revision: state.revision.clone(),
                conditions,
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
