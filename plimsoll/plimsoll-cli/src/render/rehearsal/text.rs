//! A rehearsal for people at a terminal: the verdict first, then what happens when.

use std::io::{self, Write};

use plimsoll_resolve::printable::on_one_line;

use super::super::forecast::text::{
    blockers, capabilities, levels, orphans, replacements, takeovers,
};
use super::super::forecast::{in_words, moment, span};
use super::{RehearsalReport, UNREAD};

pub(super) fn write(
    report: &RehearsalReport,
    out: &mut dyn Write,
    details: bool,
) -> io::Result<()> {
    writeln!(out, "{}, rehearsed on {}", report.plan.title(), report.on)?;
    verdict(report, out)?;
    capabilities(&report.plan, out)?;
    replacements(&report.plan, out)?;
    takeovers(&report.plan, out)?;
    writeln!(out)?;
    levels(&report.plan, true, out, details)?;
    ending(report, out)?;
    if details {
        conditions(report, out)?;
    }
    deviations(report, out)?;
    orphans(&report.plan, out, details)?;
    surroundings(report, out, details)?;
    if !details {
        writeln!(out, "\n--details shows every object, field and condition.")?;
    }
    Ok(())
}

fn verdict(report: &RehearsalReport, out: &mut dyn Write) -> io::Result<()> {
    let (took, counts) = (span(report.seconds), in_words(&report.plan.counts));
    let forced = !report.plan.blockers.is_empty();
    let it = if forced { "Forced, it" } else { "It" };
    if forced {
        let preconditions = match report.plan.blockers.len() {
            1 => "a precondition does not hold".to_owned(),
            several => format!("{several} preconditions do not hold"),
        };
        writeln!(out, "It would not begin: {preconditions}. What follows is a forced update.")?;
    }
    if !report.plan.blockers.is_empty() || !report.plan.accepted_risks.is_empty() {
        blockers(&report.plan.blockers, &report.plan.accepted_risks, out)?;
        writeln!(out)?;
    }
    if report.ends_well {
        return writeln!(out, "{it} would succeed, in {took} of simulated time: {counts}.");
    }
    let (done, total) = (report.done, report.total);
    if done == total {
        writeln!(
            out,
            "{it} would be applied in {took} of simulated time, and then fail: {counts}."
        )?;
    } else {
        writeln!(
            out,
            "{it} would stop after {took}, with {done} of {total} steps done: {counts}."
        )?;
    }
    for failing_condition in &report.failing_conditions {
        let reason = match failing_condition.reason.as_str() {
            "" => String::new(),
            reason => format!(" {reason}"),
        };
        writeln!(
            out,
            "  {:>6}  {}={}{reason}: {}",
            moment(failing_condition.at),
            failing_condition.type_,
            failing_condition.status,
            failing_condition.message.replace('\n', "\n          ")
        )?;
    }
    Ok(())
}

fn ending(report: &RehearsalReport, out: &mut dyn Write) -> io::Result<()> {
    let at = moment(report.seconds);
    if report.done == report.total {
        return writeln!(out, "{at:>6}  {} is complete", report.plan.to);
    }
    writeln!(out, "{at:>6}  the update is stalled")?;
    let not_reached = report.not_reached();
    if !not_reached.is_empty() {
        writeln!(out, "        not reached: {}", not_reached.join(", "))?;
    }
    Ok(())
}

fn conditions(report: &RehearsalReport, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\nConditions of the ClusterVersion")?;
    for condition in &report.conditions {
        let message = condition.message.replace('\n', " ");
        writeln!(
            out,
            "{:>6}  {}={} {} {message}",
            moment(condition.at),
            condition.type_,
            condition.status,
            condition.reason
        )?;
    }
    Ok(())
}

fn deviations(report: &RehearsalReport, out: &mut dyn Write) -> io::Result<()> {
    if !report.deviations.is_empty() {
        writeln!(out, "\nDiffers from the dry run")?;
    }
    for deviation in &report.deviations {
        let (expected, actual) = (deviation.expected, deviation.actual);
        writeln!(out, "  ! {}: {actual}, not {expected}", deviation.object)?;
    }
    Ok(())
}

/// What the copy lacks.
fn surroundings(report: &RehearsalReport, out: &mut dyn Write, details: bool) -> io::Result<()> {
    if !report.warnings.is_empty() {
        writeln!(out, "\nErrors in what the cluster does not include")?;
    }
    for warning in &report.warnings {
        writeln!(out, "  {}", on_one_line(warning))?;
    }
    if !report.not_copied.is_empty() {
        writeln!(out, "\nNot copied, since the embedded server does not serve them")?;
        writeln!(out, "  {}", report.not_copied.join(", "))?;
    }
    if !report.unread_kinds.is_empty() {
        writeln!(out, "\n{UNREAD}\n  {}", report.unread_kinds.join(", "))?;
    }
    if !report.unmanaged.is_empty() {
        writeln!(
            out,
            "\nUnmanaged, since the embedded server rejects them in the outgoing release"
        )?;
        for object in &report.unmanaged {
            writeln!(out, "  {}", object.object)?;
            if details {
                writeln!(out, "      {}", object.because)?;
            }
        }
    }
    Ok(())
}
