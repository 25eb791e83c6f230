//! Actions as the API server has them, and the statuses that report on them.

use jiff::Timestamp;
use plimsoll_api::config::MetaCondition;
use plimsoll_api::olm::action::{
    ACTION_FINALIZER, ACTION_SUCCEEDED, ActionSpec, ActionState, ActionStatus,
    CONSTRAINT_SATISFIED, ChangeState, FailureDetails, PartContent, PlannedChange,
    TRIGGERED_BY_ANNOTATION,
};
use plimsoll_api::{ConditionStatus, Reason, whole_seconds};
use serde::Deserialize as _;
use serde_json::Value;

use super::by_hand::command_of;
use super::{ActionFailure, TEXT_LENGTH_MAX, cut, outcome};
use crate::conditions::{ConditionDraft, condition};

/// The maximum length of a text in the least status that an Action can have, in bytes.
const LEAST_LENGTH_MAX: usize = 256;

/// The types of the conditions that a report sets.
const OWN_CONDITIONS: [&str; 2] = [ACTION_SUCCEEDED, CONSTRAINT_SATISFIED];

/// An Action as the API server has it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ActionObject {
    /// The namespace of the object.
    pub namespace: String,
    /// The name of the object.
    pub name: String,
    /// The uid of the object; empty if it has none.
    pub uid: String,
    /// The creation time.
    pub created: Timestamp,
    /// The resourceVersion.
    pub revision: String,
    /// The generation of its spec.
    pub generation: i64,
    /// The uid of the object that controls it, whatever its kind; empty if none does. That is the
    /// RetryAction, CronAction or EventAction that created it, if one did.
    pub owner: String,
    /// The EventActions that led to it, as its annotation has them; empty for none.
    pub triggered_by: String,
    /// The finalizers of the object.
    pub finalizers: Vec<String>,
    /// Whether it is being deleted.
    pub is_deleting: bool,
    /// The requested spec.
    pub spec: ActionSpec,
    /// The status.
    pub status: ActionStatus,
}

impl ActionObject {
    /// Reads an object.
    ///
    /// # Errors
    ///
    /// When it does not have the form of an Action.
    pub fn read(object: &Value) -> Result<Self, String> {
        let metadata = &object["metadata"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let owners = metadata["ownerReferences"].as_array().into_iter().flatten();
        let owner = owners.into_iter().find(|it| it["controller"] == true);
        let status = match &object["status"] {
            Value::Null => ActionStatus::default(),
            status => {
                ActionStatus::deserialize(status).map_err(|error| format!("status: {error}"))?
            }
        };
        Ok(Self {
            namespace: text(&metadata["namespace"]),
            name: text(&metadata["name"]),
            uid: text(&metadata["uid"]),
            created: text(&metadata["creationTimestamp"]).parse().unwrap_or_default(),
            revision: text(&metadata["resourceVersion"]),
            generation: metadata["generation"].as_i64().unwrap_or_default(),
            owner: owner.map(|it| text(&it["uid"])).unwrap_or_default(),
            triggered_by: text(&metadata["annotations"][TRIGGERED_BY_ANNOTATION]),
            finalizers: Vec::deserialize(&metadata["finalizers"]).unwrap_or_default(),
            is_deleting: metadata["deletionTimestamp"].is_string(),
            spec: ActionSpec::deserialize(&object["spec"])
                .map_err(|error| format!("spec: {error}"))?,
            status,
        })
    }

    /// Returns the sort key of Actions: the creation time, then namespace and name.
    pub fn order(&self) -> (Timestamp, &str, &str) {
        (self.created, &self.namespace, &self.name)
    }

    /// Returns whether it has our finalizer.
    pub fn has_finalizer(&self) -> bool {
        self.finalizers.iter().any(|it| it == ACTION_FINALIZER)
    }

    /// Returns whether no further change of it may be written, because it was cancelled or deleted.
    pub fn is_stopped(&self) -> bool {
        self.spec.cancelled || self.is_deleting
    }

    /// Returns the condition of its success; `None` if it has none.
    pub fn condition(&self) -> Option<&MetaCondition> {
        self.status.conditions.iter().find(|it| it.type_ == ACTION_SUCCEEDED)
    }

    /// Returns the status for a report: with its state, and with what follows from its plan.
    pub fn reported(&self, report: Report, now: Timestamp) -> ActionStatus {
        let Report { mut status, state, reason, message } = report;
        let plan_parts = status.parts.as_ref().filter(|it| it.content == PartContent::Plan);
        if !status.plan.is_empty() || plan_parts.is_none() {
            status.plan_summary = outcome::summary(&status.plan);
            status.dependencies = outcome::dependencies(&status.plan);
        }
        let message = match reason {
            Reason::ActionSucceeded => outcome::of_packages(&self.spec, &status.plan),
            _ => None,
        }
        .unwrap_or(message);
        status.conditions = self.conditions(&status, state, reason, &message, now);
        status.failure = match state {
            ActionState::Failed | ActionState::Cancelled => {
                let mut failure = status.failure.take().unwrap_or_default();
                outcome::complete(&mut failure, &status.plan);
                if failure.command.is_empty() {
                    failure.command = command_of(&self.spec, &status);
                }
                // The beginning of a command does something else.
                if failure.command.len() > TEXT_LENGTH_MAX {
                    failure.command.clear();
                }
                Some(failure)
            }
            ActionState::Succeeded
            | ActionState::Pending
            | ActionState::WaitingForApproval
            | ActionState::Running => None,
        };
        status.requester.clone_from(&self.spec.requester);
        status.state = state;
        state.outcome().clone_into(&mut status.outcome);
        if state.is_final() && status.completion_time.is_none() {
            status.completion_time = Some(whole_seconds(now));
        }
        status
    }

    /// Returns the least status that says how the Action ended, in place of one that the API server refuses for a
    /// reason. One that has not ended, and of which nothing was written, has failed for that reason.
    pub fn least(&self, refused: &ActionStatus, why: &str, now: Timestamp) -> ActionStatus {
        let is_ended = refused.state.is_final();
        let begun = refused.plan.iter().filter(|it| it.state != ChangeState::Planned);
        let kept = ActionStatus {
            plan: begun.map(without_content).collect(),
            plan_summary: refused.plan_summary.clone(),
            plan_digest: refused.plan_digest.clone(),
            parts: refused.parts.clone().filter(|_| is_ended),
            attempts: refused.attempts,
            start_time: refused.start_time,
            ..ActionStatus::default()
        };
        if !is_ended {
            let message = cut(&format!("its status cannot be written: {why}"), LEAST_LENGTH_MAX);
            let failure = ActionFailure::new(Reason::InvalidAction, message);
            let failed = self.reported(Report::failed(kept, failure), now);
            return ActionStatus { failure: None, ..failed };
        }
        let ends = refused.conditions.iter().filter(|it| it.type_ == ACTION_SUCCEEDED);
        let ends = ends.map(|it| {
            let message = cut(&it.message, LEAST_LENGTH_MAX);
            MetaCondition { message, ..it.clone() }
        });
        let failure = refused.failure.as_ref().map(|it| {
            let (item, precondition) = (it.item.clone(), it.precondition.clone());
            let mut failure = FailureDetails { item, precondition, ..FailureDetails::default() };
            outcome::complete(&mut failure, &kept.plan);
            failure
        });
        ActionStatus {
            state: refused.state,
            outcome: refused.outcome.clone(),
            conditions: ends.collect(),
            requester: refused.requester.clone(),
            failure,
            completion_time: refused.completion_time,
            ..kept
        }
    }

    /// Returns the conditions of a status: how the Action ended, then the dependencies that it created.
    fn conditions(
        &self,
        status: &ActionStatus,
        state: ActionState,
        reason: Reason,
        message: &str,
        now: Timestamp,
    ) -> Vec<MetaCondition> {
        let succeeded = match state {
            ActionState::Succeeded => ConditionStatus::True,
            ActionState::Failed | ActionState::Cancelled => ConditionStatus::False,
            ActionState::Pending | ActionState::WaitingForApproval | ActionState::Running => {
                ConditionStatus::Unknown
            }
        };
        let message = limited(message, TEXT_LENGTH_MAX);
        let draft = ConditionDraft { type_: ACTION_SUCCEEDED, status: succeeded, reason, message };
        let before = &self.status.conditions;
        let succeeded = condition(draft, before, self.generation, now);
        let satisfied = outcome::satisfied(&status.plan, before, self.generation, now);
        let others = status.conditions.iter();
        let others = others.filter(|it| !OWN_CONDITIONS.contains(&it.type_.as_str()));
        [succeeded].into_iter().chain(satisfied).chain(others.cloned()).collect()
    }
}

/// A state to report in the status of an Action.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The status, except for the state and what [`ActionObject::reported`] adds.
    pub status: ActionStatus,
    /// The state to report.
    pub state: ActionState,
    /// The reason for the state.
    pub reason: Reason,
    /// The message for users.
    pub message: String,
}

impl Report {
    /// Creates the report of a failure.
    pub fn failed(status: ActionStatus, failure: ActionFailure) -> Self {
        let ActionFailure { reason, message, answer: _, precondition, item } = failure;
        let details = FailureDetails {
            item: cut(&item.unwrap_or_default(), TEXT_LENGTH_MAX),
            precondition: precondition.unwrap_or_default().to_owned(),
            ..FailureDetails::default()
        };
        let status = ActionStatus { failure: Some(details), ..status };
        Self { status, state: ActionState::Failed, reason, message }
    }

    /// Creates the report of an Action that was cancelled.
    pub fn cancelled(status: ActionStatus, message: impl Into<String>) -> Self {
        Self {
            status,
            state: ActionState::Cancelled,
            reason: Reason::ActionCancelled,
            message: message.into(),
        }
    }

    /// Creates the report of an Action that was done. What became of the package that was asked for replaces the
    /// message, if the plan has it.
    pub fn succeeded(status: ActionStatus, message: impl Into<String>) -> Self {
        Self {
            status,
            state: ActionState::Succeeded,
            reason: Reason::ActionSucceeded,
            message: message.into(),
        }
    }

    /// Creates the report of an Action whose plan is executed.
    pub fn running(status: ActionStatus) -> Self {
        Self {
            status,
            state: ActionState::Running,
            reason: Reason::ActionRunning,
            message: "the plan is executed".to_owned(),
        }
    }

    /// Creates the report of an Action that waits.
    pub fn pending(status: ActionStatus, reason: Reason, message: impl Into<String>) -> Self {
        Self { status, state: ActionState::Pending, reason, message: message.into() }
    }
}

/// Returns a change as it is in the least status: how far it is, without what it writes.
fn without_content(change: &PlannedChange) -> PlannedChange {
    PlannedChange {
        manifest: None,
        spec_fields: None,
        workloads: Vec::new(),
        relies_on: Vec::new(),
        message: cut(&change.message, LEAST_LENGTH_MAX),
        ..change.clone()
    }
}

/// Truncates a text to a number of bytes; a truncated text ends with a note.
pub(super) fn limited(text: &str, length_max: usize) -> String {
    if text.len() <= length_max {
        return text.to_owned();
    }
    let note = format!("\n(cut off: it has {} bytes)", text.len());
    let end = text.floor_char_boundary(length_max.saturating_sub(note.len()));
    format!("{}{note}", &text[..end])
}

#[cfg(test)]
mod tests;
