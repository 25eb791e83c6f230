//! The loop: what happened, what to do next, what to report.

mod apply_update;
mod events;
mod features;
mod overrides;
mod prune;
mod startup;
mod update_request;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use plimsoll_api::CLUSTER_VERSION;
use plimsoll_api::config::{ClusterVersionSpec, Release};
use plimsoll_api::progress::{ImpliedCapability, OverrideProgress};
use plimsoll_content::inclusion::UnmanagedObject;
use plimsoll_content::payload::Payload;
use plimsoll_plan::capabilities::Capabilities;
use plimsoll_plan::plan::features::Features;
use plimsoll_plan::progress::pause::Pause;
use plimsoll_plan::reconciler::execution::{ExecutionEvent, Observation};
use plimsoll_plan::spec::overrides::Overrides;
use plimsoll_plan::status::{Limits, Updates};
use plimsoll_plan::update::acceptance::LoadStep;
use plimsoll_plan::update::acknowledge::Acknowledgements;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use self::events::ReportedEvents;
use self::features::FeatureWatch;
pub use self::features::cluster_features;
use crate::bootstrap::{self, retry_until_ok};
use crate::clock::{SharedClock, Stopwatch};
use crate::error::Error;
use crate::events::Recorder;
use crate::fence::fenced;
use crate::lease::{self, LeaseLoss};
use crate::observe::ConfigObservation;
use crate::release_loader::{Accepted, ReleaseLoader, SharedStore};
use crate::report::Reporter;
use crate::session::Session;
use crate::view::View;
use crate::webhook::{CapabilityWebhook, Rules};
use crate::write::Writer;

/// What is to be told of a [`Work`]; borrows each part alone, so that its reporter stays free.
macro_rules! context {
    ($work:expr, $now:expr) => {
        plimsoll_plan::reconciler::status_report::StatusContext {
            progress: $work.session.progress(),
            release: &$work.release,
            spec: &$work.spec,
            generation: $work.generation,
            capabilities: &$work.capabilities,
            implied: &$work.implied,
            objections: $work.session.execution.operators().objections(),
            load: $work.loader.status(),
            updates: &$work.updates,
            verified: $work.verified,
            accepted_risks: &$work.accepted_risks,
            unhealthy: $work.session.execution.operators().unhealthy(),
            removals: $work.session.execution.removals(),
            overrides: &$work.overrides,
            limits: &$work.limits,
            now: $now,
        }
    };
}
use context;

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
                    if lost != LeaseLoss::Released {
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
            if let Ok(LeaseLoss::Taken | LeaseLoss::Expired) = task.await {
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
        retry_until_ok(stop, || bootstrap::install_crds(&client, &writer, stop)).await?;
        let (client, clock) = (self.client.clone(), Arc::clone(&self.clock));
        let instance = match &self.settings.leadership {
            Leadership::Lease(identity) => identity,
            Leadership::Alone => "plimsoll",
        };
        let (recorder, event_writer) = Recorder::start(client, clock, instance, stop.clone());
        let worked = self.keep(&writer, recorder, stop).await;
        // What was told last is written before the process ends.
        let _ = tokio::time::timeout(DRAIN_TIME_MAX, event_writer).await;
        worked
    }

    /// Keeps the cluster at a release, beginning again whenever what it began with has changed.
    async fn keep(
        &mut self,
        writer: &Writer,
        recorder: Recorder,
        stop: &CancellationToken,
    ) -> Result<(), Error> {
        let rules = watch::Sender::default();
        let mut is_webhook_started = false;
        loop {
            let (sender, mut cluster_versions) = mpsc::channel(1);
            let mut watches = JoinSet::new();
            let beginning = self
                .read_initial_state(writer, &recorder, &rules, stop, &mut watches, sender)
                .await?;
            let mut work = Work::begin(self, beginning, stop).await?;
            if !std::mem::replace(&mut is_webhook_started, true) {
                if let Leadership::Lease(identity) = &self.settings.leadership {
                    work.emit_leader_elected(identity);
                }
                self.start_webhook(&work, writer, stop).await?;
            }
            match work.run(self, &mut cluster_versions, stop).await {
                LoopExit::Stopped => return Ok(()),
                LoopExit::Outdated => tracing::info!(
                    "the status changed after it was read; beginning again with what is there now"
                ),
            }
        }
    }
}

/// What is asked for, as far as it decides the plan.
#[derive(Debug, Clone, PartialEq)]
struct PlanRequest {
    image: String,
    overrides: Vec<UnmanagedObject>,
    enabled: Vec<String>,
}

/// The state of a controller at work.
struct Work {
    stopwatch: Stopwatch,
    owner: Arc<str>,
    payload: Arc<Payload>,
    release: Release,
    request: PlanRequest,
    spec: ClusterVersionSpec,
    generation: i64,
    /// When the ClusterVersion was created.
    created: Option<Timestamp>,
    features: Features,
    feature_watch: FeatureWatch,
    capabilities: Capabilities,
    overrides: Overrides,
    /// The overrides as they were last told of, and what was wrong with them.
    reported_overrides: (Vec<OverrideProgress>, Vec<String>),
    /// The capabilities that updates made necessary, and what did.
    implied: Vec<ImpliedCapability>,
    /// What changes of the spec are judged by.
    rules: watch::Sender<Rules>,
    session: Session,
    loader: ReleaseLoader,
    updates: Updates,
    acknowledgements: Acknowledgements,
    /// What is annotated, as text, and what it means.
    annotated: Option<String>,
    pause: Option<Pause>,
    verified: bool,
    accepted_risks: String,
    /// The spec or what it is judged by changed since it was last looked at.
    request_changed: bool,
    reconsider_at: Instant,
    reported_load: Option<(LoadStep, bool)>,
    reported: ReportedEvents,
    completion_reported: bool,
    reported_pause: Option<u32>,
    recorder: Recorder,
    reporter: Reporter,
    sweep_at: Instant,
    /// When it last looked again although nothing had happened.
    woken_at: Instant,
    limits: Limits,
    /// A release that is accepted, and when to try again to write down what it makes necessary.
    unwritten: Option<(Instant, Accepted)>,
    /// When what was pruned may be taken out of the request for it.
    settle_at: Instant,
}

/// Why a [`Work`] ended.
enum LoopExit {
    /// It was told to.
    Stopped,
    /// The status that it began with is not the one that is there.
    Outdated,
}

impl Work {
    async fn run(
        &mut self,
        controller: &mut Controller,
        cluster_versions: &mut mpsc::Receiver<ConfigObservation>,
        stop: &CancellationToken,
    ) -> LoopExit {
        self.session.start_due(controller.clock.now());
        while !self.reporter.is_outdated() {
            self.notice();
            self.emit_removals(controller.clock.now());
            self.emit_gates();
            self.emit_drift();
            self.consider(controller).await;
            self.retry_apply(controller).await;
            self.apply_overrides(controller).await;
            self.settle_pruning(controller).await;
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
                brought = self.loader.next() => self.brought(controller, brought).await,
                Ok(()) = controller.release.changed(), if self.takes_releases() => {
                    self.released(controller).await;
                }
                event = self.session.next() => {
                    self.happened(event, controller.clock.now());
                    self.reporter.touch();
                }
                () = sleep_until(wake) => self.woken(controller.clock.now()),
            }
        }
        self.session.drain(DRAIN_TIME_MAX, controller.clock.now()).await;
        LoopExit::Outdated
    }

    async fn end(&mut self, controller: &Controller) -> LoopExit {
        tracing::info!("stopping: waiting for requests in flight, then writing the last status");
        self.session.drain(DRAIN_TIME_MAX, controller.clock.now()).await;
        let now = controller.clock.now();
        let context = context!(self, now);
        self.reporter.finish(&context).await;
        LoopExit::Stopped
    }

    /// Begins a plan once the status tells of its release and capabilities. A process that took
    /// over before that would keep the cluster at the release before, and take back what is there
    /// of this one; or not know that a capability is enabled that has objects already.
    fn begin_plan(&mut self, now: Timestamp) {
        if self.session.execution.is_held() && self.is_status_written() {
            self.session.execution.release();
            self.session.start_due(now);
        }
    }

    fn is_status_written(&self) -> bool {
        self.reporter.statuses().has_written(&self.release, &self.capabilities.enabled)
    }

    async fn observed(&mut self, controller: &Controller, observation: ConfigObservation) {
        match observation {
            ConfigObservation::ClusterVersion(Some(object)) => {
                self.asked(controller, &object).await;
            }
            // Without a ClusterVersion the last one is followed.
            ConfigObservation::ClusterVersion(None) => {}
            ConfigObservation::ConfigMap { name, data } => self.acknowledged(name, data),
            ConfigObservation::FeatureGate(object) => {
                self.featured(controller, object.as_deref()).await;
            }
        }
    }

    fn happened(&mut self, event: ExecutionEvent, now: Timestamp) {
        if let ExecutionEvent::Observed(Observation::Definition { group, plural }) = &event {
            if group == CLUSTER_VERSION.group {
                self.reporter.definition_changed();
            }
            self.feature_watch.defined(group, plural);
        }
        self.session.handle(event, now);
    }

    fn woken(&mut self, now: Timestamp) {
        self.woken_at = Instant::now();
        if Instant::now() >= self.sweep_at {
            self.sweep_at = Instant::now() + SWEEP_INTERVAL;
            self.feature_watch.look_again();
            self.session.sweep(now);
        } else {
            self.session.start_due(now);
        }
    }

    /// When to look again although nothing happened.
    fn wake_at(&self, now: Timestamp) -> Instant {
        let mut wake = self.sweep_at.min(self.reporter.wake_at());
        let times = [
            self.session.execution.wake_at(),
            self.session.execution.removals().ledger().due_at(),
            self.loader.wake_at(),
            self.overrides.next_expiry(now),
        ];
        for at in times.into_iter().flatten() {
            let delay = Duration::try_from(at.duration_since(now)).unwrap_or_default();
            wake = wake.min(Instant::now() + delay);
        }
        if let Some((at, _)) = &self.unwritten {
            wake = wake.min(*at);
        }
        if self.is_pruning_settled() {
            wake = wake.min(self.settle_at);
        }
        if self.loader.is_held_up() {
            wake = wake.min(self.reconsider_at);
        }
        wake.max(self.woken_at + WAKE_INTERVAL_MIN)
    }

    fn report(&mut self, controller: &Controller) {
        let now = controller.clock.now();
        let context = context!(self, now);
        let Some(conditions) = self.reporter.report(&context) else { return };
        let mut view = View::of(self.session.progress(), &conditions, now);
        view.capabilities = self.capabilities.clone();
        view.implied = self.implied.clone();
        let created = [self.created, self.payload_created()];
        view.metrics =
            Some(self.reporter.metrics(&context, self.session.execution.counters(), created));
        self.emit_conditions(&conditions);
        controller.view.send_replace(view);
    }

    /// When the payload was built, if it says so.
    fn payload_created(&self) -> Option<Timestamp> {
        self.payload.release.created.as_ref()?.parse().ok()
    }
}
