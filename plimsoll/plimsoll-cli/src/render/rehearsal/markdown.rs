//! A rehearsal for a change request: the verdict, a table of the levels, the details folded away.

use std::io::{self, Write};

use super::super::forecast::markdown::{
    blockers, capabilities, levels, orphans, replacements, takeovers,
};
use super::super::forecast::{escaped, in_words, moment, span};
use super::{RehearsalReport, UNREAD};

pub(super) fn write(report: &RehearsalReport, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "# Rehearsal: {}\n", report.plan.title())?;
    writeln!(out, "On {}. Plan `{}`.\n", escaped(&report.on), report.plan.plan_hash)?;
    let (took, counts) = (span(report.seconds), in_words(&report.plan.counts));
    let forced = !report.plan.blockers.is_empty();
    let it = if forced { "Forced, it" } else { "It" };
    if forced {
        writeln!(out, "**It would not begin.** What follows is a forced update.\n")?;
    }
    blockers(&report.plan.blockers, &report.plan.accepted_risks, out)?;
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
    capabilities(&report.plan, out)?;
    replacements(&report.plan, out)?;
    takeovers(&report.plan, out)?;
    writeln!(out, "## Timeline\n")?;
    levels(&report.plan, true, out)?;
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
    writeln!(out)?;
    orphans(&report.plan, out)?;
    for warning in &report.warnings {
        writeln!(out, "\nNot included: {}", escaped(&warning.replace('\n', " ")))?;
    }
    if !report.not_copied.is_empty() {
        writeln!(out, "\nNot copied: {}.", report.not_copied.join(", "))?;
    }
    if !report.unread_kinds.is_empty() {
        writeln!(out, "\n{UNREAD}: {}.", report.unread_kinds.join(", "))?;
    }
    for object in &report.unmanaged {
        writeln!(out, "\nUnmanaged: `{}`: {}", object.object, escaped(&object.because))?;
    }
    Ok(())
}
