//! What a process finds when it begins, and how its work begins with that.

use std::sync::Arc;

use kube::ResourceExt;
use kube::core::DynamicObject;
use plimsoll_api::progress::ReleaseProgressStatus;
use plimsoll_api::{CLUSTER_VERSION, CLUSTER_VERSION_NAME};
use plimsoll_content::payload::Payload;
use plimsoll_plan::plan::Plan;
use plimsoll_plan::plan::features::Features;
use plimsoll_plan::plan::mode::{self, Mode};
use plimsoll_plan::progress::parse_ranges;
use plimsoll_plan::progress::pause::Pause;
use plimsoll_plan::reconciler::removals::{InheritedObjects, Removals};
use plimsoll_plan::status::Updates;
use plimsoll_plan::update::acknowledge::{self, Acknowledgements};
use plimsoll_plan::update::target;
use plimsoll_source::store::Listing;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::apply_update::{
    enabled, enabled_before, make_plan, pause_of, read, recorded, request, rules,
};
use super::events::ReportedEvents;
use super::features::{self, FeatureWatch};
use super::{Controller, SWEEP_INTERVAL, Work, overrides, prune};
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
use crate::webhook::{self, Rules};
use crate::write::Writer;
use crate::{dry_run, implicit};

/// What a [`Work`] begins with.
pub(super) struct StartupState {
    /// The ClusterVersion.
    first: DynamicObject,
    /// What an earlier process recorded.
    recorded: ReleaseProgressStatus,
    /// The ClusterVersion and ReleaseProgress as they were read.
    seen: SeenStatuses,
    resources: Resources,
    recorder: Recorder,
    rules: watch::Sender<Rules>,
    start: (Arc<Payload>, Listing),
    features: Features,
    feature_watch: FeatureWatch,
}

impl Controller {
    /// Reads what there is to begin with, and watches it from then on.
    pub(super) async fn read_initial_state(
        &mut self,
        writer: &Writer,
        recorder: &Recorder,
        rules: &watch::Sender<Rules>,
        stop: &CancellationToken,
        watches: &mut JoinSet<()>,
        sender: mpsc::Sender<ConfigObservation>,
    ) -> Result<StartupState, Error> {
        let client = &self.client;
        let create = self.settings.create.as_deref();
        let first =
            retry_until_ok(stop, || bootstrap::cluster_version(client, writer, create, stop))
                .await?;
        let uid = first.uid().unwrap_or_default();
        let progress =
            retry_until_ok(stop, || bootstrap::release_progress(client, writer, &uid)).await?;
        let seen = SeenStatuses {
            cluster_version: VersionedStatus::of(&first),
            release_progress: VersionedStatus::of(&progress),
        };
        let mut recorded = recorded(&progress);
        watches.spawn(observe::watch_named(
            self.client.clone(),
            (CLUSTER_VERSION, CLUSTER_VERSION_NAME),
            ConfigObservation::ClusterVersion,
            sender.clone(),
        ));
        for name in [acknowledge::GATES, acknowledge::ACKS] {
            watches.spawn(observe::watch_config_map(self.client.clone(), name, sender.clone()));
        }
        let resources = retry_until_ok(stop, || async {
            Resources::discover(client).await.map_err(|source| Error::Discover { source })
        })
        .await?;
        let features = retry_until_ok(stop, || features::find(client, &self.settings)).await?;
        let feature_watch =
            FeatureWatch::start(self.client.clone(), &self.settings, sender, &resources);
        let given = Arc::clone(&self.release.borrow_and_update());
        let (_, status) = read(&first);
        let profile = &self.settings.profile;
        let start = release_loader::first_payload(
            self.store.as_ref(),
            &status.desired,
            given,
            profile,
            stop,
        )
        .await?;
        let payload = Arc::clone(&start.0);
        if !recorded.image.is_empty() && recorded.image != payload.image {
            let before = enabled_before(&status, &recorded).into_iter().collect();
            let (kind, now) = ((profile.as_str(), &features), self.clock.now());
            let implied = retry_until_ok(stop, || async {
                implicit::by_what_is_there(client, &resources, &payload, kind, &before)
                    .await
                    .map_err(|source| Error::Discover { source })
            })
            .await?;
            recorded
                .capabilities
                .implied
                .extend(implied.iter().map(|it| implicit::record(it, recorder, &uid, now)));
        }
        let (recorder, rules) = (recorder.clone(), rules.clone());
        Ok(StartupState {
            first,
            recorded,
            seen,
            resources,
            recorder,
            rules,
            start,
            features,
            feature_watch,
        })
    }

    /// What an earlier process left of another plan: of another release, or of this one with other
    /// features. Nothing has to be looked for where the plan is the same.
    async fn left_behind(
        &self,
        StartupState { recorded, resources, .. }: &StartupState,
        planned: &Plan,
        stop: &CancellationToken,
    ) -> Result<Option<InheritedObjects>, Error> {
        if recorded.plan_hash.is_empty() || recorded.plan_hash == planned.hash {
            return Ok(None);
        }
        let ours = retry_until_ok(stop, || dry_run::ours(&self.client, resources)).await?;
        let cluster_kinds = dry_run::cluster_kinds(resources);
        Ok(Some(InheritedObjects { version: recorded.version.clone(), ours, cluster_kinds }))
    }

    /// Answers reviews of `spec.capabilities` if it is to, and has nobody ask for them if not.
    pub(super) async fn start_webhook(
        &self,
        work: &Work,
        writer: &Writer,
        stop: &CancellationToken,
    ) -> Result<(), Error> {
        let client = &self.client;
        let Some(settings) = &self.settings.capability_webhook else {
            return retry_until_ok(stop, || webhook::remove(client, writer)).await;
        };
        webhook::start(client, writer, settings, &work.owner, work.rules.subscribe(), stop).await
    }
}

impl Work {
    pub(super) async fn begin(
        controller: &Controller,
        beginning: StartupState,
        stop: &CancellationToken,
    ) -> Result<Self, Error> {
        let payload = Arc::clone(&beginning.start.0);
        let (cluster_version, recorded) = (&beginning.first, &beginning.recorded);
        let features = beginning.features.clone();
        let owner: Arc<str> = cluster_version.uid().unwrap_or_default().into();
        let now = controller.clock.now();
        let (spec, status) = read(cluster_version);
        let release = target::release(&payload);
        let (settings, before) = (&controller.settings, enabled_before(&status, recorded));
        let capabilities = enabled(&payload, settings, &features, &spec, &before);
        let overrides = overrides::overrides_of(cluster_version, &spec);
        let request = request(&release, &overrides, &capabilities, now);
        let mut removals = Removals::recorded(recorded, prune::asked(cluster_version));
        let mut mode = match mode::choose(&status.history, &release.image) {
            // Other capabilities or overrides were being applied, which the history does not tell.
            Mode::Reconciling
                if recorded.image == release.image && recorded.mode == Mode::Updating.as_str() =>
            {
                Mode::Updating
            }
            mode => mode,
        };
        let plan_in = |mode| {
            make_plan(&payload, settings, &features, &release, &request, &capabilities, mode)
        };
        let mut planned = plan_in(mode);
        let left = controller.left_behind(&beginning, &planned, stop).await?;
        removals.started(&planned, left.as_ref(), now);
        if mode == Mode::Reconciling && removals.is_pruning_due() {
            mode = Mode::Updating;
            planned = plan_in(mode);
        }
        let planned = Arc::new(removals.and_prune(planned));
        let total = planned.steps.len();
        let same = recorded.image == release.image && recorded.plan_hash == planned.hash;
        let client = controller.client.clone();
        let stopwatch = Stopwatch::start();
        let (uid, resources) = (Arc::clone(&owner), beginning.resources);
        let mut session = Session::new(client, uid, planned, resources, removals, stopwatch, now);
        if same && mode != Mode::Reconciling {
            let done = parse_ranges(&recorded.done_steps, total);
            tracing::info!(done = done.len(), total, "going on where an earlier process was");
            session.execution.resume(&done, now);
        }
        let annotated = pause_of(cluster_version);
        let held = recorded.update.as_ref().and_then(|update| update.paused_before);
        let pause = match (Pause::parse(annotated.as_deref()), held) {
            // What "next" meant to an earlier process, it means to this one.
            (Some(Pause::Next), Some(level)) if same => Some(Pause::Before(level)),
            (pause, _) => pause,
        };
        let reported = ReportedEvents::recorded(&status.conditions);
        let client = controller.client.clone();
        let reporter = Reporter::new(client, stopwatch, status, recorded, beginning.seen);
        beginning.rules.send_replace(rules(&payload, settings, &features, &capabilities));
        let loader = ReleaseLoader::new(
            controller.store.clone(),
            &controller.settings.profile,
            &release,
            release_loader::architecture(&payload),
            beginning.start.1,
        );
        let mut work = Self {
            stopwatch,
            owner,
            payload,
            release,
            request,
            spec,
            generation: cluster_version.metadata.generation.unwrap_or_default(),
            created: cluster_version.creation_timestamp().map(|time| time.0),
            features,
            feature_watch: beginning.feature_watch,
            capabilities,
            overrides,
            reported_overrides: (recorded.overrides.clone(), Vec::new()),
            implied: recorded.capabilities.implied.clone(),
            rules: beginning.rules,
            session,
            loader,
            updates: Updates::default(),
            acknowledgements: Acknowledgements::default(),
            annotated,
            pause: None,
            verified: false,
            accepted_risks: String::new(),
            request_changed: true,
            reconsider_at: Instant::now(),
            reported_load: None,
            reported,
            completion_reported: false,
            reported_pause: None,
            recorder: beginning.recorder,
            reporter,
            sweep_at: Instant::now() + SWEEP_INTERVAL,
            woken_at: Instant::now(),
            limits: controller.settings.limits.clone(),
            unwritten: None,
            settle_at: Instant::now(),
        };
        work.refresh_updates();
        work.hold(pause, now);
        work.mark_gates_reported();
        if !work.is_status_written() {
            work.session.execution.hold();
        }
        Ok(work)
    }
}
