//! A rehearsal for a change request: the verdict, a table of the levels, the details folded away.

use std::io::{self, Write};

use super::super::forecast::{blockers_as_markdown, escaped, field, in_words, level_name, sign};
use super::{LevelTimeline, RehearsalReport, moment, short, span};

pub(super) fn write(report: &RehearsalReport, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "# Rehearsal: {}\n", report.title())?;
    writeln!(out, "On {}. Plan `{}`.\n", escaped(&report.on), report.plan_hash)?;
    let (took, counts) = (span(report.seconds), in_words(&report.counts));
    let forced = !report.blockers.is_empty();
    let it = if forced { "Forced, it" } else { "It" };
    if forced {
        writeln!(out, "**It would not begin.** What follows is a forced update.\n")?;
    }
    blockers_as_markdown(&report.blockers, &report.accepted_risks, out)?;
    if report.ends_well {
        writeln!(out, "**{it} would succeed**, in {took} of simulated time: {counts}.\n")?;
    } else {
        let (done, total) = (report.done, report.total);
        writeln!(
            out,
            "**{it} would stop** after {took}, with {done} of {total} steps done: {counts}.\n"
        )?;
        for failing_condition in &report.failing_conditions {
            let message = escaped(&failing_condition.message.replace('\n', " "));
            let (type_, status, at) =
                (&failing_condition.type_, failing_condition.status, moment(failing_condition.at));
            writeln!(out, "- {at} `{type_}={status}` **{}**: {message}", failing_condition.reason)?;
        }
        writeln!(out)?;
    }
    if !report.capabilities.is_empty() {
        writeln!(out, "## Capabilities enabled by the update\n")?;
        for capability in &report.capabilities {
            writeln!(out, "- `{}`: {}", capability.name, escaped(&capability.because))?;
        }
        writeln!(out)?;
    }
    writeln!(out, "## Timeline\n")?;
    writeln!(out, "| Begun | Done | Level | Component | What happened | Waited for |")?;
    writeln!(out, "|---|---|---|---|---|---|")?;
    for level in &report.levels {
        rows(level, out)?;
    }
    writeln!(out, "\n## Objects\n")?;
    for level in &report.levels {
        objects(level, out)?;
    }
    writeln!(out, "## Conditions of the ClusterVersion\n")?;
    for condition in &report.conditions {
        let message = escaped(&condition.message.replace('\n', " "));
        let (at, reason) = (moment(condition.at), &condition.reason);
        writeln!(out, "- {at} `{}={}` {reason} {message}", condition.type_, condition.status)?;
    }
    for deviation in &report.deviations {
        let (expected, actual) = (deviation.expected, deviation.actual);
        writeln!(
            out,
            "\nDiffers from the dry run: `{}` is {actual}, not {expected}.",
            deviation.object
        )?;
    }
    if !report.orphans.is_empty() {
        writeln!(out, "\n## Orphans\n\nObjects that the release no longer manages.\n")?;
        for orphan in &report.orphans {
            writeln!(out, "- `{}`: {}", orphan.object, escaped(&orphan.because))?;
        }
    }
    if !report.not_copied.is_empty() {
        writeln!(out, "\nNot copied: {}.", report.not_copied.join(", "))?;
    }
    for object in &report.unmanaged {
        writeln!(out, "\nUnmanaged: `{}`: {}", object.object, escaped(&object.because))?;
    }
    Ok(())
}

fn rows(level: &LevelTimeline, out: &mut dyn Write) -> io::Result<()> {
    let time = |time: Option<u64>| time.map_or_else(|| "-".to_owned(), moment);
    for component in &level.components {
        let waits = component.waits.iter().map(|wait| match wait.lasted() {
            Some(lasted) => format!("{} ({}, {})", short(&wait.object), wait.reason, span(lasted)),
            None => format!("**{}, {}**, to the end", short(&wait.object), wait.reason),
        });
        writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} |",
            time(level.began),
            time(level.completed),
            level.level.map_or_else(|| "-".to_owned(), |level| format!("{level:02}")),
            component.name.as_deref().unwrap_or("-"),
            in_words(&component.counts),
            waits.collect::<Vec<_>>().join(", ")
        )?;
    }
    Ok(())
}

/// The objects of a level that something actual to.
fn objects(level: &LevelTimeline, out: &mut dyn Write) -> io::Result<()> {
    let steps = level.components.iter().flat_map(|component| &component.steps);
    let steps: Vec<_> = steps.filter(|step| sign(&step.step).is_some()).collect();
    if steps.is_empty() {
        return Ok(());
    }
    let name = level_name(level.level);
    writeln!(out, "<details><summary>{name}: {} objects</summary>\n", steps.len())?;
    for step in steps {
        let at = step.at.map(|at| format!("{} ", moment(at))).unwrap_or_default();
        writeln!(out, "- {at}{} `{}`", step.step.change, step.step.object)?;
        for change in &step.step.fields {
            writeln!(out, "  - `{}`", field(change).replace('`', "'"))?;
        }
    }
    writeln!(out, "\n</details>\n")
}
