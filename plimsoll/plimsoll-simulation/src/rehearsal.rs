//! Rehearsals: an update carried out on a copy of a cluster, by the very controller that would do
//! it, before anything happens.
//!
//! The copy lies in an embedded API server, stand-ins play what needs nodes, and time is virtual: a
//! runtime whose clock only moves when nobody has anything to do. So hours pass in seconds, and the
//! same copy with the same releases and faults always gives the same result.
//!
//! # Stages
//!
//! 1. The cluster begins as a snapshot, or is installed from the outgoing release without faults.
//! 2. A dry run on it gives the [`Forecast`].
//! 3. The controller is let loose, and is watched ([`Timeline`]): what it writes and when, what it
//!    waits for, what it reports.
//! 4. It ends when the release is complete, or when nothing gets on any more and the cluster says
//!    that it fails. What has become of each object is compared with the forecast.

mod copy;
mod recorder;
mod timeline;
mod webhooks;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use k8s_apiserver::{ApiServer, Options};
use kube::Client;
use kube::api::{Patch, PatchParams};
use plimsoll_api::config::ComponentOverride;
use plimsoll_api::{
    CLUSTER_VERSION, CLUSTER_VERSION_NAME, Condition, GroupKind, ObjectKey, Reason,
};
use plimsoll_content::{Manifest, Payload};
use plimsoll_controller::{Clock as _, Controller, DryRun, Leadership, Settings, View};
use plimsoll_plan::diff;
use plimsoll_plan::forecast::{Change, Forecast};
use plimsoll_plan::status::Limits;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::clock::{self, VirtualClock};
use crate::dry_run;
use crate::standing::{self, Standing};
use crate::standins::{self, FaultError, Faults, Script, StandInOptions};

pub use copy::Snapshot;
pub use timeline::{Ending, Timeline, Transition, Wait};

use recorder::{Names, Recorder, Request};
use timeline::FAILING_FOR;

/// The id of a cluster that is installed for a rehearsal.
const CLUSTER_ID: &str = "0f4e8b52-9b1d-4c53-8a87-3d5c1f6e2a90";
/// How long nothing may get on while the outgoing release is installed: nobody is slow then.
const INSTALL_FAILING_FOR: Duration = Duration::from_secs(60);
/// How long the cluster is watched after its release is complete.
const AFTERWARDS: Duration = Duration::from_secs(10);

/// What is rehearsed.
pub struct Rehearsal {
    /// How it begins.
    pub stage: Scenery,
    /// The release to go to.
    pub next: Arc<Payload>,
    /// Cluster profile.
    pub profile: String,
    /// Feature set; `None` follows the FeatureGate that the cluster has.
    pub feature_set: Option<String>,
    /// How long each operator takes from the change of its workloads to its report.
    pub delay: Duration,
    /// What goes wrong.
    pub faults: Faults,
}

/// How a rehearsal begins.
pub enum Scenery {
    /// On an empty cluster, at which this release is installed first.
    Release(Arc<Payload>),
    /// On a copy of a cluster.
    Cluster(Snapshot),
    /// On an empty cluster: an installation is rehearsed.
    Nothing,
}

/// What became of it.
#[derive(Debug)]
pub struct Performance {
    /// What the dry run said beforehand.
    pub forecast: Forecast,
    /// What became of the object of each step, in the order of the plan's steps.
    pub changes: Vec<Change>,
    /// When the object of each step was first written; `None` for those that never were.
    pub written: Vec<Option<Duration>>,
    /// How many requests the controller made that change something, or try to.
    pub writes: usize,
    /// What happened when.
    pub timeline: Timeline,
    /// What the ClusterVersion says at the end.
    pub conditions: Vec<Condition>,
    /// Resources of a live cluster that could not be copied.
    pub left_out: Vec<String>,
    /// Objects of the outgoing release that could not be installed, and were left alone.
    pub unmanaged: Vec<Unmanaged>,
}

/// An object that is left alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmanaged {
    /// The object.
    pub key: ObjectKey,
    /// Why it could not be installed.
    pub message: String,
}

impl Rehearsal {
    /// Rehearses; takes seconds.
    ///
    /// # Errors
    ///
    /// When it cannot begin: the snapshot is none, the outgoing release does not install, a fault
    /// names an operator that is not there.
    pub fn perform(self) -> Result<Performance, anyhow::Error> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()?;
        let result = runtime.block_on(self.on_stage());
        runtime.shutdown_background();
        result
    }

    async fn on_stage(self) -> Result<Performance, anyhow::Error> {
        let clock = VirtualClock::from(match &self.stage {
            Scenery::Cluster(snapshot) => snapshot.newest(),
            Scenery::Release(_) | Scenery::Nothing => clock::beginning(),
        });
        let server = self.server(clock)?;
        let client = Client::new(server.clone(), "default");
        let unmanaged = match &self.stage {
            Scenery::Release(outgoing) => self.install(&client, outgoing, clock).await?,
            Scenery::Cluster(_) | Scenery::Nothing => Vec::new(),
        };
        let (forecast, before) = self.forecast(&client, clock).await?;
        let stop = CancellationToken::new();
        let mut playing = self.stand_ins(&client, clock, &stop).await?;
        let recorder = Recorder::new(server);
        let recorded = Client::new(recorder.clone(), "default");
        let (_release, release) = watch::channel(Arc::clone(&self.next));
        let (view, views) = watch::channel(View::default());
        let (version, began) = (&self.next.release.version, Instant::now());
        let controller = self.controller(recorded, release, view, clock);
        let mut working = tokio::spawn(controller.run(stop.clone()));
        let timeline = tokio::select! {
            biased;
            timeline = timeline::watch(views, version, began, FAILING_FOR) => timeline,
            ended = &mut working => {
                ended.context("the controller broke down")?.context("the controller gave up")?;
                anyhow::bail!("the controller ended before the update did");
            }
            failed = &mut playing => {
                failed.context("the stand-ins broke down")??;
                anyhow::bail!("the stand-ins ended before the update did");
            }
        };
        tokio::time::sleep(AFTERWARDS).await;
        let requests = recorder.requests();
        stop.cancel();
        working.await.context("the controller broke down")?.context("the controller gave up")?;
        let after = plimsoll_controller::dry_run(&client, &forecast.plan).await?;
        let cluster = Standing::read_opt(&client).await?.unwrap_or_default();
        let names = recorder::names(&client).await?;
        Ok(Performance {
            changes: changes(&forecast, &before, &after),
            written: written(&forecast, &requests, &names, &after.cluster_kinds),
            writes: requests.len(),
            conditions: cluster.status.conditions,
            left_out: match self.stage {
                Scenery::Cluster(snapshot) => snapshot.left_out,
                Scenery::Release(_) | Scenery::Nothing => Vec::new(),
            },
            unmanaged,
            timeline,
            forecast,
        })
    }

    fn server(&self, clock: VirtualClock) -> Result<ApiServer, anyhow::Error> {
        let mut payloads = vec![&self.next];
        let mut objects = Vec::new();
        match &self.stage {
            Scenery::Release(outgoing) => payloads.push(outgoing),
            Scenery::Cluster(snapshot) => {
                objects.extend(snapshot.objects().map(|(_, object)| object));
            }
            Scenery::Nothing => {}
        }
        let manifests = payloads.into_iter().flat_map(|payload| &payload.manifests);
        let manifests = manifests.filter(|it| webhooks::may_configure(&it.key.kind));
        let objects = objects.into_iter().chain(manifests.map(|manifest| manifest.object()));
        let options = Options {
            clock: Arc::new(clock),
            webhooks: webhooks::content(objects),
            ..Options::default()
        };
        match &self.stage {
            Scenery::Cluster(snapshot) => ApiServer::restore(snapshot.bytes(), options)
                .context("the copy of the cluster cannot be used; `rehearse --save` makes one"),
            Scenery::Release(_) | Scenery::Nothing => Ok(ApiServer::new(options)),
        }
    }

    /// Brings the outgoing release onto an empty cluster. What this server refuses, though others
    /// may complete it, is left alone: it says nothing about the update.
    async fn install(
        &self,
        client: &Client,
        outgoing: &Arc<Payload>,
        clock: VirtualClock,
    ) -> Result<Vec<Unmanaged>, anyhow::Error> {
        let stop = CancellationToken::new();
        let options = StandInOptions {
            payloads: vec![Arc::clone(outgoing)],
            profile: self.profile.clone(),
            feature_set: self.feature_set.clone().unwrap_or_default(),
            clock: Arc::new(clock),
            ..StandInOptions::default()
        };
        let playing = tokio::spawn(standins::run(client.clone(), options, stop.clone()));
        let (_release, release) = watch::channel(Arc::clone(outgoing));
        let (view, views) = watch::channel(View::default());
        let controller = self.controller(client.clone(), release, view, clock);
        let working = tokio::spawn(controller.run(stop.clone()));
        let version = &outgoing.release.version;
        let install =
            || timeline::watch(views.clone(), version, Instant::now(), INSTALL_FAILING_FOR);
        let mut installed = install().await;
        let unmanaged = refused(outgoing, &installed);
        if installed.ending == Ending::Stopped && !unmanaged.is_empty() {
            leave_alone(client, &unmanaged).await?;
            installed = install().await;
        }
        tokio::time::sleep(AFTERWARDS).await;
        stop.cancel();
        working.await.context("the controller broke down")?.context("the controller gave up")?;
        playing.await.context("the stand-ins broke down")??;
        let lasting = installed.waits.iter().filter(|wait| wait.until.is_none());
        let lasting: Vec<&str> = lasting.map(|wait| wait.message.as_str()).collect();
        anyhow::ensure!(
            installed.ending == Ending::Complete,
            "the outgoing release {version} cannot be installed, so there is nothing to update: {}",
            lasting.join("; ")
        );
        Ok(unmanaged)
    }

    fn controller(
        &self,
        client: Client,
        release: watch::Receiver<Arc<Payload>>,
        view: watch::Sender<View>,
        clock: VirtualClock,
    ) -> Controller {
        Controller {
            client,
            clock: Arc::new(clock),
            settings: Settings {
                profile: self.profile.clone(),
                feature_set: self.feature_set.clone(),
                create: Some(CLUSTER_ID.to_owned()),
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
    ) -> Result<(Forecast, DryRun), anyhow::Error> {
        let cluster = Standing::read_opt(client).await?.unwrap_or_default();
        let asked = cluster.target(&self.profile, self.feature_set.as_deref(), clock.now());
        dry_run::forecast(client, &cluster, &self.next, &asked).await
    }

    /// Begins to play the workloads and operators, those of the outgoing release too, so that they
    /// report it until they are updated.
    async fn stand_ins(
        &self,
        client: &Client,
        clock: VirtualClock,
        stop: &CancellationToken,
    ) -> Result<JoinHandle<Result<(), FaultError>>, anyhow::Error> {
        let features = Standing::read_opt(client).await?.unwrap_or_default().features;
        let mut options = StandInOptions {
            payloads: vec![Arc::clone(&self.next)],
            profile: self.profile.clone(),
            feature_set: self.feature_set.clone().unwrap_or(features.set),
            delay: self.delay,
            faults: self.faults.clone(),
            clock: Arc::new(clock),
            ..StandInOptions::default()
        };
        match &self.stage {
            Scenery::Release(outgoing) => options.payloads.insert(0, Arc::clone(outgoing)),
            Scenery::Cluster(snapshot) => options.scripts.extend(outgoing(snapshot, &self.next)),
            Scenery::Nothing => {}
        }
        Ok(tokio::spawn(standins::run(client.clone(), options, stop.clone())))
    }
}

/// The release that a copied cluster is at, as far as stand-ins have to know it: the workloads and
/// operators that the next release has too, as they are.
fn outgoing(snapshot: &Snapshot, next: &Payload) -> Option<Script> {
    let mut live = BTreeMap::new();
    let mut version = None;
    for (resource, object) in snapshot.objects() {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        if resource.starts_with("clusterversions.") {
            version = object["status"]["desired"]["version"].as_str().map(str::to_owned);
        }
        let place = (resource, text("namespace"), text("name"));
        live.insert(place, object);
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
    Some(Script { version, manifests, cluster_kinds: next.cluster_kinds() })
}

/// The objects of a release that a server refuses for good.
fn refused(release: &Payload, installed: &Timeline) -> Vec<Unmanaged> {
    let lasting = installed.waits.iter().filter(|wait| wait.until.is_none() && wait.failed);
    let refused = lasting.filter(|wait| {
        [Reason::UpdatePayloadResourceInvalid, Reason::UpdatePayloadResourceForbidden]
            .iter()
            .any(|reason| reason.as_str() == wait.reason)
    });
    let keys = |object: &str| {
        let mut keys = release.manifests.iter().map(|manifest| &manifest.key);
        keys.find(|key| key.to_string() == object).cloned()
    };
    refused
        .filter_map(|wait| {
            Some(Unmanaged { key: keys(&wait.object)?, message: wait.message.clone() })
        })
        .collect()
}

/// Takes objects out of management, as an administrator would.
async fn leave_alone(client: &Client, objects: &[Unmanaged]) -> Result<(), anyhow::Error> {
    let overrides = objects.iter().map(|object| ComponentOverride {
        kind: object.key.kind.clone(),
        group: object.key.group.clone(),
        namespace: object.key.namespace.clone(),
        name: object.key.name.clone(),
        unmanaged: true,
    });
    let overrides: Vec<ComponentOverride> = overrides.collect();
    let patch = json!({ "spec": { "overrides": overrides } });
    let api = standing::api(client, CLUSTER_VERSION);
    api.patch(CLUSTER_VERSION_NAME, &PatchParams::default(), &Patch::Merge(&patch))
        .await
        .context("failed to leave alone what cannot be installed")?;
    Ok(())
}

/// What became of the object of each step, apart from what its own controllers report.
fn changes(forecast: &Forecast, before: &DryRun, after: &DryRun) -> Vec<Change> {
    let states = before.sightings.iter().zip(&after.sightings).zip(&forecast.changes);
    let changes =
        states.map(|((before, after), foreseen)| match (foreseen, &before.before, &after.before) {
            (Change::Refused { .. } | Change::Waiting { .. }, None, None)
            | (Change::Absent | Change::Kept, ..) => foreseen.clone(),
            (_, None, None) => Change::Unchanged,
            (_, None, Some(_)) => Change::Created,
            (_, Some(_), None) => Change::Deleted,
            (_, Some(before), Some(after)) => {
                let fields = diff::fields(&manifest_part(before), &manifest_part(after));
                if fields.is_empty() { Change::Unchanged } else { Change::Changed(fields) }
            }
        });
    changes.collect()
}

/// An object without what a server or an operator writes into it.
fn manifest_part(object: &Value) -> Value {
    let mut object = diff::without_bookkeeping(object.clone());
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    object
}

/// When the object of each step was first written.
fn written(
    forecast: &Forecast,
    requests: &[Request],
    names: &Names,
    cluster_kinds: &BTreeSet<GroupKind>,
) -> Vec<Option<Duration>> {
    let mut first: BTreeMap<ObjectKey, Duration> = BTreeMap::new();
    for request in requests.iter().filter(|request| request.status < 300) {
        if let Some(key) = recorder::object(&request.path, names) {
            first.entry(key).or_insert(request.at);
        }
    }
    let steps = forecast.plan.steps.iter().map(|step| {
        let mut key = step.manifest.key.clone();
        if cluster_kinds.contains(&key.group_kind()) {
            key.namespace.clear();
        }
        first.get(&key).copied()
    });
    steps.collect()
}
