//! `plimsoll inspect`: gathers what is related to the ClusterOperators, as `oc adm inspect` does,
//! in the layout that must-gather's readers know.

mod archive;
mod gather;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Args;
use kube::Client;

use crate::arguments::cluster::ClusterArguments;
use crate::exit;
use archive::Archive;
use gather::Gathering;

/// What to gather, and where to.
#[derive(Debug, Args)]
pub struct InspectArguments {
    /// Names of ClusterOperators; all of them if none is given
    names: Vec<String>,
    /// Directory to write to, or a file that ends in .tar.gz; it must not exist
    #[arg(long, value_name = "PATH", default_value = "plimsoll-inspect")]
    to: PathBuf,
    /// Which cluster
    #[command(flatten)]
    cluster: ClusterArguments,
}

/// Gathers, and says what is missing or badly said.
///
/// # Errors
///
/// When the cluster cannot be reached, a named operator does not exist, or nothing can be written.
pub async fn run(
    arguments: InspectArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    if arguments.to.exists() {
        bail!("`{}` exists already; name another path with --to", arguments.to.display());
    }
    let client = arguments.cluster.client("inspect").await?;
    inspect(client, &arguments.names, &arguments.to, out).await?;
    Ok(exit::SUCCESS.into())
}

/// Gathers what is related to the ClusterOperators of these names, or all, into a directory or an
/// archive.
///
/// # Errors
///
/// As [`run`].
pub async fn inspect(
    client: Client,
    names: &[String],
    to: &Path,
    out: &mut dyn Write,
) -> Result<(), anyhow::Error> {
    let mut archive =
        Archive::create(to).with_context(|| format!("failed to write to `{}`", to.display()))?;
    let gathering = Gathering::of(client, names).await?;
    let summary = gathering.write(&mut archive).await?;
    archive.finish().with_context(|| format!("failed to write `{}`", to.display()))?;
    for finding in &summary.findings {
        writeln!(out, "{finding}")?;
    }
    writeln!(
        out,
        "{} files about {} ClusterOperators in {}",
        summary.files,
        summary.operators,
        to.display()
    )?;
    Ok(())
}
