//! `plimsoll demo`: the main job in one process, on a cluster that is embedded in it.
//!
//! Version 1 of a sample release is installed, then updated to version 2, then an Operator is
//! installed from the example catalog, updated and deleted, and installed once more by an Action of a
//! tenant, while `kubectl` may watch. What needs nodes is played by simulated operators.

mod definitions;
mod operators;
mod tenant;

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use k8s_apiserver::ApiServer;
use kube::{Client, ResourceExt as _};
use plimsoll_api::CLUSTER_OPERATOR;
use plimsoll_api::config::{ClusterOperatorStatus, UpdateHistory};
use plimsoll_content::inclusion::{DEFAULT_FEATURE_SET, DEFAULT_PROFILE};
use plimsoll_content::payload::{self, Payload, SourceFile, TemplateContext};
use plimsoll_controller::{Controller, Leadership, Settings, SystemClock, View};
use plimsoll_plan::status::Limits;
use serde::Deserialize;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::exit;
use crate::process::{new_cluster, stop_on_signal, write_secret};
use crate::render::live::LiveView;
use crate::render::{logs, table};
use plimsoll_api::duration;
use plimsoll_simulation::cluster_state::{ClusterState, api};
use plimsoll_simulation::sample;
use plimsoll_simulation::simulated_operators::SimulationOptions;

/// How to run the demo.
#[derive(Debug, Args)]
pub struct DemoArguments {
    /// Keep serving at the end, until interrupted
    #[arg(long)]
    pub keep: bool,
    /// Write the kubeconfig for the embedded API server to this file; without it, to a temporary one
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Time that each simulated operator takes
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = duration::parse)]
    pub delay: Duration,
}

/// Runs the demo to its end.
///
/// # Errors
///
/// When the sample release cannot be installed; which would be a defect of this program.
pub async fn run(arguments: DemoArguments) -> Result<ExitCode, anyhow::Error> {
    let live = LiveView::of_stderr();
    logs::init(true, &live);
    let (first, second) = (sample_payload(&sample::v1())?, sample_payload(&sample::v2())?);
    let stop = stop_on_signal()?;
    let server = ApiServer::new(k8s_apiserver::Options::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.context("failed to listen")?;
    let address = listener.local_addr()?;
    tokio::spawn(k8s_apiserver::serve(server.clone(), listener, stop.clone().cancelled_owned()));
    let client = Client::new(server, "default");
    anstream::println!("An API server is embedded in this process. To watch:");
    // Deleted at the end.
    let temporary =
        tempfile::Builder::new().prefix("plimsoll-demo-").suffix(".kubeconfig").tempfile();
    let temporary = temporary.context("failed to create a temporary kubeconfig")?;
    let path = arguments.kubeconfig.as_deref().unwrap_or(temporary.path());
    write_kubeconfig(path, address)?;
    let options = SimulationOptions {
        payloads: vec![Arc::clone(&first), Arc::clone(&second)],
        delay: arguments.delay,
        ..SimulationOptions::default()
    };
    tokio::spawn(plimsoll_simulation::simulated_operators::run(
        client.clone(),
        options,
        stop.clone(),
    ));
    let (release, releases) = watch::channel(Arc::clone(&first));
    let (view, views) = watch::channel(View::default());
    let controller = controller(client.clone(), releases, view);
    let mut working = tokio::spawn(controller.run(stop.clone()));
    for (payload, doing) in [(&first, "Installing"), (&second, "Updating to")] {
        let version = &payload.release.version;
        anstream::println!("{doing} version {version}");
        release.send_replace(Arc::clone(payload));
        let drawn = CancellationToken::new();
        let drawing = std::io::stderr().is_terminal().then(|| {
            let (live, views, drawn) = (live.clone(), views.clone(), drawn.clone());
            tokio::spawn(async move { live.draw(views, drawn).await })
        });
        let done = tokio::select! {
            done = completed(views.clone(), version) => done,
            ended = &mut working => {
                drawn.cancel();
                ended??;
                return Ok(exit::FAILURE.into());
            }
        };
        drawn.cancel();
        if let Some(drawing) = drawing {
            drawing.await?;
        }
        anyhow::ensure!(done, "the controller ended before version {version} was completed");
        anstream::println!();
    }
    print_tables(&client).await?;
    operators::run(&client, &tenant_client(address)?, &stop).await?;
    if arguments.keep {
        anstream::println!("\nStaying up at http://{address} until interrupted (Ctrl-C)");
        stop.cancelled().await;
    }
    stop.cancel();
    working.await??;
    Ok(exit::SUCCESS.into())
}

/// Returns a client of the embedded API server that acts as the tenant.
fn tenant_client(address: SocketAddr) -> Result<Client, anyhow::Error> {
    let uri = format!("http://{address}").parse().context("failed to name the API server")?;
    let mut config = kube::Config::new(uri);
    config.auth_info.impersonate = Some(tenant::TENANT.to_owned());
    Client::try_from(config).context("failed to connect to the API server")
}

/// Writes a kubeconfig for the embedded API server, and prints how to use it.
fn write_kubeconfig(path: &Path, address: SocketAddr) -> Result<(), anyhow::Error> {
    write_secret(path, &k8s_apiserver::kubeconfig(&format!("http://{address}")))
        .with_context(|| format!("failed to write kubeconfig `{}`", path.display()))?;
    let path = path.display();
    anstream::println!(
        "  kubectl --kubeconfig {path} get clusterversion,clusteroperators,operators"
    );
    anstream::println!("Deployments and operators are simulated, since there are no nodes.\n");
    Ok(())
}

fn controller(
    client: Client,
    release: watch::Receiver<Arc<Payload>>,
    view: watch::Sender<View>,
) -> Controller {
    Controller {
        client,
        clock: Arc::new(SystemClock),
        settings: Settings {
            profile: DEFAULT_PROFILE.to_owned(),
            feature_set: Some(DEFAULT_FEATURE_SET.to_owned()),
            create: Some(new_cluster()),
            force_release: false,
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

fn sample_payload(files: &[SourceFile]) -> Result<Arc<Payload>, anyhow::Error> {
    let template = TemplateContext {
        release_image: String::new(),
        cluster_profile: DEFAULT_PROFILE.to_owned(),
    };
    let payload = payload::parse(files, &template).context("the sample release is defective")?;
    Ok(Arc::new(payload))
}

/// Waits until a version is completed; false when the controller ended before.
async fn completed(mut views: watch::Receiver<View>, version: &str) -> bool {
    views.wait_for(|view| view.completed && view.version == version).await.is_ok()
}

async fn print_tables(client: &Client) -> Result<(), anyhow::Error> {
    let out = &mut anstream::stdout().lock();
    let cluster = ClusterState::read(client).await?;
    let row = |entry: &UpdateHistory| {
        let took = entry.completion_time.map(|at| at.duration_since(entry.started_time).as_secs());
        let took = took.map_or_else(String::new, |seconds| format!("{seconds}s"));
        vec![entry.version.clone(), format!("{:?}", entry.state), took]
    };
    let rows: Vec<Vec<String>> = cluster.status.history.iter().map(row).collect();
    table::print(out, &["VERSION", "STATE", "TOOK"], &rows)?;
    anstream::println!();
    let operators = api(client, CLUSTER_OPERATOR).list(&Default::default()).await?;
    let mut rows = Vec::new();
    for operator in operators {
        let status = ClusterOperatorStatus::deserialize(&operator.data["status"])?;
        let version = status.versions.iter().find(|it| it.name == "operator");
        let mut row = vec![operator.name_any()];
        row.push(version.map_or_else(String::new, |it| it.version.clone()));
        for type_ in ["Available", "Progressing", "Degraded"] {
            let condition = status.conditions.iter().find(|it| it.type_ == type_);
            row.push(condition.map_or_else(String::new, |it| format!("{:?}", it.status)));
        }
        rows.push(row);
    }
    table::print(out, &["NAME", "VERSION", "AVAILABLE", "PROGRESSING", "DEGRADED"], &rows)?;
    Ok(())
}
