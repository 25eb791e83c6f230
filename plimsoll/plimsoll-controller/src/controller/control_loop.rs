//! The loop: turns watches, timers and answers into events, hands them to the
//! [`Reconciler`] and the plan under way, and carries out what they say.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use plimsoll_api::CLUSTER_VERSION;
use plimsoll_plan::reconciler::desired::{AcceptedRelease, CapabilityRules};
use plimsoll_plan::reconciler::events::{self, EventDraft};
use plimsoll_plan::reconciler::execution::{ExecutionEvent, Observation};
use plimsoll_plan::reconciler::{Reconciler, Uptime};
use plimsoll_plan::removal::PRUNE;
use tokio::sync::{mpsc, watch};
use tokio::time::sleep_until;
use tokio_util::sync::CancellationToken;

use super::Controller;
use super::features::FeatureWatch;
use super::operators_watch::OperatorsWatch;
use super::windows_watch::WindowsWatch;
use crate::clock::Stopwatch;
use crate::events::Recorder;
use crate::observe::ConfigObservation;
use crate::release_loader::ReleaseLoader;
use crate::report::Reporter;
use crate::session::Session;
use crate::view::View;
use crate::write::Writer;

/// A running controller.
pub(super) struct ControlLoop {
    /// The uid of the ClusterVersion, which events are about.
    pub(super) uid: Arc<str>,
    /// The ClusterVersion that this process started with is gone.
    pub(super) is_deleted: bool,
    /// When the ClusterVersion was created; `None` if it does not say.
    pub(super) created: Option<Timestamp>,
    pub(super) stopwatch: Stopwatch,
    pub(super) reconciler: Reconciler,
    pub(super) session: Session,
    pub(super) loader: ReleaseLoader,
    pub(super) reporter: Reporter,
    pub(super) recorder: Recorder,
    pub(super) feature_watch: FeatureWatch,
    pub(super) operators_watch: OperatorsWatch,
    pub(super) windows_watch: WindowsWatch,
    /// What changes of `spec.capabilities` are judged by.
    pub(super) rules: watch::Sender<CapabilityRules>,
    /// Whether the connection of the ClusterVersion's watch was lost and it was not listed since: what
    /// is requested may have changed, so nothing is started.
    pub(super) is_cluster_version_unknown: bool,
    /// Whether the API server's storage went back to an earlier state.
    pub(super) is_storage_rolled_back: bool,
    /// A release that is accepted although the capabilities that it makes necessary are not
    /// recorded in the cluster yet, and when to try that again.
    pub(super) unrecorded: Option<(Uptime, AcceptedRelease)>,
}

/// Why a [`ControlLoop`] ended.
pub(super) enum LoopExit {
    /// It was stopped.
    Stopped,
    /// The status that it started with is not the current one.
    Outdated,
    /// The API server's storage went back to an earlier state.
    RolledBack,
    /// The ClusterVersion was deleted.
    Deleted,
}

impl ControlLoop {
    /// Runs until it is stopped or has to start again.
    pub(super) async fn run(
        &mut self,
        controller: &mut Controller,
        configuration: &mut mpsc::Receiver<ConfigObservation>,
        stop: &CancellationToken,
    ) -> LoopExit {
        self.session.start_due(self.stopwatch.steady_time());
        while !self.reporter.is_outdated() && !self.is_rolled_back() && !self.is_deleted {
            self.emit_progress(self.stopwatch.steady_time());
            self.consider_request(controller).await;
            self.retry_update(controller).await;
            self.apply_overrides(controller).await;
            self.update_prune_annotation(controller).await;
            self.report(controller);
            self.start_held_plan(self.stopwatch.steady_time());
            let wake_at = self.wake_at(controller.clock.now());
            tokio::select! {
                // In order, so that a simulation is repeatable; what is rare comes first, so that a
                // burst of events does not hold it up.
                biased;
                () = stop.cancelled() => {
                    tracing::info!(
                        "stopping: waiting for requests in flight, then writing the last status"
                    );
                    self.end(controller).await;
                    return LoopExit::Stopped;
                }
                () = self.reporter.written() => self.is_deleted |= self.reporter.is_deleted(),
                Some(observation) = configuration.recv() => {
                    self.configuration_observed(controller, observation).await;
                }
                event = self.loader.next() => self.release_found(controller, event).await,
                Ok(()) = controller.release.changed(), if self.takes_releases() => {
                    self.release_given(controller).await;
                }
                event = self.session.next() => {
                    self.plan_event(event, self.stopwatch.steady_time());
                    self.reporter.touch();
                }
                () = sleep_until(self.stopwatch.instant(wake_at)) => {
                    self.handle_timeout(self.stopwatch.steady_time());
                }
            }
        }
        if self.is_deleted {
            // ReleaseProgress keeps what the ClusterVersion held.
            self.end(controller).await;
            return LoopExit::Deleted;
        }
        self.session.drain(self.stopwatch.steady_time()).await;
        match self.is_rolled_back() {
            true => LoopExit::RolledBack,
            false => LoopExit::Outdated,
        }
    }

    /// Returns whether the API server's storage went back to an earlier state.
    fn is_rolled_back(&self) -> bool {
        self.is_storage_rolled_back || self.session.execution.is_rolled_back()
    }

    /// Waits for the requests in flight, and writes the last status.
    async fn end(&mut self, controller: &Controller) {
        self.session.drain(self.stopwatch.steady_time()).await;
        let (now, steady) = (controller.clock.now(), self.stopwatch.steady_time());
        let context = self.reconciler.status_context(&self.session.execution, now, steady);
        self.reporter.finish(&context).await;
    }

    /// Starts a plan once the status names its release and capabilities. A process that took over
    /// before that would reconcile the cluster to the release before, and undo what is there of
    /// this one; or not know that a capability is enabled that has objects already.
    fn start_held_plan(&mut self, now: Timestamp) {
        let is_known = !self.is_cluster_version_unknown;
        if is_known && self.session.execution.is_held() && self.is_status_written() {
            self.session.execution.release();
            self.session.start_due(now);
        }
    }

    /// Returns whether the cluster's status names the release and the capabilities in force.
    pub(super) fn is_status_written(&self) -> bool {
        let desired = &self.reconciler.desired;
        let enabled = &desired.capabilities().enabled;
        self.reporter.statuses().has_written(desired.release(), enabled)
    }

    fn plan_event(&mut self, event: ExecutionEvent, now: Timestamp) {
        if let ExecutionEvent::Observed(Observation::Definition { group, plural }) = &event {
            if group == CLUSTER_VERSION.group {
                self.reporter.definition_changed();
            }
            self.feature_watch.defined(group, plural);
        }
        self.session.handle(event, now);
    }

    fn handle_timeout(&mut self, now: Timestamp) {
        if self.reconciler.timers.handle_timeout(self.stopwatch.uptime()) {
            self.feature_watch.restart_unanswered();
            self.session.sweep(now);
        } else {
            self.session.start_due(now);
        }
    }

    /// Returns when to do something although nothing happened; `now` is the time of day.
    fn wake_at(&self, now: Timestamp) -> Uptime {
        let (uptime, execution) = (self.stopwatch.uptime(), &self.session.execution);
        let steady = self.stopwatch.steady_time();
        let times_of_day = [
            (execution.wake_at(), steady),
            (execution.removals().tracker().due_at(), steady),
            (self.reconciler.desired.overrides().next_expiry(now), now),
            (self.reconciler.requests.opens_at(), now),
        ];
        let times_of_day = times_of_day.into_iter().filter_map(|(at, now)| {
            let delay = Duration::try_from(at?.duration_since(now)).unwrap_or_default();
            Some(uptime + delay)
        });
        let uptimes = [
            self.reconciler.requests.retry_at(),
            Some(self.reporter.statuses().wake_at(uptime)),
            self.reconciler.requests.reconsider_at(),
            self.unrecorded.as_ref().map(|(at, _)| *at),
        ];
        let others = times_of_day.chain(uptimes.into_iter().flatten());
        self.reconciler.timers.wake_at(others, self.is_prune_annotation_stale())
    }

    /// Writes the statuses if it is time, and publishes the state of the controller.
    fn report(&mut self, controller: &Controller) {
        let execution = &self.session.execution;
        let (now, steady) = (controller.clock.now(), self.stopwatch.steady_time());
        let context = self.reconciler.status_context(execution, now, steady);
        let conditions = self.reporter.report(&context);
        let is_status_unwritable = self.reporter.statuses().is_unwritable(self.stopwatch.uptime());
        let Some(conditions) = conditions else {
            controller.view.send_if_modified(|view| {
                let before =
                    std::mem::replace(&mut view.is_status_unwritable, is_status_unwritable);
                before != is_status_unwritable
            });
            return;
        };
        let desired = &self.reconciler.desired;
        let built = desired.payload().release.created.as_ref().and_then(|it| it.parse().ok());
        let created = [self.created, built];
        let view = View {
            is_status_unwritable,
            capabilities: desired.capabilities().clone(),
            implied: desired.implied().to_vec(),
            metrics: Some(self.reporter.metrics(&context, execution.counters(), created)),
            ..View::of(&context, &conditions)
        };
        let drafts = self.reconciler.events.conditions(&conditions);
        self.emit_all(drafts);
        controller.view.send_replace(view);
    }

    /// Emits events about what happened to the plan since the last call.
    fn emit_progress(&mut self, now: Timestamp) {
        let reported = &mut self.reconciler.events;
        let progress = self.session.execution.progress();
        let paused = reported.paused(progress);
        let (is_completed, completed) = reported.completed(progress);
        let operators = reported.operators(progress);
        let is_paused = paused.is_some();
        let removals = self.session.execution.removals_mut().deletion_events(now);
        let drifted = self.session.execution.take_drifted();
        if is_paused || !removals.is_empty() {
            self.reporter.touch();
        }
        if is_completed {
            // A request that had to wait for the installation is looked at now.
            self.reconciler.requests.touch();
        }
        self.emit_all(paused.into_iter().chain(completed));
        self.emit_all(removals.into_iter().map(events::removal));
        self.emit_all(operators);
        self.emit_all(drifted.iter().map(events::drift_repaired));
    }

    /// Emits events about overrides that changed, and plans anew when other ones are in force.
    async fn apply_overrides(&mut self, controller: &Controller) {
        let now = controller.clock.now();
        let overrides = self.reconciler.desired.overrides();
        let changed = self.reconciler.events.overrides(overrides, now);
        let problems = self.reconciler.events.override_problems(overrides);
        if changed.is_some() {
            // Updates are judged by the overrides in force.
            self.reconciler.requests.touch();
        }
        if changed.is_some() || problems.is_some() {
            self.reporter.touch();
        }
        self.emit_all(changed.into_iter().chain(problems).flatten());
        if self.reconciler.desired.are_overrides_changed(now) {
            self.reconciler.desired.refresh(now);
            self.replan_if_changed(controller).await;
            self.reporter.touch();
        }
    }

    /// Takes what was pruned out of the annotation: an object of the same name that becomes an
    /// orphan later is another one.
    async fn update_prune_annotation(&mut self, controller: &Controller) {
        if !self.is_prune_annotation_stale()
            || !self.reconciler.timers.may_write_annotation(self.stopwatch.uptime())
        {
            return;
        }
        let removals = self.session.execution.removals();
        let Some((annotation, remaining)) = removals.stale_annotation() else { return };
        let writer = Writer::new(controller.client.clone());
        let written = writer.replace_annotation(PRUNE, annotation, remaining.annotation()).await;
        if let Err(error) = written {
            tracing::debug!(%error, "could not update the prune annotation; trying again");
        }
    }

    /// Returns whether something that was requested has been pruned, and ReleaseProgress says so: a
    /// process that took over before that would not know it.
    fn is_prune_annotation_stale(&self) -> bool {
        let removals = self.session.execution.removals();
        removals.stale_annotation().is_some()
            && self.reporter.statuses().has_written_orphans(removals.orphans())
    }

    /// Emits an event about the ClusterVersion.
    pub(super) fn emit(&self, draft: EventDraft) {
        self.recorder.emit(&self.uid, draft);
    }

    /// Emits events about the ClusterVersion.
    pub(super) fn emit_all(&self, drafts: impl IntoIterator<Item = EventDraft>) {
        for draft in drafts {
            self.emit(draft);
        }
    }

    /// Tells the webhook what changes of `spec.capabilities` are judged by now.
    pub(super) fn publish_rules(&self) {
        self.rules.send_replace(self.reconciler.desired.capability_rules());
    }
}
