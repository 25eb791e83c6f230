//! Another release or another plan takes the place of the one under way.

use std::sync::Arc;

use plimsoll_plan::plan::Plan;
use plimsoll_plan::plan::mode::Mode;
use plimsoll_plan::reconciler::desired::AcceptedRelease;
use plimsoll_plan::reconciler::events;
use plimsoll_plan::reconciler::startup::done_of_begun;
use plimsoll_plan::reconciler::timers::WRITE_RETRY_INTERVAL;

use super::Controller;
use super::control_loop::ControlLoop;
use crate::session::Session;

impl ControlLoop {
    /// A first installation is completed before another release is begun (CV-9.3).
    pub(super) fn takes_releases(&self) -> bool {
        self.session.progress().mode() != Mode::Initializing
    }

    /// Whoever runs the controller gave it another release.
    pub(super) async fn release_given(&mut self, controller: &mut Controller) {
        let payload = Arc::clone(&controller.release.borrow_and_update());
        let accepted = AcceptedRelease { payload, verified: false, accepted_risks: String::new() };
        self.apply_update(controller, accepted).await;
    }

    /// Applies the release whose capabilities could not be recorded, once it is time.
    pub(super) async fn retry_update(&mut self, controller: &Controller) {
        let uptime = self.stopwatch.uptime();
        if let Some((_, accepted)) = self.unrecorded.take_if(|(at, _)| *at <= uptime) {
            self.apply_update(controller, accepted).await;
        }
    }

    /// A release takes the place of the one that is applied.
    pub(super) async fn apply_update(
        &mut self,
        controller: &Controller,
        accepted: AcceptedRelease,
    ) {
        let now = controller.clock.now();
        // The status shows how far the release before came when it is left.
        let steady = self.stopwatch.steady_time();
        let context = self.reconciler.status_context(&self.session.execution, now, steady);
        self.reporter.compute(&context);
        if !self.enable_implied(controller, &accepted).await {
            // A process that took over now would not know the capabilities.
            let retry_at = self.stopwatch.uptime() + WRITE_RETRY_INTERVAL;
            self.unrecorded = Some((retry_at, accepted));
            return;
        }
        self.unrecorded = None;
        let desired = &mut self.reconciler.desired;
        let from = desired.release().version.clone();
        desired.release_changed(accepted, controller.clock.now());
        let (release, risks) = (desired.release(), desired.accepted_risks());
        let started = events::update_started(&from, &release.version, risks);
        self.reconciler.requests.release_changed(desired);
        self.reconciler.pause.release_changed();
        self.reconciler.events.release_changed();
        self.loader.cancel();
        self.reporter.superseded();
        self.publish_rules();
        self.refresh_updates();
        self.emit(started);
        self.replan(controller).await;
    }

    /// Enables the capabilities that a release makes necessary and records them in the cluster,
    /// before the release is begun (CV-23); false if that failed.
    async fn enable_implied(
        &mut self,
        controller: &Controller,
        accepted: &AcceptedRelease,
    ) -> bool {
        let now = controller.clock.now();
        let implied = self.reconciler.desired.imply(&accepted.payload, now);
        self.emit_all(implied.iter().map(events::capability_implied));
        // An attempt before this one may have enabled some without recording them.
        if self.reconciler.desired.implied().is_empty() {
            return true;
        }
        let steady = self.stopwatch.steady_time();
        let context = self.reconciler.status_context(&self.session.execution, now, steady);
        self.reporter.persist(&context).await
    }

    /// Plans anew if what configures the plan makes a difference: a capability without manifests
    /// makes none.
    pub(super) async fn replan_if_changed(&mut self, controller: &Controller) {
        let current = self.session.progress().plan();
        let removals = self.session.execution.removals();
        let world = self.session.progress().world();
        let next = world.normalized(self.reconciler.desired.plan(current.mode));
        let next = removals.and_prune(next);
        if !next.has_steps_of(current) {
            self.replan(controller).await;
        }
    }

    /// Plans anew. What is done and unchanged stays done; any change but while initializing is an
    /// update (CV-9.2).
    pub(super) async fn replan(&mut self, controller: &Controller) {
        // A request of the old plan that reached the server after one of the new plan would undo
        // it unseen.
        self.session.drain(self.stopwatch.steady_time()).await;
        let now = self.stopwatch.steady_time();
        let mode = match self.session.progress().mode() {
            Mode::Initializing => Mode::Initializing,
            Mode::Updating | Mode::Reconciling => Mode::Updating,
        };
        let desired = &self.reconciler.desired;
        let plan = tracing::debug_span!("plan", version = %desired.release().version, ?mode)
            .in_scope(|| self.session.progress().world().normalized(desired.plan(mode)));
        let mut removals = self.session.execution.take_removals();
        let plan = removals.replanned(self.session.progress().plan(), plan, now);
        log_plan(&plan);
        let mut session = Session::new(
            controller.client.clone(),
            Arc::new(plan),
            self.session.resources().clone(),
            removals,
            self.stopwatch,
            now,
        );
        session.execution.set_pause(self.reconciler.pause.current(), now);
        session.execution.succeed(&mut self.session.execution, now);
        let (outgoing, plan) = (self.session.progress().plan(), session.progress().plan());
        let is_other = outgoing.release.image != plan.release.image;
        if let Some(begun) = self.reconciler.begun.take_if(|_| is_other) {
            let done = done_of_begun(&begun, plan, outgoing);
            session.execution.resume(&done, now);
        }
        self.session = session;
        self.reconciler.pause.pin(&self.session.execution);
        self.reconciler.events.plan_changed();
        if !self.is_status_written() {
            self.session.execution.hold();
        }
        self.session.start_due(now);
    }
}

/// Logs the size of a plan.
pub(super) fn log_plan(plan: &Plan) {
    tracing::info!(
        version = %plan.release.version,
        mode = ?plan.mode,
        steps = plan.steps.len(),
        excluded = plan.excluded.len(),
        "planned"
    );
}
