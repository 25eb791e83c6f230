//! `plimsoll operator snapshot`: everything that a resolution depends on, in one file (OPR-21, OPR-22).

use std::io::Write;
use std::process::ExitCode;

use clap::Args;
use kube::Client;
use plimsoll_operators::loadout::Loadout;

use super::loadout::{StateArguments, StateSource};
use crate::exit;
use crate::progress::ProgressLine;

/// Arguments of `plimsoll operator snapshot`.
#[derive(Debug, Args)]
pub struct SnapshotArguments {
    /// Packages that are to be resolved with it, besides those of the Operators
    #[arg(value_name = "PACKAGE")]
    packages: Vec<String>,
    #[command(flatten)]
    state: StateArguments,
}

impl SnapshotArguments {
    /// Returns whether the command needs no cluster.
    pub(super) fn needs_no_cluster(&self) -> bool {
        self.state.needs_no_cluster()
    }
}

/// Runs the command.
///
/// # Errors
///
/// When the cluster or a catalog cannot be read, or no catalog has a package.
pub(super) async fn run(
    client: Option<&Client>,
    arguments: &SnapshotArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let state = arguments.state.read_or(client, Some(StateSource::Cluster)).await?;
    state.announce(false);
    for package in &arguments.packages {
        state.require_package(package)?;
    }
    let packages = arguments.packages.iter().cloned();
    state.require_readable(state.all_names(&Loadout::default()).chain(packages))?;
    let progress = ProgressLine::begin("collecting packages");
    let text = state.snapshot(&arguments.packages).text();
    drop(progress);
    out.write_all(text.as_bytes())?;
    Ok(exit::SUCCESS.into())
}
