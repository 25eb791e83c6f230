//! `plimsoll release`: look into release payloads without a cluster.

mod info;
mod lint;
mod plan;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};
use plimsoll_content::inclusion::{DEFAULT_FEATURE_SET, DEFAULT_PROFILE};

pub use plan::{PlanArguments, Setup};

use crate::exit;

/// What can be asked about a payload.
#[derive(Debug, Subcommand)]
pub enum ReleaseCommand {
    /// Show what a payload holds, and why each document is in or out
    Info(InfoArguments),
    /// Name every defect of a payload
    Lint(LintArguments),
    /// Tell what an update would do, from the files of both releases alone
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
    #[arg(long, short, value_enum, default_value_t)]
    output: Output,
}

/// Arguments of `plimsoll release lint`.
#[derive(Debug, Args)]
pub struct LintArguments {
    /// Directory of the payload
    directory: PathBuf,
    /// Output format
    #[arg(long, short, value_enum, default_value_t)]
    output: Output,
}

/// For whom the output is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people
    #[default]
    Text,
    /// For programs
    Json,
}

/// Runs the command.
///
/// # Errors
///
/// When the payload cannot be loaded (`info`) or the output cannot be written.
pub fn run(command: ReleaseCommand, out: &mut dyn Write) -> Result<ExitCode, anyhow::Error> {
    let result = match command {
        ReleaseCommand::Info(arguments) => info::run(&arguments, out),
        ReleaseCommand::Lint(arguments) => lint::run(&arguments, out),
        ReleaseCommand::Plan(arguments) => plan::run(&arguments, out),
    };
    read_by_people(result)
}

/// The result of a command whose reader may have seen enough before its end.
///
/// # Errors
///
/// Those of the command but a broken pipe.
pub(super) fn read_by_people(
    result: Result<ExitCode, anyhow::Error>,
) -> Result<ExitCode, anyhow::Error> {
    match result {
        // Who reads the output has seen enough of it.
        Err(error) if is_broken_pipe(&error) => Ok(exit::SUCCESS.into()),
        result => result,
    }
}

pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<io::Error>().map(io::Error::kind);
    let json = || error.downcast_ref::<serde_json::Error>().and_then(|it| it.io_error_kind());
    io.or_else(json) == Some(io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests;
