//! `plimsoll release`: make release payloads and inspect them, without a cluster.

mod build;
mod copy;
mod diff;
mod extract;
mod images;
mod info;
mod lint;
mod list;
pub(crate) mod loaded;
mod new;
mod plan;
mod tree;

use std::io::Write;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use plimsoll_content::inclusion::{DEFAULT_FEATURE_SET, DEFAULT_PROFILE};

pub use plan::{PlanArguments, Setup};

use crate::arguments::registry::RegistryArguments;
use crate::arguments::store::{self, Location};
use crate::render::format::{Format, FormatParser};

/// What can be done with releases, and asked about payloads.
#[derive(Debug, Subcommand)]
pub enum ReleaseCommand {
    /// Make the source of a release: a directory to start from
    New(new::NewArguments),
    /// Build the payload of a release from its source
    ///
    /// A source has a file `release.yaml`, and a folder for each component with plain YAML, a
    /// kustomization or a Helm chart. The same source gives the same bytes.
    Build(build::BuildArguments),
    /// Show the contents of a payload, and why each document is included or excluded
    Info(InfoArguments),
    /// Report all problems of a payload
    Lint(LintArguments),
    /// Show what an update would change, from the files of both releases alone
    Plan(PlanArguments),
    /// Show the manifests that differ between two releases
    Diff(diff::DiffArguments),
    /// Show the run levels, components and files of a release
    Tree(tree::TreeArguments),
    /// List the images of a release, and what uses them
    Images(images::ImagesArguments),
    /// Print the pull specification of an image of a release
    ImageFor(images::ImageForArguments),
    /// Print a file of a payload, or write all of them to a directory
    Extract(extract::ExtractArguments),
    /// Push a release to a registry, as an image
    ///
    /// Of a payload or a source an image is made, with the files in `release-manifests`; the same
    /// files give the same digest. The images of a layout are pushed as they are.
    Push(copy::PushArguments),
    /// Pull a release from a registry, to a payload directory or an OCI image layout
    Pull(copy::PullArguments),
    /// Copy releases between registries and OCI image layouts, as they are
    ///
    /// Digests stay the same. A repository without tag and digest means all its tags.
    Mirror(copy::MirrorArguments),
    /// List the releases of a repository, an OCI image layout, or a directory of payloads
    List(list::ListArguments),
}

/// Arguments of `plimsoll release info`.
#[derive(Debug, Args)]
pub struct InfoArguments {
    /// The release: the directory of its payload, or a reference to its image
    #[arg(value_name = "DIR|REFERENCE", value_parser = store::parse)]
    release: Location,
    /// How registries are reached
    #[command(flatten)]
    registry: RegistryArguments,
    /// Cluster profile to decide for
    #[arg(long, default_value = DEFAULT_PROFILE)]
    profile: String,
    /// Feature set to decide for
    #[arg(long, default_value = DEFAULT_FEATURE_SET)]
    feature_set: String,
    /// Output format
    #[arg(long, short, value_name = "FORMAT", default_value_t)]
    output: Format,
}

/// Arguments of `plimsoll release lint`.
#[derive(Debug, Args)]
pub struct LintArguments {
    /// The release: the directory of its payload or its source, or a reference to its image
    #[arg(value_name = "DIR|REFERENCE", value_parser = store::parse)]
    release: Location,
    /// The release that clusters come from, to report changes that API servers refuse
    #[arg(long, value_name = "DIR|REFERENCE", value_parser = store::parse)]
    from: Option<Location>,
    /// How registries are reached
    #[command(flatten)]
    registry: RegistryArguments,
    /// Output format
    #[arg(long, short, value_name = "FORMAT", value_parser = FormatParser::FINDINGS, default_value_t)]
    output: Format,
}

/// Runs the command.
///
/// # Errors
///
/// When the payload or its source cannot be loaded, or the output cannot be written.
pub fn run(command: ReleaseCommand, out: &mut dyn Write) -> Result<ExitCode, anyhow::Error> {
    match command {
        ReleaseCommand::New(arguments) => new::run(&arguments, out),
        ReleaseCommand::Build(arguments) => build::run(&arguments, out),
        ReleaseCommand::Info(arguments) => info::run(&arguments, out),
        ReleaseCommand::Lint(arguments) => lint::run(&arguments, out),
        ReleaseCommand::Plan(arguments) => plan::run(&arguments, out),
        ReleaseCommand::Diff(arguments) => diff::run(&arguments, out),
        ReleaseCommand::Tree(arguments) => tree::run(&arguments, out),
        ReleaseCommand::Images(arguments) => images::run(&arguments, out),
        ReleaseCommand::ImageFor(arguments) => images::image_for(&arguments, out),
        ReleaseCommand::Extract(arguments) => extract::run(&arguments, out),
        ReleaseCommand::Push(arguments) => copy::push(&arguments, out),
        ReleaseCommand::Pull(arguments) => copy::pull(&arguments, out),
        ReleaseCommand::Mirror(arguments) => copy::mirror(&arguments, out),
        ReleaseCommand::List(arguments) => list::run(&arguments, out),
    }
}

#[cfg(test)]
mod tests;
