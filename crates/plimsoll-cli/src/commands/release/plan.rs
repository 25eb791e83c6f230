//! `plimsoll release plan`: what an update would do, from the files of both releases alone.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use clap::Args;
use plimsoll_api::config::{CapabilitiesSpec, ClusterVersionSpec};
use plimsoll_content::Payload;
use plimsoll_content::inclusion::{DEFAULT_FEATURE_SET, DEFAULT_PROFILE};
use plimsoll_content::payload::TemplateContext;
use plimsoll_plan::forecast::{EnabledCapability, Forecast, between};
use plimsoll_plan::mode::Mode;
use plimsoll_plan::target::Target;

use crate::exit;
use crate::render::forecast::{Format, Report};

/// Arguments of `plimsoll release plan`.
#[derive(Debug, Args)]
pub struct PlanArguments {
    /// Directory of the release that the cluster is at; without it, an installation is planned
    #[arg(long, value_name = "DIR")]
    from: Option<PathBuf>,
    /// Directory of the release to go to
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
    /// How the cluster is set up
    #[command(flatten)]
    setup: Setup,
    /// Show every object and field
    #[arg(long)]
    details: bool,
    /// Output format
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
}

/// How a cluster is set up, where there is none to ask.
#[derive(Debug, Clone, Args)]
pub struct Setup {
    /// Cluster profile
    #[arg(long, default_value = DEFAULT_PROFILE)]
    pub profile: String,
    /// Feature set of the cluster
    #[arg(long, default_value = DEFAULT_FEATURE_SET)]
    pub feature_set: String,
    /// Capability set of the cluster, as in the ClusterVersion
    #[arg(long, value_name = "SET", default_value = "")]
    pub baseline: String,
    /// A capability beyond the set; give it once for each
    #[arg(long, value_name = "NAME")]
    pub capability: Vec<String>,
}

impl Setup {
    /// What such a cluster asks for.
    pub fn target(&self) -> Target {
        let capabilities = CapabilitiesSpec {
            baseline_capability_set: self.baseline.clone(),
            additional_enabled_capabilities: self.capability.clone(),
        };
        Target {
            profile: self.profile.clone(),
            feature_set: self.feature_set.clone(),
            spec: ClusterVersionSpec {
                capabilities: Some(capabilities),
                ..ClusterVersionSpec::default()
            },
            enabled: BTreeSet::new(),
        }
    }
}

pub(super) fn run(
    arguments: &PlanArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let target = arguments.setup.target();
    let from = arguments.from.as_deref().map(|path| load(path, &target.profile)).transpose()?;
    let to = load(&arguments.to, &target.profile)?;
    let forecast = forecast(from.as_ref(), &to, &target);
    let report = Report::of(&forecast);
    report.write(arguments.output, arguments.details, out)?;
    let would_stop = !report.in_the_way.is_empty();
    Ok(if would_stop { exit::WOULD_STOP } else { exit::SUCCESS }.into())
}

/// Loads a payload.
///
/// # Errors
///
/// Everything that is wrong with it.
pub fn load(path: &Path, profile: &str) -> Result<Payload, anyhow::Error> {
    let template =
        TemplateContext { release_image: String::new(), cluster_profile: profile.to_owned() };
    plimsoll_source::load(path, &template)
        .with_context(|| format!("failed to load release `{}`", path.display()))
}

/// Forecasts the way from one payload to another on a cluster that is at the first.
fn forecast(from: Option<&Payload>, to: &Payload, target: &Target) -> Forecast {
    let outgoing = from.map(|payload| target.plan(payload, Mode::Updating));
    let before = from.map(|payload| target.capabilities(payload)).unwrap_or_default();
    let next = Target { enabled: before.enabled.clone(), ..target.clone() };
    let mode = if from.is_some() { Mode::Updating } else { Mode::Initializing };
    let mut forecast =
        between(outgoing.as_ref(), Arc::new(next.plan(to, mode)), &to.cluster_kinds());
    if from.is_some() {
        forecast.capabilities = next
            .capabilities(to)
            .enabled
            .difference(&before.enabled)
            .map(|name| EnabledCapability {
                name: name.clone(),
                because: vec!["the capability set, which has it from this release on".to_owned()],
            })
            .collect();
    }
    forecast
}
