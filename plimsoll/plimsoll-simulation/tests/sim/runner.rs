//! Runs a scenario: the controller on an embedded server with simulated operators, in virtual time.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_apiserver::faults::{AsOf, Fault, Faults, Refusal, Requests};
use k8s_apiserver::{ApiServer, Options};
use kube::Client;
use kube::client::Body;
use plimsoll_content::Payload;
use plimsoll_content::inclusion::{DEFAULT_FEATURE_SET, DEFAULT_PROFILE};
use plimsoll_controller::{Clock, Controller, Leadership, Settings, View};
use plimsoll_plan::progress::pause::PAUSE_BEFORE;
use plimsoll_plan::removal::{PRUNE, PRUNE_ALL};
use plimsoll_plan::status::Limits;
use plimsoll_simulation::clock::{VirtualClock, start_time};
use plimsoll_simulation::operators::{self, SimulationOptions};
use plimsoll_source::store::{PayloadSet, PayloadStore};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tower::{Layer as _, Service as _};

use crate::gateway::Gateway;
use crate::record::{CLUSTER_VERSION, Recorder, Write};
use crate::release::{
    self, BROKEN, LEVELS, OPTIONAL, Release, VERSIONS, WRITTEN_BY, image, releases,
};
use crate::scenario::{Action, InvalidRequest, Scenario};

/// How long the cluster may take once nothing goes wrong any more, in seconds.
const PATIENCE: u64 = 20 * 60;

/// What may be read as it was some writes ago.
const STALE: [&str; 5] = [
    "namespaces",
    "configmaps",
    "deployments.apps",
    "clusteroperators.config.openshift.io",
    "customresourcedefinitions.apiextensions.k8s.io",
];

/// The result of a scenario.
pub(crate) struct ScenarioResult {
    pub(crate) writes: Vec<Write>,
    /// The release that was asked for last; the one accepted before, if that request was invalid.
    pub(crate) wanted: usize,
    /// The request at the end, if it is an invalid one.
    pub(crate) invalid: Option<InvalidRequest>,
    /// Whether the optional capability is asked for at the end.
    pub(crate) is_asked_for: bool,
    /// The status of the ClusterVersion at the end.
    pub(crate) status: Value,
    /// The release that wrote what is at the path of each manifest at the end; `None` if nothing
    /// is there.
    pub(crate) found: Vec<(String, Option<String>)>,
}

/// Runs a scenario to its end.
pub(crate) fn run(scenario: &Scenario) -> ScenarioResult {
    // The only randomness but ours: the jitter of the watches' patience.
    fastrand::seed(scenario.seed);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .expect("a runtime");
    let result = runtime.block_on(async { Runner::new(scenario).run(scenario).await });
    runtime.shutdown_background();
    result
}

/// What is asked for last.
#[derive(Clone, Copy)]
enum Wanted {
    Release(usize),
    InvalidRequest(InvalidRequest),
}

struct Process {
    number: usize,
    task: JoinHandle<Result<(), plimsoll_controller::Error>>,
    faults: Faults,
    clock: Arc<ProcessClock>,
}

/// The clock of a process, which somebody may set.
struct ProcessClock {
    right: VirtualClock,
    /// By how many seconds it is fast.
    offset: AtomicI64,
}

impl Clock for ProcessClock {
    fn now(&self) -> Timestamp {
        let offset = SignedDuration::from_secs(self.offset.load(Ordering::Relaxed));
        Clock::now(&self.right).saturating_add(offset).expect("it is not a calendar's unit")
    }
}

/// The HTTP statuses of errors that a server, or something before it, answers with. Left out are
/// those that say that something is not there.
const STATUSES: [u16; 14] = [400, 401, 403, 405, 408, 409, 413, 415, 422, 429, 500, 502, 503, 504];
/// Statuses that say that something is not there. Lists and watches are answered so although it is. Of
/// single objects it would be believed: a deletion rightly counts as done, and a record of progress that
/// is not there is begun anew.
const ABSENT: [u16; 2] = [404, 410];
/// The share of them that are answered with each, where requests are refused at all.
const ABSENT_SHARE: f64 = 0.02;
/// What servers ask for with Retry-After, in seconds.
const RETRY_AFTER: [u32; 3] = [1, 30, 86_400];

struct Runner {
    clock: VirtualClock,
    seed: u64,
    gateway: Gateway,
    backup: Option<Vec<u8>>,
    /// What was asked for has to be asked for again: the server has lost it.
    is_lost: bool,
    recorder: Recorder,
    releases: &'static [Release],
    release: watch::Sender<Arc<Payload>>,
    store: Option<Arc<PayloadSet>>,
    processes: Vec<Process>,
    /// How many processes there have been.
    started: usize,
    /// Whether things may still go wrong.
    faulty: bool,
}

impl Runner {
    fn new(scenario: &Scenario) -> Self {
        let clock = VirtualClock::from(start_time());
        let gateway = Gateway::new(ApiServer::new(options(clock, scenario.seed)));
        let releases = releases();
        let (release, _) = watch::channel(Arc::clone(&releases[0].payload));
        let recorder = Recorder::new(gateway.clone());
        recorder.ask(VERSIONS[0]);
        let store = scenario.stored.then(|| Arc::new(release::store(releases)));
        let (processes, started, faulty) = (Vec::new(), 0, true);
        Self {
            clock,
            seed: scenario.seed,
            gateway,
            backup: None,
            is_lost: false,
            recorder,
            releases,
            release,
            store,
            processes,
            started,
            faulty,
        }
    }

    async fn run(mut self, scenario: &Scenario) -> ScenarioResult {
        let mut stop = self.operators(scenario);
        let mut actions = scenario.actions.iter().peekable();
        let (mut wanted, mut exists) = (Wanted::Release(0), false);
        for second in 0..scenario.faulty_until + PATIENCE {
            if second == scenario.faulty_until {
                self.faulty = false;
                self.recorder.cancel_kill();
                self.processes.iter().for_each(|process| process.faults.stop());
                stop.cancel();
                stop = self.operators(scenario);
                self.act(&Action::Resume, exists).await;
                self.act(&Action::Override(false), exists).await;
            }
            while let Some((_, action)) = actions.next_if(|(at, _)| *at <= second) {
                match action {
                    Action::Release(index) if exists || self.store.is_none() => {
                        wanted = Wanted::Release(*index);
                    }
                    Action::Ask(invalid) if exists => wanted = Wanted::InvalidRequest(*invalid),
                    _ => {}
                }
                self.act(action, exists).await;
            }
            self.keep_running(scenario);
            if std::mem::take(&mut self.is_lost) {
                // Whoever restores etcd restarts what watched the server: a watch that goes on from a
                // revision that was lost shows nothing.
                stop.cancel();
                stop = self.operators(scenario);
                exists = self.create_cluster_version().await;
                if second >= scenario.faulty_until {
                    // What was taken back is there again.
                    self.act(&Action::Resume, exists).await;
                    self.act(&Action::Override(false), exists).await;
                }
            }
            exists = exists || self.create_cluster_version().await;
            if second > scenario.faulty_until + 10
                && second % 5 == 0
                && self.is_completed(wanted).await
            {
                break;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        // Whatever is still to come has to be right too.
        tokio::time::sleep(Duration::from_secs(60)).await;
        self.result(wanted).await
    }

    async fn act(&mut self, action: &Action, exists: bool) {
        match action {
            Action::Release(index) if self.store.is_none() => {
                self.recorder.ask(VERSIONS[*index]);
                self.release.send_replace(Arc::clone(&self.releases[*index].payload));
            }
            Action::KillAtWrite { count, last } => self.recorder.kill(*count, *last),
            Action::Pause(lasts) => self.recorder.pause(*lasts),
            Action::SetClock(by) => {
                if let Some(process) = self.processes.first() {
                    process.clock.offset.store(*by, Ordering::Relaxed);
                }
            }
            Action::CutOff(lasts) => {
                if let Some(process) = self.processes.first() {
                    self.gateway.cut_off(process.number, *lasts);
                }
            }
            Action::BackUp => self.backup = Some(self.state()),
            Action::Restart { from_backup } => self.restart(*from_backup),
            Action::Drift { item, is_deletion } => self.drift(*item, *is_deletion).await,
            // Too early: there is nothing yet to ask.
            _ if !exists => {}
            Action::Release(index) => {
                self.recorder.ask(VERSIONS[*index]);
                // By its version, if that is offered; by its image it means the same.
                let by_version = index % 2 == 0;
                let (version, image) = match by_version {
                    true => (VERSIONS[*index], String::new()),
                    false => ("", image(VERSIONS[*index])),
                };
                self.desire(json!({ "version": version, "image": image })).await;
            }
            Action::Ask(invalid) => {
                let version = match invalid {
                    InvalidRequest::Nothing => return self.desire(Value::Null).await,
                    InvalidRequest::Backwards => VERSIONS[0],
                    InvalidRequest::Broken => BROKEN,
                    InvalidRequest::Missing => "9.9.9",
                };
                self.desire(json!({ "version": "", "image": image(version) })).await;
            }
            Action::Hold(level) => {
                self.recorder.hold(Some(level.unwrap_or_default()));
                let text = level.map_or_else(|| "next".to_owned(), |level| level.to_string());
                self.change(&json!({ "metadata": { "annotations": { PAUSE_BEFORE: text } } }))
                    .await;
            }
            Action::Resume => {
                self.recorder.hold(None);
                self.change(&json!({ "metadata": { "annotations": { PAUSE_BEFORE: null } } }))
                    .await;
            }
            Action::Enable => {
                self.recorder.ask(OPTIONAL);
                self.ask_for(&[OPTIONAL]).await;
            }
            Action::Disable => self.ask_for(&[]).await,
            Action::Override(is_unmanaged) => {
                let (_, namespace) = LEVELS[LEVELS.len() - 1];
                let settings = json!({ "group": "", "kind": "ConfigMap", "namespace": namespace,
                    "name": "settings", "unmanaged": true });
                let overrides = if *is_unmanaged { json!([settings]) } else { Value::Null };
                self.change(&json!({ "spec": { "overrides": overrides } })).await;
            }
            Action::Prune => {
                self.recorder.ask(PRUNE);
                self.change(&json!({ "metadata": { "annotations": { PRUNE: PRUNE_ALL } } })).await;
            }
        }
    }

    async fn desire(&self, update: Value) {
        self.change(&json!({ "spec": { "desiredUpdate": update } })).await;
    }

    /// Creates the ClusterVersion; false as long as nothing serves it.
    async fn create_cluster_version(&self) -> bool {
        let cluster_version = json!({
            "apiVersion": "config.openshift.io/v1",
            "kind": "ClusterVersion",
            "metadata": { "name": "version" },
            "spec": {
                "clusterID": "9e5b9d2c-6b7e-4f0a-9d56-3c0a4f9b7a11",
                "capabilities": asking(&[]),
            },
        });
        let path = CLUSTER_VERSION.trim_end_matches("/version");
        matches!(self.send("POST", path, "application/json", &cluster_version).await, 201 | 409)
    }

    async fn ask_for(&self, capabilities: &[&str]) {
        self.change(&json!({ "spec": { "capabilities": asking(capabilities) } })).await;
    }

    async fn change(&self, patch: &Value) {
        let kind = "application/merge-patch+json";
        let status = self.send("PATCH", CLUSTER_VERSION, kind, patch).await;
        assert_eq!(status, 200, "the ClusterVersion can be changed: {patch}");
    }

    /// Sends a request as somebody whom nothing goes wrong with; gives the HTTP status.
    async fn send(&self, method: &str, path: &str, kind: &str, body: &Value) -> u16 {
        let request =
            http::Request::builder().method(method).uri(path).header("content-type", kind);
        let body = Body::from(body.to_string().into_bytes());
        let request = request.body(body).expect("it is a request");
        let answer = self.gateway.clone().call(request).await.expect("the server answers");
        answer.status().as_u16()
    }

    fn operators(&self, scenario: &Scenario) -> CancellationToken {
        let stop = CancellationToken::new();
        let options = SimulationOptions {
            payloads: self.releases.iter().map(|it| Arc::clone(&it.payload)).collect(),
            delay: scenario.delay,
            faults: if self.faulty { scenario.operators.clone() } else { Default::default() },
            clock: Arc::new(self.clock),
            ..SimulationOptions::default()
        };
        let client = Client::new(self.gateway.clone(), "default");
        tokio::spawn(operators::run(client, options, stop.clone()));
        stop
    }

    /// Everything that the server has stored.
    fn state(&self) -> Vec<u8> {
        let mut state = Vec::new();
        self.gateway.server().snapshot(&mut state).expect("it can be written to memory");
        state
    }

    fn restart(&mut self, from_backup: bool) {
        let backup = from_backup.then(|| self.backup.take()).flatten();
        let is_rollback = backup.is_some();
        let state = backup.unwrap_or_else(|| self.state());
        let options = options(self.clock, self.seed);
        let server = ApiServer::restore(&*state, options).expect("what was written can be read");
        self.gateway.replace(server, is_rollback);
        self.is_lost = is_rollback;
    }

    /// Somebody else changes an object of a release, or deletes it.
    async fn drift(&self, item: usize, is_deletion: bool) {
        let path = release::drifting(item);
        let patch = json!({ "metadata": { "annotations": { WRITTEN_BY: "somebody" } } });
        let kind = "application/merge-patch+json";
        match is_deletion {
            true => self.send("DELETE", path, "application/json", &json!({})).await,
            false => self.send("PATCH", path, kind, &patch).await,
        };
    }

    /// Removes processes that ended or died and starts others, as a Deployment would.
    fn keep_running(&mut self, scenario: &Scenario) {
        let recorder = &self.recorder;
        self.processes.retain(|process| {
            let dead = recorder.is_dead(process.number);
            if dead {
                process.task.abort();
            }
            !dead && !process.task.is_finished()
        });
        let count = if scenario.leased { 2 } else { 1 };
        while self.processes.len() < count {
            self.started += 1;
            let number = self.started;
            let faults = if self.faulty { faults(scenario, number) } else { Faults::none() };
            let server = faults.layer(self.recorder.of(number));
            let (view, _) = watch::channel(View::default());
            let clock = ProcessClock { right: self.clock, offset: AtomicI64::new(0) };
            let clock = Arc::new(clock);
            let controller = Controller {
                client: Client::new(server, "default"),
                clock: Arc::clone(&clock) as Arc<dyn Clock>,
                settings: Settings {
                    profile: DEFAULT_PROFILE.to_owned(),
                    feature_set: Some(DEFAULT_FEATURE_SET.to_owned()),
                    create: None,
                    force_release: false,
                    leadership: match scenario.leased {
                        true => Leadership::Lease(format!("process-{number}")),
                        false => Leadership::Alone,
                    },
                    always_enabled: Vec::new(),
                    capability_webhook: None,
                    limits: Limits::default(),
                },
                release: self.release.subscribe(),
                view,
                store: self.store.clone().map(|store| store as Arc<dyn PayloadStore>),
            };
            let task = tokio::spawn(controller.run(CancellationToken::new()));
            self.processes.push(Process { number, task, faults, clock });
        }
    }

    async fn is_completed(&self, wanted: Wanted) -> bool {
        let status = self.recorder.read(CLUSTER_VERSION).await["status"].take();
        let version = match wanted {
            Wanted::Release(index) => self.releases[index].version.into(),
            Wanted::InvalidRequest(_) => status["desired"]["version"].clone(),
        };
        status["history"][0]["version"] == version && status["history"][0]["state"] == "Completed"
    }

    async fn result(self, wanted: Wanted) -> ScenarioResult {
        let mut found = Vec::new();
        for item in &self.releases[0].items {
            let object = self.recorder.read(&item.path).await;
            let by = object["metadata"]["annotations"][WRITTEN_BY].as_str();
            found.push((item.path.clone(), by.map(str::to_owned)));
        }
        let mut object = self.recorder.read(CLUSTER_VERSION).await;
        let requested = object["spec"]["capabilities"]["additionalEnabledCapabilities"].as_array();
        let is_asked_for = requested.is_some_and(|names| names.iter().any(|name| name == OPTIONAL));
        let status = object["status"].take();
        let (wanted, invalid) = match wanted {
            Wanted::Release(index) => (index, None),
            Wanted::InvalidRequest(invalid) => {
                let desired = VERSIONS.iter().position(|it| status["desired"]["version"] == *it);
                (desired.unwrap_or_default(), Some(invalid))
            }
        };
        ScenarioResult {
            writes: self.recorder.writes(),
            wanted,
            invalid,
            is_asked_for,
            status,
            found,
        }
    }
}

fn options(clock: VirtualClock, seed: u64) -> Options {
    Options { clock: Arc::new(clock), seed, ..Options::default() }
}

fn asking(capabilities: &[&str]) -> Value {
    json!({ "baselineCapabilitySet": "None", "additionalEnabledCapabilities": capabilities })
}

/// What goes wrong between a process and the server.
fn faults(scenario: &Scenario, number: usize) -> Faults {
    let seed = scenario.seed ^ ((number as u64) << 32);
    let faults = match scenario.errors > 0.0 {
        true => Faults::seeded(seed, scenario.errors),
        false => Faults::none(),
    };
    if scenario.watches > 0.0 {
        let watches = || Requests::any().verb("watch");
        faults.add(watches().share(seed ^ 1, scenario.watches), Fault::WatchDuplicated);
        let lost = Fault::WatchExpired(Duration::from_secs(3));
        faults.add(watches().share(seed ^ 2, scenario.watches), lost);
    }
    if scenario.refusals > 0.0 {
        let share = scenario.refusals / STATUSES.len() as f64;
        for (salt, code) in (0x100..).zip(STATUSES) {
            let refusal = Refusal::new(code);
            let refusal = match RETRY_AFTER.get(usize::from(code) % 5) {
                Some(seconds) => refusal.retry_after(*seconds),
                None => refusal,
            };
            faults.add(Requests::any().share(seed ^ salt, share), Fault::Refused(refusal));
        }
    }
    for (salt, code) in (0x300..).zip(ABSENT).filter(|_| scenario.refusals > 0.0) {
        for verb in ["list", "watch"] {
            let reads = Requests::any().verb(verb).share(seed ^ salt, ABSENT_SHARE);
            faults.add(reads, Fault::Refused(Refusal::new(code)));
        }
    }
    if scenario.mangled > 0.0 {
        let share = scenario.mangled / 2.0;
        faults.add(Requests::any().share(seed ^ 0x200, share), Fault::AnswerTruncated);
        faults.add(Requests::any().share(seed ^ 0x201, share), Fault::AnswerCorrupted);
    }
    // What a process begins with, the ClusterVersion and ReleaseProgress, it asks for as it is now,
    // and servers keep to that. The rest may lag behind whatever is asked for.
    for (salt, resource) in STALE.iter().enumerate().filter(|_| scenario.stale > 0.0) {
        let reads = Requests::any().verb("list").resource(resource);
        let reads = reads.share(seed ^ (3 + salt as u64), scenario.stale);
        faults.add(reads, Fault::Stale(AsOf::Behind(5)));
    }
    faults
}
