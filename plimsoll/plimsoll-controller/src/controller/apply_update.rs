//! What is asked for changes: the spec, the release, and the plan that follows from them.

use std::sync::Arc;

use jiff::Timestamp;
use kube::ResourceExt;
use kube::core::DynamicObject;
use plimsoll_api::Reason;
use plimsoll_api::config::{ClusterVersionSpec, ClusterVersionStatus, Release};
use plimsoll_api::progress::ReleaseProgressStatus;
use plimsoll_content::payload::Payload;
use plimsoll_plan::capabilities::{self, Capabilities, implied_by_update};
use plimsoll_plan::plan::features::Features;
use plimsoll_plan::plan::mode::Mode;
use plimsoll_plan::plan::{Plan, plan};
use plimsoll_plan::progress::pause::{PAUSE_BEFORE, Pause};
use plimsoll_plan::spec::overrides::Overrides;
use plimsoll_plan::update::target;
use tokio::time::Instant;

use super::{
    Controller, DRAIN_TIME_MAX, PlanRequest, Settings, WRITE_AGAIN, Work, context, overrides, prune,
};
use crate::events::Severity;
use crate::implicit;
use crate::release_loader::Accepted;
use crate::session::Session;
use crate::webhook::Rules;

impl Work {
    /// The ClusterVersion changed, perhaps what it asks for.
    pub(super) async fn asked(&mut self, controller: &Controller, object: &DynamicObject) {
        let (spec, status) = read(object);
        self.generation = object.metadata.generation.unwrap_or_default();
        if object.uid().as_deref() != Some(&*self.owner) {
            tracing::warn!("the ClusterVersion was replaced; its owned objects follow it");
            self.owner = object.uid().unwrap_or_default().into();
        }
        self.overrides = overrides::overrides_of(object, &spec);
        self.spec = spec;
        let kept: Vec<String> = status
            .capabilities
            .enabled_capabilities
            .iter()
            .chain(&self.capabilities.enabled)
            .cloned()
            .collect();
        let before = self.decide_capabilities(controller, &kept);
        self.emit_capabilities(&before);
        self.pause(pause_of(object), controller.clock.now());
        self.refresh_updates();
        let request = self.requested(controller.clock.now());
        let plan = Arc::clone(self.session.progress().plan());
        let prunes =
            self.session.execution.removals_mut().prune_requested(prune::asked(object), &plan);
        if request != self.request || prunes {
            self.request = request;
            self.replan(controller).await;
        }
        self.reporter.touch();
    }

    /// A first installation is finished before anything else is begun (CV-9.3).
    pub(super) fn takes_releases(&self) -> bool {
        self.session.progress().mode() != Mode::Initializing
    }

    /// Another release is to be kept.
    pub(super) async fn released(&mut self, controller: &mut Controller) {
        let payload = Arc::clone(&controller.release.borrow_and_update());
        let accepted = Accepted { payload, verified: false, accepted_risks: String::new() };
        self.apply_update(controller, accepted).await;
    }

    /// Takes up the release that could not be, once it is time.
    pub(super) async fn retry_apply(&mut self, controller: &Controller) {
        if let Some((_, accepted)) = self.unwritten.take_if(|(at, _)| *at <= Instant::now()) {
            self.apply_update(controller, accepted).await;
        }
    }

    /// A release takes the place of the one that is applied.
    pub(super) async fn apply_update(&mut self, controller: &Controller, accepted: Accepted) {
        // How far the release before came is on record before it is left.
        let context = context!(self, controller.clock.now());
        self.reporter.compute(&context);
        if !self.imply(controller, &accepted.payload).await {
            // Without a record of it, a process that died now would not know it any more.
            self.unwritten = Some((Instant::now() + WRITE_AGAIN, accepted));
            return;
        }
        self.unwritten = None;
        let from = self.release.version.clone();
        self.payload = accepted.payload;
        self.verified = accepted.verified;
        self.accepted_risks = accepted.accepted_risks;
        self.release = target::release(&self.payload);
        let before: Vec<String> = self.capabilities.enabled.iter().cloned().collect();
        self.decide_capabilities(controller, &before);
        self.loader.swapped(&self.release, &self.payload);
        self.pause = Pause::parse(self.annotated.as_deref());
        self.reporter.superseded();
        self.reset_gates();
        self.refresh_updates();
        self.request = self.requested(controller.clock.now());
        let mut note = format!("Working towards {}, from {from}", self.release.version);
        if !self.accepted_risks.is_empty() {
            note.push_str("; accepted risks: ");
            note.push_str(&self.accepted_risks);
        }
        self.emit(Severity::Normal, Reason::UpdateStarted, note);
        self.replan(controller).await;
    }

    /// Decides which capabilities are enabled, those of before included; changes of the spec are
    /// judged by them from now on. Returns what was in force.
    pub(super) fn decide_capabilities(
        &mut self,
        controller: &Controller,
        before: &[String],
    ) -> Capabilities {
        let (payload, settings, features) = (&self.payload, &controller.settings, &self.features);
        let decided = enabled(payload, settings, features, &self.spec, before);
        self.rules.send_replace(rules(payload, settings, features, &decided));
        std::mem::replace(&mut self.capabilities, decided)
    }

    /// What is asked for now, as far as it decides the plan.
    pub(super) fn requested(&self, now: Timestamp) -> PlanRequest {
        request(&self.release, &self.overrides, &self.capabilities, now)
    }

    /// Enables what a release makes necessary and has it written down, before the release is begun
    /// (CV-23); false if that failed.
    pub(super) async fn imply(&mut self, controller: &Controller, next: &Payload) -> bool {
        let (profile, before) = (&controller.settings.profile, &self.capabilities.enabled);
        let found = implied_by_update(&self.payload, next, profile, &self.features, before);
        let now = controller.clock.now();
        for implied in &found {
            self.implied.push(implicit::record(implied, &self.recorder, &self.owner, now));
            self.capabilities.enabled.insert(implied.capability.clone());
            self.capabilities.implicit.insert(implied.capability.clone());
        }
        let context = context!(self, now);
        // What an attempt before this one enabled may still have to be written down.
        self.implied.is_empty() || self.reporter.persist(&context).await
    }

    /// Plans anew. What is done and unchanged stays done; any change while not initializing is
    /// an update (CV-9.2).
    pub(super) async fn replan(&mut self, controller: &Controller) {
        // A request of the old plan that reached the server after one of the new plan would undo
        // it unseen.
        self.session.drain(DRAIN_TIME_MAX, controller.clock.now()).await;
        let now = controller.clock.now();
        let mode = match self.session.progress().mode() {
            Mode::Initializing => Mode::Initializing,
            Mode::Updating | Mode::Reconciling => Mode::Updating,
        };
        let planned = make_plan(
            &self.payload,
            &controller.settings,
            &self.features,
            &self.release,
            &self.request,
            &self.capabilities,
            mode,
        );
        let mut removals = self.session.execution.take_removals();
        let planned = removals.replanned(self.session.progress().plan(), planned, now);
        let planned = Arc::new(planned);
        let resources = self.session.resources().clone();
        let client = controller.client.clone();
        let owner = Arc::clone(&self.owner);
        let stopwatch = self.stopwatch;
        let mut session = Session::new(client, owner, planned, resources, removals, stopwatch, now);
        session.execution.set_pause(self.pause, now);
        session.execution.succeed(&mut self.session.execution, now);
        self.session = session;
        self.pin_pause();
        self.completion_reported = false;
        if !self.is_status_written() {
            self.session.execution.hold();
        }
        self.session.start_due(now);
    }
}

/// What an earlier process recorded.
pub(super) fn recorded(progress: &DynamicObject) -> ReleaseProgressStatus {
    let status = progress.data.get("status").cloned().unwrap_or_default();
    serde_json::from_value(status).unwrap_or_default()
}

pub(super) fn read(object: &DynamicObject) -> (ClusterVersionSpec, ClusterVersionStatus) {
    let part = |name: &str| object.data.get(name).cloned().unwrap_or_default();
    let spec = serde_json::from_value(part("spec")).unwrap_or_else(|error| {
        tracing::warn!(%error, "the spec of the ClusterVersion cannot be read; it is ignored");
        ClusterVersionSpec::default()
    });
    (spec, serde_json::from_value(part("status")).unwrap_or_default())
}

pub(super) fn rules(
    payload: &Payload,
    settings: &Settings,
    features: &Features,
    capabilities: &Capabilities,
) -> Rules {
    Rules {
        registry: payload.capabilities.clone(),
        gates: features.gates(payload, &settings.profile),
        enabled: capabilities.enabled.clone(),
    }
}

/// The capabilities that an earlier process left enabled. The status does not name those that the
/// definition of ClusterVersion refuses, nor those of a release that was about to begin.
pub(super) fn enabled_before(
    status: &ClusterVersionStatus,
    recorded: &ReleaseProgressStatus,
) -> Vec<String> {
    let implied = recorded.capabilities.implied.iter().map(|implied| &implied.capability);
    let named = status.capabilities.enabled_capabilities.iter();
    named.chain(&recorded.capabilities.withheld).chain(implied).cloned().collect()
}

/// The capabilities in force, given those that were enabled before.
pub(super) fn enabled(
    payload: &Payload,
    settings: &Settings,
    features: &Features,
    spec: &ClusterVersionSpec,
    before: &[String],
) -> Capabilities {
    let gates = features.gates(payload, &settings.profile);
    capabilities::effective(spec, before, &settings.always_enabled, &payload.capabilities, &gates)
}

pub(super) fn pause_of(cluster_version: &DynamicObject) -> Option<String> {
    cluster_version.annotations().get(PAUSE_BEFORE).cloned()
}

pub(super) fn request(
    release: &Release,
    overrides: &Overrides,
    capabilities: &Capabilities,
    now: Timestamp,
) -> PlanRequest {
    PlanRequest {
        image: release.image.clone(),
        overrides: overrides.for_inclusion(now),
        enabled: capabilities.enabled.iter().cloned().collect(),
    }
}

pub(super) fn make_plan(
    payload: &Payload,
    settings: &Settings,
    features: &Features,
    release: &Release,
    request: &PlanRequest,
    capabilities: &Capabilities,
    mode: Mode,
) -> Plan {
    let _span = tracing::debug_span!("plan", version = %release.version, ?mode).entered();
    let overrides = &request.overrides;
    let context = target::context(payload, &settings.profile, features, capabilities, overrides);
    let planned = plan(&payload.manifests, &context, release.clone(), mode);
    tracing::info!(
        version = %release.version,
        mode = ?mode,
        steps = planned.steps.len(),
        excluded = planned.excluded.len(),
        "planned"
    );
    planned
}
