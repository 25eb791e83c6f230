//! What a process reads when it starts, and how the loop starts with that.

use std::sync::Arc;

use kube::ResourceExt as _;
use kube::core::DynamicObject;
use plimsoll_api::config::ClusterVersionStatus;
use plimsoll_api::progress::ReleaseProgressStatus;
use plimsoll_api::{CLUSTER_VERSION, CLUSTER_VERSION_NAME};
use plimsoll_content::inclusion::Context;
use plimsoll_content::payload::Payload;
use plimsoll_plan::plan::features::Features;
use plimsoll_plan::reconciler::Reconciler;
use plimsoll_plan::reconciler::desired::{CapabilityRules, DesiredInputs, DesiredState, record};
use plimsoll_plan::reconciler::events::{ReportedEvents, capability_implied};
use plimsoll_plan::reconciler::pausing::PauseRequest;
use plimsoll_plan::reconciler::removals::InheritedObjects;
use plimsoll_plan::reconciler::startup::{
    Start, Startup, enabled_before, is_other_release, starting_status,
};
use plimsoll_plan::reconciler::timers::Timers;
use plimsoll_plan::reconciler::updates::{UpdateRequests, go_architecture};
use plimsoll_plan::spec::overrides::Overrides;
use plimsoll_plan::update::acknowledge;
use plimsoll_plan::update::operators::OperatorsOnPlatform;
use plimsoll_source::store::Listing;
use serde::Deserialize;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::Controller;
use super::apply_update::log_plan;
use super::control_loop::ControlLoop;
use super::features::{self, FeatureWatch};
use super::observed::{Annotations, read_cluster_version};
use super::operators_watch::{OperatorsWatch, operators_on_platform};
use crate::bootstrap::{self, retry_until_ok};
use crate::clock::Stopwatch;
use crate::error::Error;
use crate::events::Recorder;
use crate::observe::{self, ConfigObservation};
use crate::release_loader::{self, ReleaseLoader};
use crate::report::{Reporter, SeenStatuses};
use crate::resources::Resources;
use crate::session::Session;
use crate::versioned_status::VersionedStatus;
use crate::write::Writer;
use crate::{dry_run, implicit, owners};

/// What was read from the cluster and from the payload store.
pub(super) struct InitialState {
    cluster_version: DynamicObject,
    /// What an earlier process recorded in ReleaseProgress.
    recorded: ReleaseProgressStatus,
    /// The status to start from, and whether the ClusterVersion does not have it.
    status: (ClusterVersionStatus, bool),
    /// The ClusterVersion and ReleaseProgress as they were read.
    seen: SeenStatuses,
    resources: Resources,
    recorder: Recorder,
    rules: watch::Sender<CapabilityRules>,
    payload: Arc<Payload>,
    listing: Listing,
    features: Features,
    feature_watch: FeatureWatch,
    operators: OperatorsOnPlatform,
    operators_watch: OperatorsWatch,
}

impl Controller {
    /// Reads the initial state, and watches what configures the controller from then on.
    ///
    /// # Errors
    ///
    /// When the API server rejects a request for good, or the controller is stopped.
    pub(super) async fn read_initial_state(
        &mut self,
        writer: &Writer,
        recorder: &Recorder,
        rules: &watch::Sender<CapabilityRules>,
        stop: &CancellationToken,
        watches: &mut JoinSet<()>,
        sender: mpsc::Sender<ConfigObservation>,
    ) -> Result<InitialState, Error> {
        let client = &self.client;
        let create = self.settings.create.as_ref();
        let progress = retry_until_ok(stop, || bootstrap::recorded_progress(client)).await?;
        let mut recorded = progress.as_ref().map(recorded_progress).unwrap_or_default();
        let lost = recorded.cluster_version.clone();
        let cluster_version = retry_until_ok(stop, || {
            bootstrap::cluster_version(client, writer, create, lost.as_ref(), stop)
        })
        .await?;
        let uid = cluster_version.uid().unwrap_or_default();
        let (spec, status) = read_cluster_version(&cluster_version);
        if let Some(message) = create.and_then(|it| bootstrap::unused_choice(it, &spec)) {
            tracing::info!("{message}");
        }
        let resources = retry_until_ok(stop, || async {
            Resources::discover(client).await.map_err(|source| Error::Discover { source })
        })
        .await?;
        owners::release(client, writer, &resources, progress.as_ref(), &status).await;
        let was_there = progress.is_some();
        let progress = retry_until_ok(stop, || bootstrap::release_progress(client, writer)).await?;
        if !was_there {
            // It may have been there after all: a server that answers that there is none can be wrong
            // once, and what is recorded is not to be done again.
            recorded = recorded_progress(&progress);
        }
        let seen = SeenStatuses {
            cluster_version: VersionedStatus::of(&cluster_version),
            release_progress: VersionedStatus::of(&progress),
        };
        let (status, is_restored) = starting_status(status, &recorded);
        if is_restored {
            tracing::info!(
                version = status.desired.version,
                "the ClusterVersion is a new one; it continues from what ReleaseProgress recorded"
            );
        }
        watches.spawn(observe::watch_named(
            self.client.clone(),
            CLUSTER_VERSION,
            CLUSTER_VERSION_NAME,
            ConfigObservation::ClusterVersion,
            Some(|| ConfigObservation::ClusterVersionInterrupted),
            sender.clone(),
        ));
        watches.spawn(observe::watch_release_progress(self.client.clone(), sender.clone()));
        for name in [acknowledge::GATES, acknowledge::ACKS] {
            watches.spawn(observe::watch_config_map(self.client.clone(), name, sender.clone()));
        }
        let features = retry_until_ok(stop, || features::find(client, &self.settings)).await?;
        let operators = retry_until_ok(stop, || operators_on_platform(client)).await?;
        let operators_watch = OperatorsWatch::start(self.client.clone(), sender.clone(), watches);
        let feature_watch =
            FeatureWatch::start(self.client.clone(), &self.settings, sender, &resources);
        let given = Arc::clone(&self.release.borrow_and_update());
        let profile = &self.settings.profile;
        let (payload, listing) = release_loader::first_payload(
            self.store.as_ref(),
            &status.desired,
            given,
            profile,
            stop,
        )
        .await?;
        if is_other_release(&recorded, &payload.image) {
            let before = enabled_before(&status, &recorded);
            let now = self.clock.now();
            let terms = Annotations::of(&cluster_version).override_terms;
            let overrides = Overrides::parse(&spec.overrides, terms.as_deref()).for_inclusion(now);
            let context = Context { overrides, ..features.context(&payload, profile) };
            let implied = retry_until_ok(stop, || async {
                implicit::by_what_is_there(client, &resources, &payload, &context, &before)
                    .await
                    .map_err(|source| Error::Discover { source })
            })
            .await?;
            for implied in &implied {
                recorder.emit(&uid, capability_implied(implied));
                recorded.capabilities.implied.push(record(implied, now));
            }
        }
        let (recorder, rules) = (recorder.clone(), rules.clone());
        Ok(InitialState {
            cluster_version,
            recorded,
            status: (status, is_restored),
            seen,
            resources,
            recorder,
            rules,
            payload,
            listing,
            features,
            feature_watch,
            operators,
            operators_watch,
        })
    }

    /// The objects that an earlier process applied with another plan of this release or of another
    /// one.
    async fn inventory(
        &self,
        recorded: &ReleaseProgressStatus,
        resources: &Resources,
        stop: &CancellationToken,
    ) -> Result<InheritedObjects, Error> {
        let ours = retry_until_ok(stop, || dry_run::ours(&self.client, resources)).await?;
        let cluster_kinds = dry_run::cluster_kinds(resources);
        Ok(InheritedObjects { version: recorded.version.clone(), ours, cluster_kinds })
    }
}

impl ControlLoop {
    /// Starts where an earlier process left the cluster.
    ///
    /// # Errors
    ///
    /// When the API server rejects a request for good, or the controller is stopped.
    pub(super) async fn start(
        controller: &Controller,
        state: InitialState,
        stop: &CancellationToken,
    ) -> Result<Self, Error> {
        let InitialState { cluster_version, recorded, resources, payload, .. } = state;
        let (now, settings) = (controller.clock.now(), &controller.settings);
        let stopwatch = Stopwatch::start(now);
        let (spec, _) = read_cluster_version(&cluster_version);
        let (status, is_restored) = state.status;
        let annotations = Annotations::of(&cluster_version);
        let recorded_annotations = annotations.recorded();
        let desired = DesiredState::new(DesiredInputs {
            profile: &settings.profile,
            always_enabled: &settings.always_enabled,
            payload,
            spec,
            override_terms: annotations.override_terms.as_deref(),
            features: state.features,
            enabled_before: &enabled_before(&status, &recorded),
            implied: recorded.capabilities.implied.clone(),
            now,
        });
        let startup = tracing::debug_span!("plan", version = %desired.release().version)
            .in_scope(|| Startup::new(&desired, &status.history, &recorded));
        let inherited = match startup.needs_inventory() {
            true => Some(controller.inventory(&recorded, &resources, stop).await?),
            false => None,
        };
        if let Some(refusal) = startup.refusal(&status.history, inherited.as_ref()) {
            if !settings.force_release {
                return Err(Error::Refused(refusal));
            }
            tracing::warn!("{refusal}; it is begun all the same, as --force-release asks for");
        }
        let pause = annotations.pause.as_deref();
        let start = startup.finish(inherited.as_ref(), annotations.prune, pause, now);
        let Start { plan, removals, done, pause, begun } = start;
        log_plan(&plan);
        if !done.is_empty() {
            let (done, total) = (done.len(), plan.steps.len());
            tracing::info!(done, total, "resuming where an earlier process stopped");
        }
        let client = controller.client.clone();
        let mut session = Session::new(client.clone(), plan, resources, removals, stopwatch, now);
        session.execution.resume(&done, now);
        let heads = controller.store.as_ref().map(|_| state.listing.releases.clone());
        let architecture = go_architecture(std::env::consts::ARCH);
        let uptime = stopwatch.uptime();
        let requests = UpdateRequests::new(&desired, heads, state.operators, architecture, uptime);
        let mut reconciler = Reconciler {
            requests,
            pause: PauseRequest::new(annotations.pause),
            events: ReportedEvents::recorded(&status.conditions, &recorded.overrides),
            timers: Timers::new(uptime),
            generation: cluster_version.metadata.generation.unwrap_or_default(),
            annotations: recorded_annotations,
            begun,
            limits: settings.limits.clone(),
            desired,
        };
        reconciler.pause.apply(pause, &mut session.execution, now);
        reconciler.events.operators_recorded(session.progress());
        let loader =
            ReleaseLoader::new(controller.store.clone(), &settings.profile, &state.listing);
        let mut reporter = Reporter::new(client, stopwatch, status, &recorded, state.seen);
        if is_restored {
            reporter.cluster_version_lost();
        }
        let mut control_loop = Self {
            uid: cluster_version.uid().unwrap_or_default().into(),
            is_deleted: false,
            created: cluster_version.creation_timestamp().map(|time| time.0),
            stopwatch,
            reconciler,
            session,
            loader,
            reporter,
            recorder: state.recorder,
            feature_watch: state.feature_watch,
            operators_watch: state.operators_watch,
            rules: state.rules,
            is_cluster_version_unknown: false,
            is_storage_rolled_back: false,
            unrecorded: None,
        };
        control_loop.publish_rules();
        if !control_loop.is_status_written() {
            control_loop.session.execution.hold();
        }
        Ok(control_loop)
    }
}

/// What an earlier process recorded.
fn recorded_progress(progress: &DynamicObject) -> ReleaseProgressStatus {
    let mut recorded: ReleaseProgressStatus =
        Deserialize::deserialize(&progress.data["status"]).unwrap_or_default();
    // Earlier versions recorded what the add-on layer installs for itself.
    recorded.orphans.retain(|orphan| !dry_run::is_own(&orphan.object));
    recorded
}
