//! The statuses of Actions, and the events about them.

use kube::Api;
use kube::core::DynamicObject;
use plimsoll_api::olm::action::{ActionState, ActionStatus, ChangeOperation};
use plimsoll_api::{ACTION, CLUSTER_VERSION, CLUSTER_VERSION_NAME, OPERATOR, ObjectKey, Reason};
use plimsoll_operators::actions::report::{ActionObject, Report};
use plimsoll_plan::reconciler::events::{EventDraft, Severity};
use serde_json::json;

use super::ControlLoop;
use super::queue::id_of;
use crate::listing_watch::WatchedObject;
use crate::resources::api_resource;
use crate::write::chain;

/// The maximum number of attempts to write a status while other clients change the object.
const CONFLICTS_MAX: usize = 5;

impl ControlLoop {
    /// Writes the status of an Action, unless it is unchanged or the Action was changed in the
    /// meantime; returns whether it was written.
    pub(super) async fn report(&mut self, action: &ActionObject, report: Report) -> bool {
        let status = action.reported(report, self.clock.now());
        if status == action.status {
            return false;
        }
        match self.write_status(action, &status).await {
            Ok(written) => {
                self.written(action, written);
                return true;
            }
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {
                // The watch delivers the change. If it has already, the retry makes the Action due.
                self.act_again(action);
            }
            Err(error) => {
                tracing::debug!(
                    error = chain(&error),
                    "a status could not be written; trying again"
                );
                self.act_again(action);
            }
        }
        false
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
        let status = action.reported(report, self.clock.now());
        for _ in 0..CONFLICTS_MAX {
            match self.write_status(&action, &status).await {
                Ok(written) => {
                    self.unsaved.remove(&id);
                    return self.written(&action, written);
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
                    tracing::debug!(error = chain(&error), "a status could not be written");
                    break;
                }
            }
        }
        if let Some(kept) = self.actions.get_mut(&id).filter(|it| it.uid == action.uid) {
            // Only the progress is kept: whether the plan has ended is decided again.
            kept.status.plan.clone_from(&status.plan);
            self.unsaved.insert(id);
            self.act_again(&action);
        }
    }

    pub(super) async fn write_status(
        &self,
        action: &ActionObject,
        status: &ActionStatus,
    ) -> Result<DynamicObject, kube::Error> {
        let (resource, status) = (api_resource(ACTION), json!(status));
        let ActionObject { namespace, name, revision, .. } = action;
        self.writer.write_status_in(namespace, &resource, name, &status, revision).await
    }

    /// Handles a status that was written: emits an event if the state or the reason changed.
    pub(super) fn written(&mut self, before: &ActionObject, object: DynamicObject) {
        let value = object.into_value();
        self.action_observed(&id_of(before), Some(&value));
        let Ok(after) = ActionObject::read(&value) else { return };
        let (from, to) = (before.status.state, after.status.state);
        let reason_of =
            |it: &ActionObject| it.status.conditions.first().map(|it| it.reason.clone());
        if from != to || reason_of(before) != reason_of(&after) {
            self.announce_state(&after);
        }
    }

    /// Emits an event about the state of an Action.
    fn announce_state(&self, action: &ActionObject) {
        let Some(condition) = action.status.conditions.first() else { return };
        let known = Reason::ALL.iter().find(|it| it.as_str() == condition.reason);
        let state = action.status.state;
        let severity = match state {
            ActionState::Failed => Severity::Warning,
            _ => Severity::Normal,
        };
        let draft = EventDraft {
            severity,
            reason: known.copied().unwrap_or(Reason::InvalidAction),
            action: "Execute",
            note: format!("{}: {}", state.as_str(), condition.message),
            related: None,
        };
        let ActionObject { namespace, name, uid, .. } = action;
        self.recorder.emit_about_in(namespace, ACTION, name, uid, draft);
        if state == ActionState::Failed {
            let failed = (action.spec.action_class.clone(), condition.reason.clone());
            self.view.send_modify(|view| *view.actions_failed.entry(failed).or_default() += 1);
        }
    }

    /// Emits an event about what an Action changes.
    pub(super) fn announce(&self, action: &ActionObject, at: usize) {
        let change = &action.status.plan[at];
        let uid = self.operators.get(&change.operator).map(|it| it.uid.as_str());
        let what = match change.operation {
            ChangeOperation::Create => "creates it".to_owned(),
            ChangeOperation::Update if change.requested == change.requested_before => {
                "changes what is requested of it".to_owned()
            }
            ChangeOperation::Update => "requests another version of it".to_owned(),
            ChangeOperation::Delete => "deletes it".to_owned(),
            ChangeOperation::UpdateRelease => format!("requests release {}", change.requested),
            ChangeOperation::EnableCapability => {
                format!("requests capability {}", change.capability)
            }
            ChangeOperation::Await => return,
        };
        let requester = action.spec.requester.as_ref().map_or("", |it| it.username.as_str());
        let ActionObject { namespace, name, .. } = action;
        let draft = EventDraft {
            severity: Severity::Normal,
            reason: Reason::ActionRunning,
            action: "Execute",
            note: format!("Action {namespace}/{name} of {requester} {what}"),
            related: Some(ObjectKey {
                group: ACTION.group.to_owned(),
                kind: ACTION.kind.to_owned(),
                namespace: namespace.clone(),
                name: name.clone(),
            }),
        };
        let (kind, name, uid) = match change.is_release() {
            true => (CLUSTER_VERSION, CLUSTER_VERSION_NAME, change.uid.as_str()),
            false => (OPERATOR, change.operator.as_str(), uid.unwrap_or_default()),
        };
        self.recorder.emit_about(kind, name, uid, draft);
    }
}
