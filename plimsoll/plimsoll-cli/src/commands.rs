//! One module a command: parse arguments, call a library, render.

pub mod bundle;
pub mod capability;
pub mod catalog;
pub mod cluster_version;
pub mod completion;
pub mod demo;
pub mod deploy;
pub mod inspect;
pub mod install_config;
pub mod operator;
pub mod orphan;
pub mod overrides;
pub mod rehearse;
pub mod release;
pub mod resolve;
pub mod run;
pub mod sandbox;
pub mod update;
pub mod version;

use std::future::Future;
use std::process::ExitCode;

use clap::Subcommand;

use crate::exit;
use crate::render::format::is_broken_pipe;
use crate::render::{logs, table};

/// What the program can be asked to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Reconcile a cluster to a release, and Operators to what they request
    Run(Box<run::RunArguments>),
    /// Build and inspect release payloads
    #[command(subcommand)]
    Release(release::ReleaseCommand),
    /// List optional parts of a release, and what enabling one would create
    #[command(subcommand)]
    Capability(capability::CapabilityCommand),
    /// Render the ClusterVersion of a new cluster
    #[command(subcommand)]
    ClusterVersion(cluster_version::ClusterVersionCommand),
    /// Check the capabilities of an install-config
    #[command(subcommand)]
    InstallConfig(install_config::InstallConfigCommand),
    /// Print the least permissions that a controller needs for releases and Operators
    Rbac(deploy::RbacArguments),
    /// Print the manifests that deploy the controller
    Manifests(deploy::ManifestsArguments),
    /// Gather the ClusterOperators and their related objects for debugging
    Inspect(inspect::InspectArguments),
    /// Show, request, pause and resume updates
    #[command(alias = "upgrade")]
    Update(update::UpdateArguments),
    /// List objects that releases left in a cluster, and delete them
    Orphan(orphan::OrphanArguments),
    /// List, set and clear overrides, which make objects unmanaged
    #[command(name = "override")]
    Overrides(overrides::OverrideArguments),
    /// Rehearse an update, or a change of Operators, on a copy of the cluster
    ///
    /// The copy is in an embedded API server; operators, workloads and time are simulated, so it
    /// takes seconds. The cluster itself is not changed.
    ///
    /// Exits with 0 if the update would succeed, and with 3 if it would stop.
    Rehearse(rehearse::RehearseArguments),
    /// Inspect operator catalogs
    #[command(subcommand)]
    Catalog(catalog::CatalogCommand),
    /// Validate operator bundles, and show what they install
    #[command(subcommand)]
    Bundle(bundle::BundleCommand),
    /// Install, inspect and delete Operators; also as `kubectl operator`
    Operator(Box<operator::OperatorArguments>),
    /// Show what would be installed for packages, or why nothing can be
    Resolve(Box<resolve::ResolveArguments>),
    /// Install and update a sample release, then an Operator, on an embedded API server
    Demo(demo::DemoArguments),
    /// Run parts of a simulated cluster
    #[command(subcommand)]
    Sandbox(sandbox::SandboxCommand),
    /// Print the version of the program
    Version(version::VersionArguments),
    /// Print the completions of a shell
    ///
    /// For bash: `source <(plimsoll completion bash)`.
    Completion(completion::CompletionArguments),
    /// Write manual pages, one for each command
    #[command(hide = true)]
    Man(completion::ManArguments),
}

/// Number of threads that handle the requests of a server.
const SERVER_THREADS: usize = 4;

/// Runs a command to its end.
///
/// # Errors
///
/// Whatever kept the command from doing what it was asked to.
pub fn run(command: Command) -> Result<ExitCode, anyhow::Error> {
    table::fit_to_terminal();
    let out = &mut anstream::stdout();
    let result = match command {
        Command::Release(command) => release::run(command, out),
        Command::Capability(command) => block_on(async {
            logs::init_quiet();
            capability::run(command, out).await
        }),
        Command::ClusterVersion(command) => cluster_version::run(command, out),
        Command::InstallConfig(command) => install_config::run(command, out),
        Command::Catalog(command) => catalog::run(command, out),
        Command::Bundle(command) => bundle::run(command, out),
        Command::Rbac(arguments) => deploy::rbac(&arguments, out),
        Command::Manifests(arguments) => deploy::manifests(&arguments, out),
        Command::Resolve(arguments) => resolve::run(&arguments, out),
        Command::Run(arguments) => block_on(run::run(*arguments)),
        Command::Inspect(arguments) => block_on(inspect::run(arguments, out)),
        Command::Update(arguments) => block_on(update::run(arguments, out)),
        Command::Operator(arguments) => block_on(operator::run(*arguments, out)),
        Command::Orphan(arguments) => block_on(orphan::run(arguments, out)),
        Command::Overrides(arguments) => block_on(overrides::run(arguments, out)),
        Command::Rehearse(arguments) => rehearse::run(arguments, out),
        Command::Demo(arguments) => block_on(demo::run(arguments)),
        Command::Sandbox(command @ sandbox::SandboxCommand::Operators(_)) => {
            block_on(sandbox::run(command))
        }
        Command::Sandbox(command) => block_on_threads(sandbox::run(command)),
        Command::Version(arguments) => version::run(&arguments, out),
        Command::Completion(arguments) => completion::run(&arguments, out),
        Command::Man(arguments) => completion::man(&arguments),
    };
    match result {
        // Who reads the output has seen enough of it.
        Err(error) if is_broken_pipe(&error) => Ok(exit::SUCCESS.into()),
        result => result,
    }
}

/// Runs a future on a runtime of one thread: the work is waiting, and memory stays small.
pub(crate) fn block_on<F, T>(future: F) -> Result<T, anyhow::Error>
where
    F: Future<Output = Result<T, anyhow::Error>>,
{
    run_to_end(tokio::runtime::Builder::new_current_thread(), future)
}

/// Runs a server on a runtime of several threads: a request whose large body is decoded does not hold
/// up the others.
fn block_on_threads<F, T>(future: F) -> Result<T, anyhow::Error>
where
    F: Future<Output = Result<T, anyhow::Error>>,
{
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(SERVER_THREADS);
    run_to_end(builder, future)
}

fn run_to_end<F, T>(mut builder: tokio::runtime::Builder, future: F) -> Result<T, anyhow::Error>
where
    F: Future<Output = Result<T, anyhow::Error>>,
{
    let runtime = builder.enable_all().build()?;
    let result = runtime.block_on(future);
    // Watches that still run are of no interest any more.
    runtime.shutdown_background();
    result
}

#[cfg(test)]
mod tests {
    use super::block_on_threads;

    #[test]
    fn a_request_that_occupies_its_thread_holds_up_no_other() {
        let (answer, answered) = std::sync::mpsc::channel();
        let result = block_on_threads(async {
            let busy = tokio::spawn(async move { answered.recv() });
            tokio::spawn(async move { answer.send("another request") }).await??;
            Ok::<_, anyhow::Error>(busy.await??)
        });
        assert_eq!(result.expect("both end"), "another request");
    }
}
