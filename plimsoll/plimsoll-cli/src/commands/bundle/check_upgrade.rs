//! `plimsoll bundle check-upgrade`: whether a definition may replace another one.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use plimsoll_bundle::crd_safety::{UpgradeVerdict, check};
use plimsoll_content::yaml;
use plimsoll_resolve::printable::on_one_line;
use plimsoll_source::bounded::{WRITTEN_SIZE_MAX, read_text};
use serde_json::Value;

use crate::exit;
use crate::render::count::counted;
use crate::render::format::Format;

/// Arguments of `plimsoll bundle check-upgrade`.
#[derive(Debug, Args)]
pub struct CheckUpgradeArguments {
    /// The definition as the cluster has it, in YAML or JSON
    ///
    /// Its `status.storedVersions` says in which versions objects are stored.
    #[arg(value_name = "OLD-CRD")]
    old: PathBuf,
    /// The definition that would replace it
    #[arg(value_name = "NEW-CRD")]
    new: PathBuf,
    /// Output format
    #[arg(long, short, value_name = "FORMAT", default_value_t)]
    output: Format,
}

/// Runs the command.
///
/// # Errors
///
/// When a file cannot be read, or they are not two states of one definition.
pub(super) fn run(
    arguments: &CheckUpgradeArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let (old, new) = (read(&arguments.old)?, read(&arguments.new)?);
    let verdict = check(&old, &new).with_context(|| {
        let (old, new) = (arguments.old.display(), arguments.new.display());
        format!("`{old}` and `{new}` cannot be compared")
    })?;
    if !arguments.output.write(&verdict, out)? {
        text(&verdict, out)?;
    }
    Ok(if verdict.allowed { exit::SUCCESS } else { exit::FAILURE }.into())
}

fn read(path: &Path) -> Result<Value, anyhow::Error> {
    let context = || format!("failed to read definition `{}`", path.display());
    let text = read_text(path, WRITTEN_SIZE_MAX).with_context(context)?;
    yaml::read(&text).with_context(context)
}

fn text(verdict: &UpgradeVerdict, out: &mut dyn Write) -> Result<(), anyhow::Error> {
    let place = |version: &Option<String>, property: &Option<String>| -> String {
        [version, property].into_iter().flatten().map(|part| format!("{part}: ")).collect()
    };
    for problem in &verdict.problems {
        let place = place(&problem.version, &problem.property);
        let line = format!("error [{}]: {place}{}", problem.rule.as_str(), problem.message);
        writeln!(out, "{}", on_one_line(&line))?;
    }
    for difference in &verdict.differences {
        let place = place(&difference.version, &difference.property);
        let (rule, upstream) = (difference.rule.as_str(), difference.upstream);
        let line = format!("note [{rule}]: {place}OLM v1 {upstream}, but {}", difference.reason);
        writeln!(out, "{}", on_one_line(&line))?;
    }
    let verdict_text = if verdict.allowed { "allowed" } else { "refused" };
    let problems = counted(verdict.problems.len(), "problem");
    writeln!(out, "{verdict_text}: {problems}; OLM v1 {}", verdict.upstream)?;
    Ok(())
}
