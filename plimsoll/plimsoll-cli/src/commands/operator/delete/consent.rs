//! The questions before a deletion.

use std::collections::BTreeSet;
use std::io::Write;

use plimsoll_operators::deletion_plan::depend;

use super::Deletion;
use crate::prompt::{DefaultAnswer, Prompter};

/// The decision of the user about a plan that was shown.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Consent {
    /// These Operators are deleted.
    Delete(BTreeSet<String>),
    /// The user declined.
    Declined,
    /// The deletion is refused; the text says why.
    Refused(String),
}

/// Asks the user to agree to the deletion of each Operator that others depend on.
pub(super) async fn ask_for_dependants(
    deletion: &mut Deletion<'_>,
    names: BTreeSet<String>,
    cascade: bool,
    prompter: &mut Prompter,
    out: &mut dyn Write,
) -> Result<Consent, anyhow::Error> {
    let plan = deletion.plan(&names, cascade).await?;
    for it in &plan.delete {
        let dependants = plan.dependants_of(&it.name);
        if dependants.is_empty() {
            continue;
        }
        let (name, depend) = (&it.name, depend(&dependants));
        let question = format!(
            "WARNING: deleting {name} will lead to an inconsistent state: {depend} on {name}. \
             Would you like to continue?"
        );
        if !prompter.confirm(&question, DefaultAnswer::No, out)? {
            return Ok(Consent::Declined);
        }
    }
    Ok(Consent::Delete(names))
}

/// Refuses to delete Operators that others depend on, and asks the user about operands and about
/// each orphan.
pub(super) async fn ask_safely(
    deletion: &mut Deletion<'_>,
    mut names: BTreeSet<String>,
    cascade: bool,
    prompter: &mut Prompter,
    out: &mut dyn Write,
) -> Result<Consent, anyhow::Error> {
    let plan = deletion.plan(&names, cascade).await?;
    for it in &plan.delete {
        let dependants = plan.dependants_of(&it.name);
        if !dependants.is_empty() {
            let (name, depend) = (&it.name, depend(&dependants));
            return Ok(Consent::Refused(format!("could not delete {name}: {depend} on {name}")));
        }
    }
    for it in &plan.delete {
        if deletion.has_workloads(&it.name) {
            let question = format!(
                "WARNING: {} still has running workloads. Would you like to continue?",
                it.name
            );
            if !prompter.confirm(&question, DefaultAnswer::No, out)? {
                return Ok(Consent::Declined);
            }
        }
    }
    let mut kept = BTreeSet::new();
    loop {
        let plan = deletion.plan(&names, cascade).await?;
        let next = plan.orphans.iter().find(|it| !kept.contains(*it));
        let Some(orphan) = next.cloned() else { return Ok(Consent::Delete(names)) };
        // Nothing is deleted without asking.
        if matches!(prompter, Prompter::NonInteractive) {
            return Ok(Consent::Refused(format!(
                "{orphan} would become an orphaned dependency, and there is no terminal to ask: add \
                 `--cascade` to delete it too, or delete without `--safe`"
            )));
        }
        let runs = deletion.has_workloads(&orphan);
        let of: Vec<&str> = plan.delete.iter().map(|it| it.name.as_str()).collect();
        let question = format!(
            "WARNING: {orphan} will become an orphaned dependency of {}. Would you also like to \
             delete {orphan}?",
            of.join(", ")
        );
        let default = if runs { DefaultAnswer::No } else { DefaultAnswer::YesLast };
        let mut is_deleted = prompter.confirm(&question, default, out)?;
        if is_deleted && runs {
            let question = format!(
                "WARNING: {orphan} has running workloads. Would you still like to delete {orphan}?"
            );
            is_deleted = prompter.confirm(&question, DefaultAnswer::No, out)?;
        }
        match is_deleted {
            true => names.insert(orphan),
            false => kept.insert(orphan),
        };
    }
}
