//! A forecast for a change request: headings, tables, and the details folded away. The parts serve
//! rehearsals too, whose levels have times.

use std::io::{self, Write};

use plimsoll_plan::forecast::ForecastBlocker;

use super::notable::{replaced, taken_over};
use super::value::field;
use super::{
    ComponentReport, ForecastReport, LevelReport, gates, in_words, level_name, moment, short, sign,
    span,
};
use crate::render::count::counted;

pub(super) fn write(report: &ForecastReport, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "# {}\n", report.title())?;
    writeln!(out, "{}. Plan `{}`.\n", in_words(&report.counts), report.plan_hash)?;
    if report.blockers.is_empty() {
        writeln!(out, "No blockers.\n")?;
    }
    blockers(&report.blockers, &report.accepted_risks, out)?;
    capabilities(report, out)?;
    replacements(report, out)?;
    takeovers(report, out)?;
    writeln!(out, "## Order\n")?;
    writeln!(out, "Levels follow each other; the components of a level run in parallel.\n")?;
    levels(report, false, out)?;
    orphans(report, out)
}

/// The blockers, and the risks that are accepted by an update in spite of them.
pub(in crate::render) fn blockers(
    blockers: &[ForecastBlocker],
    accepted: &[ForecastBlocker],
    out: &mut dyn Write,
) -> io::Result<()> {
    for (heading, list) in [("Blockers", blockers), ("Accepted risks", accepted)] {
        if list.is_empty() {
            continue;
        }
        writeln!(out, "## {heading}\n")?;
        for ForecastBlocker { reason, message, forcible } in list {
            let message = escaped(&message.replace('\n', " "));
            let force = if *forcible { " (a precondition; `--force` overrides it)" } else { "" };
            writeln!(out, "- **{reason}**: {message}{force}")?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// The capabilities that become enabled.
pub(in crate::render) fn capabilities(
    report: &ForecastReport,
    out: &mut dyn Write,
) -> io::Result<()> {
    if report.capabilities.is_empty() {
        return Ok(());
    }
    writeln!(out, "## Capabilities enabled by the update\n")?;
    for capability in &report.capabilities {
        writeln!(out, "- `{}`: {}", capability.name, escaped(&capability.because))?;
    }
    writeln!(out)
}

/// The objects that are replaced, with the fields that make it necessary.
pub(in crate::render) fn replacements(
    report: &ForecastReport,
    out: &mut dyn Write,
) -> io::Result<()> {
    let steps = replaced(report);
    if steps.is_empty() {
        return Ok(());
    }
    writeln!(out, "## Replaced\n")?;
    writeln!(out, "Objects that are deleted, and created again once they are gone.\n")?;
    for step in steps {
        let fields = step.replaced_for.join("`, `");
        writeln!(out, "- `{}`, for `{fields}`", step.object.reference())?;
    }
    writeln!(out)
}

/// The managers whose fields are taken over.
pub(in crate::render) fn takeovers(report: &ForecastReport, out: &mut dyn Write) -> io::Result<()> {
    let counts = taken_over(report);
    if counts.is_empty() {
        return Ok(());
    }
    writeln!(out, "## Takeovers\n")?;
    writeln!(out, "Fields of other managers that the release does not have go.\n")?;
    for (manager, count) in counts {
        writeln!(out, "- `{manager}`: {}", counted(count, "object"))?;
    }
    writeln!(out)
}

/// A table of the run levels, `timed` with the times of a rehearsal, and their objects.
pub(in crate::render) fn levels(
    report: &ForecastReport,
    timed: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    if timed {
        writeln!(out, "| Begun | Done | Level | Component | What happened | Waited for |")?;
        writeln!(out, "|---|---|---|---|---|---|")?;
    } else {
        writeln!(out, "| Level | Component | What happens | Waits for |\n|---|---|---|---|")?;
    }
    for level in &report.levels {
        for component in &level.components {
            let waits = if timed { waited(component) } else { awaited(report, component) };
            if timed {
                let time = |time: Option<u64>| time.map_or_else(|| "-".to_owned(), moment);
                write!(out, "| {} | {} ", time(level.began), time(level.completed))?;
            }
            writeln!(
                out,
                "| {} | {} | {} | {waits} |",
                level.level.map_or_else(|| "-".to_owned(), |level| format!("{level:02}")),
                component.name.as_deref().unwrap_or("-"),
                in_words(&component.counts)
            )?;
        }
    }
    writeln!(out, "\n## Objects\n")?;
    report.levels.iter().try_for_each(|level| objects(level, out))
}

/// What a component will wait for.
fn awaited(report: &ForecastReport, component: &ComponentReport) -> String {
    let gates = gates(report, component).map(|gate| match &gate.now {
        Some(now) => format!("`{}` (now {})", gate.operator, now.reason),
        None => format!("`{}`", gate.operator),
    });
    gates.collect::<Vec<_>>().join(", ")
}

/// What a component waited for.
fn waited(component: &ComponentReport) -> String {
    let waits = component.waits.iter().map(|wait| match wait.lasted() {
        Some(lasted) => format!("{} ({}, {})", short(&wait.object), wait.reason, span(lasted)),
        None => format!("**{}, {}**, to the end", short(&wait.object), wait.reason),
    });
    waits.collect::<Vec<_>>().join(", ")
}

/// The objects of a level that something happens to.
fn objects(level: &LevelReport, out: &mut dyn Write) -> io::Result<()> {
    let steps = level.components.iter().flat_map(|component| &component.steps);
    let steps: Vec<_> = steps.filter(|step| sign(step).is_some()).collect();
    if steps.is_empty() {
        return Ok(());
    }
    let name = level_name(level.level);
    writeln!(out, "<details><summary>{name}: {} objects</summary>\n", steps.len())?;
    for step in steps {
        let at = step.at.map(|at| format!("{} ", moment(at))).unwrap_or_default();
        writeln!(out, "- {at}{} `{}`", step.change, step.object.reference())?;
        for change in &step.fields {
            writeln!(out, "  - `{}`", field(change).replace('`', "'"))?;
        }
        if !step.takes_over.is_empty() {
            writeln!(out, "  - takes over fields of `{}`", step.takes_over.join("`, `"))?;
        }
        if let Some(after) = &step.after {
            writeln!(out, "  - deferred until `{after}` is there")?;
        }
        if let Some(problem) = &step.problem {
            writeln!(out, "  - **{}**: {}", problem.reason, escaped(&problem.message))?;
        }
    }
    writeln!(out, "\n</details>\n")
}

/// The objects that are left behind.
pub(in crate::render) fn orphans(report: &ForecastReport, out: &mut dyn Write) -> io::Result<()> {
    if report.orphans.is_empty() {
        return Ok(());
    }
    writeln!(out, "## Orphans\n\nObjects that the release no longer manages.\n")?;
    for orphan in &report.orphans {
        writeln!(out, "- `{}`: {}", orphan.object, escaped(&orphan.because))?;
    }
    writeln!(out)
}

/// A text without what Markdown would take for its own. A backslash is escaped, too: before an escaped bar it
/// would end the cell of a table.
pub(in crate::render) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        if matches!(letter, '\\' | '|' | '*' | '_' | '`' | '<' | '>' | '[' | ']' | '&') {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    escaped
}
