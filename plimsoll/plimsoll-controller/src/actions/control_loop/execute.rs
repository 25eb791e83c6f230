//! The execution of the plan of an Action.

use std::collections::BTreeSet;

use plimsoll_api::Reason;
use plimsoll_api::olm::action::{ActionStatus, ChangeOperation, ChangeState, PlannedChange};
use plimsoll_operators::actions::ActionFailure;
use plimsoll_operators::actions::attributes::NamedClass;
use plimsoll_operators::actions::execution::arrival::{Arrival, arrival, record};
use plimsoll_operators::actions::execution::{
    deadline, ended, ending_sets, is_untouched, next_write, observe, outcome, stopped,
};
use plimsoll_operators::actions::lifecycle::{ActionDecision, give_up};
use plimsoll_operators::actions::report::{ActionObject, Report};
use plimsoll_plan::windows::MaintenanceWindows;

use super::ControlLoop;
use super::queue::{WorkItem, id_of};
use crate::actions::access::Access;
use crate::actions::change_writer::WriteOutcome;
use crate::write::chain;

/// The prefix of digests.
const DIGEST_PREFIX: &str = "sha256:";

impl ControlLoop {
    /// Executes the plan of an Action as far as is possible now.
    pub(super) async fn execute(&mut self, mut action: ActionObject, class: &NamedClass) {
        if !self.take_over(&mut action).await {
            return;
        }
        // A change that is about to be written may be recorded here alone: the API server has to have
        // the record first.
        if self.unsaved.contains(&id_of(&action)) && !self.save(&mut action).await {
            return;
        }
        let before = action.status.clone();
        if !self.observe(&mut action).await || !self.find_created(&mut action).await {
            return self.act_again(&action);
        }
        if next_write(&action.status).is_some()
            && outcome(&action.spec, &action.status, self.clock.now()).is_none()
        {
            if let Err(failure) = self.write(&mut action, class).await {
                if is_untouched(&action.status) && is_decided_again(failure.reason) {
                    return self.plan_again(&action, failure).await;
                }
                if !self.find_written(&mut action).await {
                    return self.act_again(&action);
                }
                give_up(&mut action.status, &failure);
            }
            if !self.is_executed_here(&action) {
                return;
            }
            if action.is_stopped() {
                return self.stop(action).await;
            }
            if !self.observe(&mut action).await {
                return self.act_again(&action);
            }
        }
        let now = self.clock.now();
        let Some(outcome) = outcome(&action.spec, &action.status, now) else {
            if action.status != before || self.unsaved.contains(&id_of(&action)) {
                self.save(&mut action).await;
            }
            if let Some(at) = deadline(&action.spec, &action.status) {
                self.queue.add_at(WorkItem::of(&action), at);
            }
            return;
        };
        if outcome.is_err() && !self.find_written(&mut action).await {
            return self.act_again(&action);
        }
        if !self.undo(&mut action, &before.plan).await {
            return;
        }
        let report = ended(action.status.clone(), outcome);
        self.end(action, report).await;
    }

    /// Ends an Action that was cancelled or deleted while its plan was executed. Nothing more is
    /// written for it, but that its Operators leave their change set.
    pub(super) async fn stop(&mut self, mut action: ActionObject) {
        if !self.take_over(&mut action).await {
            return;
        }
        let before = action.status.plan.clone();
        if !self.observe(&mut action).await || !self.find_written(&mut action).await {
            return self.act_again(&action);
        }
        if !self.undo(&mut action, &before).await {
            return;
        }
        let report = stopped(&action, self.clock.now());
        self.end(action, report).await;
    }

    /// Reports the end of an Action, and removes its finalizer.
    async fn end(&mut self, action: ActionObject, report: Report) {
        let id = id_of(&action);
        self.finish(action, report).await;
        let ended = self.actions.get(&id).filter(|it| it.status.state.is_final()).cloned();
        if let Some(action) = ended {
            self.executed.remove(&action.uid);
            self.release(&action).await;
        }
    }

    /// Plans an Action again of which nothing was written.
    async fn plan_again(&mut self, action: &ActionObject, failure: ActionFailure) {
        let attempts = action.status.attempts;
        let status = ActionStatus { attempts, ..ActionStatus::default() };
        let report = Report::pending(status, failure.reason, failure.message);
        self.report(action, report).await;
        self.act_again(action);
    }

    /// Updates the progress of the plan of an Action; returns false if the API server does not
    /// answer.
    async fn observe(&self, action: &mut ActionObject) -> bool {
        let plan = &mut action.status.plan;
        let release = match plan.iter().any(PlannedChange::is_release) {
            true => self.changes.read_release().await,
            false => Ok(None),
        };
        match release {
            Ok(release) => {
                observe(plan, &self.operators, release.as_ref());
                true
            }
            Err(error) => {
                tracing::debug!(error = chain(&error), "cannot read the ClusterVersion");
                false
            }
        }
    }

    /// Writes the changes that are due. Policies are asked once, about all that is left of the
    /// plan, before any of it is written.
    ///
    /// # Errors
    ///
    /// When the remaining changes must not be written.
    async fn write(
        &mut self,
        action: &mut ActionObject,
        class: &NamedClass,
    ) -> Result<(), ActionFailure> {
        let Ok(Access { by_hand, policies, labels }) =
            Access::ask(&self.client, &self.writer, action).await
        else {
            self.act_again(action);
            return Ok(());
        };
        let now = self.clock.now();
        // Preconditions are about the moment at which the execution began.
        let decision = ActionDecision {
            action,
            class,
            policies: &policies,
            windows: &MaintenanceWindows::default(),
            active: 0,
            created: &BTreeSet::new(),
            labels: &labels,
            by_hand,
            now,
        };
        decision.admit_further()?;
        // Any change of a catalog that holds the content of its bundles changes the digest. That
        // does not stop a plan that has begun.
        let is_begun = !is_untouched(&action.status);
        let is_compared = |it: &&PlannedChange| {
            it.state == ChangeState::Planned
                && !it.image.is_empty()
                && !(is_begun && it.image.starts_with(DIGEST_PREFIX))
        };
        if action.status.plan.iter().any(|it| is_compared(&it)) {
            let Some(inventory) = self.inventory.ask().await else {
                self.act_again(action);
                return Ok(());
            };
            for change in action.status.plan.iter().filter(is_compared) {
                // A catalog that cannot be read now is no evidence of another bundle.
                if inventory.image(change).is_some_and(|it| it != change.image) {
                    let PlannedChange { bundle, catalog, .. } = change;
                    return Err(ActionFailure::new(
                        Reason::PlanChanged,
                        format!("catalog {catalog} has another bundle {bundle} than was planned"),
                    ));
                }
            }
        }
        self.write_due(action).await
    }

    /// Writes the changes that are due, one after the other. Each is recorded before its request is
    /// sent, so that a controller that follows looks for it.
    ///
    /// # Errors
    ///
    /// When the remaining changes must not be written.
    async fn write_due(&mut self, action: &mut ActionObject) -> Result<(), ActionFailure> {
        while let Some(at) = next_write(&action.status) {
            if action.is_stopped() {
                return Ok(());
            }
            if action.status.plan[at].state == ChangeState::Planned {
                if !self.guard(action).await {
                    return Ok(());
                }
                action.status.plan[at].state = ChangeState::Writing;
                if !self.save(action).await {
                    return Ok(());
                }
                // The Action may have been cancelled since it was read.
                continue;
            }
            let subject = action.status.plan[at].subject().to_owned();
            match self.changes.write(action, at).await {
                WriteOutcome::Done => {
                    action.status.plan[at].state = ChangeState::Written;
                    self.announce(action, at);
                    // The next change is recorded together with this one.
                    if let Some(next) = next_write(&action.status) {
                        action.status.plan[next].state = ChangeState::Writing;
                    }
                    if !self.save(action).await {
                        return Ok(());
                    }
                }
                WriteOutcome::Stale(message) => {
                    action.status.plan[at].state = ChangeState::Planned;
                    return Err(ActionFailure::new(Reason::PlanChanged, message).on(subject));
                }
                WriteOutcome::Rejected(message) => {
                    // An earlier request, of which the answer was lost, may have arrived.
                    if !self.find_written(action).await {
                        self.act_again(action);
                        return Ok(());
                    }
                    let failure = ActionFailure::new(Reason::InstallationFailed, message);
                    match action.status.plan[at].state {
                        ChangeState::Planned => return Err(failure.on(subject)),
                        ChangeState::Written => self.announce(action, at),
                        ChangeState::Writing | ChangeState::Completed | ChangeState::Failed => {}
                    }
                    if !self.save(action).await {
                        return Ok(());
                    }
                }
                WriteOutcome::Unknown(message) => {
                    record(&mut action.status.plan[at], Arrival::Unknown(message));
                    return Ok(());
                }
                WriteOutcome::Failed(message) => {
                    tracing::debug!(message, "a change could not be written; trying again");
                    self.act_again(action);
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Takes back what does not outlast an Action; `before` is its plan as it was recorded. A
    /// request that was withdrawn looks like one that was not observed yet, so its refusal is
    /// recorded first. Returns false if that has to be tried again, or another controller executes
    /// the Action.
    async fn undo(&mut self, action: &mut ActionObject, before: &[PlannedChange]) -> bool {
        let is_recorded = action.status.plan == before && !self.unsaved.contains(&id_of(action));
        if !is_recorded && action.status.plan.iter().any(is_refused) && !self.save(action).await {
            return false;
        }
        if let Err(what) = self.take_back(action).await {
            tracing::debug!(what, "a request stays; trying again");
            self.act_again(action);
            return false;
        }
        true
    }

    /// Withdraws the requests of an Action for releases that were refused, and ends the change sets
    /// that its Operators are in or have left.
    ///
    /// # Errors
    ///
    /// What stays, and why.
    pub(super) async fn take_back(&self, action: &ActionObject) -> Result<(), String> {
        let plan = &action.status.plan;
        let mut left = Vec::new();
        for (at, change) in plan.iter().enumerate().filter(|(_, it)| is_refused(it)) {
            let triggers = &action.triggered_by;
            let withdrawn = self.changes.withdraw(&action.uid, at, change, triggers).await;
            if let Err(error) = withdrawn {
                let (subject, error) = (change.subject(), chain(&error));
                left.push(format!("what was requested of {subject} stays: {error}"));
            }
        }
        if let Err(error) = self.changes.end_change_sets(&ending_sets(plan), "").await {
            left.push(format!("Operators stay in its change sets: {}", chain(&error)));
        }
        if left.is_empty() { Ok(()) } else { Err(left.join("; ")) }
    }

    /// Records of the change that is being written whether the API server has it; returns false if
    /// it does not answer.
    async fn find_written(&self, action: &mut ActionObject) -> bool {
        for at in 0..action.status.plan.len() {
            let change = &action.status.plan[at];
            if change.state != ChangeState::Writing {
                continue;
            }
            match self.changes.find(change).await {
                Ok(found) => {
                    let arrival = arrival(&action.uid, at, change, found.as_ref());
                    record(&mut action.status.plan[at], arrival);
                }
                Err(error) => {
                    tracing::debug!(error = chain(&error), "cannot ask what was written");
                    return false;
                }
            }
        }
        true
    }

    /// Records Operators as deleted that were created and are gone before a watch has shown them;
    /// returns false if the API server does not answer.
    async fn find_created(&self, action: &mut ActionObject) -> bool {
        for change in &mut action.status.plan {
            let is_unseen = change.operation == ChangeOperation::Create
                && change.state == ChangeState::Written
                && change.reason.is_empty()
                && !self.operators.contains_key(&change.operator);
            if !is_unseen {
                continue;
            }
            match self.changes.find(change).await {
                Ok(Some(_)) => {}
                Ok(None) => {
                    change.state = ChangeState::Failed;
                    change.reason = Reason::Deleting.to_string();
                    change.message =
                        format!("{} was deleted before it was installed", change.operator);
                }
                Err(error) => {
                    tracing::debug!(error = chain(&error), "cannot ask what was created");
                    return false;
                }
            }
        }
        true
    }
}

/// Returns whether an Action that fails for a reason before it has written anything is planned
/// again: it may wait for an approval then.
fn is_decided_again(reason: Reason) -> bool {
    matches!(reason, Reason::PlanChanged | Reason::ApprovalRequired | Reason::PlanRejected)
}

/// Returns whether a change requested a release and the request was refused.
fn is_refused(change: &PlannedChange) -> bool {
    change.operation == ChangeOperation::UpdateRelease && change.state == ChangeState::Failed
}
