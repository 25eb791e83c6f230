//! `plimsoll operator snapshot`: everything that a resolution depends on, in one file (OPR-21, OPR-22).

use std::io::Write;
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use kube::Client;
use plimsoll_operators::RequestedPackage;
use plimsoll_operators::loadout::Loadout;
use plimsoll_resolve::range::masterminds::Range;

use super::loadout::{LoadoutState, StateArguments, StateSource};
use super::selection::requested_operator;
use crate::exit;
use crate::progress::ProgressLine;

/// Arguments of `plimsoll operator snapshot`.
#[derive(Debug, Args)]
pub struct SnapshotArguments {
    /// Packages that are to be resolved with it, besides those of the Operators; all versions are printed, and
    /// one has to be in the RANGE
    #[arg(value_name = "PACKAGE[@RANGE]", value_parser = requested_operator)]
    packages: Vec<RequestedPackage>,
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
/// When the cluster or a catalog cannot be read, or no catalog has a package in its range.
pub(super) async fn run(
    client: Option<&Client>,
    arguments: &SnapshotArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let packages: Vec<String> = arguments.packages.iter().map(|it| it.name.clone()).collect();
    let source = Some(StateSource::Cluster);
    let state = arguments.state.read_for(client, source, Some(&packages)).await?;
    state.announce(false);
    for package in &arguments.packages {
        state.require_package(&package.name)?;
        require_version(&state, package)?;
    }
    let nothing = Loadout::default();
    state.require_readable(state.all_names(&nothing).chain(packages.iter().cloned()))?;
    let progress = ProgressLine::begin("collecting packages");
    let text = state.snapshot(&packages).text();
    drop(progress);
    out.write_all(text.as_bytes())?;
    Ok(exit::SUCCESS.into())
}

/// Fails if no version of a package is in its range.
fn require_version(state: &LoadoutState, package: &RequestedPackage) -> Result<(), anyhow::Error> {
    let RequestedPackage { name, range } = package;
    let Some(range) = range else { return Ok(()) };
    let wanted = Range::parse(range)?;
    let parts = state.parts(std::iter::once(name.clone()));
    let mut bundles = parts.iter().filter_map(|it| it.package(name)).flat_map(|it| &it.bundles);
    if !bundles.any(|it| wanted.matches(&it.version)) {
        bail!("no version of {name} matches {range}: `operator show {name}` lists them");
    }
    Ok(())
}
