//! The statuses of Actions, classes and policies.

use std::time::Duration;

use kube::Api;
use kube::core::DynamicObject;
use plimsoll_api::olm::action::{ActionState, ActionStatus};
use plimsoll_api::{ACTION, ACTION_CLASS, ACTION_POLICY, ApiKind, NamespacedName, Reason};
use plimsoll_operators::actions::ActionFailure;
use plimsoll_operators::actions::classes::is_served;
use plimsoll_operators::actions::locks::names;
use plimsoll_operators::actions::report::{ActionObject, Report};
use serde_json::json;

use super::observations::Observation;
use super::queue::{WorkItem, id_of};
use super::{ControlLoop, RETRY_INTERVAL};
use crate::actions::acceptance::ChangedConditions;
use crate::actions::parts::{self, PartError};
use crate::listing_watch::WatchedObject;
use crate::resources::api_resource;
use crate::write::chain;

/// The maximum number of attempts to write a status while other clients change the object.
const CONFLICTS_MAX: usize = 5;
/// The delay before a status that was refused twice is written again. It doubles with each refusal.
const REFUSAL_DELAY: Duration = Duration::from_secs(30);
/// The maximum delay before a status that was refused is written again.
const REFUSAL_DELAY_MAX: Duration = Duration::from_secs(10 * 60);

impl ControlLoop {
    /// Writes the status of an Action, unless it is unchanged or the Action was changed in the
    /// meantime; returns whether it was written.
    pub(super) async fn report(&mut self, action: &ActionObject, report: Report) -> bool {
        let mut status = parts::referring(action, action.reported(report, self.clock.now()));
        if status == action.status {
            return false;
        }
        match self.parts.keep_plan(action, &status).await {
            Err(error) if parts::is_lasting(&error) => {
                let message = format!("its plan cannot be stored: {}", chain(&error));
                let failure = ActionFailure::new(Reason::InvalidAction, message);
                // The changes of the plan are not made.
                status.plan.clear();
                status.parts = None;
                status = action.reported(Report::failed(status, failure), self.clock.now());
            }
            Err(error) => {
                tracing::debug!(error = chain(&error), "a plan could not be stored; trying again");
                self.act_again(action);
                return false;
            }
            Ok(()) => {}
        }
        match self.write_status(action, &status).await {
            Ok(written) => {
                if action.status.parts.is_some() && action.status.parts != status.parts {
                    self.delete_parts(action, &status).await;
                }
                self.written(action, written, &status);
                return true;
            }
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {
                // The watch delivers the change. If it has already, the retry makes the Action due.
                self.act_again(action);
            }
            Err(error) => {
                if !self.report_least(action, &status, &error).await {
                    self.write_again(action, &error);
                }
            }
        }
        false
    }

    /// Writes the least status of an Action if the API server has refused the whole one twice;
    /// returns whether it was written.
    async fn report_least(
        &mut self,
        action: &ActionObject,
        refused: &ActionStatus,
        error: &kube::Error,
    ) -> bool {
        if !parts::is_lasting(error) || !self.refusals.contains_key(&id_of(action)) {
            return false;
        }
        let least = action.least(refused, &chain(error), self.clock.now());
        match self.write_status(action, &least).await {
            Ok(written) => {
                self.written(action, written, &least);
                true
            }
            Err(error) => {
                tracing::debug!(error = chain(&error), "the least status is refused, too");
                false
            }
        }
    }

    /// Schedules another attempt to write the status of an Action. Of one that is refused again and
    /// again, others are made after ever longer pauses: each of them costs a decision.
    pub(super) fn write_again(&mut self, action: &ActionObject, error: &kube::Error) {
        if !parts::is_lasting(error) {
            tracing::debug!(error = chain(error), "a status could not be written; trying again");
            return self.act_again(action);
        }
        let count = self.refusals.entry(id_of(action)).or_default();
        *count = count.saturating_add(1);
        if *count == 1 {
            let ActionObject { namespace, name, .. } = action;
            let error = chain(error);
            tracing::warn!(namespace, name, error, "the status of an Action is refused");
        }
        self.queue.retry(WorkItem::of(action), refusal_delay(*count));
    }

    /// Records the progress of a plan, even if the spec of the Action was changed in the meantime;
    /// returns false if the status could not be written, or another controller executes the Action.
    pub(super) async fn save(&mut self, action: &mut ActionObject) -> bool {
        let report = Report::running(action.status.clone());
        self.finish(action.clone(), report).await;
        let id = id_of(action);
        if let Some(kept) = self.actions.get(&id).filter(|it| it.uid == action.uid) {
            *action = kept.clone();
        }
        !self.unsaved.contains(&id) && self.is_executed_here(action)
    }

    /// Records the result of a plan, even if the spec of the Action was changed in the meantime. If
    /// the status cannot be written, the progress is kept and written later, unless another
    /// controller has written one.
    pub(super) async fn finish(&mut self, mut action: ActionObject, report: Report) {
        let id = id_of(&action);
        // Progress does not change which parts a plan is in.
        let status = action.reported(report, self.clock.now());
        let mut failure = None;
        for _ in 0..CONFLICTS_MAX {
            match self.write_status(&action, &status).await {
                Ok(written) => {
                    self.unsaved.remove(&id);
                    return self.written(&action, written, &status);
                }
                Err(kube::Error::Api(error)) if error.code == 409 => {
                    let resource = api_resource(ACTION);
                    let api: Api<DynamicObject> =
                        Api::namespaced_with(self.client.clone(), &id.namespace, &resource);
                    let found = api.get_opt(&id.name).await.ok().flatten();
                    let Some(found) = found.map(WatchedObject::into_value) else { break };
                    let Ok(now) = ActionObject::read(&found) else { break };
                    let is_ours = now.uid == action.uid
                        && now.status.attempts == status.attempts
                        && !now.status.state.is_final();
                    if !is_ours {
                        self.unsaved.remove(&id);
                        return self.action_observed(&id, Some(&found));
                    }
                    action.revision = now.revision;
                }
                Err(error) => {
                    // What is left of a plan that is executed needs all of its status.
                    if status.state.is_final() && self.report_least(&action, &status, &error).await
                    {
                        self.unsaved.remove(&id);
                        return;
                    }
                    failure = Some(error);
                    break;
                }
            }
        }
        if let Some(kept) = self.actions.get_mut(&id).filter(|it| it.uid == action.uid) {
            // Only the progress is kept: whether the plan has ended is decided again.
            kept.status.plan.clone_from(&status.plan);
            self.unsaved.insert(id);
            match failure {
                Some(error) => self.write_again(&action, &error),
                None => self.act_again(&action),
            }
        }
    }

    pub(super) async fn write_status(
        &self,
        action: &ActionObject,
        status: &ActionStatus,
    ) -> Result<DynamicObject, kube::Error> {
        let (resource, status) = (api_resource(ACTION), json!(parts::stored(status)));
        let ActionObject { namespace, name, revision, .. } = action;
        self.writer.write_status_in(namespace, &resource, name, &status, revision).await
    }

    /// Handles a status that was written.
    pub(super) fn written(
        &mut self,
        before: &ActionObject,
        object: DynamicObject,
        status: &ActionStatus,
    ) {
        self.refusals.remove(&id_of(before));
        let mut value = object.into_value();
        if status.parts.is_some() {
            // The object has only a part of the plan.
            value["status"] = json!(status);
        }
        self.action_observed(&id_of(before), Some(&value));
    }

    /// Deletes the parts of an Action that its status does not refer to any more.
    async fn delete_parts(&self, action: &ActionObject, status: &ActionStatus) {
        if let Err(error) = self.parts.delete_others(action, status.parts.as_ref()).await {
            // They go with the Action.
            tracing::debug!(error = chain(&error), "parts of an earlier plan remain");
        }
    }

    /// Reads the plans that are in parts, before anything is decided: they say what Actions wait
    /// for. One that cannot be read holds up what may wait for it, and is read again when its
    /// Action is due. Returns false if the API server does not answer.
    pub(super) async fn load_plans(&mut self) -> bool {
        self.parts.failing.retain(|id| self.unloaded.contains(id));
        let is_new = |id: &NamespacedName| !self.parts.failing.contains(id) && self.is_unread(id);
        let new: Vec<NamespacedName> =
            self.unloaded.iter().filter(|id| is_new(id)).cloned().collect();
        for id in new {
            if !self.load_plan(&id).await {
                return false;
            }
        }
        true
    }

    /// Returns whether the plan of an Action is still to be read from its parts. Other controllers
    /// keep the plans of their Actions as they like.
    pub(super) fn is_unread(&self, id: &NamespacedName) -> bool {
        let is_served = |it: &ActionObject| is_served(&self.classes, &it.spec.action_class);
        self.unloaded.contains(id) && self.actions.get(id).is_some_and(is_served)
    }

    /// Reads the plan of an Action from its parts. If that fails, it is tried again when the Action
    /// is due. Returns false if the API server does not answer.
    pub(super) async fn load_plan(&mut self, id: &NamespacedName) -> bool {
        let action = self.actions.get(id).filter(|it| !it.status.state.is_final()).cloned();
        let Some(action) = action else {
            self.unloaded.remove(id);
            return true;
        };
        let reference = action.status.parts.clone().unwrap_or_default();
        let loaded = match self.parts.read(&id.namespace, &reference).await {
            Ok(text) => parts::loaded(&action.status, &text),
            Err(PartError::Lost(message)) => Err(message),
            Err(PartError::Request(error)) => {
                tracing::debug!(error = chain(&error), "a plan cannot be read; trying again");
                self.act_again(&action);
                let is_answer = parts::is_answer(&error);
                self.parts.failing.extend(is_answer.then(|| id.clone()));
                return is_answer;
            }
        };
        match loaded {
            Ok(plan) => {
                self.unloaded.remove(id);
                if let Some(kept) = self.actions.get_mut(id) {
                    kept.status.plan = plan;
                }
                // What waits for it may not share anything with it.
                self.actions_due(|it| names(it, &action));
            }
            Err(message) => self.lose_plan(action, &message).await,
        }
        true
    }

    /// Fails an Action whose plan cannot be read back, and takes its Operators out of their change
    /// set. One that has not begun is planned again.
    async fn lose_plan(&mut self, mut action: ActionObject, message: &str) {
        let id = id_of(&action);
        if action.status.state != ActionState::Running {
            self.unloaded.remove(&id);
            return;
        }
        action.status.parts = None;
        let mut message = format!(
            "its plan is lost: {message}; what was begun is in status.plan, and nothing else was \
             done"
        );
        // All that has begun is in the status, with its change set.
        if let Err(what) = self.take_back(&action).await {
            message += &format!("; {what}");
        }
        let failure = ActionFailure::new(Reason::PlanChanged, message);
        let report = Report::failed(action.status.clone(), failure);
        // Until this is written, the Action counts as one whose plan is to be read.
        self.finish(action, report).await;
        self.unsaved.remove(&id);
        if self.unloaded.contains(&id) {
            self.parts.failing.insert(id);
        }
    }

    /// Writes the statuses of the classes and policies that are not what they should be.
    pub(super) async fn write_accepted(&mut self) {
        let now = self.clock.now();
        let (classes, policies) = (self.class_states.changed(now), self.policy_states.changed(now));
        let mut refused = false;
        for (kind, changed) in [(ACTION_CLASS, classes), (ACTION_POLICY, policies)] {
            refused |= self.write_conditions(kind, changed).await;
        }
        self.refused_conditions = match refused {
            true => self.refused_conditions.saturating_add(1),
            false => 0,
        };
        if refused {
            self.queue.retry(WorkItem::Classes, refusal_delay(self.refused_conditions));
        }
    }

    /// Writes conditions. Those that cannot be written now are written again soon. Returns whether the API server refuses
    /// one for good.
    async fn write_conditions(&mut self, kind: ApiKind, changed: Vec<ChangedConditions>) -> bool {
        let resource = api_resource(kind);
        let mut is_refused = false;
        for ChangedConditions { name, revision, conditions } in changed {
            let status = json!({ "conditions": conditions });
            match self.writer.write_status_in("", &resource, &name, &status, &revision).await {
                Ok(written) => {
                    let id = NamespacedName { namespace: String::new(), name };
                    let value = Box::new(written.into_value());
                    self.observed(Observation::Object(kind, id, Some(value)));
                }
                // The watch delivers the change.
                Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {}
                Err(error) => {
                    let is_lasting = parts::is_lasting(&error);
                    let error = chain(&error);
                    tracing::debug!(error, name, "a status could not be written; trying again");
                    is_refused |= is_lasting;
                    if !is_lasting {
                        self.queue.retry(WorkItem::Classes, RETRY_INTERVAL);
                    }
                }
            }
        }
        is_refused
    }
}

/// Returns the delay after a number of refusals. The first one may have been by mistake.
fn refusal_delay(count: u32) -> Duration {
    match count.checked_sub(2) {
        None => RETRY_INTERVAL,
        Some(more) => {
            REFUSAL_DELAY.saturating_mul(2_u32.saturating_pow(more)).min(REFUSAL_DELAY_MAX)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_between_refusals_grow_to_a_limit() {
        let delays = [1, 2, 3, 4, 7, u32::MAX].map(|count| refusal_delay(count).as_secs());
        assert_eq!(delays, [2, 30, 60, 120, 600, 600]);
    }
}
