//! `plimsoll release plan`: what an update would do, from the files of both releases alone.

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use plimsoll_api::config::{CapabilitiesSpec, ClusterVersionSpec};
use plimsoll_content::Payload;
use plimsoll_content::inclusion::{DEFAULT_FEATURE_SET, DEFAULT_PROFILE};
use plimsoll_plan::capabilities;
use plimsoll_plan::forecast::{Forecast, between};
use plimsoll_plan::plan::features::Features;
use plimsoll_plan::plan::mode::Mode;
use plimsoll_plan::update::target::Target;

use crate::arguments::capability::{check_names, set_named};
use crate::arguments::store::StoreArguments;
use crate::exit;
use crate::render::forecast::{ForecastReport, PlanFormat};

/// Arguments of `plimsoll release plan`.
#[derive(Debug, Args)]
pub struct PlanArguments {
    /// The release that the cluster is at; without it, an installation is planned
    #[arg(long, value_name = "VERSION|DIR")]
    from: Option<String>,
    /// The release to update to: a version of the store, or the directory of a payload
    #[arg(long, value_name = "VERSION|DIR")]
    to: String,
    /// Where versions are looked for
    #[command(flatten)]
    store: StoreArguments,
    /// How the cluster is set up
    #[command(flatten)]
    setup: Setup,
    /// Show every object and field
    #[arg(long)]
    details: bool,
    /// Output format
    #[arg(long, short, value_enum, default_value_t)]
    output: PlanFormat,
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
    /// Checks that a release has the capabilities and the set that are named.
    ///
    /// # Errors
    ///
    /// When it has not; the message says which may be meant.
    fn check(&self, payload: &Payload) -> anyhow::Result<()> {
        if !self.baseline.is_empty() {
            set_named(&payload.capabilities, "--baseline", &self.baseline)?;
        }
        check_names(&payload.capabilities, "--capability", &self.capability)
    }

    /// What such a cluster asks for.
    pub fn target(&self) -> Target {
        let capabilities = CapabilitiesSpec {
            baseline_capability_set: self.baseline.clone(),
            additional_enabled_capabilities: self.capability.clone(),
        };
        Target {
            profile: self.profile.clone(),
            features: Features::of_set(&self.feature_set),
            spec: ClusterVersionSpec {
                capabilities: Some(capabilities),
                ..ClusterVersionSpec::default()
            },
            ..Target::default()
        }
    }
}

pub(super) fn run(
    arguments: &PlanArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let target = arguments.setup.target();
    let feature_set = Some(arguments.setup.feature_set.as_str());
    let load = |name: &str| arguments.store.load(name, &target.profile, feature_set);
    let from = arguments.from.as_deref().map(load).transpose()?;
    let to = load(&arguments.to)?;
    arguments.setup.check(&to)?;
    let forecast = forecast(from.as_ref(), &to, &target);
    let report = ForecastReport::of(&forecast);
    report.write(arguments.output, arguments.details, out)?;
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
    Forecast { capabilities, ..between(Some(&outgoing), plan, &to.cluster_kinds()) }
}
