//! RetryActions as the API server has them.

use anyhow::anyhow;
use jiff::Timestamp;
use kube::Client;
use plimsoll_api::config::MetaCondition;
use plimsoll_api::olm::action::{
    ACTION_SUCCEEDED, ActionState, RetryActionSpec, RetryActionStatus,
};
use plimsoll_api::{ConditionStatus, RETRY_ACTION, Reason};
use serde::Deserialize as _;
use serde_json::Value;

use super::get;

/// A RetryAction as the API server has it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct RetryObject {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) created: Timestamp,
    pub(super) spec: RetryActionSpec,
    pub(super) status: RetryActionStatus,
}

impl RetryObject {
    /// Reads an object.
    ///
    /// # Errors
    ///
    /// When it does not have the form of a RetryAction.
    pub(super) fn read(object: &Value) -> Result<Self, String> {
        let metadata = &object["metadata"];
        let text = |field: &str| metadata[field].as_str().unwrap_or_default().to_owned();
        let status = match &object["status"] {
            Value::Null => RetryActionStatus::default(),
            status => RetryActionStatus::deserialize(status)
                .map_err(|error| format!("status: {error}"))?,
        };
        let spec = RetryActionSpec::deserialize(&object["spec"]);
        Ok(Self {
            namespace: text("namespace"),
            name: text("name"),
            uid: text("uid"),
            created: text("creationTimestamp").parse().unwrap_or_default(),
            spec: spec.map_err(|error| format!("spec: {error}"))?,
            status,
        })
    }

    /// Returns the condition that tells how it ended.
    pub(super) fn succeeded(&self) -> Option<&MetaCondition> {
        self.status.conditions.iter().find(|it| it.type_ == ACTION_SUCCEEDED)
    }

    /// Returns how far it is, in the states of Actions.
    pub(super) fn state(&self) -> ActionState {
        let cancelled = Reason::ActionCancelled.as_str();
        match self.succeeded().map(|it| (it.status, it.reason.as_str())) {
            Some((ConditionStatus::True, _)) => ActionState::Succeeded,
            Some((ConditionStatus::False, reason)) if reason == cancelled => ActionState::Cancelled,
            Some((ConditionStatus::False, _)) => ActionState::Failed,
            _ if self.has_begun() => ActionState::Running,
            _ => ActionState::Pending,
        }
    }

    /// Returns whether an attempt was made.
    fn has_begun(&self) -> bool {
        let RetryActionStatus { latest_attempt, start_time, failed, .. } = &self.status;
        start_time.is_some() || !latest_attempt.is_empty() || *failed > 0
    }

    /// Returns how many attempts failed, for people.
    pub(super) fn failures(&self) -> String {
        let failed = self.status.failed;
        match self.spec.backoff_limit {
            Some(limit) => format!("{failed} failed, and {limit} may"),
            None => format!("{failed} failed"),
        }
    }
}

/// Reads a RetryAction of the cluster.
pub(super) async fn read_retry(
    client: &Client,
    namespace: &str,
    name: &str,
) -> Result<RetryObject, anyhow::Error> {
    let value = get(client, namespace, RETRY_ACTION, name).await?;
    RetryObject::read(&value)
        .map_err(|error| anyhow!("RetryAction `{name}` cannot be read: {error}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_retry_action_has_the_states_of_actions() {
        let check = |spec: Value, status: Value, expected: ActionState| {
            let object = json!({
                "metadata": { "name": "again", "namespace": "tools" }, "spec": spec, "status": status,
            });
            let retry = RetryObject::read(&object).expect("it can be read");
            assert_eq!(retry.state(), expected, "{object}");
        };
        let spec = json!({ "template": { "actionClass": "autoremove" } });
        let ended = |status: &str, reason: &str| {
            json!({ "conditions": [{
                "type": "ActionSucceeded", "status": status, "reason": reason, "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }] })
        };
        check(spec.clone(), Value::Null, ActionState::Pending);
        check(spec.clone(), json!({ "failed": 1 }), ActionState::Running);
        check(spec.clone(), json!({ "latestAttempt": "again-x" }), ActionState::Running);
        check(spec.clone(), ended("Unknown", "A"), ActionState::Pending);
        check(spec.clone(), ended("True", "A"), ActionState::Succeeded);
        check(spec.clone(), ended("False", "A"), ActionState::Failed);
        // An attempt may be cancelled, and the last one may fail before a cancellation is seen.
        check(spec, ended("False", "ActionCancelled"), ActionState::Cancelled);
        let cancelled = json!({ "template": { "actionClass": "autoremove" }, "cancelled": true });
        check(cancelled.clone(), ended("False", "ActionCancelled"), ActionState::Cancelled);
        check(cancelled, ended("False", "BackoffLimitExceeded"), ActionState::Failed);
    }
}
