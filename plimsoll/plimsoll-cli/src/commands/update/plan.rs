//! `plimsoll update plan`: what an update of a cluster would do, tried on it without effect.

use std::io::Write;
use std::process::ExitCode;

use clap::Args;
use kube::Client;
use plimsoll_content::inclusion::DEFAULT_PROFILE;
use plimsoll_simulation::cluster_state::ClusterState;
use plimsoll_simulation::dry_run::forecast;

use crate::arguments::store::StoreArguments;
use crate::exit;
use crate::process::now;
use crate::render::forecast::ForecastReport;
use crate::render::format::ignore_broken_pipe;
use crate::render::format::{Format, FormatParser};
use crate::render::logs;

/// Arguments of `plimsoll update plan`.
#[derive(Debug, Args)]
pub struct UpdatePlanArguments {
    /// The release to update to: a version of the store, the directory of
    /// a payload, or a reference to an image
    #[arg(value_name = "VERSION|DIR|REFERENCE")]
    pub to: String,
    /// Where its version is looked for
    #[command(flatten)]
    pub store: StoreArguments,
    /// Plan a forced update, which accepts the risk of failed preconditions
    #[arg(long)]
    pub force: bool,
    /// Cluster profile
    #[arg(long, default_value = DEFAULT_PROFILE)]
    pub profile: String,
    /// Feature set of the cluster; without it, the one that its controller was started with or that
    /// its FeatureGate names
    #[arg(long)]
    pub feature_set: Option<String>,
    /// Show every object and field
    #[arg(long)]
    pub details: bool,
    /// Output format
    #[arg(long, short, value_name = "FORMAT", value_parser = FormatParser::REPORTS, default_value_t)]
    pub output: Format,
}

/// Runs the command.
///
/// # Errors
///
/// When the payload is defective, or the cluster cannot be reached or does not let us try.
pub async fn run(
    client: &Client,
    arguments: UpdatePlanArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    logs::init_quiet();
    let feature_set = arguments.feature_set.as_deref();
    let payload = arguments.store.load(&arguments.to, &arguments.profile, feature_set)?;
    let cluster = ClusterState::read(client).await?;
    let now = now();
    let requested = cluster.target(&arguments.profile, feature_set, now);
    let (forecast, _) = forecast(client, &cluster, &payload, &requested, now).await?;
    let forecast = if arguments.force { forecast.forced() } else { forecast };
    let report = ForecastReport::of(&forecast);
    let written = report.write(&arguments.output, arguments.details, out);
    ignore_broken_pipe(written)?;
    let would_stop = !report.blockers.is_empty();
    Ok(if would_stop { exit::WOULD_STOP } else { exit::SUCCESS }.into())
}
