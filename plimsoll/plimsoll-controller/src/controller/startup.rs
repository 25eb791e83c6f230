//! The start of a process: the initial state, and the loop that continues from it.

use std::sync::Arc;

use jiff::Timestamp;
use kube::core::DynamicObject;
use kube::{Client, ResourceExt as _};
use plimsoll_api::config::{ClusterVersionSpec, ClusterVersionStatus};
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
use plimsoll_plan::windows::MaintenanceWindows;
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
use super::windows_watch::{WindowsWatch, maintenance_windows};
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

/// The initial state, read from the cluster and from the payload store.
pub(super) struct InitialState {
    objects: StatusObjects,
    recorder: Recorder,
    rules: watch::Sender<CapabilityRules>,
    payload: Arc<Payload>,
    listing: Listing,
    features: Features,
    feature_watch: FeatureWatch,
    operators: OperatorsOnPlatform,
    operators_watch: OperatorsWatch,
    windows: MaintenanceWindows,
    windows_watch: WindowsWatch,
}

/// The objects with a status of this controller, and the resources of the cluster.
struct StatusObjects {
    cluster_version: DynamicObject,
    /// The spec of the ClusterVersion; the one that was recorded last if that cannot be read.
    spec: ClusterVersionSpec,
    /// Why the spec cannot be read; `None` if it can.
    unreadable_spec: Option<String>,
    /// The status of the ReleaseProgress, which an earlier process recorded.
    recorded: ReleaseProgressStatus,
    /// The status to start from.
    status: ClusterVersionStatus,
    /// Whether the ClusterVersion does not have that status.
    is_restored: bool,
    /// The ClusterVersion and ReleaseProgress as they were read.
    seen: SeenStatuses,
    resources: Resources,
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
        let mut objects = self.read_objects(writer, stop).await?;
        watch_configuration(client, &sender, watches);
        let features = retry_until_ok(stop, || features::find(client, &self.settings)).await?;
        let operators = retry_until_ok(stop, || operators_on_platform(client)).await?;
        let operators_watch = OperatorsWatch::start(client.clone(), sender.clone(), watches);
        let windows = retry_until_ok(stop, || maintenance_windows(client)).await?;
        let windows_watch = WindowsWatch::start(client.clone(), sender.clone(), watches);
        let feature_watch =
            FeatureWatch::start(client.clone(), &self.settings, sender, &objects.resources);
        let given = Arc::clone(&self.release.borrow_and_update());
        let (payload, listing) = release_loader::first_payload(
            self.store.as_ref(),
            &objects.status.desired,
            given,
            &self.settings.profile,
            stop,
        )
        .await?;
        if is_other_release(&objects.recorded, &payload.image) {
            self.imply_capabilities(&mut objects, &payload, &features, recorder, stop).await?;
        }
        let (recorder, rules) = (recorder.clone(), rules.clone());
        Ok(InitialState {
            objects,
            recorder,
            rules,
            payload,
            listing,
            features,
            feature_watch,
            operators,
            operators_watch,
            windows,
            windows_watch,
        })
    }

    /// Reads the ClusterVersion and the ReleaseProgress, and creates them if they are missing.
    async fn read_objects(
        &self,
        writer: &Writer,
        stop: &CancellationToken,
    ) -> Result<StatusObjects, Error> {
        let client = &self.client;
        let create = self.settings.create.as_ref();
        let progress = retry_until_ok(stop, || bootstrap::recorded_progress(client)).await?;
        let mut recorded = progress.as_ref().map(recorded_progress).unwrap_or_default();
        let lost = recorded.cluster_version.clone();
        let (cluster_version, spec, unreadable_spec, status) = retry_until_ok(stop, || async {
            let found =
                bootstrap::cluster_version(client, writer, create, lost.as_ref(), stop).await?;
            let (spec, status) = read_cluster_version(&found);
            match (spec, &lost) {
                (Ok(spec), _) => Ok((found, spec, None, status)),
                (Err(why), Some(before)) => Ok((found, before.spec.clone(), Some(why), status)),
                // What it requests is not known: nothing is begun.
                (Err(message), None) => Err(Error::UnreadableSpec { message }),
            }
        })
        .await?;
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
        Ok(StatusObjects {
            cluster_version,
            spec,
            unreadable_spec,
            recorded,
            status,
            is_restored,
            seen,
            resources,
        })
    }

    /// Records the capabilities that another release than before enables, since the cluster has
    /// objects of them.
    async fn imply_capabilities(
        &self,
        objects: &mut StatusObjects,
        payload: &Payload,
        features: &Features,
        recorder: &Recorder,
        stop: &CancellationToken,
    ) -> Result<(), Error> {
        let (cluster_version, resources) = (&objects.cluster_version, &objects.resources);
        let before = enabled_before(&objects.status, &objects.recorded);
        let now = self.clock.now();
        let terms = Annotations::of(cluster_version).override_terms;
        let overrides = Overrides::parse(&objects.spec.overrides, terms.as_deref());
        let overrides = overrides.for_inclusion(now);
        let context = Context { overrides, ..features.context(payload, &self.settings.profile) };
        let implied = retry_until_ok(stop, || async {
            implicit::by_what_is_there(&self.client, resources, payload, &context, &before)
                .await
                .map_err(|source| Error::Discover { source })
        })
        .await?;
        let uid = cluster_version.uid().unwrap_or_default();
        for implied in &implied {
            recorder.emit(&uid, capability_implied(implied));
            objects.recorded.capabilities.implied.push(record(implied, now));
        }
        Ok(())
    }

    /// Returns what the cluster is to be brought to.
    fn desired_state(
        &self,
        objects: &StatusObjects,
        annotations: &Annotations,
        payload: Arc<Payload>,
        features: Features,
        now: Timestamp,
    ) -> DesiredState {
        let mut desired = DesiredState::new(DesiredInputs {
            profile: &self.settings.profile,
            always_enabled: &self.settings.always_enabled,
            payload,
            spec: objects.spec.clone(),
            override_terms: annotations.override_terms.as_deref(),
            features,
            enabled_before: &enabled_before(&objects.status, &objects.recorded),
            implied: objects.recorded.capabilities.implied.clone(),
            now,
        });
        desired.maintenance_window_changed(annotations.maintenance_window.clone());
        desired
    }

    /// Decides what the process starts with, based on what an earlier one recorded.
    ///
    /// # Errors
    ///
    /// When the release is refused, the API server rejects a request for good, or the controller is
    /// stopped.
    async fn first_plan(
        &self,
        desired: &DesiredState,
        objects: &StatusObjects,
        annotations: &Annotations,
        now: Timestamp,
        stop: &CancellationToken,
    ) -> Result<Start, Error> {
        let StatusObjects { recorded, status, resources, .. } = objects;
        let startup = tracing::debug_span!("plan", version = %desired.release().version)
            .in_scope(|| Startup::new(desired, &status.history, recorded));
        let inherited = match startup.needs_inventory() {
            true => Some(self.inventory(recorded, resources, stop).await?),
            false => None,
        };
        if let Some(refusal) = startup.refusal(&status.history, inherited.as_ref()) {
            if !self.settings.force_release {
                return Err(Error::Refused(refusal));
            }
            tracing::warn!("{refusal}; it is begun all the same, as --force-release asks for");
        }
        let (prune, pause) = (annotations.prune.clone(), annotations.pause.as_deref());
        let start = startup.finish(inherited.as_ref(), prune, pause, now);
        log_plan(&start.plan);
        if !start.done.is_empty() {
            let (done, total) = (start.done.len(), start.plan.steps.len());
            tracing::info!(done, total, "resuming where an earlier process stopped");
        }
        Ok(start)
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
        let (now, settings) = (controller.clock.now(), &controller.settings);
        let stopwatch = Stopwatch::start(now);
        let objects = state.objects;
        let annotations = Annotations::of(&objects.cluster_version);
        let recorded_annotations = annotations.recorded();
        let (payload, features) = (state.payload, state.features);
        let desired = controller.desired_state(&objects, &annotations, payload, features, now);
        let start = controller.first_plan(&desired, &objects, &annotations, now, stop).await?;
        let Start { plan, removals, done, pause, begun } = start;
        let unreadable_spec = objects.unreadable_spec.clone();
        let StatusObjects {
            cluster_version, recorded, status, is_restored, seen, resources, ..
        } = objects;
        let client = controller.client.clone();
        let mut session = Session::new(client.clone(), plan, resources, removals, stopwatch, now);
        session.execution.recall(&recorded.completed_jobs, now);
        session.execution.resume(&done, now);
        let heads = controller.store.as_ref().map(|_| state.listing.releases.clone());
        let architecture = go_architecture(std::env::consts::ARCH);
        let uptime = stopwatch.uptime();
        let mut requests =
            UpdateRequests::new(&desired, heads, state.operators, architecture, uptime);
        requests.windows_changed(Arc::new(state.windows), uptime);
        let mut reconciler = Reconciler {
            requests,
            pause: PauseRequest::new(annotations.pause),
            events: ReportedEvents::recorded(&status.conditions, &recorded.overrides),
            timers: Timers::new(uptime),
            generation: cluster_version.metadata.generation.unwrap_or_default(),
            unreadable_spec,
            annotations: recorded_annotations,
            begun,
            limits: settings.limits.clone(),
            desired,
        };
        reconciler.pause.apply(pause, &mut session.execution, now);
        reconciler.events.operators_recorded(session.progress());
        let loader =
            ReleaseLoader::new(controller.store.clone(), &settings.profile, &state.listing);
        let mut reporter = Reporter::new(client, stopwatch, status, &recorded, seen);
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
            windows_watch: state.windows_watch,
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

/// Watches the ClusterVersion, the ReleaseProgress, and the gates of administrators.
fn watch_configuration(
    client: &Client,
    sender: &mpsc::Sender<ConfigObservation>,
    watches: &mut JoinSet<()>,
) {
    watches.spawn(observe::watch_named(
        client.clone(),
        CLUSTER_VERSION,
        CLUSTER_VERSION_NAME,
        ConfigObservation::ClusterVersion,
        Some(|| ConfigObservation::ClusterVersionInterrupted),
        sender.clone(),
    ));
    watches.spawn(observe::watch_release_progress(client.clone(), sender.clone()));
    for name in [acknowledge::GATES, acknowledge::ACKS] {
        watches.spawn(observe::watch_config_map(client.clone(), name, sender.clone()));
    }
}

/// Returns the status that an earlier process recorded.
fn recorded_progress(progress: &DynamicObject) -> ReleaseProgressStatus {
    let mut recorded: ReleaseProgressStatus =
        Deserialize::deserialize(&progress.data["status"]).unwrap_or_default();
    // Earlier versions recorded what the add-on layer installs for itself.
    recorded.orphans.retain(|orphan| !dry_run::is_own(&orphan.object));
    recorded
}
