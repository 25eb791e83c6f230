//! `plimsoll release plan`: what an update would do, from the files of both releases alone.

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use plimsoll_api::config::ClusterVersionSpec;
use plimsoll_content::Payload;
use plimsoll_content::inclusion::{DEFAULT_FEATURE_SET, DEFAULT_PROFILE};
use plimsoll_plan::capabilities;
use plimsoll_plan::forecast::{Forecast, between};
use plimsoll_plan::plan::features::Features;
use plimsoll_plan::plan::mode::Mode;
use plimsoll_plan::update::target::Target;

use crate::arguments::installation::InstallationArguments;
use crate::arguments::store::StoreArguments;
use crate::exit;
use crate::render::forecast::ForecastReport;
use crate::render::format::{Format, FormatParser};

/// Arguments of `plimsoll release plan`.
#[derive(Debug, Args)]
pub struct PlanArguments {
    /// The release that the cluster is at; without it, an installation is planned
    #[arg(long, value_name = "VERSION|DIR|REFERENCE")]
    from: Option<String>,
    /// The release to update to: a version of the store, the directory of
    /// a payload, or a reference to an image
    #[arg(long, value_name = "VERSION|DIR|REFERENCE")]
    to: String,
    /// Where versions are looked for
    #[command(flatten)]
    store: StoreArguments,
    /// How the cluster is set up
    #[command(flatten)]
    setup: Setup,
    /// Plan a forced update, which accepts the risk of failed preconditions
    #[arg(long)]
    force: bool,
    /// Show every object and field
    #[arg(long)]
    details: bool,
    /// Output format
    #[arg(long, short, value_name = "FORMAT", value_parser = FormatParser::REPORTS, default_value_t)]
    output: Format,
}

/// How a cluster is set up, where there is none to ask.
#[derive(Debug, Clone, Args)]
pub struct Setup {
    /// Cluster profile
    #[arg(long, default_value = DEFAULT_PROFILE)]
    pub profile: String,
    /// Feature set of the cluster; without it, the install-config's or Default
    #[arg(long)]
    pub feature_set: Option<String>,
    /// What the cluster requests
    #[command(flatten)]
    pub installation: InstallationArguments,
}

impl Setup {
    /// What such a cluster requests of a release.
    fn target(&self, payload: &Payload) -> anyhow::Result<Target> {
        let Self { profile, feature_set, installation } = self;
        let requested = installation.of(payload, profile, feature_set.as_deref())?;
        let feature_set = requested.feature_set.as_deref().unwrap_or(DEFAULT_FEATURE_SET);
        Ok(Target {
            profile: profile.clone(),
            features: Features::of_set(feature_set),
            spec: ClusterVersionSpec {
                capabilities: requested.capabilities,
                ..ClusterVersionSpec::default()
            },
            ..Target::default()
        })
    }
}

pub(super) fn run(
    arguments: &PlanArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let setup = &arguments.setup;
    let load =
        |name: &str| arguments.store.load(name, &setup.profile, setup.feature_set.as_deref());
    let from = arguments.from.as_deref().map(load).transpose()?;
    let to = load(&arguments.to)?;
    let target = setup.target(&to)?;
    let forecast = forecast(from.as_ref(), &to, &target);
    let forecast = if arguments.force { forecast.forced() } else { forecast };
    let report = ForecastReport::of(&forecast);
    report.write(&arguments.output, arguments.details, out)?;
    let would_stop = !report.blockers.is_empty();
    Ok(if would_stop { exit::WOULD_STOP } else { exit::SUCCESS }.into())
}

/// Forecasts the way from one payload to another on a cluster that is at the first.
fn forecast(from: Option<&Payload>, to: &Payload, target: &Target) -> Forecast {
    let Some(from) = from else {
        let plan = Arc::new(target.plan(to, Mode::Initializing));
        return between(None, plan, &to.cluster_kinds());
    };
    let enabled = target.capabilities(from).enabled;
    let context = target.features.context(from, &target.profile);
    let applied = capabilities::applied(&from.manifests, &context, &enabled);
    let before = Target { enabled, ..target.clone() };
    let (next, capabilities) = before.towards(to, &applied);
    let outgoing = before.plan(from, Mode::Updating);
    let plan = Arc::new(next.plan(to, Mode::Updating));
    let forecast = Forecast { capabilities, ..between(Some(&outgoing), plan, &to.cluster_kinds()) };
    let is_declared = to.release.previous.contains(&from.release.version)
        || from.release.next.contains(&to.release.version);
    if is_declared { forecast.declared() } else { forecast }
}
