//! `plimsoll install-config`: what an installer would say about capabilities, before it runs.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use plimsoll_content::capability::CapabilityRegistry;
use plimsoll_content::diagnostic::FieldProblem;
use plimsoll_content::inclusion::DEFAULT_PROFILE;
use plimsoll_plan::capabilities::install_config::{Assessment, assess};
use serde::Serialize;

use crate::arguments::installation::InstallConfig;
use crate::arguments::registry::RegistryArguments;
use crate::arguments::store;
use crate::exit;
use crate::render::count::counted;
use crate::render::format::Format;

/// What can be done with an install-config.
#[derive(Debug, Subcommand)]
pub enum InstallConfigCommand {
    /// Check the capabilities of an install-config by the installer's rules
    Validate(ValidateArguments),
}

/// Arguments of `plimsoll install-config validate`.
#[derive(Debug, Args)]
pub struct ValidateArguments {
    /// The install-config; `-` reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The release to install, by the directory of its payload or a reference to its image: the
    /// capabilities it declares count, too
    #[arg(long, value_name = "DIR|REFERENCE", value_parser = store::parse)]
    release: Option<store::Location>,
    /// How registries are reached
    #[command(flatten)]
    registry: RegistryArguments,
    /// Cluster profile
    #[arg(long, default_value = DEFAULT_PROFILE)]
    profile: String,
    /// Feature set; without it, the install-config's
    #[arg(long)]
    feature_set: Option<String>,
    /// Output format
    #[arg(long, short, value_name = "FORMAT", default_value_t)]
    output: Format,
}

/// Runs the command.
///
/// # Errors
///
/// When the file or the release cannot be read, or the output cannot be written.
pub fn run(command: InstallConfigCommand, out: &mut dyn Write) -> anyhow::Result<ExitCode> {
    let InstallConfigCommand::Validate(arguments) = command;
    let config = InstallConfig::read(&arguments.file)?;
    let feature_set = arguments.feature_set.as_deref();
    let assessment = match &arguments.release {
        None => assess(&config.value, &CapabilityRegistry::built_in(), &BTreeSet::new()),
        Some(release) => {
            let payload = release.load(&arguments.registry, &arguments.profile, feature_set)?;
            config.assess(&payload, &arguments.profile, feature_set)?
        }
    };
    let report = InstallConfigReport::of(&assessment);
    if !arguments.output.write(&report, out)? {
        write_text(&report, &config.name, out)?;
    }
    Ok(if report.valid { exit::SUCCESS } else { exit::FAILURE }.into())
}

/// What the command says.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct InstallConfigReport<'a> {
    valid: bool,
    errors: &'a [FieldProblem],
    enabled_capabilities: &'a BTreeSet<String>,
    disabled_capabilities: &'a BTreeSet<String>,
}

impl<'a> InstallConfigReport<'a> {
    fn of(assessment: &'a Assessment) -> Self {
        Self {
            valid: assessment.refusals.is_empty(),
            errors: &assessment.refusals,
            enabled_capabilities: &assessment.enabled,
            disabled_capabilities: &assessment.disabled,
        }
    }
}

fn write_text(report: &InstallConfigReport<'_>, name: &str, out: &mut dyn Write) -> io::Result<()> {
    for problem in report.errors {
        writeln!(out, "{problem}")?;
    }
    let list = |names: &BTreeSet<String>| match names.len() {
        0 => "none".to_owned(),
        _ => names.iter().map(String::as_str).collect::<Vec<_>>().join(", "),
    };
    match report.errors.len() {
        0 => writeln!(out, "{name} is valid")?,
        // What the installer refuses enables nothing.
        errors => return writeln!(out, "{name} has {}", counted(errors, "error")),
    }
    writeln!(out, "Enabled:   {}", list(report.enabled_capabilities))?;
    writeln!(out, "Disabled:  {}", list(report.disabled_capabilities))
}
