//! `plimsoll release`: look into release payloads without a cluster.

mod info;
mod lint;
mod plan;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use plimsoll_content::inclusion::{DEFAULT_FEATURE_SET, DEFAULT_PROFILE};

pub use plan::{PlanArguments, Setup};

use crate::render::format::Format;

/// What can be asked about a payload.
#[derive(Debug, Subcommand)]
pub enum ReleaseCommand {
    /// Show the contents of a payload, and why each document is included or excluded
    Info(InfoArguments),
    /// Report all problems of a payload
    Lint(LintArguments),
    /// Show what an update would change, from the files of both releases alone
    Plan(PlanArguments),
}

/// Arguments of `plimsoll release info`.
#[derive(Debug, Args)]
pub struct InfoArguments {
    /// Directory of the payload
    directory: PathBuf,
    /// Cluster profile to decide for
    #[arg(long, default_value = DEFAULT_PROFILE)]
    profile: String,
    /// Feature set to decide for
    #[arg(long, default_value = DEFAULT_FEATURE_SET)]
    feature_set: String,
    /// Output format
    #[arg(long, short, value_name = "FORMAT", default_value_t)]
    output: Format,
}

/// Arguments of `plimsoll release lint`.
#[derive(Debug, Args)]
pub struct LintArguments {
    /// Directory of the payload
    directory: PathBuf,
    /// Output format
    #[arg(long, short, value_name = "FORMAT", default_value_t)]
    output: Format,
}

/// Runs the command.
///
/// # Errors
///
/// When the payload cannot be loaded (`info`) or the output cannot be written.
pub fn run(command: ReleaseCommand, out: &mut dyn Write) -> Result<ExitCode, anyhow::Error> {
    match command {
        ReleaseCommand::Info(arguments) => info::run(&arguments, out),
        ReleaseCommand::Lint(arguments) => lint::run(&arguments, out),
        ReleaseCommand::Plan(arguments) => plan::run(&arguments, out),
    }
}

#[cfg(test)]
mod tests;
