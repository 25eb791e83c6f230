//! Requested releases: commands to the release loader, and what it found.

use plimsoll_plan::reconciler::updates::{LoadCommand, LoadEvent, UpdateContext};

use super::Controller;
use super::control_loop::ControlLoop;

impl ControlLoop {
    /// Looks at the request if it changed, and at a rejected release if it is time.
    pub(super) async fn consider_request(&mut self, controller: &Controller) {
        let history = &self.reporter.statuses().status().history;
        if self.reconciler.requests.history_changed(history, &self.reconciler.desired) {
            self.reporter.touch();
        }
        let context = UpdateContext {
            desired: &self.reconciler.desired,
            execution: &self.session.execution,
            status: self.reporter.statuses().status(),
            now: controller.clock.now(),
            uptime: self.stopwatch.uptime(),
        };
        let command = self.reconciler.requests.consider(&context);
        self.load(controller, command).await;
    }

    /// The release loader found something.
    pub(super) async fn release_found(&mut self, controller: &Controller, event: LoadEvent) {
        let is_listing = matches!(event, LoadEvent::Listed(_));
        let context = UpdateContext {
            desired: &self.reconciler.desired,
            execution: &self.session.execution,
            status: self.reporter.statuses().status(),
            now: controller.clock.now(),
            uptime: self.stopwatch.uptime(),
        };
        let (command, is_changed) = self.reconciler.requests.handle(event, &context);
        if is_changed || !is_listing {
            self.reporter.touch();
        }
        self.load(controller, command).await;
    }

    async fn load(&mut self, controller: &Controller, command: LoadCommand) {
        if let Some(draft) = self.reconciler.events.load(self.reconciler.requests.load()) {
            self.emit(draft);
            self.reporter.touch();
        }
        match command {
            LoadCommand::Nothing => {}
            LoadCommand::Cancel => self.loader.cancel(),
            LoadCommand::Retrieve { ticket, image } => self.loader.retrieve(ticket, image),
            LoadCommand::Load { ticket, image } => self.loader.load(ticket, image),
            LoadCommand::Apply(accepted) => self.apply_update(controller, accepted).await,
        }
    }

    /// Computes the available updates anew.
    pub(super) fn refresh_updates(&mut self) {
        if self.reconciler.requests.refresh(&self.reconciler.desired) {
            self.reporter.touch();
        }
    }
}
