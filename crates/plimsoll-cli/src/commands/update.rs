//! `plimsoll update`: bring a cluster from one release to another.

use std::process::ExitCode;

use clap::Subcommand;

use super::update_plan;

/// What can be asked about an update.
#[derive(Debug, Subcommand)]
pub enum UpdateCommand {
    /// Tell what an update of this cluster would do, without doing it
    Plan(update_plan::UpdatePlanArguments),
}

/// Runs the command.
///
/// # Errors
///
/// Whatever kept it from doing what it was asked to.
pub async fn run(command: UpdateCommand) -> Result<ExitCode, anyhow::Error> {
    match command {
        UpdateCommand::Plan(arguments) => update_plan::run(arguments).await,
    }
}
