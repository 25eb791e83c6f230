//! `plimsoll bundle`: inspect the directory of a bundle.

mod check_upgrade;
mod render;
pub(crate) mod rendered;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, anyhow, ensure};
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use plimsoll_bundle::rendering_defects;
use plimsoll_content::bundle::{BundleSuite, check_suites};
use plimsoll_content::catalog::DefectCode;
use plimsoll_content::diagnostic::Severity;
use plimsoll_resolve::version::parse_tolerant;
use plimsoll_source::catalog::{bundle, bundle_files, is_bundles};
use semver::Version;

use check_upgrade::CheckUpgradeArguments;

use crate::render::diagnostics::{self, Cases, Checked};
use crate::render::format::{Format, FormatParser};

/// What can be asked about a bundle.
#[derive(Debug, Subcommand)]
pub enum BundleCommand {
    /// Report all problems of a bundle directory
    ///
    /// Suites check more than what a bundle needs to be installed: what is recommended, and what the
    /// catalogs that it is published in demand.
    Validate(ValidateArguments),
    /// Check whether a CustomResourceDefinition may replace another one
    ///
    /// Problems are changes that existing objects may not survive. What OLM v1 would say is shown
    /// where it differs.
    CheckUpgrade(CheckUpgradeArguments),
    /// Print the objects that install a bundle, in the order they are applied
    ///
    /// What keeps the bundle from being installed is printed with file and line.
    Render(render::RenderArguments),
}

/// Arguments of `plimsoll bundle validate`.
#[derive(Debug, Args)]
pub struct ValidateArguments {
    /// Directory with `manifests` and `metadata`
    directory: PathBuf,
    /// Suite of checks besides those of every bundle, may be repeated
    #[arg(
        long = "suite",
        value_name = "SUITE",
        value_parser = PossibleValuesParser::new(BundleSuite::ALL.map(BundleSuite::as_str))
    )]
    suites: Vec<String>,
    /// Version of Kubernetes that the bundle is meant for, for the suite removed-apis; without it, that
    /// of `spec.minKubeVersion`
    #[arg(long, value_name = "VERSION", value_parser = kubernetes_version)]
    kubernetes_version: Option<Version>,
    /// Output format
    #[arg(long, short, value_name = "FORMAT", value_parser = FormatParser::FINDINGS, default_value_t)]
    output: Format,
}

fn kubernetes_version(text: &str) -> Result<Version, anyhow::Error> {
    parse_tolerant(text.strip_prefix('v').unwrap_or(text))
        .map_err(|_| anyhow!("not a version such as 1.37"))
}

/// Runs the command.
///
/// # Errors
///
/// When what the command is given cannot be read, when a bundle cannot be rendered, or when the output
/// cannot be written.
pub fn run(command: BundleCommand, out: &mut dyn Write) -> Result<ExitCode, anyhow::Error> {
    match command {
        BundleCommand::Validate(arguments) => validate(&arguments, out),
        BundleCommand::CheckUpgrade(arguments) => check_upgrade::run(&arguments, out),
        BundleCommand::Render(arguments) => render::run(&arguments, out),
    }
}

fn validate(arguments: &ValidateArguments, out: &mut dyn Write) -> Result<ExitCode, anyhow::Error> {
    let path = &arguments.directory;
    let context = || format!("failed to read bundle `{}`", path.display());
    ensure!(
        is_bundles(path).with_context(context)?,
        "`{}` is no bundle: it needs the directories manifests and metadata",
        path.display()
    );
    let converted = bundle(path).with_context(context)?;
    let mut defects = converted.all_defects();
    // Where a bundle's image lies is not known before it is published, and what it replaces is
    // somewhere else.
    defects.retain(|defect| defect.code != DefectCode::NoImage);
    let suites = BundleSuite::ALL.into_iter();
    let suites = suites.filter(|suite| arguments.suites.iter().any(|it| it == suite.as_str()));
    let (files, _) = bundle_files(path).with_context(context)?;
    let is_one = files.iter().any(|file| file.path.starts_with("manifests/"));
    // Most of what keeps a bundle from being rendered was found already, in other words.
    if is_one && !defects.iter().any(|it| it.severity == Severity::Error) {
        defects.extend(rendering_defects(&files));
    }
    defects.extend(check_suites(&files, &suites.collect(), arguments.kubernetes_version.as_ref()));
    defects.sort();
    defects.dedup();
    let files: Vec<String> = files.into_iter().map(|it| it.path).collect();
    let command = "plimsoll bundle validate";
    let checked = Checked { command, directory: path, cases: Cases::Files(&files) };
    diagnostics::write(&checked, &defects, &arguments.output, out)
}

#[cfg(test)]
mod tests;
