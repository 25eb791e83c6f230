//! What is asked for becomes what is applied: requests, their acceptance, pauses.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use plimsoll_api::config::{ClusterVersionStatus, Release, Update};
use plimsoll_api::progress::Deletion;
use plimsoll_api::{CLUSTER_VERSION_NAME, Condition, ConditionStatus, ObjectKey, Reason};
use plimsoll_content::Payload;
use plimsoll_plan::plan::mode::Mode;
use plimsoll_plan::progress::pause::Pause;
use plimsoll_plan::spec::validate;
use plimsoll_plan::status::Updates;
use plimsoll_plan::update::acceptance::LoadStep;
use plimsoll_plan::update::acceptance::{self, Wanted};
use plimsoll_plan::update::acknowledge;
use plimsoll_plan::update::offers;
use plimsoll_plan::update::preconditions::{Facts, Objecting};
use plimsoll_plan::update::target;
use plimsoll_plan::update::upgradeable::{self, Objection};
use tokio::time::Instant;

use super::{Controller, Work};
use crate::events::Severity;
use crate::release_loader::LoadOutcome;

/// How often preconditions that do not hold are checked again.
const RECONSIDER_INTERVAL: Duration = Duration::from_secs(1);

/// What preconditions are judged by; owns what [`Facts`] borrow.
struct PreconditionFacts {
    current: Release,
    status: ClusterVersionStatus,
    objection: Option<Objection>,
    overrides_set: bool,
    repeated: Vec<Deletion>,
    available: Option<Vec<Release>>,
    retrieved: Option<Condition>,
}

impl PreconditionFacts {
    fn with<T>(&self, use_facts: impl FnOnce(&Facts<'_>) -> T) -> T {
        let objecting = self
            .objection
            .as_ref()
            .map(|it| Objecting { reason: &it.reason, message: &it.message });
        use_facts(&Facts {
            current: &self.current,
            history: &self.status.history,
            objection: objecting.as_ref(),
            overrides_set: self.overrides_set,
            repeated: &self.repeated,
            available: self.available.as_deref(),
            retrieved: self.retrieved.as_ref(),
        })
    }
}

impl Work {
    /// Looks at the request, if it or what it is judged by changed, and at a rejected release, if
    /// it is time.
    pub(super) async fn consider(&mut self, controller: &Controller) {
        // A first installation is finished before anything else is begun.
        if !self.takes_releases() {
            return;
        }
        let now = controller.clock.now();
        let retry = self.loader.wake_at().is_some_and(|at| at <= now);
        let held_up = self.loader.is_held_up() && Instant::now() >= self.reconsider_at;
        let mut accepted = None;
        if std::mem::take(&mut self.request_changed) {
            let wanted = self.wanted();
            accepted = self.loader.ask(wanted, now);
        }
        if accepted.is_none() && (retry || held_up) {
            self.reconsider_at = Instant::now() + RECONSIDER_INTERVAL;
            let judged = self.judged(controller, self.loader.payload(), now);
            accepted = judged.with(|facts| self.loader.reconsider(facts, now));
        }
        self.emit_acceptance();
        if let Some(accepted) = accepted {
            self.apply_update(controller, accepted).await;
        }
    }

    /// Handles the outcome of a load.
    pub(super) async fn brought(&mut self, controller: &Controller, brought: LoadOutcome) {
        let listed = matches!(brought, LoadOutcome::Listed(_));
        let now = controller.clock.now();
        let judged = self.judged(controller, brought.payload(), now);
        let accepted = judged.with(|facts| self.loader.handle(brought, facts, now));
        if listed {
            self.refresh_updates();
        } else {
            self.reporter.touch();
        }
        self.emit_acceptance();
        if let Some(accepted) = accepted {
            self.apply_update(controller, accepted).await;
        }
    }

    /// Finds out what the store offers from here.
    pub(super) fn refresh_updates(&mut self) {
        let mut updates = Updates {
            acknowledgement: acknowledge::missing(&self.acknowledgements, &self.release.version),
            ..Updates::default()
        };
        if self.loader.has_store() {
            match self.loader.heads() {
                Ok(heads) => {
                    let (available, retrieved) =
                        offers::available(&self.release, &self.spec.channel, heads);
                    updates.available = Some(available).filter(|_| retrieved.is_ok());
                    updates.retrieved = retrieved;
                }
                Err(error) => {
                    let message = format!("Unable to retrieve available updates: {error}");
                    updates.retrieved = Err((Reason::RemoteFailed, message));
                    // What was known is still there, as far as anybody knows.
                    updates.available = self.updates.available.take();
                }
            }
        }
        self.request_changed = true;
        if updates != self.updates {
            self.updates = updates;
            self.reporter.touch();
        }
    }

    /// A ConfigMap with gates or answers changed.
    pub(super) fn acknowledged(&mut self, name: &str, data: Option<BTreeMap<String, String>>) {
        if name == acknowledge::GATES.1 {
            self.acknowledgements.gates = data;
        } else {
            self.acknowledgements.acks = data;
        }
        self.reconsider_at = Instant::now();
        self.refresh_updates();
    }

    /// The annotation that pauses updates is as it is.
    pub(super) fn pause(&mut self, annotation: Option<String>, now: Timestamp) {
        if annotation == self.annotated {
            return;
        }
        self.annotated = annotation;
        let pause = Pause::parse(self.annotated.as_deref());
        self.hold(pause, now);
        self.session.start_due(now);
        if pause.is_none() && self.reported_pause.take().is_some() {
            let note = format!("The update to {} goes on", self.release.version);
            self.emit(Severity::Normal, Reason::UpdateResumed, note);
        }
        self.reporter.touch();
    }

    /// Holds the update, or lets it go on. While updating, the next run level becomes a number, so
    /// that it stays the same when something is planned anew.
    pub(super) fn hold(&mut self, pause: Option<Pause>, now: Timestamp) {
        self.session.execution.set_pause(pause, now);
        self.pause = pause;
        self.pin_pause();
    }

    /// Keeps the run level that the next one turned out to be.
    pub(super) fn pin_pause(&mut self) {
        let progress = self.session.progress();
        if progress.mode() == Mode::Updating {
            self.pause = progress.pause_level().map(Pause::Before);
        }
    }

    /// Takes note of an update that is held now.
    fn notice_pause(&mut self) {
        let at = self.session.progress().paused_at();
        if at.is_none() || at == self.reported_pause {
            return;
        }
        self.reported_pause = at;
        let level = at.unwrap_or_default();
        let note =
            format!("The update to {} is paused before run level {level}", self.release.version);
        self.emit(Severity::Normal, Reason::UpdatePaused, note);
        self.reporter.touch();
    }

    /// Takes note of an update that is held and of a release that has been applied in full.
    pub(super) fn notice(&mut self) {
        self.notice_pause();
        let progress = self.session.progress();
        if progress.passes() == 0 || std::mem::replace(&mut self.completion_reported, true) {
            return;
        }
        // A request that had to wait for the installation is looked at now.
        self.request_changed = true;
        if progress.plan().mode == Mode::Reconciling {
            return;
        }
        let note = format!("Done applying {}", self.release.version);
        self.emit(Severity::Normal, Reason::UpdateCompleted, note);
    }

    /// Tells how far the release that is asked for has come, when that changed.
    fn emit_acceptance(&mut self) {
        let load = self.loader.status();
        let now = (load.step, load.failure.is_some());
        if self.reported_load == Some(now) {
            return;
        }
        let first = self.reported_load.replace(now).is_none();
        if first && load.step == LoadStep::Loaded {
            return;
        }
        let (status, reason, message) = load.condition();
        let severity = match status {
            ConditionStatus::False => Severity::Warning,
            ConditionStatus::True | ConditionStatus::Unknown => Severity::Normal,
        };
        self.emit(severity, reason, message);
        self.reporter.touch();
    }

    /// What the spec asks for, as far as it is valid.
    fn wanted(&self) -> Option<Wanted> {
        let status = ClusterVersionStatus {
            available_updates: self.updates.available.clone(),
            desired: self.release.clone(),
            history: self.reporter.statuses().status().history.clone(),
            ..ClusterVersionStatus::default()
        };
        let violations = validate::cluster_version(CLUSTER_VERSION_NAME, &self.spec, &status);
        let spec = validate::without_invalid(&self.spec, &violations);
        let available = status.available_updates.unwrap_or_default();
        let multi = |update: &Update| {
            let version = Some(&update.version).filter(|version| !version.is_empty());
            let version = version.unwrap_or(&self.release.version);
            self.loader.of_architecture(version, &update.architecture)
        };
        let update = spec.desired_update.as_ref();
        acceptance::resolve(update, &available, update.and_then(multi).as_ref())
    }

    /// What the release that is asked for is judged by, as far as its payload is known.
    fn judged(
        &self,
        controller: &Controller,
        asked: Option<&Payload>,
        now: Timestamp,
    ) -> PreconditionFacts {
        let ledger = self.session.execution.removals().ledger();
        let repeated = asked.map(|payload| {
            let (profile, overrides) = (&controller.settings.profile, &self.request.overrides);
            let capabilities = &self.capabilities;
            let context =
                target::context(payload, profile, &self.features, capabilities, overrides);
            ledger.repeated(&payload.manifests, &context)
        });
        let status = self.reporter.statuses().status();
        let overrides = self.overrides.told(now);
        let deletions: Vec<ObjectKey> = ledger.unfinished().cloned().collect();
        let objections = upgradeable::conditions(
            overrides.as_deref(),
            self.session.progress().mode() != Mode::Reconciling,
            &self.session.execution.operators().objections(),
            self.updates.acknowledgement.as_ref(),
            &deletions,
        );
        PreconditionFacts {
            current: self.release.clone(),
            status: ClusterVersionStatus {
                history: status.history.clone(),
                ..ClusterVersionStatus::default()
            },
            objection: objections.into_iter().next(),
            overrides_set: overrides.is_some(),
            repeated: repeated.unwrap_or_default(),
            available: self
                .loader
                .has_store()
                .then(|| self.updates.available.clone().unwrap_or_default()),
            retrieved: status.conditions.iter().find(|it| it.type_ == "RetrievedUpdates").cloned(),
        }
    }
}
