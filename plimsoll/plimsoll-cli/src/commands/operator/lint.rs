//! `plimsoll operator lint`: checking a directory of Operators before it is applied (OPR-19).

mod configuration;
mod definitions;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use kube::Client;
use plimsoll_content::diagnostic::Diagnostic;
use plimsoll_content::expressions::Cel;
use plimsoll_operators::OperatorInputs;
use plimsoll_operators::lint::{LintInputs, apply_edits, configured, lint, moves};
use plimsoll_operators::loadout::Loadout;
use plimsoll_operators::lock::{LockedOperators, OperatorLock};
use plimsoll_source::whole_file;

use super::loadout::{LoadoutState, StateArguments, read_revision};
use super::lock;
use super::selection::{INPUT_NAME, is_input, read_files_or_input};
use crate::exit::Refusal;
use crate::progress::ProgressLine;
use crate::render::diagnostics::{self, Cases, Checked};
use crate::render::format::{Format, FormatParser};

/// Arguments of `plimsoll operator lint`.
#[derive(Debug, Args)]
pub struct LintArguments {
    /// Directory of manifests, or a single file; `-` for standard input
    directory: PathBuf,
    /// Revision of Git to compare with, such as `origin/main`: what can be updated, what was removed
    #[arg(long, value_name = "GITREF")]
    base: Option<String>,
    /// Change the files where there is one answer, and report the rest
    #[arg(long)]
    fix: bool,
    /// Refuse if operators.lock is missing or out of date
    #[arg(long, conflicts_with = "fix")]
    locked: bool,
    #[command(flatten)]
    pub(super) state: StateArguments,
    /// Output format
    #[arg(long, short, value_name = "FORMAT", value_parser = FormatParser::FINDINGS, default_value_t)]
    output: Format,
}

/// Runs the command. Errors make it fail, warnings alone do not.
///
/// # Errors
///
/// When files, catalogs or the cluster cannot be read, or a file cannot be written.
pub async fn run(
    client: Option<&Client>,
    arguments: &LintArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let is_input = is_input(&arguments.directory);
    if is_input && (arguments.fix || arguments.locked || arguments.base.is_some()) {
        let message = "--fix, --locked and --base are for files: name them instead of `-`";
        return Err(Refusal::usage(message.to_owned()).into());
    }
    let loadout = Loadout::read(read_files_or_input(&arguments.directory)?);
    let base = arguments.base.as_deref();
    let base = base.map(|revision| read_revision(&arguments.directory, revision)).transpose()?;
    let base = base.map(Loadout::read);
    let declared = loadout.operators.iter().chain(base.iter().flat_map(|it| &it.operators));
    let packages: Vec<String> = declared.map(|it| it.name.clone()).collect();
    let state = arguments.state.read(client, &packages).await?;
    state.require_readable(state.all_names(&loadout))?;
    if arguments.output == Format::Text || arguments.output.is_wide() {
        anstream::eprintln!("{}", state.header(arguments.output.is_wide()));
    }
    state.print_notes();
    let mut lock = None;
    if arguments.locked {
        lock::require(&arguments.directory, &state, &loadout)?;
        // What the base declares was applied before.
        lock = lock::read(&arguments.directory)?.filter(|_| base.is_none());
    }
    let path = match is_input {
        true => INPUT_NAME.to_owned(),
        false => arguments.directory.display().to_string(),
    };
    let mut files = &loadout;
    let fixed;
    if arguments.fix {
        let findings = found(&path, &loadout, base.as_ref(), &state, None, false);
        fixed = apply_edits(&loadout, &findings);
        for (before, after) in loadout.files.iter().zip(&fixed.files) {
            if before.text != after.text {
                whole_file::write(Path::new(&after.path), after.text.as_bytes())
                    .with_context(|| format!("failed to write `{}`", after.path))?;
                anstream::eprintln!("fixed {}", after.path);
            }
        }
        files = &fixed;
    }
    let findings = found(&path, files, base.as_ref(), &state, lock.as_ref(), true);
    let files: Vec<String> = files.files.iter().map(|it| it.path.clone()).collect();
    let (command, directory) = ("plimsoll operator lint", Path::new(""));
    let checked = Checked { command, directory, cases: Cases::Files(&files) };
    diagnostics::write(&checked, &findings, &arguments.output, out)
}

/// Returns the findings about Operators, which have what a lock has for installed; those that need the content of
/// bundles only if it is read.
fn found(
    path: &str,
    loadout: &Loadout,
    base: Option<&Loadout>,
    state: &LoadoutState,
    lock: Option<&OperatorLock>,
    reads_bundles: bool,
) -> Vec<Diagnostic> {
    let _progress = ProgressLine::begin("checking");
    let base_names = base.into_iter().flat_map(|it| &it.operators).map(|it| it.name.clone());
    let parts = state.parts(state.all_names(loadout).chain(base_names));
    let (mut current, unavailable) = (state.current(loadout, &parts), state.unavailable());
    if let Some(lock) = lock {
        let operators = state.operators(loadout, &parts);
        let (facts, unavailable) = (&state.facts, &unavailable);
        let inputs =
            OperatorInputs { operators: &operators, unavailable, facts, expressions: &Cel };
        let LockedOperators { operators, locked } = lock.filled(inputs, &parts);
        current.extend(operators.into_iter().filter(|(name, _)| locked.contains(name)));
    }
    let inputs = LintInputs {
        loadout,
        path,
        base,
        current: &current,
        catalogs: &parts,
        unavailable: &unavailable,
        unknown: &state.unknown(loadout, &parts),
        facts: &state.facts,
        unsafe_definitions: &BTreeMap::new(),
        refused_fields: &BTreeMap::new(),
        expressions: &Cel,
    };
    if !reads_bundles {
        return lint(inputs);
    }
    let unsafe_definitions = definitions::problems(state, &moves(inputs));
    let refused_fields = configuration::problems(state, &configured(inputs));
    lint(LintInputs {
        unsafe_definitions: &unsafe_definitions,
        refused_fields: &refused_fields,
        ..inputs
    })
}

#[cfg(test)]
mod tests;
