//! `plimsoll inspect`: gathers what is related to the ClusterOperators, as `oc adm inspect` does,
//! in the layout that must-gather's readers know.

mod archive;
mod gather;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use kube::Client;
use plimsoll_api::duration;

use crate::arguments::cluster::ClusterArguments;
use crate::exit;
use archive::Archive;
use gather::Gathering;

/// What to gather, and where to.
#[derive(Debug, Args)]
pub struct InspectArguments {
    /// ClusterOperators (NAME or co/NAME) and namespaces (ns/NAME); all ClusterOperators if none is
    /// given
    #[arg(value_name = "NAME|co/NAME|ns/NAME", value_parser = InspectTarget::parse)]
    targets: Vec<InspectTarget>,
    /// Only the log lines of this time, such as 2h
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    since: Option<Duration>,
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
    inspect(client, &arguments.targets, arguments.since, &arguments.to, out).await?;
    Ok(exit::SUCCESS.into())
}

/// Something to gather.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InspectTarget {
    /// A ClusterOperator, and what is related to it.
    ClusterOperator(String),
    /// A namespace, and what is in it.
    Namespace(String),
}

impl InspectTarget {
    /// Reads `NAME`, `co/NAME` or `ns/NAME`, or a longer name of the kind.
    ///
    /// # Errors
    ///
    /// When the kind is another one, or there is no name.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (kind, name) = text.split_once('/').unwrap_or(("co", text));
        if name.is_empty() {
            return Err(format!("`{text}` has no name"));
        }
        let kind = kind.to_lowercase();
        match kind.strip_suffix(".config.openshift.io").unwrap_or(&kind) {
            "co" | "clusteroperator" | "clusteroperators" => {
                Ok(Self::ClusterOperator(name.to_owned()))
            }
            "ns" | "namespace" | "namespaces" => Ok(Self::Namespace(name.to_owned())),
            _ => Err(format!("`{text}` is neither co/NAME nor ns/NAME")),
        }
    }
}

/// Gathers some targets, or what is related to all ClusterOperators, into a directory or an archive;
/// of logs the lines `since` then, or all.
///
/// # Errors
///
/// As [`run`].
pub async fn inspect(
    client: Client,
    targets: &[InspectTarget],
    since: Option<Duration>,
    to: &Path,
    out: &mut dyn Write,
) -> Result<(), anyhow::Error> {
    // Nothing is written for a name that does not exist.
    let gathering = Gathering::of(client, targets, since).await?;
    let mut archive =
        Archive::create(to).with_context(|| format!("failed to write to `{}`", to.display()))?;
    let summary = gathering.write(&mut archive).await?;
    archive.finish().with_context(|| format!("failed to write `{}`", to.display()))?;
    for finding in &summary.findings {
        writeln!(out, "{finding}")?;
    }
    writeln!(
        out,
        "{} files about {} ClusterOperators in {}",
        summary.written.len(),
        summary.operators,
        to.display()
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::InspectTarget;

    #[test]
    fn targets_are_named_as_for_must_gather() {
        let operator = |name: &str| Ok(InspectTarget::ClusterOperator(name.to_owned()));
        let namespace = |name: &str| Ok(InspectTarget::Namespace(name.to_owned()));
        let cases = [
            ("dns", operator("dns")),
            ("co/dns", operator("dns")),
            ("clusteroperators/dns", operator("dns")),
            ("clusteroperator.config.openshift.io/dns", operator("dns")),
            ("ns/pier", namespace("pier")),
            ("Namespace/pier", namespace("pier")),
            ("ns/", Err("`ns/` has no name".to_owned())),
            ("pods/a", Err("`pods/a` is neither co/NAME nor ns/NAME".to_owned())),
        ];
        for (text, expected) in cases {
            assert_eq!(InspectTarget::parse(text), expected, "{text}");
        }
    }
}
