//! A cluster with simulated operators and a controller on it.

#![expect(clippy::panic, reason = "how a test fails")]

use std::fmt::Debug;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_apiserver::serve_tls;
use k8s_testkit::prerequisites::required;
use k8s_testkit::{ClusterKind, TestCluster, poll};
use kube::api::{ListParams, Patch, PatchParams};
use kube::core::DynamicObject;
use kube::{Api, Client};
use plimsoll_api::config::ClusterVersionSpec;
use plimsoll_api::{ApiKind, CLUSTER_OPERATOR, CLUSTER_VERSION, RELEASE_PROGRESS};
use plimsoll_content::Payload;
use plimsoll_content::inclusion::{DEFAULT_FEATURE_SET, DEFAULT_PROFILE};
use plimsoll_content::payload::{Directory, SourceFile, TemplateContext, parse};
use plimsoll_controller::{
    Clock, Controller, Error, Leadership, Settings, SharedClock, SharedStore, SystemClock, View,
};
use plimsoll_plan::status::Limits;
use plimsoll_simulation::cluster_state;
use plimsoll_simulation::sample;
use plimsoll_simulation::simulated_operators::{self, Faults, SimulationOptions};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

/// How long anything may take before a test gives up. No test is about time.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

/// The kind of definitions.
pub(crate) const DEFINITION: ApiKind = ApiKind {
    group: "apiextensions.k8s.io",
    version: "v1",
    kind: "CustomResourceDefinition",
    plural: "customresourcedefinitions",
};

/// How the simulated operators play: they answer after a time, with faults.
#[derive(Default)]
pub(crate) struct OperatorSetup(pub(crate) Duration, pub(crate) Faults);

/// The time of this machine, set forward by a test.
#[derive(Default)]
pub(crate) struct ShiftedClock(pub(crate) AtomicI64);

impl Clock for ShiftedClock {
    fn now(&self) -> Timestamp {
        Timestamp::now() + SignedDuration::from_secs(self.0.load(Ordering::SeqCst))
    }
}

pub(crate) struct Harness {
    pub(crate) cluster: TestCluster,
    pub(crate) client: Client,
    stop_operators: CancellationToken,
    release: watch::Sender<Arc<Payload>>,
    /// Where controllers to come find other releases.
    pub(crate) store: Option<SharedStore>,
    /// The time of controllers to come.
    pub(crate) clock: SharedClock,
    controller: Option<Running>,
    /// How its controllers work.
    pub(crate) settings: Settings,
    /// Whether controllers that are started from now on are followed by another one when they lose their
    /// lease, as they legally do when they stall.
    pub(crate) replaces_deposed: bool,
}

struct Running {
    task: JoinHandle<Result<(), Error>>,
    stop: CancellationToken,
    views: watch::Receiver<View>,
}

impl Harness {
    pub(crate) async fn start(
        kind: ClusterKind,
        payloads: &[Arc<Payload>],
        operators: OperatorSetup,
    ) -> Self {
        Self::start_with(kind, payloads, operators, DEFAULT_FEATURE_SET).await
    }

    /// The same on a cluster of a feature set.
    pub(crate) async fn start_with(
        kind: ClusterKind,
        payloads: &[Arc<Payload>],
        operators: OperatorSetup,
        feature_set: &str,
    ) -> Self {
        let cluster = kind.start().await.expect("the cluster starts");
        let client = cluster.client();
        let stop_operators = CancellationToken::new();
        let options = SimulationOptions {
            payloads: payloads.to_vec(),
            delay: operators.0,
            faults: operators.1,
            feature_set: feature_set.to_owned(),
            ..SimulationOptions::default()
        };
        tokio::spawn(simulated_operators::run(client.clone(), options, stop_operators.clone()));
        let (release, _) = watch::channel(Arc::clone(&payloads[0]));
        let settings = Settings {
            profile: DEFAULT_PROFILE.to_owned(),
            feature_set: Some(feature_set.to_owned()).filter(|set| set != DEFAULT_FEATURE_SET),
            create: Some(ClusterVersionSpec {
                cluster_id: "9e5b9d2c-6b7e-4f0a-9d56-3c0a4f9b7a11".to_owned(),
                ..ClusterVersionSpec::default()
            }),
            force_release: false,
            leadership: Leadership::Alone,
            always_enabled: Vec::new(),
            capability_webhook: None,
            limits: Limits::default(),
        };
        Self {
            cluster,
            client,
            stop_operators,
            release,
            store: None,
            clock: Arc::new(SystemClock),
            controller: None,
            settings,
            replaces_deposed: false,
        }
    }

    /// A cluster at the first of some payloads, with simulated operators that answer at once and know them
    /// all.
    pub(crate) async fn installed(kind: ClusterKind, payloads: &[Arc<Payload>]) -> Self {
        let mut harness = Self::start(kind, payloads, OperatorSetup::default()).await;
        harness.control();
        harness.completed(&payloads[0].release.version).await;
        harness
    }

    /// The same cluster, without simulated operators.
    pub(crate) fn without_operators(self) -> Self {
        self.stop_operators.cancel();
        self
    }

    /// Starts a controller; there may be one at a time.
    pub(crate) fn control(&mut self) {
        self.control_with(self.client.clone());
    }

    /// Starts a controller on a client of its own.
    pub(crate) fn control_with(&mut self, client: Client) {
        let stop = CancellationToken::new();
        let (view, views) = watch::channel(View::default());
        let (settings, release) = (self.settings.clone(), self.release.subscribe());
        let (store, replaces_deposed) = (self.store.clone(), self.replaces_deposed);
        let clock = Arc::clone(&self.clock);
        let new = move || Controller {
            client: client.clone(),
            clock: Arc::clone(&clock),
            settings: settings.clone(),
            release: release.clone(),
            store: store.clone(),
            view: view.clone(),
        };
        let stopped = stop.clone();
        let task = tokio::spawn(async move {
            loop {
                let ended = new().run(stopped.clone()).await;
                if !(replaces_deposed && matches!(ended, Err(Error::LeaseLost))) {
                    return ended;
                }
            }
        });
        self.controller = Some(Running { task, stop, views });
    }

    /// Hands the controller another release.
    pub(crate) fn release(&self, payload: &Arc<Payload>) {
        self.release.send_replace(Arc::clone(payload));
    }

    /// Waits until a version is completed.
    pub(crate) async fn completed(&mut self, version: &str) {
        self.until(|view| view.completed && view.version == version).await;
        let version = version.to_owned();
        self.cluster_version_until(|status| {
            status["history"][0]["version"] == *version
                && status["history"][0]["state"] == "Completed"
        })
        .await;
    }

    /// Waits until the view is as wanted; a controller that ends, or patience, is a failure.
    pub(crate) async fn until(&mut self, wanted: impl Fn(&View) -> bool) -> View {
        let running = self.controller.as_mut().expect("a controller runs");
        let mut views = running.views.clone();
        let seen = tokio::time::timeout(PATIENCE, views.wait_for(|view| wanted(view))).await;
        match seen {
            Ok(Ok(view)) => view.clone(),
            Ok(Err(_)) => {
                let ended = self.controller.take().expect("a controller ran").task.await;
                panic!("the controller ended: {ended:?}");
            }
            Err(_) => panic!("waited in vain; last seen: {:#?}", running.views.borrow()),
        }
    }

    /// Waits until the status of the ClusterVersion in the cluster is as wanted.
    pub(crate) async fn cluster_version_until(&self, wanted: impl Fn(&Value) -> bool) -> Value {
        let status = || async { self.get(CLUSTER_VERSION, "version").await["status"].clone() };
        until("the ClusterVersion is as wanted", status, wanted).await
    }

    /// Asks the controller to stop and waits for its end.
    pub(crate) async fn stop(&mut self) {
        let running = self.controller.take().expect("a controller runs");
        running.stop.cancel();
        running.task.await.expect("it does not panic").expect("it ends well");
    }

    /// Leaves the controller to itself, so that another one can be started.
    pub(crate) fn detach(&mut self) -> JoinHandle<Result<(), Error>> {
        self.controller.take().expect("a controller runs").task
    }

    /// Ends the controller as SIGKILL would.
    pub(crate) async fn kill(&mut self) {
        let running = self.controller.take().expect("a controller runs");
        running.task.abort();
        let _ = running.task.await;
    }

    pub(crate) fn api(&self, kind: ApiKind) -> Api<DynamicObject> {
        cluster_state::api(&self.client, kind)
    }

    /// Returns an object as it is; null if there is none, or its kind is not served.
    pub(crate) async fn get(&self, kind: ApiKind, name: &str) -> Value {
        match self.api(kind).get_opt(name).await {
            Ok(Some(object)) => serde_json::to_value(object).expect("it is JSON"),
            Ok(None) => Value::Null,
            // Of a kind that is not served, a server has no object and says so in plain text.
            Err(kube::Error::Api(status)) if status.code == 404 => Value::Null,
            Err(error) => panic!("failed to get {} {name}: {error}", kind.kind),
        }
    }

    pub(crate) async fn progress(&self) -> Value {
        self.get(RELEASE_PROGRESS, "version").await["status"].clone()
    }

    pub(crate) async fn operators(&self) -> Vec<DynamicObject> {
        self.api(CLUSTER_OPERATOR).list(&ListParams::default()).await.expect("a list").items
    }

    /// Asks for something in the spec of the ClusterVersion.
    pub(crate) async fn set_spec(&self, spec: Value) {
        self.change(json!({ "spec": spec })).await;
    }

    /// Asks for a pause before a run level, or for none.
    pub(crate) async fn pause(&self, level: Value) {
        self.annotate("plimsoll.io/pause-before", level).await;
    }

    /// Annotates the ClusterVersion.
    pub(crate) async fn annotate(&self, name: &str, value: Value) {
        self.change(json!({ "metadata": { "annotations": { name: value } } })).await;
    }

    /// Changes the ClusterVersion by a merge patch.
    pub(crate) async fn change(&self, patch: Value) {
        let parameters = PatchParams::default();
        self.api(CLUSTER_VERSION)
            .patch("version", &parameters, &Patch::Merge(&patch))
            .await
            .expect("the ClusterVersion can be changed");
    }
}

impl Drop for Harness {
    fn drop(&mut self) {
        self.stop_operators.cancel();
        if let Some(running) = &self.controller {
            running.task.abort();
        }
    }
}

/// A kubeconfig for other programs, and what serves an embedded cluster to them as long as it is
/// kept.
pub(crate) async fn kubeconfig(cluster: &TestCluster) -> (Value, JoinSet<()>) {
    let mut listening = JoinSet::new();
    let text = match cluster.kubeconfig() {
        Some(path) => std::fs::read_to_string(path).expect("a kubeconfig"),
        None => {
            let server = cluster.server().expect("it is an embedded cluster").clone();
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
            let address = listener.local_addr().expect("an address");
            let text = server.kubeconfig(&format!("https://{address}"));
            listening.spawn(async move {
                let served = serve_tls(server, listener, std::future::pending()).await;
                served.expect("it is served");
            });
            text
        }
    };
    (serde_saphyr::from_str(&text).expect("it is a kubeconfig"), listening)
}

/// A shell in which the program reaches a cluster.
pub(crate) struct Terminal {
    directory: TempDir,
    _listening: JoinSet<()>,
}

impl Terminal {
    pub(crate) async fn open(cluster: &TestCluster) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let (kubeconfig, listening) = kubeconfig(cluster).await;
        let path = directory.path().join("kubeconfig");
        std::fs::write(path, kubeconfig.to_string()).expect("a kubeconfig");
        Self { directory, _listening: listening }
    }

    /// The program with some words after its name; it is killed with its handle.
    pub(crate) fn command(&self, words: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
        command
            .args(words.split_whitespace())
            .env_clear()
            .env("HOME", self.directory.path())
            .env("KUBECONFIG", self.directory.path().join("kubeconfig"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    /// What the program prints until it ends, which is a failure unless it succeeds.
    pub(crate) async fn run(&self, words: &str) -> String {
        let output = tokio::time::timeout(PATIENCE, self.command(words).output()).await;
        let output = output.expect("it ends").expect("the program runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let printed = text(&output.stdout);
        assert!(output.status.success(), "{words}: {printed}\n{}", text(&output.stderr));
        printed
    }
}

/// Asks again and again until the answer is as wanted; when patience ends, `what` did not happen.
pub(crate) async fn until<T: Debug, F: Future<Output = T>>(
    what: &str,
    ask: impl Fn() -> F,
    wanted: impl Fn(&T) -> bool,
) -> T {
    answered(what, ask, wanted).await.unwrap_or_else(|error| panic!("{error}"))
}

/// Asks again and again until the answer is as wanted; when patience ends, the error says that `what` did
/// not happen, and what was seen last.
pub(crate) async fn answered<T: Debug, F: Future<Output = T>>(
    what: &str,
    ask: impl Fn() -> F,
    wanted: impl Fn(&T) -> bool,
) -> Result<T, String> {
    let last = Mutex::new(None);
    let found = poll(what, || async {
        let found = ask().await;
        if wanted(&found) {
            return Some(found);
        }
        *last.lock().expect("no thread panics") = Some(found);
        None
    });
    let found = found.await;
    found.map_err(|error| format!("{error}; last seen: {last:#?}"))
}

/// The condition of a type in a status; null if there is none.
pub(crate) fn condition<'a>(status: &'a Value, type_: &str) -> &'a Value {
    let conditions = status["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    conditions.iter().find(|condition| condition["type"] == type_).unwrap_or(&Value::Null)
}

/// Runs a test on each kind of cluster.
pub(crate) fn on_each_cluster<F: Future<Output = ()>>(test: impl Fn(ClusterKind) -> F) {
    on_clusters(&k8s_testkit::clusters(), test);
}

/// Runs a test of what the controller decides whatever server it is on: on the embedded one, and on each
/// kind of cluster if `PLIMSOLL_EACH_CLUSTER` is set.
pub(crate) fn on_any_cluster<F: Future<Output = ()>>(test: impl Fn(ClusterKind) -> F) {
    match std::env::var_os("PLIMSOLL_EACH_CLUSTER").is_some_and(|value| !value.is_empty()) {
        true => on_each_cluster(test),
        false => on_clusters(&[ClusterKind::Embedded], test),
    }
}

fn on_clusters<F: Future<Output = ()>>(kinds: &[ClusterKind], test: impl Fn(ClusterKind) -> F) {
    let _ = rustls_provider();
    for &kind in kinds {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.block_on(test(kind));
        runtime.shutdown_background();
    }
}

fn rustls_provider() -> Result<(), ()> {
    rustls::crypto::ring::default_provider().install_default().map_err(|_| ())
}

/// The two versions of the sample release.
pub(crate) fn sample_payloads() -> (Arc<Payload>, Arc<Payload>) {
    (sample_payload(&sample::v1()), sample_payload(&sample::v2()))
}

/// The sample release without its own kinds.
pub(crate) fn sample_without_definitions() -> Arc<Payload> {
    let files = sample::v1().into_iter().filter(|file| !file.name.contains("chart-room"));
    let payload = sample_payload(&files.collect::<Vec<_>>());
    assert!(!payload.manifests.iter().any(|it| it.key.kind == "CustomResourceDefinition"));
    payload
}

/// The first version of the sample release with manifests more.
pub(crate) fn sample_with(manifests: &[(String, String)]) -> Arc<Payload> {
    with(sample::v1(), manifests)
}

/// The second version of the sample release with manifests more.
pub(crate) fn sample_with_next(manifests: &[(String, String)]) -> Arc<Payload> {
    with(sample::v2(), manifests)
}

fn with(mut files: Vec<SourceFile>, manifests: &[(String, String)]) -> Arc<Payload> {
    files.extend(manifests.iter().map(|(name, text)| SourceFile {
        directory: Directory::ReleaseManifests,
        name: name.clone(),
        bytes: text.clone().into(),
    }));
    sample_payload(&files)
}

pub(crate) fn sample_payload(files: &[SourceFile]) -> Arc<Payload> {
    Arc::new(parse(files, &template()).expect("the sample is in order"))
}

fn template() -> TemplateContext {
    TemplateContext { release_image: String::new(), cluster_profile: DEFAULT_PROFILE.to_owned() }
}

/// A payload from outside, if the environment names one.
pub(crate) fn outside_payload(variable: &str) -> Option<Arc<Payload>> {
    let path = PathBuf::from(required(variable)?);
    let payload = plimsoll_source::load(&path, &template());
    Some(Arc::new(payload.expect("the payload loads")))
}
