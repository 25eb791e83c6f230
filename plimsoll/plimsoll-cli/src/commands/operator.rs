//! `plimsoll operator`, which is also `kubectl operator`: Operators of a cluster, the packages that they
//! may be installed from, and what a change of them would do.
//!
//! Exit codes: [`exit::SUCCESS`] when it is done, [`exit::FAILURE`] when it failed or was refused,
//! [`exit::USAGE`] for a command line that cannot be understood, [`exit::DECLINED`] when a person
//! declined it or something blocks it.
//!
//! [`exit::SUCCESS`]: crate::exit::SUCCESS
//! [`exit::FAILURE`]: crate::exit::FAILURE
//! [`exit::USAGE`]: crate::exit::USAGE
//! [`exit::DECLINED`]: crate::exit::DECLINED

pub mod catalogs;
pub mod history;
pub mod list;
pub mod packages;
pub mod pause;
pub(crate) mod state;

use std::io::Write;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use kube::api::PatchParams;

use crate::arguments::cluster::ClusterArguments;

/// What is done about Operators, and in which cluster.
#[derive(Debug, Args)]
pub struct OperatorArguments {
    /// What to do
    #[command(subcommand)]
    pub command: OperatorCommand,
    /// Which cluster
    #[command(flatten)]
    pub cluster: ClusterArguments,
}

/// What can be done about Operators.
#[derive(Debug, Subcommand)]
pub enum OperatorCommand {
    /// List Operators: what is installed, satisfied and orphaned, and available updates
    List(list::ListArguments),
    /// List the packages of all catalogs that match all words
    Search(packages::SearchArguments),
    /// Show a package: channels, versions, provided and required APIs
    Show(packages::ShowArguments),
    /// List the packages that provide an API
    WhoProvides(packages::WhoProvidesArguments),
    /// List what was installed of an Operator, and the revisions that it can return to
    History(history::HistoryArguments),
    /// Return an Operator to a kept revision
    Rollback(history::RollbackArguments),
    /// Leave Operators as they are: nothing is installed, updated, repaired or deleted
    Pause(pause::PauseArguments),
    /// Resume what was paused
    Resume(pause::PauseArguments),
}

/// Field manager of what this program requests of Operators.
pub(crate) const FIELD_MANAGER: &str = "plimsoll-operator";

/// What a request is, as a server is to take it.
pub(crate) fn patch_parameters(is_dry_run: bool) -> PatchParams {
    PatchParams {
        dry_run: is_dry_run,
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PatchParams::default()
    }
}

/// How a line about a change ends that was only tried.
pub(crate) fn dry_run_suffix(is_dry_run: bool) -> &'static str {
    if is_dry_run { " (server dry run)" } else { "" }
}

/// Runs the command.
///
/// # Errors
///
/// When the cluster cannot be reached, or what is requested is refused.
pub async fn run(
    arguments: OperatorArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let OperatorArguments { command, cluster } = arguments;
    match command {
        OperatorCommand::List(arguments) => list::run(&cluster, &arguments, out).await,
        OperatorCommand::Search(arguments) => packages::search(&cluster, &arguments, out).await,
        OperatorCommand::Show(arguments) => packages::show(&cluster, &arguments, out).await,
        OperatorCommand::WhoProvides(arguments) => {
            packages::who_provides(&cluster, &arguments, out).await
        }
        OperatorCommand::History(arguments) => history::run(&cluster, &arguments, out).await,
        OperatorCommand::Rollback(arguments) => history::rollback(&cluster, &arguments, out).await,
        OperatorCommand::Pause(arguments) => pause::run(&cluster, &arguments, true, out).await,
        OperatorCommand::Resume(arguments) => pause::run(&cluster, &arguments, false, out).await,
    }
}
