//! Plans of changes for change requests: a table of the changes, and lists of their effects.

use std::io::{self, Write};

use plimsoll_operators::change_plan::{ChangePlan, OperatorChange};
use plimsoll_operators::deletion_plan::{PlannedDeletion, counted, workload_text};
use plimsoll_resolve::printable::on_one_line;

use super::super::forecast::escaped;
use super::{participle, title, transition};

pub(super) fn write(plan: &ChangePlan, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "# {}\n", plain(&title(plan)))?;
    if plan.digest.is_empty() {
        writeln!(out, "There is no plan.\n")?;
    } else if plan.changes.is_empty() {
        writeln!(out, "Nothing changes.\n")?;
    } else {
        writeln!(out, "{}. Plan `{}`.\n", counts(plan), plan.digest)?;
        changes(plan, out)?;
    }
    for change in &plan.changes {
        if let Some(deletion) = &change.deletion {
            deleted(deletion, out)?;
        }
    }
    let dependencies = plan.dependencies.iter().map(|it| {
        let broken = if it.broken { ", which is broken" } else { "" };
        format!("{} {} depends on {}: {}{broken}", it.operator, it.version, it.on, it.requirement)
    });
    list("Dependencies", dependencies, out)?;
    let held_back = plan.kept.iter().filter_map(|it| {
        let why = it.held_back.as_ref()?;
        Some(format!("{} {}: {why}", it.operator, it.version))
    });
    list("Held back", held_back, out)?;
    list("Not satisfied afterwards", plan.unsatisfied.iter().map(|it| it.text()), out)?;
    list("Orphans", plan.orphans.iter().cloned(), out)?;
    let overrides = plan.overrides.iter().map(|it| format!("override: {it}"));
    list("Notes", overrides.chain(plan.notes.iter().cloned()), out)?;
    list("Warnings", plan.warnings.iter().cloned(), out)
}

/// Returns how many Operators become what, such as `2 created, 1 updated`.
fn counts(plan: &ChangePlan) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for it in &plan.changes {
        let what = participle(it.planned.operation);
        match counts.iter_mut().find(|(known, _)| *known == what) {
            Some((_, count)) => *count += 1,
            None => counts.push((what, 1)),
        }
    }
    let counts: Vec<String> =
        counts.iter().map(|(what, count)| format!("{count} {what}")).collect();
    counts.join(", ")
}

/// Writes a table of the changes.
fn changes(plan: &ChangePlan, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "| Operator | What happens | Version | Requested | Catalog | Why |")?;
    writeln!(out, "|---|---|---|---|---|---|")?;
    for change in &plan.changes {
        let it = &change.planned;
        writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} |",
            plain(it.subject()),
            participle(it.operation),
            plain(&transition(&it.version_before, &it.version)),
            plain(&transition(&it.requested_before, &it.requested)),
            plain(&it.catalog),
            plain(&reasons(change))
        )?;
    }
    writeln!(out)
}

/// Returns why an Operator changes, and not to a higher version.
fn reasons(change: &OperatorChange) -> String {
    let mut reasons = Vec::new();
    if change.planned.dependency {
        reasons.push("a dependency".to_owned());
    }
    let required_by = change.required_by.iter();
    reasons.extend(required_by.map(|it| format!("{} requires {}", it.operator, it.requirement)));
    if !change.displaced_by.is_empty() {
        let (version, requirements) =
            (&change.planned.version_before, change.displaced_by.join(" and "));
        reasons.push(format!("it cannot stay at {version}: it depends on {requirements}"));
    }
    reasons.extend(change.held_back.as_ref().map(|why| format!("held back: {why}")));
    reasons.extend(Some(&change.planned.message).filter(|it| !it.is_empty()).cloned());
    reasons.join("; ")
}

/// Writes what goes with a deleted Operator, and what is kept.
fn deleted(deletion: &PlannedDeletion, out: &mut dyn Write) -> io::Result<()> {
    let fate = if deletion.keeps_definitions { " (kept)" } else { "" };
    let objects = counted(deletion.objects, "object", "objects");
    let kept = deletion.kept.iter().map(|it| (it.object.reference(), &it.message));
    let kept = kept.map(|(object, message)| format!("{object} is kept: {message}"));
    let mut definitions = deletion.definitions.clone();
    definitions.retain(|name| {
        let mut kept = deletion.kept.iter().map(|it| &it.object);
        !kept.any(|it| it.kind == "CustomResourceDefinition" && it.name == *name)
    });
    let definitions = definitions.iter().map(|it| format!("definition {it}{fate}"));
    let conversions = deletion.conversions.iter();
    let conversions =
        conversions.map(|it| format!("conversion webhook of {} is removed", it.definition));
    let workloads = deletion.workloads.iter();
    let workloads = workloads.map(|it| format!("workloads: {}{fate}", workload_text(it)));
    let lines = std::iter::once(objects).chain(deletion.rollout_text()).chain(kept);
    let lines = lines.chain(definitions);
    list(&format!("With {}", deletion.name), lines.chain(conversions).chain(workloads), out)
}

/// Writes lines under a heading, which is left out without any.
fn list(heading: &str, lines: impl Iterator<Item = String>, out: &mut dyn Write) -> io::Result<()> {
    let mut lines = lines.peekable();
    if lines.peek().is_none() {
        return Ok(());
    }
    writeln!(out, "## {}\n", plain(heading))?;
    lines.try_for_each(|it| writeln!(out, "- {}", plain(&it)))?;
    writeln!(out)
}

/// Returns a text on one line, in which nothing is markup.
fn plain(text: &str) -> String {
    escaped(&on_one_line(text))
}
