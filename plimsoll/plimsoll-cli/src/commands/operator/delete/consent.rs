//! The questions before a deletion.

use std::collections::BTreeSet;
use std::io::{self, Write};

use plimsoll_operators::deletion_plan::depend;

use super::Deletion;
use crate::prompt::{DefaultAnswer, Prompter};

/// The question about a plan; the end of a warning.
pub(super) const CONTINUE: &str = "Would you like to continue?";

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

/// Shows the plan, and asks the user to agree to it: to each Operator that others depend on, or else once.
pub(super) async fn ask_for_dependants(
    deletion: &mut Deletion<'_>,
    names: BTreeSet<String>,
    cascade: bool,
    prompter: &mut Prompter,
    out: &mut dyn Write,
) -> Result<Consent, anyhow::Error> {
    let plan = deletion.plan(&names, cascade).await?;
    out.write_all(plan.text().as_bytes())?;
    let with_dependants = plan.delete.iter().map(|it| (&it.name, plan.dependants_of(&it.name)));
    let with_dependants = with_dependants.filter(|(_, dependants)| !dependants.is_empty());
    let questions = with_dependants.map(|(name, dependants)| {
        let depend = depend(&dependants);
        format!(
            "WARNING: deleting {name} will lead to an inconsistent state: {depend} on {name}. \
             {CONTINUE}"
        )
    });
    Ok(match is_agreed(questions.collect(), prompter, out)? {
        true => Consent::Delete(names),
        false => Consent::Declined,
    })
}

/// Asks questions, or the general one if there is none, until one is answered no. Returns whether all were
/// answered yes.
fn is_agreed(
    mut questions: Vec<String>,
    prompter: &mut Prompter,
    out: &mut dyn Write,
) -> io::Result<bool> {
    if questions.is_empty() {
        questions.push(CONTINUE.to_owned());
    }
    for question in &questions {
        if !prompter.confirm(question, DefaultAnswer::No, out)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Refuses to delete Operators that others depend on; otherwise shows the plan, and asks the user about operands,
/// or else once, and about each orphan.
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
    out.write_all(plan.text().as_bytes())?;
    let with_workloads = plan.delete.iter().filter(|it| deletion.has_workloads(&it.name));
    let questions = with_workloads
        .map(|it| format!("WARNING: {} still has running workloads. {CONTINUE}", it.name));
    if !is_agreed(questions.collect(), prompter, out)? {
        return Ok(Consent::Declined);
    }
    let mut kept = BTreeSet::new();
    loop {
        let plan = deletion.plan(&names, cascade).await?;
        let next = plan.orphans.iter().find(|it| !kept.contains(*it));
        let Some(orphan) = next.cloned() else { return Ok(Consent::Delete(names)) };
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
