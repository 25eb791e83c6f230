//! `plimsoll orphan`: what releases left behind in a cluster, and having it deleted.
//!
//! Orphans are those of the ReleaseProgress. What is to go is written to the annotation of the
//! ClusterVersion that the controller reads; nothing is deleted from here.

use std::collections::BTreeSet;
use std::io::Write;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use plimsoll_api::ObjectKey;
use plimsoll_api::progress::{Deletion, DeletionState, Orphan};
use plimsoll_plan::removal::{PRUNE, Prune};
use serde::Serialize;
use serde_json::json;

use crate::arguments::cluster::ClusterArguments;
use crate::exit;
use crate::patch::patch;
use crate::render::format::Format;
use crate::render::object::is_named;
use crate::render::table;
use plimsoll_simulation::cluster_state::ClusterState;

/// What is done about orphans, and in which cluster.
#[derive(Debug, Args)]
pub struct OrphanArguments {
    /// What to do
    #[command(subcommand)]
    pub command: OrphanCommand,
    /// Which cluster
    #[command(flatten)]
    pub cluster: ClusterArguments,
}

/// What can be done about orphans.
#[derive(Debug, Subcommand)]
pub enum OrphanCommand {
    /// List orphans and the progress of their deletion
    List {
        /// Output format
        #[arg(long, short, value_name = "FORMAT", default_value_t)]
        output: Format,
    },
    /// Delete orphans, the last applied first; without --yes, only list them
    Prune(PruneArguments),
}

/// Which orphans are to go.
#[derive(Debug, Clone, Default, Args)]
pub struct PruneArguments {
    /// Orphans, as `plimsoll orphan list` names them
    #[arg(value_name = "NAME", required_unless_present = "all")]
    pub names: Vec<String>,
    /// Namespace of the orphans
    #[arg(long, short, default_value = "")]
    pub namespace: String,
    /// All current orphans
    #[arg(long, conflicts_with = "names")]
    pub all: bool,
    /// Delete them instead of listing them
    #[arg(long, short)]
    pub yes: bool,
}

/// An orphan, as people and programs read of it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'a> {
    /// How it is named on the command line.
    id: String,
    #[serde(flatten)]
    orphan: &'a Orphan,
    /// `Kept`, `ToBeDeleted`, or the state of its deletion.
    state: &'static str,
    /// What its deletion waits for.
    #[serde(skip_serializing_if = "str::is_empty")]
    waits_for: &'a str,
}

/// Which orphans are to go, and what to write for that.
#[derive(Debug, PartialEq, Eq)]
struct Pruning {
    /// Those that were not asked to go before.
    added: Vec<String>,
    /// The annotation.
    annotation: String,
}

/// Why nothing is asked for.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum PruneError {
    /// There is no such orphan.
    #[error("there is no orphan {}; {there}", .names.join(", "))]
    NoSuchOrphan {
        /// What was named.
        names: Vec<String>,
        /// What there is.
        there: String,
    },
}

/// Runs the command.
///
/// # Errors
///
/// When the cluster cannot be reached, or has no orphan of a name.
pub async fn run(
    arguments: OrphanArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let OrphanArguments { command, cluster } = arguments;
    let client = cluster.client("orphan").await?;
    let cluster = ClusterState::read(&client).await?;
    match command {
        OrphanCommand::List { output } => list(&cluster, &output, out)?,
        OrphanCommand::Prune(requested) => {
            let Pruning { added, annotation } = pruning(&cluster, &requested)?;
            if added.is_empty() {
                let text = match cluster.progress.orphans.as_slice() {
                    [] => "There are no orphans",
                    _ => "The deletion of all of them is requested already",
                };
                writeln!(out, "info: {text}")?;
                return Ok(exit::SUCCESS.into());
            }
            if requested.yes {
                patch(&client, &json!({"metadata": {"annotations": {PRUNE: annotation}}})).await?;
            }
            let what = if requested.yes { "Requested the deletion of" } else { "Would delete" };
            writeln!(out, "{what}:")?;
            added.iter().try_for_each(|name| writeln!(out, "  {name}"))?;
            let next = if requested.yes {
                "Watch the progress with `plimsoll orphan list`."
            } else {
                "Nothing is deleted yet; repeat the command with --yes."
            };
            writeln!(out, "\n{next}")?;
        }
    }
    Ok(exit::SUCCESS.into())
}

fn list(cluster: &ClusterState, output: &Format, out: &mut dyn Write) -> Result<(), anyhow::Error> {
    let prune = Prune::parse(cluster.annotations.get(PRUNE).map(String::as_str));
    let entries: Vec<Entry<'_>> = cluster
        .progress
        .orphans
        .iter()
        .map(|orphan| entry(orphan, &prune, &cluster.progress.deletions))
        .collect();
    if output.write(&entries, out)? {
        return Ok(());
    }
    if entries.is_empty() {
        let version = &cluster.status.desired.version;
        writeln!(out, "No orphans: release {version} has a manifest for every applied object")?;
        return Ok(());
    }
    let rows: Vec<Vec<String>> = entries
        .iter()
        .map(|entry| {
            let state = match entry.waits_for {
                "" => entry.state.to_owned(),
                waits_for => format!("{}: {waits_for}", entry.state),
            };
            let Orphan { version, file, message, .. } = entry.orphan;
            let mut row = vec![entry.id.clone(), version.clone(), message.clone(), state];
            row.extend(output.is_wide().then(|| file.clone()));
            row
        })
        .collect();
    let headings = ["NAME", "RELEASE", "WHY", "STATE", "FILE"];
    let shown = if output.is_wide() { headings.len() } else { headings.len() - 1 };
    Ok(table::print(out, &headings[..shown], &rows)?)
}

fn entry<'a>(orphan: &'a Orphan, prune: &Prune, deletions: &'a [Deletion]) -> Entry<'a> {
    let deletion = deletions.iter().find(|deletion| deletion.object == orphan.object);
    let requested = !prune.select(std::slice::from_ref(orphan)).is_empty();
    let (state, waits_for) = match deletion {
        Some(Deletion { state: DeletionState::Requested, message, .. }) => {
            ("Requested", message.as_str())
        }
        Some(Deletion { state: DeletionState::Refused, message, .. }) => {
            ("Refused", message.as_str())
        }
        Some(_) | None if requested => ("ToBeDeleted", ""),
        Some(_) | None => ("Kept", ""),
    };
    Entry { id: orphan.object.reference(), orphan, state, waits_for }
}

/// What to write so that orphans go. Those that were asked to go before still are; what is no
/// orphan any more is not asked for.
fn pruning(cluster: &ClusterState, requested: &PruneArguments) -> Result<Pruning, PruneError> {
    let orphans = &cluster.progress.orphans;
    let unknown: Vec<String> = requested
        .names
        .iter()
        .filter(|name| !orphans.iter().any(|it| is_named(&it.object, name, &requested.namespace)))
        .cloned()
        .collect();
    if !unknown.is_empty() {
        let known: Vec<String> = orphans.iter().map(|orphan| orphan.object.reference()).collect();
        let there = match known.as_slice() {
            [] => "there are none".to_owned(),
            known => format!("there are:\n  {}", known.join("\n  ")),
        };
        return Err(PruneError::NoSuchOrphan { names: unknown, there });
    }
    let annotation = cluster.annotations.get(PRUNE);
    let before = Prune::parse(annotation.map(String::as_str));
    if before == Prune::All {
        let annotation = annotation.cloned().unwrap_or_default();
        return Ok(Pruning { added: Vec::new(), annotation });
    }
    let keys = |orphans: Vec<Orphan>| -> BTreeSet<ObjectKey> {
        orphans.into_iter().map(|orphan| orphan.object).collect()
    };
    let before = keys(before.select(orphans));
    let is_requested = |orphan: &&Orphan| {
        let is_named = |name| is_named(&orphan.object, name, &requested.namespace);
        requested.all || requested.names.iter().any(|name| is_named(name))
    };
    let requested = keys(orphans.iter().filter(is_requested).cloned().collect());
    let all: Vec<String> = before.union(&requested).map(ToString::to_string).collect();
    Ok(Pruning {
        added: requested.difference(&before).map(ObjectKey::reference).collect(),
        annotation: all.join(","),
    })
}

#[cfg(test)]
mod tests;
