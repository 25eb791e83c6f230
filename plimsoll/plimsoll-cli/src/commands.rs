//! One module a command: parse arguments, call a library, render.

pub mod bundle;
pub mod capability;
pub mod catalog;
pub mod demo;
pub mod deploy;
pub mod inspect;
pub mod install_config;
pub mod orphan;
pub mod overrides;
pub mod rehearse;
pub mod release;
pub mod resolve;
pub mod run;
pub mod sandbox;
pub mod update;

use std::future::Future;
use std::process::ExitCode;

use clap::Subcommand;

use crate::exit;
use crate::render::format::is_broken_pipe;
use crate::render::logs;

/// What the program can be asked to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Keep a cluster at a release
    Run(Box<run::RunArguments>),
    /// Look into release payloads
    #[command(subcommand)]
    Release(release::ReleaseCommand),
    /// See which optional parts a release has, and what enabling one would create
    #[command(subcommand)]
    Capability(capability::CapabilityCommand),
    /// Check the capabilities of an install-config
    #[command(subcommand)]
    InstallConfig(install_config::InstallConfigCommand),
    /// Print the rights that a controller needs for a release, and no others
    Rbac(deploy::RbacArguments),
    /// Print everything that runs the controller in a cluster
    Manifests(deploy::ManifestsArguments),
    /// Gather what is related to the ClusterOperators, for whoever is to find out what is wrong
    Inspect(inspect::InspectArguments),
    /// Tell about updates, ask for one, pause it
    Update(update::UpdateArguments),
    /// See what releases left behind in a cluster, and have it deleted
    Orphan(orphan::OrphanArguments),
    /// List, set and clear overrides: objects that are left alone, why, and until when
    #[command(name = "override")]
    Overrides(overrides::OverrideArguments),
    /// Carry out an update on a copy of the cluster, and tell how it went
    ///
    /// The copy lies in an embedded API server, operators and workloads are played, and time is
    /// simulated, so it takes seconds. Nothing of the cluster is touched.
    ///
    /// Exits with 0 if the update would succeed, and with 3 if it would stop.
    Rehearse(rehearse::RehearseArguments),
    /// Look into catalogs of operators
    #[command(subcommand)]
    Catalog(catalog::CatalogCommand),
    /// Look into the directory of a bundle
    #[command(subcommand)]
    Bundle(bundle::BundleCommand),
    /// Tell what would be installed for packages, or why nothing can be
    Resolve(Box<resolve::ResolveArguments>),
    /// Install and update a sample release on an embedded API server
    Demo(demo::DemoArguments),
    /// Run parts of a cluster that is simulated
    #[command(subcommand)]
    Sandbox(sandbox::SandboxCommand),
}

/// Runs a command to its end.
///
/// # Errors
///
/// Whatever kept the command from doing what it was asked to.
pub fn run(command: Command) -> Result<ExitCode, anyhow::Error> {
    let out = &mut anstream::stdout();
    let result = match command {
        Command::Release(command) => release::run(command, out),
        Command::Capability(command) => block_on(async {
            logs::init(true);
            capability::run(command, out).await
        }),
        Command::InstallConfig(command) => install_config::run(command, out),
        Command::Catalog(command) => catalog::run(command, out),
        Command::Bundle(command) => bundle::run(command, out),
        Command::Rbac(arguments) => deploy::rbac(&arguments, out),
        Command::Manifests(arguments) => deploy::manifests(&arguments, out),
        Command::Resolve(arguments) => resolve::run(&arguments, out),
        Command::Run(arguments) => block_on(run::run(*arguments)),
        Command::Inspect(arguments) => block_on(inspect::run(arguments, out)),
        Command::Update(arguments) => block_on(update::run(arguments, out)),
        Command::Orphan(arguments) => block_on(orphan::run(arguments, out)),
        Command::Overrides(arguments) => block_on(overrides::run(arguments, out)),
        Command::Rehearse(arguments) => rehearse::run(arguments, out),
        Command::Demo(arguments) => block_on(demo::run(arguments)),
        Command::Sandbox(command) => block_on(sandbox::run(command)),
    };
    match result {
        // Who reads the output has seen enough of it.
        Err(error) if is_broken_pipe(&error) => Ok(exit::SUCCESS.into()),
        result => result,
    }
}

/// Runs a future on a runtime of one thread: the work is waiting, and memory stays small.
fn block_on<F>(future: F) -> Result<ExitCode, anyhow::Error>
where
    F: Future<Output = Result<ExitCode, anyhow::Error>>,
{
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(future);
    // Watches that still run are of no interest any more.
    runtime.shutdown_background();
    result
}
