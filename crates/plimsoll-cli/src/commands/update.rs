//! `plimsoll update`: how the cluster stands, how its update gets on, and what it is asked to do.
//!
//! Everything told is the server's own: the status of the ClusterVersion and of the
//! ReleaseProgress. What is asked for is written to the ClusterVersion, where the controller looks.

mod request;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use kube::api::{Patch, PatchParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::{Api, Client, ResourceExt as _};
use plimsoll_api::config::{ClusterVersionSpec, ClusterVersionStatus};
use plimsoll_api::progress::ReleaseProgressStatus;
use plimsoll_api::{ApiKind, CLUSTER_VERSION, CLUSTER_VERSION_NAME, RELEASE_PROGRESS};
use plimsoll_plan::pause::{NEXT, PAUSE_BEFORE};
use serde_json::{Value, json};

use super::run::{client, now};
use super::update_plan;
use crate::exit;
use crate::render::structured::Format;
use crate::render::update as render;
use request::Outcome;

/// What the patches of this program are called in `managedFields`.
const FIELD_MANAGER: &str = "plimsoll-update";

/// What is asked about updates, and of which cluster.
#[derive(Debug, Args)]
pub struct UpdateArguments {
    /// What to do; without it, tell how the cluster stands and where it may go
    #[command(subcommand)]
    pub command: Option<UpdateCommand>,
    /// Kubeconfig of the cluster; without it, KUBECONFIG, ~/.kube/config or the pod's own account
    #[arg(long, value_name = "FILE", global = true)]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig
    #[arg(long, global = true)]
    pub context: Option<String>,
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
    Plan(update_plan::UpdatePlanArguments),
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

/// What the server tells of the cluster's version.
#[derive(Debug, Clone, Default)]
pub struct Standing {
    /// What is asked for.
    pub spec: ClusterVersionSpec,
    /// How the cluster stands.
    pub status: ClusterVersionStatus,
    /// How far its release is.
    pub progress: ReleaseProgressStatus,
    /// The annotation that pauses updates.
    pub pause: Option<String>,
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
    let UpdateArguments { command, kubeconfig, context, output } = arguments;
    let client = client(kubeconfig.as_deref(), context.as_deref()).await?;
    if let Some(UpdateCommand::Plan(arguments)) = command {
        return update_plan::run(&client, arguments, out).await;
    }
    let standing = Standing::read(&client).await?;
    match command {
        None => {
            let overview = render::Overview::of(&standing);
            if !output.write(&overview, out)? {
                overview.print(out)?;
            }
        }
        Some(UpdateCommand::Status { output }) => {
            let report = render::Report::of(&standing, now());
            if !output.write(&report, out)? {
                report.print(out)?;
            }
            if report.is_stuck() {
                return Ok(exit::FAILURE.into());
            }
        }
        Some(UpdateCommand::To(asked)) => match request::update(&standing, &asked)? {
            Outcome::Nothing(text) => writeln!(out, "{text}")?,
            Outcome::Patch(spec, text) => {
                patch(&client, &json!({ "spec": { "desiredUpdate": spec } })).await?;
                writeln!(out, "{text}")?;
            }
        },
        Some(UpdateCommand::Clear) => {
            let text = request::cleared(&standing);
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
            let text = match standing.pause {
                Some(_) => "The update goes on",
                None => "info: No pause is asked for",
            };
            writeln!(out, "{text}")?;
        }
    }
    Ok(exit::SUCCESS.into())
}

impl Standing {
    /// Asks the server.
    async fn read(client: &Client) -> Result<Self, anyhow::Error> {
        let version = api(client, CLUSTER_VERSION)
            .get(CLUSTER_VERSION_NAME)
            .await
            .context("failed to read ClusterVersion \"version\"; is a controller at work there?")?;
        let progress = api(client, RELEASE_PROGRESS)
            .get_opt(CLUSTER_VERSION_NAME)
            .await
            .context("failed to read ReleaseProgress \"version\"")?;
        let part = |object: &DynamicObject, name: &str| -> Value {
            object.data.get(name).cloned().unwrap_or_else(|| json!({}))
        };
        let progress = progress.map_or_else(|| json!({}), |object| part(&object, "status"));
        Ok(Self {
            spec: serde_json::from_value(part(&version, "spec"))
                .context("the spec of the ClusterVersion cannot be read")?,
            status: serde_json::from_value(part(&version, "status"))
                .context("the status of the ClusterVersion cannot be read")?,
            progress: serde_json::from_value(progress)
                .context("the status of the ReleaseProgress cannot be read")?,
            pause: version.annotations().get(PAUSE_BEFORE).cloned(),
        })
    }
}

fn api(client: &Client, kind: ApiKind) -> Api<DynamicObject> {
    let gvk = GroupVersionKind::gvk(kind.group, kind.version, kind.kind);
    Api::all_with(client.clone(), &ApiResource::from_gvk_with_plural(&gvk, kind.plural))
}

async fn patch(client: &Client, patch: &Value) -> Result<(), anyhow::Error> {
    let parameters =
        PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    api(client, CLUSTER_VERSION)
        .patch(CLUSTER_VERSION_NAME, &parameters, &Patch::Merge(patch))
        .await
        .context("failed to change ClusterVersion \"version\"")?;
    Ok(())
}

async fn annotate(client: &Client, level: Option<&str>) -> Result<(), anyhow::Error> {
    patch(client, &json!({ "metadata": { "annotations": { PAUSE_BEFORE: level } } })).await
}
