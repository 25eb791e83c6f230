//! The loop: what happened, what to do next, what to report.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::core::DynamicObject;
use kube::{Client, ResourceExt};
use plimsoll_api::CLUSTER_VERSION;
use plimsoll_api::config::{ClusterVersionSpec, ClusterVersionStatus, Release};
use plimsoll_api::progress::ReleaseProgressStatus;
use plimsoll_content::inclusion::{Context, EnabledCapabilities, Override};
use plimsoll_content::payload::Payload;
use plimsoll_plan::capabilities::{self, Capabilities};
use plimsoll_plan::mode::{self, Mode};
use plimsoll_plan::plan::{Plan, plan};
use plimsoll_plan::progress::{Event, parse_ranges};
use plimsoll_plan::removal::{Notice, PRUNE, Prune};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::bootstrap::{self, api_resource, patiently};
use crate::clock::SharedClock;
use crate::error::Error;
use crate::lease::{self, Lost};
use crate::observe::{self, Observation};
use crate::removals::Removals;
use crate::report::{Reporter, Situation};
use crate::resources::Resources;
use crate::session::{Session, Turn};
use crate::view::View;
use crate::write::Writer;

/// What is to be told of a [`Work`]; borrows each part alone, so that its reporter stays free.
macro_rules! situation {
    ($work:expr, $now:expr) => {
        Situation {
            progress: &$work.session.progress,
            release: &$work.release,
            architecture: architecture(&$work.payload),
            spec: &$work.spec,
            generation: $work.generation,
            capabilities: &$work.capabilities,
            objections: $work.session.objections(),
            removals: &$work.session.removals,
            now: $now,
        }
    };
}

/// How often everything is applied once more although no watch showed a change: a safety net
/// against what watches cannot show, such as a server restored from a backup.
pub(crate) const SWEEP_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// How long executions in flight may take to end when the controller is told to stop.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(5);

/// How a controller works.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Cluster profile that manifests must include.
    pub profile: String,
    /// Feature set of the cluster.
    pub feature_set: String,
    /// The cluster's id, to create a ClusterVersion with when there is none; `None` waits for one.
    pub create: Option<String>,
    /// Who may write.
    pub leadership: Leadership,
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
    /// Where pictures of the work go.
    pub view: watch::Sender<View>,
}

impl Controller {
    /// Works until told to stop.
    ///
    /// # Errors
    ///
    /// When the API server cannot be reached at the start, or the lease is lost.
    pub async fn run(self, stop: CancellationToken) -> Result<(), Error> {
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
                let task = tokio::spawn(async move {
                    let lost = held.keep(stop).await;
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
        let create = self.settings.create.as_deref();
        let client = &self.client;
        patiently(stop, || bootstrap::install_crds(client, &writer, stop)).await?;
        let uid = patiently(stop, || bootstrap::cluster_version_uid(client, &writer, create, stop))
            .await?;
        let recorded =
            patiently(stop, || bootstrap::recorded_progress(client, &writer, &uid)).await?;
        let (sender, mut cluster_versions) = mpsc::channel(1);
        let watching = tokio::spawn(observe::watch_cluster_version(
            self.client.clone(),
            api_resource(CLUSTER_VERSION),
            sender,
        ));
        let Some(first) = first_cluster_version(&mut cluster_versions, stop).await else {
            return Err(Error::Stopped);
        };
        let resources = patiently(stop, || async {
            Resources::discover(client).await.map_err(|source| Error::Discover { source })
        })
        .await?;
        let mut work = Work::begin(&mut self, &first, uid.into(), resources, &recorded);
        let result = work.run(&mut self, &mut cluster_versions, stop).await;
        watching.abort();
        result
    }
}

async fn first_cluster_version(
    observations: &mut mpsc::Receiver<Observation>,
    stop: &CancellationToken,
) -> Option<DynamicObject> {
    loop {
        tokio::select! {
            observation = observations.recv() => match observation? {
                Observation::ClusterVersion(Some(object)) => return Some(*object),
                _ => continue,
            },
            () = stop.cancelled() => return None,
        }
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
    capabilities: Capabilities,
    session: Session,
    reporter: Reporter,
    sweep_at: Instant,
}

impl Work {
    fn begin(
        controller: &mut Controller,
        cluster_version: &DynamicObject,
        owner: Arc<str>,
        resources: Resources,
        recorded: &ReleaseProgressStatus,
    ) -> Self {
        let now = controller.clock.now();
        let payload = Arc::clone(&controller.release.borrow_and_update());
        let (spec, status) = read(cluster_version);
        let release = release_of(&payload);
        let capabilities = enabled(
            &payload,
            &controller.settings,
            &spec,
            &status.capabilities.enabled_capabilities,
        );
        let request = request(&release, &spec, &capabilities);
        let removals = Removals::recorded(recorded, prune_asked(cluster_version));
        let mode = match mode::choose(&status.history, &release.image) {
            Mode::Reconciling if removals.is_pruning_due() => Mode::Updating,
            mode => mode,
        };
        let planned =
            make_plan(&payload, &controller.settings, &release, &request, &capabilities, mode);
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
        let mut reporter = Reporter::new(controller.client.clone(), status);
        reporter.remember(recorded);
        Self {
            owner,
            payload,
            release,
            request,
            spec,
            generation: cluster_version.metadata.generation.unwrap_or_default(),
            capabilities,
            session,
            reporter,
            sweep_at: Instant::now() + SWEEP_INTERVAL,
        }
    }

    async fn run(
        &mut self,
        controller: &mut Controller,
        cluster_versions: &mut mpsc::Receiver<Observation>,
        stop: &CancellationToken,
    ) -> Result<(), Error> {
        self.session.start_due(controller.clock.now());
        loop {
            self.tell(controller.clock.now());
            self.report(controller);
            let wake = self.wake_at(controller.clock.now());
            tokio::select! {
                turn = self.session.next() => {
                    self.turn(turn, controller.clock.now());
                    self.reporter.touch();
                }
                Some(observation) = cluster_versions.recv() => {
                    if let Observation::ClusterVersion(Some(object)) = observation {
                        self.asked(controller, &object).await;
                    }
                }
                Ok(()) = controller.release.changed(), if self.takes_releases() => {
                    self.released(controller).await;
                }
                () = self.reporter.written() => {}
                () = sleep_until(wake) => self.woken(controller.clock.now()),
                () = stop.cancelled() => break,
            }
        }
        tracing::info!("stopping: waiting for requests in flight, then writing the last status");
        self.session.drain(DRAIN_TIME_MAX, controller.clock.now()).await;
        let now = controller.clock.now();
        let situation = situation!(self, now);
        self.reporter.finish(&situation).await;
        Ok(())
    }

    /// Tells what people should hear of.
    fn tell(&mut self, now: Timestamp) {
        for notice in self.session.removals.notices(now) {
            let Notice { key, reason, is_warning, message } = notice;
            self.reporter.touch();
            if is_warning {
                tracing::warn!(object = %key, %reason, "{message}");
            } else {
                tracing::info!(object = %key, %reason, "{message}");
            }
        }
    }

    fn turn(&mut self, turn: Turn, now: Timestamp) {
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
        if Instant::now() >= self.sweep_at {
            self.sweep_at = Instant::now() + SWEEP_INTERVAL;
            self.session.progress.handle(Event::Sweep, now);
        }
        self.session.start_due(now);
    }

    /// When to look again although nothing happened.
    fn wake_at(&self, now: Timestamp) -> Instant {
        let mut wake = self.sweep_at.min(self.reporter.due_at());
        let due = [self.session.progress.wake_at(), self.session.removals.ledger.due_at()];
        if let Some(at) = due.into_iter().flatten().min() {
            let delay = Duration::try_from(at.duration_since(now)).unwrap_or_default();
            wake = wake.min(Instant::now() + delay);
        }
        wake
    }

    fn report(&mut self, controller: &Controller) {
        let now = controller.clock.now();
        let situation = situation!(self, now);
        if let Some(conditions) = self.reporter.report(&situation) {
            let view = View::of(&self.session.progress, &conditions, now);
            controller.view.send_replace(view);
        }
    }

    /// The ClusterVersion changed, perhaps what it asks for.
    async fn asked(&mut self, controller: &Controller, object: &DynamicObject) {
        let (spec, status) = read(object);
        self.generation = object.metadata.generation.unwrap_or_default();
        if object.uid().as_deref() != Some(&*self.owner) {
            tracing::warn!("the ClusterVersion was replaced; its owned objects follow it");
            self.owner = object.uid().unwrap_or_default().into();
        }
        self.spec = spec;
        let kept: Vec<String> = status
            .capabilities
            .enabled_capabilities
            .iter()
            .chain(&self.capabilities.enabled)
            .cloned()
            .collect();
        self.capabilities = enabled(&self.payload, &controller.settings, &self.spec, &kept);
        let request = request(&self.release, &self.spec, &self.capabilities);
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
        self.payload = Arc::clone(&controller.release.borrow_and_update());
        self.release = release_of(&self.payload);
        self.request = request(&self.release, &self.spec, &self.capabilities);
        tracing::info!(version = %self.release.version, "another release is to be applied");
        self.replan(controller).await;
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
        session.take_over(&mut self.session, now);
        self.session = session;
        self.session.start_due(now);
    }
}

fn read(object: &DynamicObject) -> (ClusterVersionSpec, ClusterVersionStatus) {
    let part = |name: &str| object.data.get(name).cloned().unwrap_or_default();
    let spec = serde_json::from_value(part("spec")).unwrap_or_else(|error| {
        tracing::warn!(%error, "the spec of the ClusterVersion cannot be read; it is ignored");
        ClusterVersionSpec::default()
    });
    (spec, serde_json::from_value(part("status")).unwrap_or_default())
}

/// The capabilities in force, given those that were enabled before.
fn enabled(
    payload: &Payload,
    settings: &Settings,
    spec: &ClusterVersionSpec,
    before: &[String],
) -> Capabilities {
    let gates = payload.feature_gates(&settings.profile, &settings.feature_set);
    capabilities::effective_with_gates(spec, before, &[], &gates)
}

fn release_of(payload: &Payload) -> Release {
    Release {
        version: payload.release.version.clone(),
        image: payload.image.clone(),
        url: payload.release.url.clone(),
        channels: payload.release.channels.clone(),
    }
}

/// The architecture of a payload, as Go names it; one that declares none is for this machine.
fn architecture(payload: &Payload) -> &str {
    match (payload.release.architecture.as_str(), std::env::consts::ARCH) {
        ("", "x86_64") => "amd64",
        ("", "aarch64") => "arm64",
        ("", "powerpc64") => "ppc64le",
        ("", other) | (other, _) => other,
    }
}

fn request(release: &Release, spec: &ClusterVersionSpec, capabilities: &Capabilities) -> Request {
    let overrides = spec.overrides.iter().filter(|entry| entry.unmanaged).map(|entry| Override {
        group: entry.group.clone(),
        kind: entry.kind.clone(),
        namespace: entry.namespace.clone(),
        name: entry.name.clone(),
    });
    Request {
        image: release.image.clone(),
        overrides: overrides.collect(),
        enabled: capabilities.enabled.iter().cloned().collect(),
    }
}

fn make_plan(
    payload: &Payload,
    settings: &Settings,
    release: &Release,
    request: &Request,
    capabilities: &Capabilities,
    mode: Mode,
) -> Plan {
    let context = Context {
        capabilities: Some(EnabledCapabilities {
            known: capabilities.known.iter().cloned().collect(),
            enabled: capabilities.enabled.iter().cloned().collect(),
        }),
        overrides: request.overrides.clone(),
        ..payload.context(&settings.profile, &settings.feature_set)
    };
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
