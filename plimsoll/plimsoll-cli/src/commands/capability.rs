//! `plimsoll capability`: what capabilities there are, and what enabling one would create.

mod describe;
mod explain;
mod list;
mod subject;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use plimsoll_content::inclusion::{DEFAULT_FEATURE_SET, DEFAULT_PROFILE};

use crate::commands::cluster::ClusterArguments;
use crate::exit;
use crate::render::format::Format;

/// What can be asked about capabilities.
#[derive(Debug, Subcommand)]
pub enum CapabilityCommand {
    /// List the capabilities of a release or of a cluster
    List(ListArguments),
    /// Say what a capability is, and what enabling it would create
    Explain(ExplainArguments),
}

/// Arguments of `plimsoll capability list`.
#[derive(Debug, Args)]
pub struct ListArguments {
    #[command(flatten)]
    about: About,
    /// Output format
    #[arg(long, short, value_enum, default_value_t)]
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
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
}

/// What is asked about: a release, a cluster, or a cluster and the release that it is at.
#[derive(Debug, Args)]
struct About {
    /// Directory of a release payload; with it, a cluster is asked only if --kubeconfig or
    /// --context names one
    #[arg(long, value_name = "DIR")]
    release: Option<PathBuf>,
    /// Without a cluster: the capability set that counts as enabled
    #[arg(
        long,
        value_name = "SET",
        default_value = "None",
        requires = "release",
        conflicts_with_all = ["kubeconfig", "context"]
    )]
    baseline: String,
    /// Which cluster
    #[command(flatten)]
    cluster: ClusterArguments,
    /// Cluster profile
    #[arg(long, default_value = DEFAULT_PROFILE)]
    profile: String,
    /// Feature set of the cluster
    #[arg(long, default_value = DEFAULT_FEATURE_SET)]
    feature_set: String,
}

/// Runs the command.
///
/// # Errors
///
/// When the release or the cluster cannot be read, there is no capability of the name, or the
/// output cannot be written.
pub async fn run(
    command: CapabilityCommand,
    out: &mut (dyn Write + Send),
) -> Result<ExitCode, anyhow::Error> {
    match command {
        CapabilityCommand::List(arguments) => {
            let subject = subject::Subject::of(&arguments.about).await?;
            list::run(&subject, arguments.output, out)?;
        }
        CapabilityCommand::Explain(arguments) => {
            let subject = subject::Subject::of(&arguments.about).await?;
            explain::run(&subject, &arguments.name, arguments.output, out)?;
        }
    }
    Ok(exit::SUCCESS.into())
}

#[cfg(test)]
mod tests;
