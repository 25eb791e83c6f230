//! `plimsoll cluster-version`: the ClusterVersion of a new cluster.

use std::io::Write;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use plimsoll_api::config::ClusterVersionSpec;
use plimsoll_content::inclusion::DEFAULT_PROFILE;
use plimsoll_controller::new_cluster_version;

use crate::arguments::installation::InstallationArguments;
use crate::arguments::registry::RegistryArguments;
use crate::arguments::store;
use crate::exit;
use crate::process::new_cluster;
use crate::render::format::Format;

/// What can be done with a ClusterVersion that does not exist yet.
#[derive(Debug, Subcommand)]
pub enum ClusterVersionCommand {
    /// Print the ClusterVersion that `plimsoll run --create` creates
    Render(RenderArguments),
}

/// Arguments of `plimsoll cluster-version render`.
#[derive(Debug, Args)]
pub struct RenderArguments {
    /// The release to install: the directory of its payload, or a reference to its image
    #[arg(long, value_name = "DIR|REFERENCE", value_parser = store::parse)]
    release: store::Location,
    /// How registries are reached
    #[command(flatten)]
    registry: RegistryArguments,
    /// What the cluster requests
    #[command(flatten)]
    installation: InstallationArguments,
    /// Cluster profile
    #[arg(long, default_value = DEFAULT_PROFILE)]
    profile: String,
    /// Feature set of the cluster; without it, the install-config's
    #[arg(long)]
    feature_set: Option<String>,
    /// Output format
    #[arg(long, short, value_name = "FORMAT", default_value_t = Format::Yaml)]
    output: Format,
}

/// Runs the command.
///
/// # Errors
///
/// When the release or the install-config is invalid, the release does not have what is chosen, or
/// the output cannot be written.
pub fn run(command: ClusterVersionCommand, out: &mut dyn Write) -> anyhow::Result<ExitCode> {
    let ClusterVersionCommand::Render(arguments) = command;
    let RenderArguments { release, registry, installation, profile, feature_set, output } =
        arguments;
    let feature_set = feature_set.as_deref();
    let payload = release.load(&registry, &profile, feature_set)?;
    let capabilities = installation.of(&payload, &profile, feature_set)?.capabilities;
    let object = new_cluster_version(&ClusterVersionSpec { capabilities, ..new_cluster() }, None);
    // There is no form for people but the manifest.
    if !output.write(&object, out)? {
        Format::Yaml.write(&object, out)?;
    }
    Ok(exit::SUCCESS.into())
}
