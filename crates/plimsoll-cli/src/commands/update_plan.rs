//! `plimsoll update plan`: what an update of a cluster would do, tried on it without effect.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use clap::Args;
use kube::core::DynamicObject;
use kube::{Api, Client};
use plimsoll_api::config::{ClusterVersionSpec, ClusterVersionStatus, Release};
use plimsoll_api::{CLUSTER_VERSION, CLUSTER_VERSION_NAME};
use plimsoll_content::Payload;
use plimsoll_content::inclusion::{DEFAULT_FEATURE_SET, DEFAULT_PROFILE};
use plimsoll_controller::Survey;
use plimsoll_plan::forecast::{Forecast, of_cluster};
use plimsoll_plan::mode::{self, Mode};
use plimsoll_plan::target::{self, Target};
use serde_json::Value;

use super::release::{is_broken_pipe, load};
use crate::exit;
use crate::render::forecast::{Format, Report};
use crate::render::logs;

/// Arguments of `plimsoll update plan`.
#[derive(Debug, Args)]
pub struct UpdatePlanArguments {
    /// Directory of the release to go to
    #[arg(long, value_name = "DIR")]
    pub to: PathBuf,
    /// Cluster profile
    #[arg(long, default_value = DEFAULT_PROFILE)]
    pub profile: String,
    /// Feature set of the cluster
    #[arg(long, default_value = DEFAULT_FEATURE_SET)]
    pub feature_set: String,
    /// Show every object and field
    #[arg(long)]
    pub details: bool,
    /// Output format
    #[arg(long, short, value_enum, default_value_t)]
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
    let payload = load(&arguments.to, &arguments.profile)?;
    let cluster = Standing::read(client).await?;
    let (forecast, _) =
        forecast(client, &cluster, &payload, &arguments.profile, &arguments.feature_set).await?;
    let report = Report::of(&forecast);
    let written = report.write(arguments.output, arguments.details, out);
    match written.map_err(anyhow::Error::from) {
        // Who reads the output has seen enough of it.
        Err(error) if is_broken_pipe(&error) => {}
        other => other?,
    }
    let would_stop = !report.in_the_way.is_empty();
    Ok(if would_stop { exit::WOULD_STOP } else { exit::SUCCESS }.into())
}

/// The ClusterVersions of a cluster.
pub fn cluster_versions(client: &Client) -> Api<DynamicObject> {
    let gvk = kube::core::GroupVersionKind::gvk(
        CLUSTER_VERSION.group,
        CLUSTER_VERSION.version,
        CLUSTER_VERSION.kind,
    );
    let resource = kube::core::ApiResource::from_gvk_with_plural(&gvk, CLUSTER_VERSION.plural);
    Api::all_with(client.clone(), &resource)
}

/// How a cluster stands, as far as its next update depends on it.
#[derive(Debug, Clone, Default)]
pub struct Standing {
    /// What is asked for.
    pub spec: ClusterVersionSpec,
    /// What is reported.
    pub status: ClusterVersionStatus,
}

impl Standing {
    /// Reads the ClusterVersion.
    ///
    /// # Errors
    ///
    /// When the cluster cannot be asked, or has none.
    pub async fn read(client: &Client) -> Result<Self, anyhow::Error> {
        Self::read_opt(client).await?.context(
            "the cluster has no ClusterVersion, so no release keeps it; `plimsoll release plan \
             --to DIR` tells what an installation would do",
        )
    }

    /// Reads the ClusterVersion, if there is one.
    ///
    /// # Errors
    ///
    /// When the cluster cannot be asked.
    pub async fn read_opt(client: &Client) -> Result<Option<Self>, anyhow::Error> {
        let api = cluster_versions(client);
        match api.get(CLUSTER_VERSION_NAME).await {
            Ok(object) => Ok(Some(Self::of(&object.data))),
            // There is none, or the kind is not even served.
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(error) => Err(error).context("failed to ask the cluster for its ClusterVersion"),
        }
    }

    /// Takes the parts of a ClusterVersion; what cannot be read is left out.
    pub fn of(cluster_version: &Value) -> Self {
        Self {
            spec: serde_json::from_value(cluster_version["spec"].clone()).unwrap_or_default(),
            status: serde_json::from_value(cluster_version["status"].clone()).unwrap_or_default(),
        }
    }

    /// The release that it is at, or on its way to.
    pub fn release(&self) -> Option<Release> {
        Some(self.status.desired.clone()).filter(|release| !release.version.is_empty())
    }

    /// What it asks for, in words that decide a plan.
    pub fn target(&self, profile: &str, feature_set: &str) -> Target {
        Target {
            profile: profile.to_owned(),
            feature_set: feature_set.to_owned(),
            spec: self.spec.clone(),
            enabled: self.status.capabilities.enabled_capabilities.iter().cloned().collect(),
            ..Target::default()
        }
    }

    /// The rules by which it would go to a release.
    pub fn mode(&self, release: &Release) -> Mode {
        mode::choose(&self.status.history, &release.image)
    }
}

/// Forecasts the way of a cluster to a payload, by a dry run on it.
///
/// # Errors
///
/// When the cluster cannot be asked.
pub async fn forecast(
    client: &Client,
    cluster: &Standing,
    payload: &Payload,
    profile: &str,
    feature_set: &str,
) -> Result<(Forecast, Survey), anyhow::Error> {
    let asked = cluster.target(profile, feature_set);
    let mode = cluster.mode(&target::release(payload));
    let mut plan = Arc::new(asked.plan(payload, mode));
    let mut survey = plimsoll_controller::survey(client, &plan).await?;
    let (target, capabilities) = asked.towards(payload, &survey.ours);
    if target != asked {
        // What is enabled only because of what is there was not in the plan that was tried.
        plan = Arc::new(target.plan(payload, mode));
        survey = plimsoll_controller::survey(client, &plan).await?;
    }
    let mut cluster_kinds = survey.cluster_kinds.clone();
    cluster_kinds.extend(payload.cluster_kinds());
    let from = cluster.release();
    let forecast = of_cluster(from, plan, &survey.sightings, &survey.ours, &cluster_kinds);
    let forecast = Forecast { capabilities, ..forecast };
    Ok((forecast, survey))
}
