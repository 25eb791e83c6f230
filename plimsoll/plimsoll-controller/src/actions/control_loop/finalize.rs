//! Which controller executes an Action, and the finalizer that keeps the Action until its changes are
//! recorded.

use plimsoll_api::Reason;
use plimsoll_api::olm::action::{ACTION_FINALIZER, ActionState, ChangeState};
use plimsoll_operators::actions::execution::arrival::{contradiction, is_comparable};
use plimsoll_operators::actions::locks::{Footprint, Locks, is_waited_for};
use plimsoll_operators::actions::report::{ActionObject, Report};

use super::ControlLoop;
use super::queue::{WorkItem, id_of};
use crate::write::chain;

impl ControlLoop {
    /// Makes this controller the one that executes an Action, if another one has begun it and has
    /// stopped; returns false if it is not. Of two controllers that try, the write of one fails.
    pub(super) async fn take_over(&mut self, action: &mut ActionObject) -> bool {
        if self.executed.contains_key(&action.uid) {
            return self.is_executed_here(action);
        }
        let mut taken = action.clone();
        taken.status.attempts += 1;
        if !self.compare(&mut taken).await {
            self.act_again(action);
            return false;
        }
        let report = Report::running(taken.status.clone());
        let status = action.reported(report, self.clock.now());
        match self.write_status(action, &status).await {
            Ok(written) => {
                self.executed.insert(action.uid.clone(), status.attempts);
                self.written(action, written, &status);
            }
            Err(error) => {
                self.write_again(action, &error);
                return false;
            }
        }
        if let Some(kept) = self.actions.get(&id_of(action)).filter(|it| it.uid == action.uid) {
            *action = kept.clone();
        }
        self.is_executed_here(action)
    }

    /// Returns whether no other controller has continued an Action since this one began it.
    pub(super) fn is_executed_here(&self, action: &ActionObject) -> bool {
        self.executed.get(&action.uid) == Some(&action.status.attempts)
    }

    /// Compares what was written with the objects; returns false if the API server does not answer.
    /// They differ if the cluster was restored to an earlier state.
    async fn compare(&self, action: &mut ActionObject) -> bool {
        for at in 0..action.status.plan.len() {
            let change = &action.status.plan[at];
            if !is_comparable(change) {
                continue;
            }
            let found = match self.changes.find(change).await {
                Ok(found) => found,
                Err(error) => {
                    tracing::debug!(error = chain(&error), "cannot ask what was written");
                    return false;
                }
            };
            if let Some(message) = contradiction(&action.uid, at, change, found.as_ref()) {
                let change = &mut action.status.plan[at];
                change.state = ChangeState::Failed;
                change.reason = Reason::OutcomeUnknown.to_string();
                change.message = message;
            }
        }
        true
    }

    /// Adds the finalizer to an Action of which a change is about to be written; returns false if
    /// that has to be tried again.
    pub(super) async fn guard(&mut self, action: &mut ActionObject) -> bool {
        if action.has_finalizer() {
            return true;
        }
        let is_added = self.set_finalizer(action, true).await;
        if let Some(kept) = self.actions.get(&id_of(action)).filter(|_| is_added) {
            action.revision.clone_from(&kept.revision);
            action.finalizers.clone_from(&kept.finalizers);
        }
        is_added
    }

    /// Removes the finalizer of an Action that has ended or never began.
    pub(super) async fn release(&mut self, action: &ActionObject) {
        if action.has_finalizer() {
            self.set_finalizer(action, false).await;
        }
    }

    async fn set_finalizer(&mut self, action: &ActionObject, is_added: bool) -> bool {
        let (id, before) = (id_of(action), &action.finalizers);
        let set = self.writer.set_action_finalizer(&id, before, &action.revision, is_added).await;
        match set {
            Ok(revision) => {
                let kept = self.actions.get_mut(&id).filter(|it| it.uid == action.uid);
                if let (Some(kept), Some(revision)) = (kept, revision) {
                    kept.revision = revision;
                    kept.finalizers.retain(|it| it != ACTION_FINALIZER);
                    kept.finalizers.extend(is_added.then(|| ACTION_FINALIZER.to_owned()));
                }
                self.keep_ended(&id);
                true
            }
            Err(error) => {
                tracing::debug!(error = chain(&error), "a finalizer is not set; trying again");
                self.act_again(action);
                false
            }
        }
    }

    /// Returns what Actions hold.
    pub(super) fn locks(&self) -> Locks<'_> {
        let unread = self.unloaded.iter().filter(|id| self.is_unread(id));
        let unread = unread.filter_map(|id| Some(self.actions.get(id)?.uid.as_str()));
        let now = self.clock.now();
        let actions = self.actions.values().filter(|it| is_waited_for(it, &self.classes, now));
        Locks::of(actions).with_unread(unread.collect())
    }

    /// Makes the Actions due that an Action has held up, after it ended, was deleted or has another
    /// plan; `before` is the Action until then.
    pub(super) fn left(&mut self, before: &ActionObject) {
        let now = self.actions.get(&id_of(before)).filter(|it| it.uid == before.uid);
        if now.is_none_or(|it| it.status.state.is_final()) {
            self.executed.remove(&before.uid);
        }
        let state = before.status.state;
        // One that was executed may have a plan that could not be read.
        let held_nothing =
            state.is_final() || (before.status.plan.is_empty() && state != ActionState::Running);
        // Nearly always nothing waits, and what follows looks at every Action.
        if held_nothing || !self.counts.is_any(ActionState::Pending) {
            return;
        }
        let time = self.clock.now();
        let is_held = now.is_some_and(|it| {
            is_waited_for(it, &self.classes, time)
                && Locks::of([it]).holds(&before.uid)
                && Footprint::of(&it.status.plan) == Footprint::of(&before.status.plan)
        });
        if is_held {
            return;
        }
        let due = self.locks().waiting_for(before);
        let due: Vec<WorkItem> = due.into_iter().map(WorkItem::of).collect();
        self.queue.add(due);
    }
}
