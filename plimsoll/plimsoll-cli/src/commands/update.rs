//! `plimsoll update`: how the cluster stands, how its update gets on, and what it is asked to do.
//!
//! Everything shown is the server's own: the status of the ClusterVersion and of the
//! ReleaseProgress. What is asked for is written to the ClusterVersion, where the controller looks.

mod options;
pub mod plan;
mod request;
mod wait;

use std::io::Write;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use kube::Client;
use plimsoll_plan::progress::pause::PAUSE_BEFORE;
use serde_json::json;

use crate::arguments::cluster::ClusterArguments;
use crate::exit;
use crate::patch::patch;
use crate::process::now;
use crate::render::format::Format;
use crate::render::update as render;
pub use options::UpgradeOptions;
use plimsoll_simulation::cluster_state::ClusterState;
use request::{PauseDecision, UpdateDecision};

/// What is asked about updates, and of which cluster.
#[derive(Debug, Args)]
pub struct UpdateArguments {
    /// What to do; without it, show the state of the cluster and its available updates
    #[command(subcommand)]
    pub command: Option<UpdateCommand>,
    /// The same, as `oc adm upgrade` spells it
    #[command(flatten)]
    pub options: UpgradeOptions,
    /// Which cluster
    #[command(flatten)]
    pub cluster: ClusterArguments,
    /// Output format
    #[arg(long, short, value_name = "FORMAT", default_value_t)]
    pub output: Format,
}

/// What can be done about updates.
#[derive(Debug, Subcommand)]
pub enum UpdateCommand {
    /// Show the progress of the update; fails if it is stuck
    Status {
        /// Show it every five seconds, until no update is under way
        #[arg(long, short)]
        watch: bool,
        /// Output format
        #[arg(long, short, value_name = "FORMAT", default_value_t)]
        output: Format,
    },
    /// Show what an update of this cluster would change, by a dry run
    Plan(Box<plan::UpdatePlanArguments>),
    /// Request an update
    To(UpdateToArguments),
    /// Cancel the requested update; one in progress continues
    Clear,
    /// Pause the update before a run level
    Pause {
        /// The run level; without it, the one after the current one
        #[arg(long, value_name = "LEVEL")]
        before: Option<u32>,
    },
    /// Resume a paused update
    Resume,
}

/// Which update is asked for.
#[derive(Debug, Clone, Default, Args)]
pub struct UpdateToArguments {
    /// The version to update to
    #[arg(value_name = "VERSION", required_unless_present_any = ["to_image", "latest"])]
    pub version: Option<String>,
    /// Update to this pull specification, by digest
    #[arg(long, value_name = "IMAGE")]
    pub to_image: Option<String>,
    /// Update to the newest of the available updates
    #[arg(long, visible_alias = "to-latest", conflicts_with_all = ["version", "to_image"])]
    pub latest: bool,
    /// Update even if the release cannot be verified or preconditions do not hold
    #[arg(long)]
    pub force: bool,
    /// Allow an image that is not among the available updates
    #[arg(long, visible_alias = "allow-explicit-upgrade")]
    pub allow_explicit_update: bool,
    /// Wait until the update is completed, and print its progress
    #[arg(long)]
    pub wait: bool,
    /// Update even if the cluster is failing, updating, or its configuration is invalid
    #[arg(long, visible_alias = "allow-upgrade-with-warnings")]
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
    let UpdateArguments { command, options, cluster, output } = arguments;
    let command = options.or(command)?;
    let client = cluster.client("update").await?;
    if let Some(UpdateCommand::Plan(arguments)) = command {
        return plan::run(&client, *arguments, out).await;
    }
    if let Some(UpdateCommand::Status { watch: true, output }) = &command {
        wait::watch(&client, output, out).await?;
        return Ok(exit::SUCCESS.into());
    }
    let cluster = ClusterState::read(&client).await?;
    match command {
        None => {
            let overview = render::UpdateOverview::of(&cluster);
            if !output.write(&overview, out)? {
                overview.print(out)?;
            }
        }
        Some(UpdateCommand::Status { output, watch: _ }) => {
            let report = render::UpdateStatus::of(&cluster, now());
            if !output.write(&report, out)? {
                report.print(output.is_wide(), out)?;
            }
            if report.is_stuck() {
                return Ok(exit::FAILURE.into());
            }
        }
        Some(UpdateCommand::To(requested)) => match request::update(&cluster, &requested, now())? {
            UpdateDecision::Nothing(text) => writeln!(out, "{text}")?,
            UpdateDecision::Patch(spec, text) => {
                patch(&client, &json!({ "spec": { "desiredUpdate": spec } })).await?;
                writeln!(out, "{text}")?;
                if requested.wait {
                    wait::until_completed(&client, &spec, out).await?;
                }
            }
        },
        Some(UpdateCommand::Clear) => {
            let text = request::cleared(&cluster);
            patch(&client, &json!({ "spec": { "desiredUpdate": null } })).await?;
            writeln!(out, "{text}")?;
        }
        Some(UpdateCommand::Pause { before }) => {
            let PauseDecision { annotation, text } = request::pause(&cluster, before)?;
            annotate(&client, Some(&annotation)).await?;
            writeln!(out, "{text}; resume with `plimsoll update resume`")?;
        }
        // Shown above, of a cluster that may have no ReleaseProgress yet.
        Some(UpdateCommand::Plan(_)) => {}
        Some(UpdateCommand::Resume) => {
            annotate(&client, None).await?;
            let text = match cluster.annotations.get(PAUSE_BEFORE) {
                Some(_) => "Resumed the update",
                None => "info: No pause is requested",
            };
            writeln!(out, "{text}")?;
        }
    }
    Ok(exit::SUCCESS.into())
}

async fn annotate(client: &Client, level: Option<&str>) -> Result<(), anyhow::Error> {
    patch(client, &json!({ "metadata": { "annotations": { PAUSE_BEFORE: level } } })).await
}
