//! Rehearsals: an update carried out on a copy of a cluster, by the controller that would carry it
//! out on the cluster itself. So are changes of Operators (`operators`).
//!
//! The copy is in an embedded API server, operators and workloads are simulated, and time is
//! virtual: the clock of the runtime only advances when all tasks wait. So hours pass in seconds,
//! and the same copy with the same releases and faults always gives the same result.
//!
//! # Steps
//!
//! 1. The cluster begins as a snapshot, or is installed from the outgoing release without faults.
//! 2. A dry run on it gives the [`Forecast`].
//! 3. The controller runs, and a [`Timeline`] records what it writes and when, what it waits for,
//!    and what it reports.
//! 4. It ends when the release is complete, or when the update is stalled and the cluster reports
//!    Failing. The result for each object is compared with the forecast.

mod copy;
mod error;
mod operators;
mod recorder;
mod result;
mod timeline;
mod webhooks;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_apiserver::{AccessOptions, ApiServer, KeySource, Options};
use kube::Client;
use kube::api::{Patch, PatchParams};
use plimsoll_api::config::{ClusterVersionSpec, ComponentOverride};
use plimsoll_api::{CLUSTER_VERSION, CLUSTER_VERSION_NAME, Reason};
use plimsoll_content::ready_when::READY_WHEN;
use plimsoll_content::{Manifest, Payload};
use plimsoll_controller::{Clock as _, Controller, DryRun, Leadership, Settings, View};
use plimsoll_plan::forecast::Forecast;
use plimsoll_plan::progress::pause::PAUSE_BEFORE;
use plimsoll_plan::status::Limits;
use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::clock::{self, VirtualClock};
use crate::cluster_state::{self, ClusterState};
use crate::dry_run;
use crate::simulated_operators::{self, FaultError, Faults, SimulatedRelease, SimulationOptions};

pub use copy::{ClusterSnapshot, CopyError};
pub use error::RehearsalError;
pub use operators::{
    ObjectCounts, OperatorRequest, OperatorTransition, OperatorTrouble, OperatorsRehearsal,
    OperatorsResult, RehearsedCatalog, RehearsedCondition, RehearsedOperator, TroubleKind,
    UnreadCatalog,
};
pub use result::{RehearsalResult, UnmanagedObject};
pub use timeline::{ConditionTransition, RehearsalEnd, StepWait, Timeline};

use error::finished;
use recorder::Recorder;
use result::{changes, written};
use timeline::FAILING_FOR;

/// The id of a cluster that is installed for a rehearsal.
const CLUSTER_ID: &str = "0f4e8b52-9b1d-4c53-8a87-3d5c1f6e2a90";
/// How long the installation of the outgoing release may make no progress: nothing is slow then.
const INSTALL_FAILING_FOR: Duration = Duration::from_secs(60);
/// How long the cluster is watched after its release is complete.
const OBSERVED_AFTERWARDS: Duration = Duration::from_secs(10);

/// The parts of a rehearsal that may fail.
const CONTROLLER: &str = "the controller";
const OPERATORS: &str = "the simulation of operators";

/// An update to rehearse.
pub struct Rehearsal {
    /// The cluster before the update.
    pub initial_state: InitialState,
    /// The release to go to.
    pub next: Arc<Payload>,
    /// Cluster profile.
    pub profile: String,
    /// Feature set; `None` follows the FeatureGate that the cluster has.
    pub feature_set: Option<String>,
    /// How long each operator takes from the change of its workloads to its report.
    pub delay: Duration,
    /// Faults of operators; none by default.
    pub faults: Faults,
}

/// The cluster before the update.
pub enum InitialState {
    /// An empty cluster on which this release is installed first.
    Release(Arc<Payload>),
    /// A copy of a cluster.
    Cluster(ClusterSnapshot),
    /// An empty cluster: an installation is rehearsed.
    Empty,
}

impl InitialState {
    /// Returns the copy of a cluster; `None` if it begins empty.
    fn snapshot(&self) -> Option<&ClusterSnapshot> {
        match self {
            Self::Cluster(snapshot) => Some(snapshot),
            Self::Release(_) | Self::Empty => None,
        }
    }
}

/// Runs a rehearsal on a runtime of its own, in virtual time.
fn in_virtual_time<T>(
    rehearsal: impl Future<Output = Result<T, RehearsalError>>,
) -> Result<T, RehearsalError> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build()?;
    let result = runtime.block_on(rehearsal);
    runtime.shutdown_background();
    result
}

/// Returns a clock that begins when the copy of a cluster was last changed.
fn virtual_clock(snapshot: Option<&ClusterSnapshot>) -> VirtualClock {
    VirtualClock::from(snapshot.map_or_else(clock::start_time, ClusterSnapshot::newest))
}

/// Returns a server with the copy of a cluster, or with an empty one.
fn server(
    snapshot: Option<&ClusterSnapshot>,
    clock: VirtualClock,
) -> Result<ApiServer, RehearsalError> {
    let options = Options {
        clock: Arc::new(clock),
        webhooks: webhooks::agreeing(),
        // This server cannot be reached from outside, and every rehearsal is to be the same.
        access: AccessOptions { keys: KeySource::Seed(0), ..AccessOptions::default() },
        ..Options::default()
    };
    match snapshot {
        Some(snapshot) => ApiServer::restore(snapshot.bytes(), options)
            .map_err(|source| RehearsalError::InvalidCopy { source }),
        None => Ok(ApiServer::new(options)),
    }
}

impl Rehearsal {
    /// Runs the rehearsal on a runtime of its own; takes seconds.
    ///
    /// # Errors
    ///
    /// When the snapshot cannot be loaded, the outgoing release cannot be installed, a fault names
    /// an unknown operator, or the controller ends before the update.
    pub fn run(mut self) -> Result<RehearsalResult, RehearsalError> {
        self.next = without_conditions(self.next);
        if let InitialState::Release(outgoing) = &mut self.initial_state {
            *outgoing = without_conditions(Arc::clone(outgoing));
        }
        in_virtual_time(self.run_in_virtual_time())
    }

    async fn run_in_virtual_time(mut self) -> Result<RehearsalResult, RehearsalError> {
        let clock = virtual_clock(self.initial_state.snapshot());
        let server = server(self.initial_state.snapshot(), clock)?;
        let client = Client::new(server.clone(), "default");
        let unmanaged = match &self.initial_state {
            InitialState::Release(outgoing) => self.install(&client, outgoing, clock).await?,
            InitialState::Cluster(_) => {
                withdraw_requests(&client).await?;
                let cluster = ClusterState::read_opt(&client).await?.unwrap_or_default();
                let fixed = cluster.fixed_feature_set().map(str::to_owned);
                self.feature_set = self.feature_set.or(fixed);
                Vec::new()
            }
            InitialState::Empty => Vec::new(),
        };
        let (forecast, before) = self.forecast(&client, clock).await?;
        let stop = CancellationToken::new();
        let mut operators = self.operators(&client, clock, &stop).await?;
        let recorder = Recorder::new(server);
        let recorded = Client::new(recorder.clone(), "default");
        let (_release, release) = watch::channel(Arc::clone(&self.next));
        let (view, views) = watch::channel(View::default());
        // What would not begin is reported, and rehearsed as if it were forced.
        let would_not_begin = !forecast.stops().is_empty();
        let (version, began) = (&self.next.release.version, Instant::now());
        let controller = self.controller(recorded, release, view, clock, would_not_begin);
        let mut running = tokio::spawn(controller.run(stop.clone()));
        let mut timeline = tokio::select! {
            biased;
            timeline = timeline::watch(views, version, began, FAILING_FOR) => timeline,
            ended = &mut running => {
                finished(CONTROLLER, ended)?;
                return Err(RehearsalError::Ended { part: CONTROLLER });
            }
            failed = &mut operators => {
                finished(OPERATORS, failed)?;
                return Err(RehearsalError::Ended { part: OPERATORS });
            }
        };
        if !unmanaged.is_empty() {
            let own = Reason::ClusterVersionOverridesSet.as_str();
            timeline.transitions.retain(|transition| transition.reason != own);
        }
        tokio::time::sleep(OBSERVED_AFTERWARDS).await;
        let writes = recorder.writes();
        stop.cancel();
        finished(CONTROLLER, running.await)?;
        let after = plimsoll_controller::dry_run(&client, &forecast.plan).await?;
        let cluster = ClusterState::read_opt(&client).await?.unwrap_or_default();
        let names = recorder::kind_names(&client).await;
        let names = names
            .map_err(|source| RehearsalError::Request { what: "discover the kinds", source })?;
        let (not_copied, unread_kinds) = match self.initial_state {
            InitialState::Cluster(it) => (it.not_copied, it.unread_kinds),
            InitialState::Release(_) | InitialState::Empty => (Vec::new(), Vec::new()),
        };
        Ok(RehearsalResult {
            changes: changes(&forecast, &before, &after),
            written: written(&forecast, &writes, &names, &after.cluster_kinds),
            writes: writes.len(),
            conditions: cluster.status.conditions,
            not_copied,
            unread_kinds,
            unmanaged,
            timeline,
            forecast,
        })
    }

    /// Installs the outgoing release on an empty cluster. What the embedded server rejects, though
    /// a real one may accept it, becomes unmanaged: it says nothing about the update.
    async fn install(
        &self,
        client: &Client,
        outgoing: &Arc<Payload>,
        clock: VirtualClock,
    ) -> Result<Vec<UnmanagedObject>, RehearsalError> {
        let stop = CancellationToken::new();
        let options = SimulationOptions {
            payloads: vec![Arc::clone(outgoing)],
            profile: self.profile.clone(),
            feature_set: self.feature_set.clone().unwrap_or_default(),
            clock: Arc::new(clock),
            ..SimulationOptions::default()
        };
        let operators =
            tokio::spawn(simulated_operators::run(client.clone(), options, stop.clone()));
        let (_release, release) = watch::channel(Arc::clone(outgoing));
        let (view, views) = watch::channel(View::default());
        let controller = self.controller(client.clone(), release, view, clock, false);
        let running = tokio::spawn(controller.run(stop.clone()));
        let version = &outgoing.release.version;
        let install =
            || timeline::watch(views.clone(), version, Instant::now(), INSTALL_FAILING_FOR);
        let mut installed = install().await;
        let unmanaged = refused(&installed);
        if installed.end == RehearsalEnd::Stalled && !unmanaged.is_empty() {
            override_objects(client, &unmanaged).await?;
            installed = install().await;
        }
        tokio::time::sleep(OBSERVED_AFTERWARDS).await;
        stop.cancel();
        finished(CONTROLLER, running.await)?;
        finished(OPERATORS, operators.await)?;
        let lasting = installed.waits.iter().filter(|wait| wait.until.is_none());
        let lasting: Vec<&str> = lasting.map(|wait| wait.message.as_str()).collect();
        match installed.end {
            RehearsalEnd::Complete => Ok(unmanaged),
            RehearsalEnd::Stalled => Err(RehearsalError::NotInstalled {
                version: version.clone(),
                messages: lasting.join("; "),
            }),
        }
    }

    fn controller(
        &self,
        client: Client,
        release: watch::Receiver<Arc<Payload>>,
        view: watch::Sender<View>,
        clock: VirtualClock,
        force_release: bool,
    ) -> Controller {
        Controller {
            client,
            clock: Arc::new(clock),
            settings: Settings {
                profile: self.profile.clone(),
                feature_set: self.feature_set.clone(),
                create: Some(ClusterVersionSpec {
                    cluster_id: CLUSTER_ID.to_owned(),
                    ..ClusterVersionSpec::default()
                }),
                force_release,
                leadership: Leadership::Alone,
                always_enabled: Vec::new(),
                capability_webhook: None,
                limits: Limits::default(),
            },
            release,
            store: None,
            view,
        }
    }

    async fn forecast(
        &self,
        client: &Client,
        clock: VirtualClock,
    ) -> Result<(Forecast, DryRun), RehearsalError> {
        let mut cluster = ClusterState::read_opt(client).await?.unwrap_or_default();
        cluster.is_rehearsed = matches!(self.initial_state, InitialState::Release(_));
        let now = clock.now();
        let requested = cluster.target(&self.profile, self.feature_set.as_deref(), now);
        Ok(dry_run::forecast(client, &cluster, &self.next, &requested, now).await?)
    }

    /// Starts the simulated workloads and operators, those of the outgoing release too, so that they
    /// report it until they are updated.
    async fn operators(
        &self,
        client: &Client,
        clock: VirtualClock,
        stop: &CancellationToken,
    ) -> Result<JoinHandle<Result<(), FaultError>>, RehearsalError> {
        let features = ClusterState::read_opt(client).await?.unwrap_or_default().features;
        let mut options = SimulationOptions {
            payloads: vec![Arc::clone(&self.next)],
            profile: self.profile.clone(),
            feature_set: self.feature_set.clone().unwrap_or(features.set),
            delay: self.delay,
            faults: self.faults.clone(),
            clock: Arc::new(clock),
            ..SimulationOptions::default()
        };
        match &self.initial_state {
            InitialState::Release(outgoing) => options.payloads.insert(0, Arc::clone(outgoing)),
            InitialState::Cluster(snapshot) => {
                options.releases.extend(outgoing(snapshot, &self.next))
            }
            InitialState::Empty => {}
        }
        Ok(tokio::spawn(simulated_operators::run(client.clone(), options, stop.clone())))
    }
}

/// The release that a copied cluster is at, as far as the simulation has to know it: the live
/// workloads and operators that the next release has too.
fn outgoing(snapshot: &ClusterSnapshot, next: &Payload) -> Option<SimulatedRelease> {
    let mut live = BTreeMap::new();
    let mut version = None;
    for (resource, object) in snapshot.objects() {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        if resource.starts_with("clusterversions.") {
            version = object["status"]["desired"]["version"].as_str().map(str::to_owned);
        }
        let key = (resource, text("namespace"), text("name"));
        live.insert(key, object);
    }
    let version = version.filter(|version| *version != next.release.version)?;
    let manifests = next.manifests.iter().filter_map(|manifest| {
        let key = &manifest.key;
        let resource = match (key.group.as_str(), key.kind.as_str()) {
            ("apps", "Deployment" | "DaemonSet" | "StatefulSet")
            | ("config.openshift.io", "ClusterOperator") => {
                format!("{}s.{}", key.kind.to_lowercase(), key.group)
            }
            _ => return None,
        };
        let namespace = if key.kind == "ClusterOperator" { "" } else { &key.namespace };
        let object = live.get(&(resource, namespace.to_owned(), key.name.clone()))?;
        let raw = serde_json::to_vec(object).ok()?;
        // Whether it belongs to the cluster is known: it is there.
        let annotations = Arc::default();
        Some(Manifest { annotations, raw: raw.into(), ..manifest.clone() })
    });
    let manifests = manifests.collect();
    Some(SimulatedRelease { version, manifests, cluster_kinds: next.cluster_kinds() })
}

/// Returns a release without its gates by condition: nothing in a rehearsal reports what they wait for.
fn without_conditions(payload: Arc<Payload>) -> Arc<Payload> {
    let is_gated = |it: &Manifest| it.annotations.contains_key(READY_WHEN);
    if !payload.manifests.iter().any(is_gated) {
        return payload;
    }
    let mut payload = Arc::unwrap_or_clone(payload);
    for manifest in payload.manifests.iter_mut().filter(|it| is_gated(it)) {
        Arc::make_mut(&mut manifest.annotations).remove(READY_WHEN);
    }
    Arc::new(payload)
}

/// The objects that the server rejects with a lasting error.
fn refused(installed: &Timeline) -> Vec<UnmanagedObject> {
    let lasting = installed.waits.iter().filter(|wait| wait.until.is_none() && wait.failed);
    let refused = lasting.filter(|wait| {
        let lasting =
            [Reason::UpdatePayloadResourceInvalid, Reason::UpdatePayloadResourceForbidden];
        lasting.contains(&wait.reason)
    });
    refused
        .map(|wait| UnmanagedObject { key: wait.object.clone(), message: wait.message.clone() })
        .collect()
}

/// Withdraws what the ClusterVersion of a copy requests of its controller: the update that is
/// rehearsed takes the place of a requested one, and a paused one would not be resumed.
async fn withdraw_requests(client: &Client) -> Result<(), RehearsalError> {
    let patch = json!({
        "metadata": { "annotations": { PAUSE_BEFORE: null } },
        "spec": { "desiredUpdate": null },
    });
    let api = cluster_state::api(client, CLUSTER_VERSION);
    match api.patch(CLUSTER_VERSION_NAME, &PatchParams::default(), &Patch::Merge(&patch)).await {
        // A bare cluster has none, or does not even serve the kind.
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        patched => patched.map(drop).map_err(|source| RehearsalError::Request {
            what: "withdraw the requested update from the copy",
            source,
        }),
    }
}

/// Sets overrides that make objects unmanaged, as an administrator would.
async fn override_objects(
    client: &Client,
    objects: &[UnmanagedObject],
) -> Result<(), RehearsalError> {
    let overrides = objects.iter().map(|object| ComponentOverride {
        kind: object.key.kind.clone(),
        group: object.key.group.clone(),
        namespace: object.key.namespace.clone(),
        name: object.key.name.clone(),
        unmanaged: true,
    });
    let overrides: Vec<ComponentOverride> = overrides.collect();
    let patch = json!({ "spec": { "overrides": overrides } });
    let api = cluster_state::api(client, CLUSTER_VERSION);
    let patched =
        api.patch(CLUSTER_VERSION_NAME, &PatchParams::default(), &Patch::Merge(&patch)).await;
    patched.map(drop).map_err(|source| RehearsalError::Request {
        what: "override what cannot be installed",
        source,
    })
}
