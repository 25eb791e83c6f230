//! Runs a scenario: the controller on an embedded server with simulated operators, in virtual time.

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use plimsoll_content::Payload;
use plimsoll_content::inclusion::{DEFAULT_FEATURE_SET, DEFAULT_PROFILE};
use plimsoll_controller::operators::{OperatorController, OperatorSettings};
use plimsoll_controller::{Controller, OperatorsView, Settings, View};
use plimsoll_plan::progress::pause::PAUSE_BEFORE;
use plimsoll_plan::removal::{PRUNE, PRUNE_ALL};
use plimsoll_plan::status::Limits;
use plimsoll_simulation::simulated_operators::{self, SimulationOptions};
use plimsoll_source::catalog::CatalogRoots;
use plimsoll_source::store::{PayloadSet, PayloadStore};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::in_virtual_time;
use crate::operators::{AddOnsResult, AddOnsRunner};
use crate::processes::{ProcessStart, Processes};
use crate::record::{CLUSTER_VERSION, Write};
use crate::release::{
    self, BROKEN, LEVELS, OPTIONAL, Release, VERSIONS, WRITTEN_BY, image, releases,
};
use crate::scenario::{Action, InvalidRequest, Scenario};

/// How long the cluster may take once nothing goes wrong any more, in seconds.
const PATIENCE: u64 = 20 * 60;

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
    /// What became of Operators; `None` without a controller of them.
    pub(crate) add_ons: Option<AddOnsResult>,
    /// The release that wrote what is at the path of each manifest at the end; `None` if nothing
    /// is there.
    pub(crate) found: Vec<(String, Option<String>)>,
}

/// Runs a scenario to its end.
pub(crate) fn run(scenario: &Scenario) -> ScenarioResult {
    in_virtual_time(scenario.seed, async { Runner::new(scenario).run(scenario).await })
}

/// What is asked for last.
#[derive(Clone, Copy)]
enum Wanted {
    Release(usize),
    InvalidRequest(InvalidRequest),
}

struct Runner {
    processes: Processes,
    backup: Option<Vec<u8>>,
    /// What was asked for has to be asked for again: the server has lost it.
    is_lost: bool,
    releases: &'static [Release],
    release: watch::Sender<Arc<Payload>>,
    store: Option<Arc<PayloadSet>>,
    add_ons: Option<AddOnsRunner>,
}

impl Runner {
    fn new(scenario: &Scenario) -> Self {
        let processes = Processes::new(scenario.seed);
        let releases = releases();
        let (release, _) = watch::channel(Arc::clone(&releases[0].payload));
        processes.recorder.ask(VERSIONS[0]);
        let store = scenario.stored.then(|| Arc::new(release::store(releases)));
        let add_ons = scenario.add_ons.as_ref().map(AddOnsRunner::new);
        Self { processes, backup: None, is_lost: false, releases, release, store, add_ons }
    }

    async fn run(mut self, scenario: &Scenario) -> ScenarioResult {
        let mut stop = self.operators(scenario);
        let mut actions = scenario.actions.iter().peekable();
        let (mut wanted, mut exists) = (Wanted::Release(0), false);
        let mut converged_at = None;
        for second in 0..scenario.faulty_until + PATIENCE {
            if second == scenario.faulty_until {
                self.processes.end_faults();
                stop.cancel();
                stop = self.operators(scenario);
                self.act(&Action::Resume, exists).await;
                self.act(&Action::Override(false), exists).await;
                self.add_ons.iter_mut().for_each(|it| it.end_faults(second));
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
                self.add_ons.iter_mut().for_each(|it| it.restored(second));
                if second >= scenario.faulty_until {
                    // What was taken back is there again.
                    self.act(&Action::Resume, exists).await;
                    self.act(&Action::Override(false), exists).await;
                }
            }
            exists = exists || self.create_cluster_version().await;
            if let Some(add_ons) = &mut self.add_ons {
                add_ons.act(&self.processes, second).await;
            }
            if second > scenario.faulty_until + 10
                && second % 5 == 0
                && self.is_completed(wanted).await
                && self.has_converged().await
            {
                converged_at = Some(self.processes.recorder.elapsed());
                break;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        // Whatever is still to come has to be right too.
        tokio::time::sleep(Duration::from_secs(60)).await;
        self.result(wanted, converged_at).await
    }

    /// Returns whether Operators are as requested and quiet, if there is a controller of them.
    async fn has_converged(&mut self) -> bool {
        match &mut self.add_ons {
            Some(add_ons) => add_ons.has_converged(&self.processes).await,
            None => true,
        }
    }

    async fn act(&mut self, action: &Action, exists: bool) {
        match action {
            Action::Release(index) if self.store.is_none() => {
                self.processes.recorder.ask(VERSIONS[*index]);
                self.release.send_replace(Arc::clone(&self.releases[*index].payload));
            }
            Action::KillAtWrite { .. }
            | Action::Pause(_)
            | Action::SetClock(_)
            | Action::CutOff(_)
            | Action::Stall(_)
            | Action::EndWatches => self.processes.act(action),
            Action::BackUp => self.backup = Some(self.processes.state()),
            Action::Restart { from_backup } => self.restart(*from_backup),
            Action::Drift { item, is_deletion } => self.drift(*item, *is_deletion).await,
            // Too early: there is nothing yet to ask.
            _ if !exists => {}
            Action::Release(index) => {
                self.processes.recorder.ask(VERSIONS[*index]);
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
                self.processes.recorder.hold(Some(level.unwrap_or_default()));
                let text = level.map_or_else(|| "next".to_owned(), |level| level.to_string());
                self.change(&json!({ "metadata": { "annotations": { PAUSE_BEFORE: text } } }))
                    .await;
            }
            Action::Resume => {
                self.processes.recorder.hold(None);
                self.change(&json!({ "metadata": { "annotations": { PAUSE_BEFORE: null } } }))
                    .await;
            }
            Action::Enable => {
                self.processes.recorder.ask(OPTIONAL);
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
                self.processes.recorder.ask(PRUNE);
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
        matches!(
            self.processes.send("POST", path, "application/json", &cluster_version).await,
            201 | 409
        )
    }

    async fn ask_for(&self, capabilities: &[&str]) {
        self.change(&json!({ "spec": { "capabilities": asking(capabilities) } })).await;
    }

    async fn change(&self, patch: &Value) {
        let kind = "application/merge-patch+json";
        let status = self.processes.send("PATCH", CLUSTER_VERSION, kind, patch).await;
        assert_eq!(status, 200, "the ClusterVersion can be changed: {patch}");
    }

    fn operators(&self, scenario: &Scenario) -> CancellationToken {
        let stop = CancellationToken::new();
        let options = SimulationOptions {
            payloads: self.releases.iter().map(|it| Arc::clone(&it.payload)).collect(),
            delay: scenario.delay,
            faults: match self.processes.faulty {
                true => scenario.faults(),
                false => Default::default(),
            },
            clock: Arc::new(self.processes.clock),
            ..SimulationOptions::default()
        };
        let client = Client::new(self.processes.gateway.clone(), "default");
        tokio::spawn(simulated_operators::run(client, options, stop.clone()));
        stop
    }

    fn restart(&mut self, from_backup: bool) {
        let backup = from_backup.then(|| self.backup.take()).flatten();
        self.is_lost = backup.is_some();
        self.processes.restart(backup);
    }

    /// Changes an object of a release as another client, or deletes it.
    async fn drift(&self, item: usize, is_deletion: bool) {
        let path = release::drifting(item);
        let patch = json!({ "metadata": { "annotations": { WRITTEN_BY: "another client" } } });
        let kind = "application/merge-patch+json";
        match is_deletion {
            true => self.processes.send("DELETE", path, "application/json", &json!({})).await,
            false => self.processes.send("PATCH", path, kind, &patch).await,
        };
    }

    fn keep_running(&mut self, scenario: &Scenario) {
        let (release, store) = (&self.release, &self.store);
        let has_add_ons = scenario.add_ons.is_some();
        self.processes.keep_running(scenario, |start| {
            let operators = has_add_ons.then(|| operator_controller(&start));
            let (view, _) = watch::channel(View::default());
            let controller = Controller {
                client: start.client,
                clock: start.clock,
                settings: Settings {
                    profile: DEFAULT_PROFILE.to_owned(),
                    feature_set: Some(DEFAULT_FEATURE_SET.to_owned()),
                    create: None,
                    force_release: false,
                    leadership: start.leadership,
                    always_enabled: Vec::new(),
                    capability_webhook: None,
                    limits: Limits::default(),
                },
                release: release.subscribe(),
                view,
                store: store.clone().map(|store| store as Arc<dyn PayloadStore>),
            };
            let releases = controller.run(CancellationToken::new());
            async move {
                let operators = async {
                    match operators {
                        Some(controller) => controller.run(CancellationToken::new()).await,
                        None => std::future::pending().await,
                    }
                };
                // One that fails ends the process.
                tokio::select! {
                    biased;
                    ended = releases => ended,
                    ended = operators => ended,
                }
            }
        });
    }

    async fn is_completed(&self, wanted: Wanted) -> bool {
        let status = self.processes.recorder.read(CLUSTER_VERSION).await["status"].take();
        let version = match wanted {
            Wanted::Release(index) => self.releases[index].version.into(),
            Wanted::InvalidRequest(_) => status["desired"]["version"].clone(),
        };
        status["history"][0]["version"] == version && status["history"][0]["state"] == "Completed"
    }

    async fn result(mut self, wanted: Wanted, converged_at: Option<Duration>) -> ScenarioResult {
        let mut found = Vec::new();
        for item in &self.releases[0].items {
            let object = self.processes.recorder.read(&item.path).await;
            let by = object["metadata"]["annotations"][WRITTEN_BY].as_str();
            found.push((item.path.clone(), by.map(str::to_owned)));
        }
        let mut object = self.processes.recorder.read(CLUSTER_VERSION).await;
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
        let add_ons = match self.add_ons.take() {
            Some(add_ons) => Some(add_ons.result(&self.processes, converged_at).await),
            None => None,
        };
        ScenarioResult {
            writes: self.processes.recorder.writes(),
            wanted,
            invalid,
            is_asked_for,
            status,
            add_ons,
            found,
        }
    }
}

fn operator_controller(start: &ProcessStart) -> OperatorController {
    let (view, _) = watch::channel(OperatorsView::default());
    let leadership = start.leadership.clone();
    OperatorController {
        client: start.client.clone(),
        clock: Arc::clone(&start.clock),
        settings: OperatorSettings {
            leadership,
            roots: CatalogRoots::new(["/".into()]),
            cache: None,
            actions: None,
            queries: None,
        },
        view,
    }
}

fn asking(capabilities: &[&str]) -> Value {
    json!({ "baselineCapabilitySet": "None", "additionalEnabledCapabilities": capabilities })
}
