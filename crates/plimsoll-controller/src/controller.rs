//! The loop: what happened, what to do next, what to report.

mod features;
mod overriding;
mod telling;
mod updating;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::core::DynamicObject;
use kube::{Client, ResourceExt};
use plimsoll_api::config::{ClusterVersionSpec, ClusterVersionStatus, Release};
use plimsoll_api::progress::{ImpliedCapability, OverrideProgress, ReleaseProgressStatus};
use plimsoll_api::{CLUSTER_VERSION, CLUSTER_VERSION_NAME};
use plimsoll_content::inclusion::Override;
use plimsoll_content::payload::Payload;
use plimsoll_model::Reason;
use plimsoll_plan::acknowledge::{self, Acknowledgements};
use plimsoll_plan::capabilities::{self, Capabilities, implied_by_update};
use plimsoll_plan::features::Features;
use plimsoll_plan::mode::{self, Mode};
use plimsoll_plan::overrides::Overrides;
use plimsoll_plan::pause::{PAUSE_BEFORE, Pause};
use plimsoll_plan::plan::{Plan, plan};
use plimsoll_plan::progress::{Event, parse_ranges};
use plimsoll_plan::removal::{Notice, PRUNE, Prune};
use plimsoll_plan::status::{Limits, LoadStep, Updates};
use plimsoll_plan::target;
use plimsoll_source::store::Listing;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use self::features::FeatureWatch;
use self::telling::Told;
use crate::bootstrap::{self, patiently};
use crate::clock::SharedClock;
use crate::error::Error;
use crate::events::{self, Occurrence, Recorder, Severity};
use crate::fence::fenced;
use crate::guarded::Guarded;
use crate::implicit;
use crate::intake::{self, Accepted, Intake, SharedStore};
use crate::lease::{self, Lost};
use crate::observe::{self, Observation};
use crate::removals::{Inherited, Removals};
use crate::report::{Reporter, Situation};
use crate::resources::Resources;
use crate::session::{Session, Turn};
use crate::survey;
use crate::view::View;
use crate::webhook::{self, CapabilityWebhook, Rules};
use crate::write::Writer;

/// What is to be told of a [`Work`]; borrows each part alone, so that its reporter stays free.
macro_rules! situation {
    ($work:expr, $now:expr) => {
        Situation {
            progress: &$work.session.progress,
            release: &$work.release,
            spec: &$work.spec,
            generation: $work.generation,
            capabilities: &$work.capabilities,
            implied: &$work.implied,
            objections: $work.session.objections(),
            load: $work.intake.status(),
            updates: &$work.updates,
            verified: $work.verified,
            accepted_risks: &$work.accepted_risks,
            unhealthy: $work.session.unhealthy(),
            removals: &$work.session.removals,
            overrides: &$work.overrides,
            limits: &$work.limits,
            now: $now,
        }
    };
}

/// How often everything is applied once more although no watch showed a change: a safety net
/// against what watches cannot show, such as a server restored from a backup.
pub(crate) const SWEEP_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// How long executions in flight may take to end when the controller is told to stop.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(5);
/// How soon to try again to write what must be written before anything else is done.
const WRITE_AGAIN: Duration = Duration::from_secs(1);

/// Least time between two looks although nothing happened: what is due and cannot be done yet must
/// not keep a processor busy.
const WAKE_INTERVAL_MIN: Duration = Duration::from_millis(10);

/// How a controller works.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Cluster profile that manifests must include.
    pub profile: String,
    /// Feature set of the cluster; `None` follows the cluster's FeatureGate, which need not be
    /// there.
    pub feature_set: Option<String>,
    /// The cluster's id, to create a ClusterVersion with when there is none; `None` waits for one.
    pub create: Option<String>,
    /// Who may write.
    pub leadership: Leadership,
    /// Capabilities that this cluster has whatever its spec says.
    pub always_enabled: Vec<String>,
    /// Where to answer reviews of `spec.capabilities`; `None` has nobody ask for any.
    pub capability_webhook: Option<CapabilityWebhook>,
    /// How long things may take before they are called slow or failed.
    pub limits: Limits,
}

/// How controllers make sure that only one of them writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leadership {
    /// By a Lease, under this identity.
    Lease(String),
    /// There is only this one: an embedded cluster.
    Alone,
}

/// Keeps a cluster at a release.
pub struct Controller {
    /// The cluster.
    pub client: Client,
    /// The time of day.
    pub clock: SharedClock,
    /// How it works.
    pub settings: Settings,
    /// The release to keep the cluster at; a new one begins an update.
    pub release: watch::Receiver<Arc<Payload>>,
    /// Where other releases come from, if any may be asked for. A cluster that has a release keeps
    /// that one; the one above is for a cluster that has none.
    pub store: Option<SharedStore>,
    /// Where pictures of the work go.
    pub view: watch::Sender<View>,
}

impl Controller {
    /// Works until told to stop.
    ///
    /// # Errors
    ///
    /// When the API server cannot be reached at the start, or the lease is lost.
    pub async fn run(mut self, stop: CancellationToken) -> Result<(), Error> {
        let leading = stop.child_token();
        let keeper = match &self.settings.leadership {
            Leadership::Alone => None,
            Leadership::Lease(identity) => {
                let (client, clock) = (self.client.clone(), Arc::clone(&self.clock));
                let held = lease::acquire(client, clock, identity.clone(), &stop).await;
                let Some(held) = held else { return Ok(()) };
                let released = CancellationToken::new();
                let leading = leading.clone();
                let stop = released.clone();
                let fence = CancellationToken::new();
                self.client = fenced(self.client.clone(), fence.clone());
                let task = tokio::spawn(async move {
                    let lost = held.keep(stop).await;
                    if lost != Lost::Released {
                        fence.cancel();
                    }
                    leading.cancel();
                    lost
                });
                Some((task, released))
            }
        };
        let worked = self.work(&leading).await;
        if let Some((task, released)) = keeper {
            released.cancel();
            if let Ok(Lost::Taken | Lost::Expired) = task.await {
                return Err(Error::LeaseLost);
            }
        }
        match worked {
            Err(Error::Stopped) => Ok(()),
            other => other,
        }
    }

    async fn work(mut self, stop: &CancellationToken) -> Result<(), Error> {
        let writer = Writer::new(self.client.clone());
        let client = self.client.clone();
        patiently(stop, || bootstrap::install_crds(&client, &writer, stop)).await?;
        let recorder = {
            let (client, clock) = (self.client.clone(), Arc::clone(&self.clock));
            let instance = match &self.settings.leadership {
                Leadership::Lease(identity) => identity,
                Leadership::Alone => "plimsoll",
            };
            Recorder::start(client, clock, instance, stop.clone())
        };
        let rules = watch::Sender::default();
        let mut is_offered = false;
        loop {
            let (sender, mut cluster_versions) = mpsc::channel(1);
            let mut watches = JoinSet::new();
            let beginning =
                self.look_around(&writer, &recorder, &rules, stop, &mut watches, sender).await?;
            let mut work = Work::begin(&self, beginning);
            if !std::mem::replace(&mut is_offered, true) {
                if let Leadership::Lease(identity) = &self.settings.leadership {
                    telling::leads(&work.recorder, &work.owner, identity);
                }
                self.offer_reviews(&work, &writer, stop).await?;
            }
            match work.run(&mut self, &mut cluster_versions, stop).await {
                Ended::Stopped => return Ok(()),
                Ended::Outdated => tracing::info!(
                    "the status changed after it was read; beginning again with what is there now"
                ),
            }
        }
    }

    /// Reads what there is to begin with, and watches it from then on.
    async fn look_around(
        &mut self,
        writer: &Writer,
        recorder: &Recorder,
        rules: &watch::Sender<Rules>,
        stop: &CancellationToken,
        watches: &mut JoinSet<()>,
        sender: mpsc::Sender<Observation>,
    ) -> Result<Beginning, Error> {
        let client = &self.client;
        let create = self.settings.create.as_deref();
        let first =
            patiently(stop, || bootstrap::cluster_version(client, writer, create, stop)).await?;
        let uid = first.uid().unwrap_or_default();
        let progress =
            patiently(stop, || bootstrap::release_progress(client, writer, &uid)).await?;
        let seen = (Guarded::of(&first), Guarded::of(&progress));
        let mut recorded = recorded(&progress);
        watches.spawn(observe::watch_named(
            self.client.clone(),
            (CLUSTER_VERSION, CLUSTER_VERSION_NAME),
            Observation::ClusterVersion,
            sender.clone(),
        ));
        for name in [acknowledge::GATES, acknowledge::ACKS] {
            watches.spawn(observe::watch_config_map(self.client.clone(), name, sender.clone()));
        }
        let resources = patiently(stop, || async {
            Resources::discover(client).await.map_err(|source| Error::Discover { source })
        })
        .await?;
        let features = patiently(stop, || features::find(client, &self.settings)).await?;
        let feature_watch =
            FeatureWatch::start(self.client.clone(), &self.settings, sender, &resources);
        let given = Arc::clone(&self.release.borrow_and_update());
        let (_, status) = read(&first);
        let profile = &self.settings.profile;
        let start =
            intake::first_payload(self.store.as_ref(), &status.desired, given, profile, stop)
                .await?;
        let payload = Arc::clone(&start.0);
        let mut left = None;
        if !recorded.image.is_empty() && recorded.image != payload.image {
            left = Some(Inherited {
                version: recorded.version.clone(),
                ours: patiently(stop, || survey::ours(client, &resources)).await?,
                cluster_kinds: survey::cluster_kinds(&resources),
            });
            let before = enabled_before(&status, &recorded).into_iter().collect();
            let (kind, now) = ((profile.as_str(), &features), self.clock.now());
            let implied = patiently(stop, || async {
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
        Ok(Beginning {
            first,
            recorded,
            seen,
            resources,
            left,
            recorder,
            rules,
            start,
            features,
            feature_watch,
        })
    }
}

impl Controller {
    /// Answers reviews of `spec.capabilities` if it is to, and has nobody ask for them if not.
    async fn offer_reviews(
        &self,
        work: &Work,
        writer: &Writer,
        stop: &CancellationToken,
    ) -> Result<(), Error> {
        let client = &self.client;
        let Some(settings) = &self.settings.capability_webhook else {
            return patiently(stop, || webhook::remove(client, writer)).await;
        };
        webhook::start(client, writer, settings, &work.owner, work.rules.subscribe(), stop).await
    }
}

/// What is asked for, as far as it decides the plan.
#[derive(Debug, Clone, PartialEq)]
struct Request {
    image: String,
    overrides: Vec<Override>,
    enabled: Vec<String>,
}

/// The state of a controller at work.
struct Work {
    owner: Arc<str>,
    payload: Arc<Payload>,
    release: Release,
    request: Request,
    spec: ClusterVersionSpec,
    generation: i64,
    /// When the ClusterVersion was created.
    created: Option<Timestamp>,
    features: Features,
    feature_watch: FeatureWatch,
    capabilities: Capabilities,
    overrides: Overrides,
    /// The overrides as they were last told of, and what was wrong with them.
    overrides_told: (Vec<OverrideProgress>, Vec<String>),
    /// The capabilities that updates made necessary, and what did.
    implied: Vec<ImpliedCapability>,
    /// What changes of the spec are judged by.
    rules: watch::Sender<Rules>,
    session: Session,
    intake: Intake,
    updates: Updates,
    acknowledgements: Acknowledgements,
    /// What is annotated, as text, and what it means.
    annotated: Option<String>,
    pause: Option<Pause>,
    verified: bool,
    accepted_risks: String,
    /// The spec or what it is judged by changed since it was last looked at.
    unconsidered: bool,
    reconsider_at: Instant,
    told: Option<(LoadStep, bool)>,
    news: Told,
    completion_told: bool,
    pause_told: Option<u32>,
    recorder: Recorder,
    reporter: Reporter,
    sweep_at: Instant,
    /// When it last looked again although nothing had happened.
    woken_at: Instant,
    limits: Limits,
    /// A release that is accepted, and when to try again to write down what it makes necessary.
    unwritten: Option<(Instant, Accepted)>,
}

/// What a [`Work`] begins with.
struct Beginning {
    /// The ClusterVersion.
    first: DynamicObject,
    /// What an earlier process recorded.
    recorded: ReleaseProgressStatus,
    /// The ClusterVersion and ReleaseProgress as they were read.
    seen: (Guarded, Guarded),
    resources: Resources,
    /// What an earlier process left, if it was at another release.
    left: Option<Inherited>,
    recorder: Recorder,
    rules: watch::Sender<Rules>,
    start: (Arc<Payload>, Listing),
    features: Features,
    feature_watch: FeatureWatch,
}

/// Why a [`Work`] ended.
enum Ended {
    /// It was told to.
    Stopped,
    /// The status that it began with is not the one that is there.
    Outdated,
}

impl Work {
    fn begin(controller: &Controller, beginning: Beginning) -> Self {
        let Beginning {
            first,
            recorded,
            seen,
            resources,
            left,
            recorder,
            rules,
            start,
            features,
            feature_watch,
        } = beginning;
        let (payload, listing) = start;
        let (cluster_version, recorded) = (&first, &recorded);
        let owner: Arc<str> = first.uid().unwrap_or_default().into();
        let now = controller.clock.now();
        let (spec, status) = read(cluster_version);
        let release = target::release(&payload);
        let (settings, before) = (&controller.settings, enabled_before(&status, recorded));
        let capabilities = enabled(&payload, settings, &features, &spec, &before);
        let overrides = overriding::overrides_of(cluster_version, &spec);
        let request = request(&release, &overrides, &capabilities, now);
        let mut removals = Removals::recorded(recorded, prune_asked(cluster_version));
        let mode = match mode::choose(&status.history, &release.image) {
            Mode::Reconciling if removals.is_pruning_due() => Mode::Updating,
            // Other capabilities or overrides were being applied, which the history does not tell.
            Mode::Reconciling
                if recorded.image == release.image && recorded.mode == Mode::Updating.as_str() =>
            {
                Mode::Updating
            }
            mode => mode,
        };
        let planned =
            make_plan(&payload, settings, &features, &release, &request, &capabilities, mode);
        removals.begun(&planned, left.as_ref(), now);
        let planned = Arc::new(removals.and_prune(planned));
        let total = planned.steps.len();
        let same = recorded.image == release.image && recorded.plan_hash == planned.hash;
        let client = controller.client.clone();
        let mut session =
            Session::new(client, Arc::clone(&owner), planned, resources, removals, now);
        if same && mode != Mode::Reconciling {
            let done = parse_ranges(&recorded.done_steps, total);
            tracing::info!(done = done.len(), total, "going on where an earlier process was");
            session.progress = session.progress.clone().resume(&done, now);
        }
        let annotated = pause_of(cluster_version);
        let held = recorded.update.as_ref().and_then(|update| update.paused_before);
        let pause = match (Pause::parse(annotated.as_deref()), held) {
            // What "next" meant to an earlier process, it means to this one.
            (Some(Pause::Next), Some(level)) if same => Some(Pause::Before(level)),
            (pause, _) => pause,
        };
        let news = Told::recorded(&status.conditions);
        let mut reporter = Reporter::new(controller.client.clone(), status, seen);
        reporter.remember(recorded);
        rules.send_replace(self::rules(&payload, settings, &features, &capabilities));
        let intake = Intake::new(
            controller.store.clone(),
            &controller.settings.profile,
            &release,
            intake::architecture(&payload),
            listing,
        );
        let mut work = Self {
            owner,
            payload,
            release,
            request,
            spec,
            generation: cluster_version.metadata.generation.unwrap_or_default(),
            created: cluster_version.creation_timestamp().map(|time| time.0),
            features,
            feature_watch,
            capabilities,
            overrides,
            overrides_told: (recorded.overrides.clone(), Vec::new()),
            implied: recorded.capabilities.implied.clone(),
            rules,
            session,
            intake,
            updates: Updates::default(),
            acknowledgements: Acknowledgements::default(),
            annotated,
            pause: None,
            verified: false,
            accepted_risks: String::new(),
            unconsidered: true,
            reconsider_at: Instant::now(),
            told: None,
            news,
            completion_told: false,
            pause_told: None,
            recorder,
            reporter,
            sweep_at: Instant::now() + SWEEP_INTERVAL,
            woken_at: Instant::now(),
            limits: controller.settings.limits.clone(),
            unwritten: None,
        };
        work.look_for_updates();
        work.hold(pause, now);
        work.note_gates();
        if !work.is_told() {
            work.session.hold();
        }
        work
    }

    async fn run(
        &mut self,
        controller: &mut Controller,
        cluster_versions: &mut mpsc::Receiver<Observation>,
        stop: &CancellationToken,
    ) -> Ended {
        self.session.start_due(controller.clock.now());
        while !self.reporter.is_outdated() {
            self.notice();
            self.tell_of_removals(controller.clock.now());
            self.tell_of_gates();
            self.tell_of_drift();
            self.consider(controller).await;
            self.adopt_again(controller).await;
            self.mind_overrides(controller).await;
            self.report(controller);
            self.begin_plan(controller.clock.now());
            let wake = self.wake_at(controller.clock.now());
            tokio::select! {
                // Nothing here is left to chance, so that a simulation can be played again; what is
                // rare comes first, so that a burst of events does not hold it up.
                biased;
                () = stop.cancelled() => return self.end(controller).await,
                () = self.reporter.written() => {}
                Some(observation) = cluster_versions.recv() => {
                    self.observed(controller, observation).await;
                }
                brought = self.intake.next() => self.brought(controller, brought).await,
                Ok(()) = controller.release.changed(), if self.takes_releases() => {
                    self.released(controller).await;
                }
                turn = self.session.next() => {
                    self.turn(turn, controller.clock.now());
                    self.reporter.touch();
                }
                () = sleep_until(wake) => self.woken(controller.clock.now()),
            }
        }
        self.session.drain(DRAIN_TIME_MAX, controller.clock.now()).await;
        Ended::Outdated
    }

    async fn end(&mut self, controller: &Controller) -> Ended {
        tracing::info!("stopping: waiting for requests in flight, then writing the last status");
        self.session.drain(DRAIN_TIME_MAX, controller.clock.now()).await;
        let now = controller.clock.now();
        let situation = situation!(self, now);
        self.reporter.finish(&situation).await;
        Ended::Stopped
    }

    /// Begins a plan once the status tells of its release and capabilities. A process that took
    /// over before that would keep the cluster at the release before, and take back what is there
    /// of this one; or not know that a capability is enabled that has objects already.
    fn begin_plan(&mut self, now: Timestamp) {
        if self.session.is_held() && self.is_told() {
            self.session.release();
            self.session.start_due(now);
        }
    }

    fn is_told(&self) -> bool {
        self.reporter.has_told_of(&self.release, &self.capabilities.enabled)
    }

    async fn observed(&mut self, controller: &Controller, observation: Observation) {
        match observation {
            Observation::ClusterVersion(Some(object)) => self.asked(controller, &object).await,
            Observation::ConfigMap { name, data } => self.acknowledged(name, data),
            Observation::FeatureGate(object) => {
                self.featured(controller, object.as_deref()).await;
            }
            _ => {}
        }
    }

    /// Tells what people should hear of deletions.
    fn tell_of_removals(&mut self, now: Timestamp) {
        for notice in self.session.removals.notices(now) {
            let Notice { key, reason, is_warning, message } = notice;
            self.reporter.touch();
            self.recorder.record(Occurrence {
                severity: if is_warning { Severity::Warning } else { Severity::Normal },
                reason,
                action: "Delete",
                note: message,
                regarding: events::cluster_version(&self.owner),
                related: Some(events::object(&key)),
            });
        }
    }

    fn turn(&mut self, turn: Turn, now: Timestamp) {
        if let Turn::Observed(Observation::Definition { group, plural }) = &turn {
            if group == CLUSTER_VERSION.group {
                self.reporter.definition_changed();
            }
            self.feature_watch.defined(group, plural);
        }
        let namespace = match &turn {
            Turn::Executed(step, plimsoll_plan::progress::Outcome::Applied(_)) => Some(*step),
            _ => None,
        };
        if let Some(step) = namespace {
            self.session.namespace_applied(step, now);
        }
        self.session.handle(turn, now);
    }

    fn woken(&mut self, now: Timestamp) {
        self.woken_at = Instant::now();
        if Instant::now() >= self.sweep_at {
            self.sweep_at = Instant::now() + SWEEP_INTERVAL;
            self.feature_watch.look_again();
            self.session.progress.handle(Event::Sweep, now);
        }
        self.session.start_due(now);
    }

    /// When to look again although nothing happened.
    fn wake_at(&self, now: Timestamp) -> Instant {
        let mut wake = self.sweep_at.min(self.reporter.due_at());
        let times = [
            // What is held waits for the status, not for a time.
            self.session.progress.wake_at().filter(|_| !self.session.is_held()),
            self.session.removals.ledger.due_at(),
            self.intake.wake_at(),
            self.overrides.next_expiry(now),
        ];
        for at in times.into_iter().flatten() {
            let delay = Duration::try_from(at.duration_since(now)).unwrap_or_default();
            wake = wake.min(Instant::now() + delay);
        }
        if let Some((at, _)) = &self.unwritten {
            wake = wake.min(*at);
        }
        if self.intake.is_held_up() {
            wake = wake.min(self.reconsider_at);
        }
        wake.max(self.woken_at + WAKE_INTERVAL_MIN)
    }

    fn report(&mut self, controller: &Controller) {
        let now = controller.clock.now();
        let situation = situation!(self, now);
        if let Some(conditions) = self.reporter.report(&situation) {
            self.tell_of_conditions(&conditions);
            let situation = situation!(self, now);
            let mut view = View::of(&self.session.progress, &conditions, now);
            view.capabilities = self.capabilities.clone();
            view.implied = self.implied.clone();
            let created = [self.created, self.payload_created()];
            view.figures = Some(self.reporter.figures(&situation, &self.session.counts, created));
            controller.view.send_replace(view);
        }
    }

    /// When the payload was built, if it says so.
    fn payload_created(&self) -> Option<Timestamp> {
        self.payload.release.created.as_ref()?.parse().ok()
    }

    /// The ClusterVersion changed, perhaps what it asks for.
    async fn asked(&mut self, controller: &Controller, object: &DynamicObject) {
        let (spec, status) = read(object);
        self.generation = object.metadata.generation.unwrap_or_default();
        if object.uid().as_deref() != Some(&*self.owner) {
            tracing::warn!("the ClusterVersion was replaced; its owned objects follow it");
            self.owner = object.uid().unwrap_or_default().into();
        }
        self.overrides = overriding::overrides_of(object, &spec);
        self.spec = spec;
        let kept: Vec<String> = status
            .capabilities
            .enabled_capabilities
            .iter()
            .chain(&self.capabilities.enabled)
            .cloned()
            .collect();
        let settings = &controller.settings;
        let now_enabled = enabled(&self.payload, settings, &self.features, &self.spec, &kept);
        let before = std::mem::replace(&mut self.capabilities, now_enabled);
        self.tell_of_capabilities(&before);
        self.judge_by_capabilities(controller);
        self.pause(pause_of(object), controller.clock.now());
        self.look_for_updates();
        let now = controller.clock.now();
        let request = request(&self.release, &self.overrides, &self.capabilities, now);
        let plan = Arc::clone(self.session.progress.plan());
        let prunes = self.session.removals.asked(prune_asked(object), &plan);
        if request != self.request || prunes {
            self.request = request;
            self.replan(controller).await;
        }
        self.reporter.touch();
    }

    /// A first installation is finished before anything else is begun (cluster-version §2.2).
    fn takes_releases(&self) -> bool {
        self.session.progress.mode() != Mode::Initializing
    }

    /// Another release is to be kept.
    async fn released(&mut self, controller: &mut Controller) {
        let payload = Arc::clone(&controller.release.borrow_and_update());
        let accepted = Accepted { payload, verified: false, accepted_risks: String::new() };
        self.adopt(controller, accepted).await;
    }

    /// Takes up the release that could not be, once it is time.
    async fn adopt_again(&mut self, controller: &Controller) {
        if let Some((_, accepted)) = self.unwritten.take_if(|(at, _)| *at <= Instant::now()) {
            self.adopt(controller, accepted).await;
        }
    }

    /// A release takes the place of the one that is applied.
    async fn adopt(&mut self, controller: &Controller, accepted: Accepted) {
        // How far the release before came is on record before it is left.
        let situation = situation!(self, controller.clock.now());
        self.reporter.settle(&situation);
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
        let settings = &controller.settings;
        self.capabilities = enabled(&self.payload, settings, &self.features, &self.spec, &before);
        self.judge_by_capabilities(controller);
        self.intake.swapped(&self.release, &self.payload);
        self.pause = Pause::parse(self.annotated.as_deref());
        self.reporter.superseded();
        self.forget_gates();
        self.look_for_updates();
        let now = controller.clock.now();
        self.request = request(&self.release, &self.overrides, &self.capabilities, now);
        let mut note = format!("Working towards {}, from {from}", self.release.version);
        if !self.accepted_risks.is_empty() {
            note.push_str("; accepted risks: ");
            note.push_str(&self.accepted_risks);
        }
        self.tell(Severity::Normal, Reason::UpdateStarted, note);
        self.replan(controller).await;
    }

    /// Changes of the spec are judged by what is in force now.
    fn judge_by_capabilities(&self, controller: &Controller) {
        let settings = &controller.settings;
        let rules = rules(&self.payload, settings, &self.features, &self.capabilities);
        self.rules.send_replace(rules);
    }

    /// Enables what a release makes necessary and has it written down, before the release is begun
    /// (cluster-version §5.3); false if that failed.
    async fn imply(&mut self, controller: &Controller, next: &Payload) -> bool {
        let (profile, before) = (&controller.settings.profile, &self.capabilities.enabled);
        let found = implied_by_update(&self.payload, next, profile, &self.features, before);
        let now = controller.clock.now();
        for implied in &found {
            self.implied.push(implicit::record(implied, &self.recorder, &self.owner, now));
            self.capabilities.enabled.insert(implied.capability.clone());
            self.capabilities.implicit.insert(implied.capability.clone());
        }
        let situation = situation!(self, now);
        // What an attempt before this one enabled may still have to be written down.
        self.implied.is_empty() || self.reporter.persist(&situation).await
    }

    /// Plans anew. What is done and unchanged stays done; any change while not initializing is
    /// an update (cluster-version §2.4).
    async fn replan(&mut self, controller: &Controller) {
        // A request of the old plan that reached the server after one of the new plan would undo
        // it unseen.
        self.session.drain(DRAIN_TIME_MAX, controller.clock.now()).await;
        let now = controller.clock.now();
        let mode = match self.session.progress.mode() {
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
        let mut removals = std::mem::take(&mut self.session.removals);
        let planned = removals.replanned(self.session.progress.plan(), planned, now);
        let planned = Arc::new(planned);
        let resources = self.session.resources().clone();
        let client = controller.client.clone();
        let owner = Arc::clone(&self.owner);
        let mut session = Session::new(client, owner, planned, resources, removals, now);
        session.progress.set_pause(self.pause, now);
        session.take_over(&mut self.session, now);
        self.session = session;
        self.pin_pause();
        self.completion_told = false;
        if !self.is_told() {
            self.session.hold();
        }
        self.session.start_due(now);
    }
}

/// What an earlier process recorded.
fn recorded(progress: &DynamicObject) -> ReleaseProgressStatus {
    let status = progress.data.get("status").cloned().unwrap_or_default();
    serde_json::from_value(status).unwrap_or_default()
}

fn read(object: &DynamicObject) -> (ClusterVersionSpec, ClusterVersionStatus) {
    let part = |name: &str| object.data.get(name).cloned().unwrap_or_default();
    let spec = serde_json::from_value(part("spec")).unwrap_or_else(|error| {
        tracing::warn!(%error, "the spec of the ClusterVersion cannot be read; it is ignored");
        ClusterVersionSpec::default()
    });
    (spec, serde_json::from_value(part("status")).unwrap_or_default())
}

fn rules(
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
fn enabled_before(status: &ClusterVersionStatus, recorded: &ReleaseProgressStatus) -> Vec<String> {
    let implied = recorded.capabilities.implied.iter().map(|implied| &implied.capability);
    let named = status.capabilities.enabled_capabilities.iter();
    named.chain(&recorded.capabilities.withheld).chain(implied).cloned().collect()
}

/// The capabilities in force, given those that were enabled before.
fn enabled(
    payload: &Payload,
    settings: &Settings,
    features: &Features,
    spec: &ClusterVersionSpec,
    before: &[String],
) -> Capabilities {
    let gates = features.gates(payload, &settings.profile);
    capabilities::effective(spec, before, &settings.always_enabled, &payload.capabilities, &gates)
}

fn pause_of(cluster_version: &DynamicObject) -> Option<String> {
    cluster_version.annotations().get(PAUSE_BEFORE).cloned()
}

fn request(
    release: &Release,
    overrides: &Overrides,
    capabilities: &Capabilities,
    now: Timestamp,
) -> Request {
    Request {
        image: release.image.clone(),
        overrides: overrides.for_inclusion(now),
        enabled: capabilities.enabled.iter().cloned().collect(),
    }
}

fn make_plan(
    payload: &Payload,
    settings: &Settings,
    features: &Features,
    release: &Release,
    request: &Request,
    capabilities: &Capabilities,
    mode: Mode,
) -> Plan {
    let _span = tracing::debug_span!("plan", version = %release.version, ?mode).entered();
    let overrides = &request.overrides;
    let context = target::context(payload, &settings.profile, features, capabilities, overrides);
    let planned = plan(&payload.manifests, &context, release.clone(), mode, 0);
    tracing::info!(
        version = %release.version,
        mode = ?mode,
        steps = planned.steps.len(),
        excluded = planned.excluded.len(),
        "planned"
    );
    planned
}

/// The orphans that somebody asked to be deleted.
fn prune_asked(cluster_version: &DynamicObject) -> Prune {
    Prune::parse(cluster_version.annotations().get(PRUNE).map(String::as_str))
}
