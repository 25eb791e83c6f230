//! `plimsoll sandbox`: the embedded API server alone, and simulated operators for any API server.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use k8s_apiserver::envtest::Program;
use k8s_apiserver::{ApiServer, Options};
use plimsoll_content::inclusion::{DEFAULT_FEATURE_SET, DEFAULT_PROFILE};
use tokio::net::TcpListener;

use crate::arguments::cluster::ClusterArguments;
use crate::arguments::registry::RegistryArguments;
use crate::arguments::{address, faults, store};
use crate::exit;
use crate::process::{stop_on_signal, write_secret};
use crate::render::live::LiveView;
use crate::render::logs;
use plimsoll_api::duration;
use plimsoll_simulation::simulated_operators::{self, Faults, SimulationOptions};
use plimsoll_simulation::snapshot;

mod envtest;

use envtest::{EnvtestArguments, ProgramArguments};

/// Parts of a cluster that is simulated.
#[derive(Debug, Subcommand)]
pub enum SandboxCommand {
    /// Run the embedded API server
    ///
    /// Everything is in memory, and there are no nodes. See `plimsoll sandbox operators` to simulate
    /// workloads. The kubeconfig makes its user an administrator; service accounts have the
    /// permissions of their roles.
    Serve(ServeArguments),
    /// Write programs that stand in for etcd and kube-apiserver in tests
    ///
    /// Test suites that start a control plane of their own, such as those of controller-runtime's
    /// envtest, find the embedded API server in the directory that is named in KUBEBUILDER_ASSETS.
    Envtest(EnvtestArguments),
    /// Stand in for etcd
    #[command(hide = true)]
    Etcd(ProgramArguments),
    /// Stand in for kube-apiserver
    #[command(hide = true)]
    KubeApiserver(ProgramArguments),
    /// Simulate workloads and operators on a cluster without nodes
    ///
    /// Deployments become available, each operator of the releases reports as a healthy one would,
    /// and operators of bundles look after the objects of their kinds. Use it on clusters that are
    /// only API servers.
    Operators(OperatorsArguments),
}

/// How to run the embedded API server.
#[derive(Debug, Args)]
pub struct ServeArguments {
    /// Address to listen on; a port of 0 takes a free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0", value_parser = loopback)]
    pub listen: SocketAddr,
    /// Write a kubeconfig with the administrator's credentials to this file
    #[arg(long, value_name = "FILE", required_unless_present = "plain")]
    pub kubeconfig: Option<PathBuf>,
    /// Listen without TLS: everybody on this machine is the administrator, and clients send no
    /// credentials
    #[arg(long)]
    pub plain: bool,
    /// Keep the cluster in this file: load it if it is there, and write it on exit
    #[arg(long, value_name = "FILE")]
    pub snapshot: Option<PathBuf>,
}

/// What to play.
#[derive(Debug, Args)]
pub struct OperatorsArguments {
    /// Which cluster
    #[command(flatten)]
    pub cluster: ClusterArguments,
    /// The directory of a release payload, or a reference to its image; give it once for each release
    /// the cluster may be at
    #[arg(long, value_name = "DIR|REFERENCE", value_parser = store::parse)]
    pub release: Vec<store::Location>,
    /// How registries are reached
    #[command(flatten)]
    pub registry: RegistryArguments,
    /// How long an operator takes from the change of its Deployments to its report
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = duration::parse)]
    pub delay: Duration,
    /// YAML list of faults: operator, fault (NeverAvailable, Degraded, VersionStuck,
    /// NotUpgradeable), minutes (for Degraded), and optionally after and release; or package, fault
    /// (NeverAvailable, KeepsFinalizers), and optionally after and version
    #[arg(long, value_name = "FILE")]
    pub faults: Option<PathBuf>,
    /// Cluster profile
    #[arg(long, default_value = DEFAULT_PROFILE)]
    pub profile: String,
    /// Feature set of the cluster
    #[arg(long, default_value = DEFAULT_FEATURE_SET)]
    pub feature_set: String,
}

/// Runs a part of the sandbox until interrupted.
///
/// # Errors
///
/// When it cannot begin: the address is taken, a payload or a file of faults is defective, or
/// there is no cluster.
pub async fn run(command: SandboxCommand) -> Result<ExitCode, anyhow::Error> {
    logs::init(false, &LiveView::of_stderr());
    match command {
        SandboxCommand::Serve(arguments) => serve(arguments).await?,
        SandboxCommand::Envtest(arguments) => envtest::install(&arguments)?,
        SandboxCommand::Etcd(arguments) => envtest::run(Program::Etcd, &arguments).await?,
        SandboxCommand::KubeApiserver(arguments) => {
            envtest::run(Program::KubeApiserver, &arguments).await?;
        }
        SandboxCommand::Operators(arguments) => operators(arguments).await?,
    }
    Ok(exit::SUCCESS.into())
}

async fn serve(arguments: ServeArguments) -> Result<(), anyhow::Error> {
    let stop = stop_on_signal()?;
    let ServeArguments { listen, kubeconfig, plain, snapshot } = arguments;
    let server = match &snapshot {
        Some(path) => snapshot::load(path, Options::default())?,
        None => ApiServer::new(Options::default()),
    };
    let listener = TcpListener::bind(listen)
        .await
        .with_context(|| format!("failed to listen on {listen}; name another port or 0"))?;
    let scheme = if plain { "http" } else { "https" };
    let url = format!("{scheme}://{}", listener.local_addr()?);
    anstream::println!("An API server is embedded in this process, in memory, at {url}");
    match kubeconfig {
        Some(path) => {
            write_secret(&path, &server.kubeconfig(&url))
                .with_context(|| format!("failed to write kubeconfig `{}`", path.display()))?;
            anstream::println!("  kubectl --kubeconfig {} get namespaces", path.display());
        }
        None => anstream::println!("  kubectl --server {url} get namespaces"),
    }
    let stopped = stop.cancelled_owned();
    if plain {
        k8s_apiserver::serve(server.clone(), listener, stopped)
            .await
            .context("the API server failed")?;
    } else {
        k8s_apiserver::serve_tls(server.clone(), listener, stopped)
            .await
            .context("the API server failed")?;
    }
    match &snapshot {
        Some(path) => Ok(snapshot::save(&server, path)?),
        None => Ok(()),
    }
}

async fn operators(arguments: OperatorsArguments) -> Result<(), anyhow::Error> {
    let faults = match &arguments.faults {
        Some(path) => faults::read(path)?,
        None => Faults::default(),
    };
    let mut payloads = Vec::new();
    for release in &arguments.release {
        let feature_set = Some(arguments.feature_set.as_str());
        let payload = release.load(&arguments.registry, &arguments.profile, feature_set)?;
        payloads.push(Arc::new(payload));
    }
    let client = arguments.cluster.watching_client("sandbox").await?;
    let options = SimulationOptions {
        payloads,
        profile: arguments.profile,
        feature_set: arguments.feature_set,
        delay: arguments.delay,
        faults,
        ..SimulationOptions::default()
    };
    anstream::println!(
        "Simulating workloads and operators until interrupted (Ctrl-C); no containers run"
    );
    simulated_operators::run(client, options, stop_on_signal()?).await?;
    Ok(())
}

/// Parses an address of this machine alone: the server is not made for hostile networks.
fn loopback(text: &str) -> Result<SocketAddr, String> {
    let address = address::parse(text)?;
    if !address.ip().is_loopback() {
        return Err("the sandbox listens on loopback addresses only, such as 127.0.0.1".to_owned());
    }
    Ok(address)
}

#[cfg(test)]
mod tests;
