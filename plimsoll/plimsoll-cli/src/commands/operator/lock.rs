//! `plimsoll operator lock`, and `--locked`: the exact bundles that a directory of Operators
//! resolves to.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use kube::Client;
use plimsoll_content::expressions::Cel;
use plimsoll_operators::loadout::{Loadout, converge};
use plimsoll_operators::lock::{LockedOperators, OperatorLock};
use plimsoll_operators::{OperatorInputs, RequestedOperator, joined};
use plimsoll_resolve::CatalogPart;
use plimsoll_source::bounded::{WRITTEN_SIZE_MAX, read_text};
use plimsoll_source::whole_file;

use super::loadout::{LoadoutState, StateArguments, read_files};
use crate::exit::{self, Refusal};
use crate::progress::ProgressLine;

/// Name of the lock file, which is in the directory of the Operators.
const LOCK_FILE: &str = "operators.lock";

/// Arguments of `plimsoll operator lock`.
#[derive(Debug, Args)]
pub struct LockArguments {
    /// Directory of Operators
    directory: PathBuf,
    /// Print what would be written, and write nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    pub(super) state: StateArguments,
}

/// Runs the command.
///
/// # Errors
///
/// When files, catalogs or the cluster cannot be read, an Operator of the files comes to no bundle, or the lock file
/// cannot be written.
pub(super) async fn run(
    client: Option<&Client>,
    arguments: &LockArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let LockArguments { directory, dry_run, state } = arguments;
    let loadout = Loadout::read_sound(read_files(directory)?).map_err(|error| anyhow!(error))?;
    if loadout.operators.is_empty() {
        bail!("`{}` has no Operators", directory.display());
    }
    let packages: Vec<String> = loadout.operators.iter().map(|it| it.name.clone()).collect();
    let state = state.read(client, &packages).await?;
    state.require_readable(state.all_names(&loadout))?;
    state.announce(false);
    let lock = resolved(&state, &loadout, None)?.complete(directory)?;
    print_unlocked(&lock);
    if *dry_run {
        out.write_all(lock.text().as_bytes())?;
    } else {
        write(directory, &lock, out)?;
    }
    Ok(exit::SUCCESS.into())
}

/// Reads the lock file of a directory; `None` if it has none.
///
/// # Errors
///
/// When the file cannot be read.
pub(super) fn read(directory: &Path) -> Result<Option<OperatorLock>, anyhow::Error> {
    let path = path(directory);
    if !path.exists() {
        return Ok(None);
    }
    let context = || format!("failed to read `{}`", path.display());
    let text = read_text(&path, WRITTEN_SIZE_MAX).with_context(context)?;
    OperatorLock::read(&text).map(Some).map_err(|error| anyhow!(error)).with_context(context)
}

/// Returns Operators that have what the lock file of a directory has for installed, where nothing else is known to
/// be; without a directory or its lock file, as they are.
///
/// # Errors
///
/// When the file cannot be read.
pub(super) fn filled(
    directory: Option<&Path>,
    state: &LoadoutState,
    operators: BTreeMap<String, RequestedOperator>,
    parts: &[CatalogPart],
) -> Result<LockedOperators, anyhow::Error> {
    match directory.map(read).transpose()?.flatten() {
        Some(lock) => Ok(lock.filled(inputs(state, &operators, &state.unavailable()), parts)),
        None => Ok(LockedOperators::unlocked(operators)),
    }
}

/// Returns the inputs of decisions on Operators.
fn inputs<'a>(
    state: &'a LoadoutState,
    operators: &'a BTreeMap<String, RequestedOperator>,
    unavailable: &'a BTreeMap<String, String>,
) -> OperatorInputs<'a> {
    OperatorInputs { operators, unavailable, facts: &state.facts, expressions: &Cel }
}

/// Fails unless a directory has a lock file with exactly the bundles that its Operators come to from
/// these now.
///
/// # Errors
///
/// When the lock file is missing or out of date, or cannot be read.
pub(super) fn require(
    directory: &Path,
    state: &LoadoutState,
    loadout: &Loadout,
) -> Result<(), anyhow::Error> {
    let path = path(directory);
    let message = match read(directory)? {
        None => {
            format!("--locked: there is no `{}`: write it with `operator lock`", path.display())
        }
        Some(lock) => {
            let Resolved { lock: now, refused } = resolved(state, loadout, Some(directory))?;
            let (mut differences, uncompared) = (lock.differences(&now), lock.uncompared(&now));
            differences.extend(refused);
            match (differences.is_empty(), uncompared.is_empty()) {
                (true, true) => return Ok(()),
                (true, false) => format!(
                    "--locked: `{}` cannot be compared: {}",
                    path.display(),
                    uncompared.join("; ")
                ),
                (false, _) => {
                    differences.push("write it anew with `operator lock`".to_owned());
                    let differences = joined(&differences);
                    format!("--locked: `{}` is out of date: {differences}", path.display())
                }
            }
        }
    };
    Err(Refusal { message, exit: exit::FAILURE }.into())
}

/// Updates the lock file of a directory that has one.
///
/// # Errors
///
/// When files cannot be read, an Operator of them comes to no bundle, or the lock file cannot be written.
pub(super) fn refresh(
    directory: &Path,
    state: &LoadoutState,
    out: &mut dyn Write,
) -> Result<(), anyhow::Error> {
    if !path(directory).exists() {
        return Ok(());
    }
    let loadout = Loadout::read(read_files(directory)?);
    let lock = resolved(state, &loadout, Some(directory))?.complete(directory)?;
    print_unlocked(&lock);
    write(directory, &lock, out)
}

/// Prints the bundles whose content is not locked, to standard error.
fn print_unlocked(lock: &OperatorLock) {
    lock.unlocked().iter().for_each(|note| anstream::eprintln!("note: {note}"));
}

fn path(directory: &Path) -> PathBuf {
    match directory.is_dir() {
        true => directory.join(LOCK_FILE),
        false => directory.with_file_name(LOCK_FILE),
    }
}

fn write(directory: &Path, lock: &OperatorLock, out: &mut dyn Write) -> Result<(), anyhow::Error> {
    let (path, text) = (path(directory), lock.text());
    if read_text(&path, WRITTEN_SIZE_MAX).is_ok_and(|it| it == text) {
        return Ok(());
    }
    whole_file::write(&path, text.as_bytes())
        .with_context(|| format!("failed to write `{}`", path.display()))?;
    writeln!(out, "{} written", path.display())?;
    Ok(())
}

/// What Operators come to.
struct Resolved {
    /// Their bundles.
    lock: OperatorLock,
    /// Those of the files that come to no bundle, a sentence each.
    refused: Vec<String>,
}

impl Resolved {
    /// Returns the lock of a directory.
    ///
    /// # Errors
    ///
    /// When an Operator of the files comes to no bundle.
    fn complete(self, directory: &Path) -> Result<OperatorLock, Refusal> {
        let Self { lock, refused } = self;
        if refused.is_empty() {
            return Ok(lock);
        }
        let path = path(directory);
        let message = format!("`{}` is not written: {}", path.display(), joined(&refused));
        Err(Refusal { message, exit: exit::FAILURE })
    }
}

/// Returns the bundles that are installed in the end, if nothing else changes; where nothing is known to be
/// installed, they follow from what the lock file of a directory has, or from nothing without one.
///
/// # Errors
///
/// When the content of a bundle cannot be read.
fn resolved(
    state: &LoadoutState,
    loadout: &Loadout,
    directory: Option<&Path>,
) -> Result<Resolved, anyhow::Error> {
    let _progress = ProgressLine::begin("resolving");
    let parts = state.parts(state.all_names(loadout));
    let operators = state.operators(loadout, &parts);
    let LockedOperators { operators, locked: _ } = filled(directory, state, operators, &parts)?;
    let unavailable = state.unavailable();
    let inputs = inputs(state, &operators, &unavailable);
    let converged = converge(inputs, &parts);
    let mut contents = BTreeMap::new();
    for (name, operator) in &converged.operators {
        if let Some(installed) = &operator.installed {
            contents.insert(name.clone(), state.content(name, &installed.reference)?);
        }
    }
    let unknown = state.unknown(loadout, &parts);
    let refused = converged.refused().filter(|(name, _)| loadout.operator(name).is_some());
    let refused = refused.map(|(name, block)| {
        format!("{name} comes to no bundle: {}", block.explained(name, &unknown))
    });
    let mut refused: Vec<String> = refused.collect();
    // What only a cluster keeps does not follow from the files.
    let kept = converged.without_source(inputs, &parts).into_iter();
    let kept = kept.filter(|(name, _)| loadout.operator(name).is_some());
    refused.extend(kept.map(|(name, block)| {
        format!("{name} comes to no bundle where none is installed: {}", block.message)
    }));
    Ok(Resolved { lock: OperatorLock::new(&converged.operators, &contents, &parts), refused })
}

#[cfg(test)]
mod tests;
