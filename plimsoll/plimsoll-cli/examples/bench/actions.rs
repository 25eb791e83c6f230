//! What Actions cost: how many small ones end in a second through the embedded API server, and what those
//! that have ended, or wait, take of a program's memory and processor time. The program is a process of
//! its own; the server is in this one.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use futures::future::try_join_all;
use k8s_apiserver::{ApiServer, Options, kubeconfig, serve};
use kube::api::{DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use plimsoll_api::{ACTION, ACTION_CLASS, CATALOG};
use plimsoll_simulation::cluster_state::api;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::Figure;
use crate::memory;
use crate::program::Program;

/// The number of small Actions that are requested at once.
const SMALL: usize = 500;
/// The numbers of ended Actions whose memory is compared. Each is listed in more than one page.
const ENDED: [usize; 3] = [1_000, 10_000, 100_000];
/// How often the program is started for each.
const STARTS: usize = 3;
/// The number of Actions that wait.
const WAITING: usize = 1_000;
/// How long the processor time of Actions at rest is measured.
const REST: Duration = Duration::from_secs(20);
/// The class of the Actions that have ended or wait.
const CLASS: &str = "resolution";

pub(crate) async fn measure() -> Result<Vec<Figure>, anyhow::Error> {
    let mut figures = vec![throughput().await?];
    figures.extend(history().await?);
    Ok(figures)
}

/// A server with a program that executes Actions on it.
pub(crate) struct Stage {
    pub(crate) client: Client,
    program: Option<Program>,
    /// Further arguments of the program.
    arguments: &'static [&'static str],
    files: tempfile::TempDir,
    stop: CancellationToken,
}

impl Stage {
    /// Starts a server, and the program with further arguments.
    pub(crate) async fn start(arguments: &'static [&'static str]) -> Result<Self, anyhow::Error> {
        let files = tempfile::tempdir()?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        fs::write(files.path().join("kubeconfig"), kubeconfig(&url))?;
        let server = ApiServer::new(Options::default());
        let client = Client::new(server.clone(), "default");
        let stop = CancellationToken::new();
        tokio::spawn(serve(server, listener, stop.clone().cancelled_owned()));
        let mut stage = Self { client, program: None, arguments, files, stop };
        stage.begin()?;
        stage.until_served().await?;
        Ok(stage)
    }

    /// Starts the program.
    fn begin(&mut self) -> Result<(), anyhow::Error> {
        let path = |name: &str| self.files.path().join(name);
        let catalogs = workspace().join("examples");
        let words = ["run", "--plain", "--operators", "--actions", "--kubeconfig"];
        let mut arguments: Vec<OsString> = words.map(OsString::from).into();
        arguments.extend([path("kubeconfig").into(), "--catalog-dir".into(), catalogs.into()]);
        arguments.extend(self.arguments.iter().map(OsString::from));
        self.program = Some(Program::start(&arguments, path("socket"))?);
        Ok(())
    }

    /// Ends the program.
    fn end(&mut self) {
        self.program = None;
    }

    fn program(&self) -> Result<&Program, anyhow::Error> {
        self.program.as_ref().context("the program runs")
    }

    /// Waits until the classes are there, and a Catalog is read.
    async fn until_served(&self) -> Result<(), anyhow::Error> {
        let class = || async { api(&self.client, ACTION_CLASS).get_opt(CLASS).await };
        until("the classes are installed", || async {
            Ok(class().await.is_ok_and(|it| it.is_some()))
        })
        .await?;
        let path = workspace().join("examples/catalog").display().to_string();
        let catalog: DynamicObject = serde_json::from_value(json!({
            "apiVersion": "olm.io/v1", "kind": "Catalog", "metadata": { "name": "examples" },
            "spec": { "source": { "type": "Directory", "path": path } },
        }))?;
        api(&self.client, CATALOG).create(&PostParams::default(), &catalog).await?;
        let read = || async {
            let found = api(&self.client, CATALOG).get("examples").await?;
            Ok(found.data["status"]["bundles"].as_u64().is_some_and(|it| it > 0))
        };
        until("the Catalog is read", read).await
    }

    /// Waits until the program has the lease of the one before it, and executes an Action of a name.
    async fn until_leading(&self, name: &str) -> Result<(), anyhow::Error> {
        self.create(name, &request(CLASS)).await?;
        until("the program leads", || async {
            let found = self.actions().get(name).await?;
            Ok(found.data["status"]["state"] == "Succeeded")
        })
        .await
    }

    fn actions(&self) -> Api<DynamicObject> {
        let resource = plimsoll_controller::api_resource(ACTION);
        Api::namespaced_with(self.client.clone(), "default", &resource)
    }

    /// Lets a class keep all Actions that have ended.
    async fn keep_all(&self, class: &str) -> Result<(), anyhow::Error> {
        let kept = json!({ "spec": { "historyLimit": 100_000 } });
        let patch = Patch::Merge(&kept);
        api(&self.client, ACTION_CLASS).patch(class, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// Requests Actions at once.
    async fn request(&self, number: usize, spec: &Value) -> Result<(), anyhow::Error> {
        let requests =
            (0..number).map(|at| async move { self.create(&format!("action-{at}"), spec).await });
        try_join_all(requests).await?;
        Ok(())
    }

    /// Creates an Action.
    async fn create(&self, name: &str, spec: &Value) -> Result<DynamicObject, anyhow::Error> {
        let object: DynamicObject = serde_json::from_value(json!({
            "apiVersion": "olm.io/v1", "kind": "Action", "metadata": { "name": name },
            "spec": spec,
        }))?;
        Ok(self.actions().create(&PostParams::default(), &object).await?)
    }

    /// Returns how many Actions are in a state.
    ///
    /// # Errors
    /// When one has failed, or they cannot be listed.
    async fn count(&self, state: &str) -> Result<usize, anyhow::Error> {
        let list = self.actions().list(&ListParams::default()).await?;
        let is_in = |it: &DynamicObject, state: &str| it.data["status"]["state"] == state;
        if let Some(failed) = list.items.iter().find(|it| is_in(it, "Failed")) {
            anyhow::bail!("an Action failed: {}", failed.data["status"]["conditions"]);
        }
        Ok(list.items.iter().filter(|it| is_in(it, state)).count())
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.end();
        self.stop.cancel();
    }
}

fn workspace() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    root.unwrap_or(Path::new(".")).to_owned()
}

/// Returns the spec of an Action of a class with a package.
fn request(class: &str) -> Value {
    json!({
        "actionClass": class, "package": "lantern",
        "requester": { "username": "system:admin", "groups": ["system:masters"] },
    })
}

/// Waits until a condition holds, at most five minutes.
pub(crate) async fn until<F: Future<Output = Result<bool, anyhow::Error>>>(
    what: &str,
    holds: impl Fn() -> F,
) -> Result<(), anyhow::Error> {
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(300) {
        if holds().await? {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    anyhow::bail!("gave up waiting until {what}")
}

async fn throughput() -> Result<Figure, anyhow::Error> {
    let stage = Stage::start(&[]).await?;
    let class = "operator-install";
    stage.keep_all(class).await?;
    let begin = Instant::now();
    let mut spec = request(class);
    spec["installDependencies"] = true.into();
    spec["dryRun"] = true.into();
    stage.request(SMALL, &spec).await?;
    until("all Actions have ended", || async { Ok(stage.count("Succeeded").await? == SMALL) })
        .await?;
    let seconds = begin.elapsed().as_secs_f64();
    let rate = SMALL as f64 / seconds;
    let text = format!("{rate:.0} a second ({SMALL} in {seconds:.2} s)");
    let json = json!({ "actions": SMALL, "seconds": seconds });
    Ok(Figure::new("small Actions", "Embedded", text, "100 a second", json))
}

/// The memory of the program, in bytes.
struct Memory {
    allocated: i64,
    resident: i64,
}

/// The memory of ended Actions, and what they and those that wait cost at rest.
async fn history() -> Result<Vec<Figure>, anyhow::Error> {
    let mut stage = Stage::start(&[]).await?;
    stage.keep_all(CLASS).await?;
    let (mut figures, mut measured, mut text_bytes) = (Vec::new(), Vec::new(), 0);
    let mut there = 0;
    for number in ENDED {
        stage.end();
        for at in there..number {
            text_bytes += end_one(&stage, at).await?;
        }
        there = number;
        measured.push(least_memory(&mut stage, number).await?);
    }
    let texts = text_bytes / ENDED[2] as i64;
    let of_one = |at: usize, bytes: fn(&Memory) -> i64| {
        let more = bytes(&measured[at]) - bytes(&measured[at - 1]);
        more / (ENDED[at] - ENDED[at - 1]) as i64
    };
    let allocated = [1, 2].map(|at| of_one(at, |it| it.allocated));
    let resident = [1, 2].map(|at| of_one(at, |it| it.resident));
    let [first, second] = allocated;
    let text = format!(
        "{first} and {second} bytes each from {} to {} and to {}, {texts} of them its texts; {} and {} of \
         resident memory",
        ENDED[0], ENDED[1], ENDED[2], resident[0], resident[1]
    );
    let json = json!({ "allocated": allocated, "texts": texts, "resident": resident });
    let limit = "200 B and its texts";
    figures.push(Figure::new("memory of an ended Action", "Embedded", text, limit, json));
    figures.push(waiting(&stage).await?);
    Ok(figures)
}

/// Returns the memory of the program after it has listed the Actions, the least of several starts, and
/// leaves it running. Buffers of requests differ between starts.
async fn least_memory(stage: &mut Stage, number: usize) -> Result<Memory, anyhow::Error> {
    let mut least: Option<Memory> = None;
    for at in 0..STARTS {
        stage.end();
        stage.begin()?;
        stage.until_leading(&format!("first-after-{number}-{at}")).await?;
        tokio::time::sleep(Duration::from_secs(5)).await;
        let program = stage.program()?;
        let (allocated, resident) = (program.allocated()?, resident(program.id())?);
        let before = least.as_ref();
        least = Some(Memory {
            allocated: before.map_or(allocated, |it| it.allocated.min(allocated)),
            resident: before.map_or(resident, |it| it.resident.min(resident)),
        });
    }
    least.context("it is started")
}

/// Creates an Action that has ended; returns the length of what is kept of its texts.
async fn end_one(stage: &Stage, at: usize) -> Result<i64, anyhow::Error> {
    let name = format!("ended-{at}");
    let created = stage.create(&name, &request(CLASS)).await?;
    let status = json!({ "status": {
        "state": "Succeeded", "outcome": "SUCCEEDED", "completionTime": "2026-01-01T00:00:00Z",
        "requester": { "username": "system:admin", "groups": ["system:masters"] },
        "conditions": [{
            "type": "ActionSucceeded", "status": "True", "reason": "ActionSucceeded", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }],
        "result": "x".repeat(2_000),
    } });
    let patch = Patch::Merge(&status);
    stage.actions().patch_status(&name, &PatchParams::default(), &patch).await?;
    let uid = created.metadata.uid.unwrap_or_default();
    // Its watch knows it by namespace and name, too.
    let id = format!("default/{name}");
    Ok(i64::try_from(2 * id.len() + uid.len() + CLASS.len())?)
}

/// What Actions cost that wait beside those that have ended.
async fn waiting(stage: &Stage) -> Result<Figure, anyhow::Error> {
    stage.request(WAITING, &request("not-installed")).await?;
    until("all wait", || async { Ok(stage.count("Pending").await? == WAITING) }).await?;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let process = stage.program()?.id();
    let before = processor_milliseconds(process)?;
    tokio::time::sleep(REST).await;
    let spent = processor_milliseconds(process)? - before;
    let text = format!(
        "{spent:.0} ms of processor time in {} s, with {WAITING} that wait and {} that have ended",
        REST.as_secs(),
        ENDED[2]
    );
    let json = json!({ "milliseconds": spent, "seconds": REST.as_secs() });
    Ok(Figure::new("Actions at rest", "Embedded", text, "none", json))
}

fn resident(process: u32) -> Result<i64, anyhow::Error> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    Ok(i64::try_from(memory::kib(&status, "RssAnon:"))? * 1024)
}

fn processor_milliseconds(process: u32) -> Result<f64, anyhow::Error> {
    let mut nanoseconds = 0.0;
    for thread in fs::read_dir(format!("/proc/{process}/task"))? {
        let text = fs::read_to_string(thread?.path().join("schedstat"))?;
        nanoseconds += text.split(' ').next().unwrap_or_default().parse::<f64>()?;
    }
    Ok(nanoseconds / 1e6)
}
