//! A forecast for people at a terminal: counts first, then the run levels in their order. The parts
//! serve rehearsals too, whose levels have times.

use std::io::{self, Write};

use plimsoll_plan::forecast::ForecastBlocker;

use super::notable::{cause, replaced, taken_over};
use super::value::field;
use super::{
    ComponentReport, ForecastReport, LevelReport, StepReport, WaitReport, gates, in_words,
    level_name, moment, operator, short, sign, span,
};
use crate::render::count::counted;

/// Orphans that are shown without details; the rest is counted.
const ORPHANS_MAX: usize = 10;
/// Objects of a component of a rehearsal that are shown without details.
const OBJECTS_MAX: usize = 3;
/// Room for times to the left of a timeline.
const MARGIN: &str = "        ";

pub(super) fn write(report: &ForecastReport, out: &mut dyn Write, details: bool) -> io::Result<()> {
    writeln!(out, "{}: {}", report.title(), in_words(&report.counts))?;
    if report.blockers.is_empty() {
        writeln!(out, "No blockers.")?;
    }
    blockers(&report.blockers, &report.accepted_risks, out)?;
    capabilities(report, out)?;
    replacements(report, out)?;
    takeovers(report, out)?;
    levels(report, false, out, details)?;
    orphans(report, out, details)?;
    if !details {
        writeln!(out, "\n--details shows every object and field.")?;
    }
    Ok(())
}

/// The blockers, and the risks that are accepted by an update in spite of them.
pub(in crate::render) fn blockers(
    blockers: &[ForecastBlocker],
    accepted: &[ForecastBlocker],
    out: &mut dyn Write,
) -> io::Result<()> {
    if !blockers.is_empty() {
        writeln!(out, "\nBlockers")?;
    }
    let lines = |it: &ForecastBlocker| it.message.replace('\n', "\n      ");
    for blocker in blockers {
        writeln!(out, "  ✗ {}: {}", blocker.reason, lines(blocker))?;
        if blocker.forcible {
            writeln!(out, "      (a precondition; --force overrides it)")?;
        }
    }
    if !accepted.is_empty() {
        writeln!(out, "\nAccepted risks")?;
    }
    for risk in accepted {
        writeln!(out, "  ! {}: {}", risk.reason, lines(risk))?;
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
    writeln!(out, "\nCapabilities enabled by the update")?;
    for capability in &report.capabilities {
        writeln!(out, "  + {}", capability.name)?;
        writeln!(out, "      {}", capability.because)?;
    }
    Ok(())
}

/// The objects that are replaced, with the fields that make it necessary.
pub(in crate::render) fn replacements(
    report: &ForecastReport,
    out: &mut dyn Write,
) -> io::Result<()> {
    let steps = replaced(report);
    if !steps.is_empty() {
        writeln!(out, "\nReplaced: deleted, and created again once they are gone")?;
    }
    for step in steps {
        writeln!(out, "  ± {}{}", step.object.reference(), cause(step))?;
    }
    Ok(())
}

/// The managers whose fields are taken over.
pub(in crate::render) fn takeovers(report: &ForecastReport, out: &mut dyn Write) -> io::Result<()> {
    let counts = taken_over(report);
    if !counts.is_empty() {
        writeln!(out, "\nTakes over fields; those that the release does not have go")?;
    }
    for (manager, count) in counts {
        writeln!(out, "  ~ of {manager} ({})", counted(count, "object"))?;
    }
    Ok(())
}

/// The run levels: `timed` with the times of a rehearsal, as far as it got.
pub(in crate::render) fn levels(
    report: &ForecastReport,
    timed: bool,
    out: &mut dyn Write,
    details: bool,
) -> io::Result<()> {
    let is_shown = |component: &&ComponentReport| {
        let is_gate =
            |step: &StepReport| operator(&step.object).is_some() || step.ready_when.is_some();
        let gate = || component.steps.iter().any(is_gate);
        !component.waits.is_empty()
            || component.steps.iter().any(|step| sign(step).is_some())
            || !timed && gate()
    };
    let components = report.levels.iter().flat_map(|level| &level.components);
    let names = components.filter(is_shown).map(|component| name(component).chars().count());
    let width = names.max().unwrap_or(0);
    let margin = if timed { MARGIN } else { "" };
    for level in &report.levels {
        let shown: Vec<&ComponentReport> = level.components.iter().filter(is_shown).collect();
        if shown.is_empty() || timed && level.began.is_none() {
            continue;
        }
        heading(level, out)?;
        for component in &shown {
            let words = in_words(&component.counts);
            let gates = if timed { String::new() } else { gate(report, component) };
            writeln!(out, "{margin}  {:<width$}  {words}{gates}", name(component))?;
            steps(component, timed, margin, out, details)?;
            for wait in &component.waits {
                self::wait(wait, margin, out)?;
            }
        }
        let quiet = level.components.len() - shown.len();
        if quiet > 0 {
            writeln!(out, "{margin}  … and {quiet} in which nothing changes")?;
        }
    }
    Ok(())
}

fn heading(level: &LevelReport, out: &mut dyn Write) -> io::Result<()> {
    let components = match level.components.len() {
        0 | 1 => String::new(),
        components => format!(" ({components} components in parallel)"),
    };
    let mut name = level_name(level.level);
    if let Some(began) = level.began {
        return writeln!(out, "{:>6}  {name}{components}", moment(began));
    }
    name[..1].make_ascii_uppercase();
    writeln!(out, "\n{name}{components}")
}

fn name(component: &ComponentReport) -> &str {
    component.name.as_deref().unwrap_or("(no component)")
}

/// What the component waits for at its end.
fn gate(report: &ForecastReport, component: &ComponentReport) -> String {
    let gates = gates(report, component).map(|gate| match &gate.now {
        Some(now) => format!("{} (now {})", gate.operator, now.reason),
        None => gate.operator.clone(),
    });
    let gates: Vec<String> = gates.collect();
    let mut awaited: Vec<String> = Vec::new();
    if !gates.is_empty() {
        awaited.push(format!("operator {}", gates.join(", ")));
    }
    awaited.extend(component.steps.iter().filter_map(|step| {
        let condition = step.ready_when.as_ref()?;
        Some(format!("{} ({condition})", step.object.reference()))
    }));
    if awaited.is_empty() {
        return String::new();
    }
    format!(", then waits for {}", awaited.join(", "))
}

/// The objects of a component that something happens to: in a plan for details only.
pub(super) fn steps(
    component: &ComponentReport,
    timed: bool,
    margin: &str,
    out: &mut dyn Write,
    details: bool,
) -> io::Result<()> {
    let changed = component.steps.iter().filter_map(|step| Some((sign(step)?, step)));
    let changed: Vec<(&str, &StepReport)> = changed.collect();
    let shown = match (details, timed) {
        (true, _) => changed.len(),
        (false, false) => 0,
        // A line that says that there is one more could as well show it.
        (false, true) if changed.len() == OBJECTS_MAX + 1 => changed.len(),
        (false, true) => OBJECTS_MAX.min(changed.len()),
    };
    for (sign, step) in &changed[..shown] {
        let at = step.at.filter(|_| details).map(|at| format!("{} ", moment(at)));
        writeln!(out, "{margin}    {sign} {}{}", at.unwrap_or_default(), step.object.reference())?;
        if details {
            if !step.replaced_for.is_empty() {
                let fields = step.replaced_for.join(", ");
                writeln!(out, "{margin}        deleted and created again, for {fields}")?;
            }
            for change in &step.fields {
                writeln!(out, "{margin}        {}", field(change))?;
            }
            if !step.takes_over.is_empty() {
                let managers = step.takes_over.join(", ");
                writeln!(out, "{margin}        takes over fields of {managers}")?;
            }
            if let Some(after) = &step.after {
                writeln!(out, "{margin}        deferred until {after} is there")?;
            }
        }
        if let Some(problem) = &step.problem {
            writeln!(out, "{margin}        {}: {}", problem.reason, problem.message)?;
        }
    }
    if timed && changed.len() > shown {
        writeln!(out, "{margin}      and {} more", changed.len() - shown)?;
    }
    Ok(())
}

fn wait(wait: &WaitReport, margin: &str, out: &mut dyn Write) -> io::Result<()> {
    let (object, reason) = (short(&wait.object), wait.reason);
    if let Some(lasted) = wait.lasted() {
        return writeln!(out, "{margin}    ⧗ {} for {object} ({reason})", span(lasted));
    }
    let sign = if wait.failed { "✗" } else { "⧗" };
    let (since, message) = (moment(wait.from), wait.message.replace('\n', " "));
    writeln!(out, "{margin}    {sign} since {since} {object}, {reason}: {message}")
}

/// The objects that are left behind: without details the first of them.
pub(in crate::render) fn orphans(
    report: &ForecastReport,
    out: &mut dyn Write,
    details: bool,
) -> io::Result<()> {
    let count = report.orphans.len();
    if count == 0 {
        return Ok(());
    }
    let shown = if details { count } else { ORPHANS_MAX.min(count) };
    writeln!(out, "\nOrphaned: {count} objects that the release no longer manages")?;
    for orphan in &report.orphans[..shown] {
        writeln!(out, "  ? {} ({})", orphan.object, orphan.because)?;
    }
    if count > shown {
        writeln!(out, "  … and {} more", count - shown)?;
    }
    Ok(())
}
