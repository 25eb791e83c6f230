//! `plimsoll capability`: what capabilities there are, what enabling one would create, and enabling it.

mod enable;
mod explain;
mod list;

use std::io::Write;
use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::arguments::capability::{About, Subject};
use crate::exit;
use crate::render::format::Format;

/// What can be asked about capabilities.
#[derive(Debug, Subcommand)]
pub enum CapabilityCommand {
    /// List the capabilities of a release or of a cluster
    List(ListArguments),
    /// Describe a capability, and what enabling it would create
    Explain(ExplainArguments),
    /// Enable capabilities of a cluster; an enabled capability cannot be disabled
    Enable(enable::EnableArguments),
}

/// Arguments of `plimsoll capability list`.
#[derive(Debug, Args)]
pub struct ListArguments {
    #[command(flatten)]
    about: About,
    /// Output format
    #[arg(long, short, value_name = "FORMAT", default_value_t)]
    output: Format,
}

/// Arguments of `plimsoll capability explain`.
#[derive(Debug, Args)]
pub struct ExplainArguments {
    /// Name of the capability
    name: String,
    #[command(flatten)]
    about: About,
    /// Output format
    #[arg(long, short, value_name = "FORMAT", default_value_t)]
    output: Format,
}

/// Runs the command.
///
/// # Errors
///
/// When the release or the cluster cannot be read, there is no capability of the name, the cluster
/// cannot be changed, or the output cannot be written.
pub async fn run(
    command: CapabilityCommand,
    out: &mut (dyn Write + Send),
) -> Result<ExitCode, anyhow::Error> {
    match command {
        CapabilityCommand::List(arguments) => {
            let subject = Subject::of(&arguments.about).await?;
            list::run(&subject, &arguments.output, out)?;
        }
        CapabilityCommand::Explain(arguments) => {
            let subject = Subject::of(&arguments.about).await?;
            explain::run(&subject, &arguments.name, &arguments.output, out)?;
        }
        CapabilityCommand::Enable(arguments) => enable::run(&arguments, out).await?,
    }
    Ok(exit::SUCCESS.into())
}

#[cfg(test)]
mod tests;
