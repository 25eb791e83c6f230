//! `plimsoll update`: how the cluster stands, how its update gets on, and what it is asked to do.
//!
//! Everything told is the server's own: the status of the ClusterVersion and of the
//! ReleaseProgress. What is asked for is written to the ClusterVersion, where the controller looks.

pub mod plan;
mod request;

use std::io::Write;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use kube::Client;
use plimsoll_plan::progress::pause::{NEXT, PAUSE_BEFORE};
use serde_json::json;

use crate::arguments::cluster::ClusterArguments;
use crate::exit;
use crate::patch::patch;
use crate::process::now;
use crate::render::format::Format;
use crate::render::update as render;
use plimsoll_simulation::cluster_state::ClusterState;
use request::Outcome;

/// What is asked about updates, and of which cluster.
#[derive(Debug, Args)]
pub struct UpdateArguments {
    /// What to do; without it, tell how the cluster stands and where it may go
    #[command(subcommand)]
    pub command: Option<UpdateCommand>,
    /// Which cluster
    #[command(flatten)]
    pub cluster: ClusterArguments,
    /// Output format
    #[arg(long, short, value_enum, default_value_t)]
    pub output: Format,
}

/// What can be done about updates.
#[derive(Debug, Subcommand)]
pub enum UpdateCommand {
    /// Tell how the update under way gets on; fails if it cannot go on by itself
    Status {
        /// Output format
        #[arg(long, short, value_enum, default_value_t)]
        output: Format,
    },
    /// Tell what an update of this cluster would do, without doing it
    Plan(plan::UpdatePlanArguments),
    /// Ask for an update
    To(UpdateToArguments),
    /// Ask for nothing any more; what is being applied goes on
    Clear,
    /// Hold the update before a run level
    Pause {
        /// The run level; without it, the one after what is under way
        #[arg(long, value_name = "LEVEL")]
        before: Option<u32>,
    },
    /// Let a paused update go on
    Resume,
}

/// Which update is asked for.
#[derive(Debug, Clone, Default, Args)]
pub struct UpdateToArguments {
    /// The version to go to
    #[arg(value_name = "VERSION", required_unless_present_any = ["to_image", "latest"])]
    pub version: Option<String>,
    /// Go to the release of this pull specification, by digest
    #[arg(long, value_name = "IMAGE")]
    pub to_image: Option<String>,
    /// Go to the newest of the available updates
    #[arg(long, conflicts_with_all = ["version", "to_image"])]
    pub latest: bool,
    /// Go although the release cannot be verified or preconditions do not hold
    #[arg(long)]
    pub force: bool,
    /// Go to an image that is not among the available updates
    #[arg(long)]
    pub allow_explicit_update: bool,
    /// Go although the cluster is failing, updating, or its configuration is invalid
    #[arg(long)]
    pub allow_update_with_warnings: bool,
}

/// Runs the command.
///
/// # Errors
///
/// When the cluster cannot be reached, or a guard holds what is asked for up.
pub async fn run(
    arguments: UpdateArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let UpdateArguments { command, cluster, output } = arguments;
    let client = cluster.client().await?;
    if let Some(UpdateCommand::Plan(arguments)) = command {
        return plan::run(&client, arguments, out).await;
    }
    let cluster = ClusterState::read(&client).await?;
    match command {
        None => {
            let overview = render::Overview::of(&cluster);
            if !output.write(&overview, out)? {
                overview.print(out)?;
            }
        }
        Some(UpdateCommand::Status { output }) => {
            let report = render::Report::of(&cluster, now());
            if !output.write(&report, out)? {
                report.print(out)?;
            }
            if report.is_stuck() {
                return Ok(exit::FAILURE.into());
            }
        }
        Some(UpdateCommand::To(asked)) => match request::update(&cluster, &asked)? {
            Outcome::Nothing(text) => writeln!(out, "{text}")?,
            Outcome::Patch(spec, text) => {
                patch(&client, &json!({ "spec": { "desiredUpdate": spec } })).await?;
                writeln!(out, "{text}")?;
            }
        },
        Some(UpdateCommand::Clear) => {
            let text = request::cleared(&cluster);
            patch(&client, &json!({ "spec": { "desiredUpdate": null } })).await?;
            writeln!(out, "{text}")?;
        }
        Some(UpdateCommand::Pause { before }) => {
            let level = before.map_or_else(|| NEXT.to_owned(), |level| level.to_string());
            annotate(&client, Some(&level)).await?;
            let level =
                before.map_or("the next run level".to_owned(), |it| format!("run level {it}"));
            writeln!(out, "The update pauses before {level}; go on with `plimsoll update resume`")?;
        }
        // Told above, of a cluster that may have no ReleaseProgress yet.
        Some(UpdateCommand::Plan(_)) => {}
        Some(UpdateCommand::Resume) => {
            annotate(&client, None).await?;
            let text = match cluster.annotations.get(PAUSE_BEFORE) {
                Some(_) => "The update goes on",
                None => "info: No pause is asked for",
            };
            writeln!(out, "{text}")?;
        }
    }
    Ok(exit::SUCCESS.into())
}

async fn annotate(client: &Client, level: Option<&str>) -> Result<(), anyhow::Error> {
    patch(client, &json!({ "metadata": { "annotations": { PAUSE_BEFORE: level } } })).await
}
