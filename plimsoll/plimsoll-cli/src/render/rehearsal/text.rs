//! A rehearsal for people at a terminal: the verdict first, then what actual when.

use std::io::{self, Write};

use super::super::forecast::{blockers, field, in_words, level_name, orphans, sign};
use super::{
    ComponentTimeline, LevelTimeline, RehearsalReport, StepResult, WaitResult, moment, short, span,
};

/// Objects of a component that are shown without details.
const OBJECTS_MAX: usize = 3;
/// Left-behind objects that are shown without details.
const ORPHANS_MAX: usize = 10;

pub(super) fn write(
    report: &RehearsalReport,
    out: &mut dyn Write,
    details: bool,
) -> io::Result<()> {
    writeln!(out, "{}, rehearsed on {}", report.title(), report.on)?;
    verdict(report, out)?;
    if !report.capabilities.is_empty() {
        writeln!(out, "\nCapabilities enabled by the update")?;
        for capability in &report.capabilities {
            writeln!(out, "  + {}: {}", capability.name, capability.because)?;
        }
    }
    writeln!(out)?;
    let components = report
        .levels
        .iter()
        .flat_map(|level| &level.components)
        .filter(|component| is_shown(component));
    let width = components.map(|component| name(component).chars().count()).max().unwrap_or(0);
    for level in &report.levels {
        self::level(level, width, out, details)?;
    }
    ending(report, out)?;
    if details {
        conditions(report, out)?;
    }
    surroundings(report, out, details)?;
    if !details {
        writeln!(out, "\n--details shows every object, field and condition.")?;
    }
    Ok(())
}

fn verdict(report: &RehearsalReport, out: &mut dyn Write) -> io::Result<()> {
    let (took, counts) = (span(report.seconds), in_words(&report.counts));
    let forced = !report.blockers.is_empty();
    let it = if forced { "Forced, it" } else { "It" };
    if forced {
        let preconditions = match report.blockers.len() {
            1 => "a precondition does not hold".to_owned(),
            several => format!("{several} preconditions do not hold"),
        };
        writeln!(out, "It would not begin: {preconditions}. What follows is a forced update.")?;
    }
    if !report.blockers.is_empty() || !report.accepted_risks.is_empty() {
        blockers(&report.blockers, &report.accepted_risks, out)?;
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

fn level(
    level: &LevelTimeline,
    width: usize,
    out: &mut dyn Write,
    details: bool,
) -> io::Result<()> {
    let Some(began) = level.began else { return Ok(()) };
    let reported: Vec<&ComponentTimeline> =
        level.components.iter().filter(|component| is_shown(component)).collect();
    if reported.is_empty() {
        return Ok(());
    }
    let side_by_side = match level.components.len() {
        0 | 1 => String::new(),
        components => format!(" ({components} components in parallel)"),
    };
    writeln!(out, "{:>6}  {}{side_by_side}", moment(began), level_name(level.level))?;
    for component in &reported {
        writeln!(out, "          {:<width$}  {}", name(component), in_words(&component.counts))?;
        steps(component, out, details)?;
        for wait in &component.waits {
            self::wait(wait, out)?;
        }
    }
    let quiet = level.components.len() - reported.len();
    if quiet > 0 {
        writeln!(out, "          … and {quiet} in which nothing changes")?;
    }
    Ok(())
}

/// Whether there is anything to tell of a component.
fn is_shown(component: &ComponentTimeline) -> bool {
    !component.waits.is_empty() || component.steps.iter().any(|step| sign(&step.step).is_some())
}

fn name(component: &ComponentTimeline) -> &str {
    component.name.as_deref().unwrap_or("(no component)")
}

fn steps(component: &ComponentTimeline, out: &mut dyn Write, details: bool) -> io::Result<()> {
    let changed: Vec<(&str, &StepResult)> =
        component.steps.iter().filter_map(|step| Some((sign(&step.step)?, step))).collect();
    // A line that says that there is one more could as well tell it.
    let all = details || changed.len() == OBJECTS_MAX + 1;
    let shown = if all { changed.len() } else { OBJECTS_MAX };
    for (sign, step) in changed.iter().take(shown) {
        let at = step.at.filter(|_| details).map(|at| format!("{} ", moment(at)));
        writeln!(out, "            {sign} {}{}", at.unwrap_or_default(), step.step.object)?;
        if details {
            for change in &step.step.fields {
                writeln!(out, "                {}", field(change))?;
            }
        }
        if let Some(problem) = &step.step.problem {
            writeln!(out, "                {}: {}", problem.reason, problem.message)?;
        }
    }
    if changed.len() > shown {
        writeln!(out, "              and {} more", changed.len() - shown)?;
    }
    Ok(())
}

fn wait(wait: &WaitResult, out: &mut dyn Write) -> io::Result<()> {
    let object = short(&wait.object);
    match wait.lasted() {
        Some(lasted) => {
            writeln!(out, "            ⧗ {} for {object} ({})", span(lasted), wait.reason)
        }
        None => {
            let sign = if wait.failed { "✗" } else { "⧗" };
            let since = moment(wait.from);
            let message = wait.message.replace('\n', " ");
            writeln!(out, "            {sign} since {since} {object}, {}: {message}", wait.reason)
        }
    }
}

fn ending(report: &RehearsalReport, out: &mut dyn Write) -> io::Result<()> {
    let at = moment(report.seconds);
    if report.done == report.total {
        return writeln!(out, "{at:>6}  {} is complete", report.to);
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

/// What is about the update and not of it.
fn surroundings(report: &RehearsalReport, out: &mut dyn Write, details: bool) -> io::Result<()> {
    if !report.deviations.is_empty() {
        writeln!(out, "\nDiffers from the dry run")?;
        for deviation in &report.deviations {
            let (expected, actual) = (deviation.expected, deviation.actual);
            writeln!(out, "  ! {}: {actual}, not {expected}", deviation.object)?;
        }
    }
    orphans(&report.orphans, if details { usize::MAX } else { ORPHANS_MAX }, out)?;
    if !report.not_copied.is_empty() {
        writeln!(out, "\nNot copied, since the embedded server does not serve them")?;
        writeln!(out, "  {}", report.not_copied.join(", "))?;
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
