//! A forecast for people at a terminal: counts first, then the run levels in their order.

use std::io::{self, Write};

use super::{
    ComponentForecast, ForecastReport, OrphanReport, StepReport, field, in_words, level_name,
};
use plimsoll_plan::forecast::{ForecastBlocker, StepChangeKind};

/// Objects of a list that are shown; the rest is counted.
const LISTED_MAX: usize = 20;

pub(super) fn write(report: &ForecastReport, out: &mut dyn Write, details: bool) -> io::Result<()> {
    writeln!(out, "{}: {}", report.title(), in_words(&report.counts))?;
    if report.blockers.is_empty() {
        writeln!(out, "No blockers.")?;
    }
    blockers(&report.blockers, &report.accepted_risks, out)?;
    capabilities(report, out)?;
    levels(report, out, details)?;
    orphans(&report.orphans, if details { usize::MAX } else { LISTED_MAX }, out)?;
    if !details {
        writeln!(out, "\n--details shows every object and field.")?;
    }
    Ok(())
}

/// What stands in the way, and the risks that are accepted by going on.
pub(in crate::render) fn blockers(
    stops: &[ForecastBlocker],
    accepted: &[ForecastBlocker],
    out: &mut dyn Write,
) -> io::Result<()> {
    if !stops.is_empty() {
        writeln!(out, "\nBlockers")?;
    }
    let lines = |it: &ForecastBlocker| it.message.replace('\n', "\n      ");
    for stop in stops {
        writeln!(out, "  ✗ {}: {}", stop.reason, lines(stop))?;
        if stop.forcible {
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

fn capabilities(report: &ForecastReport, out: &mut dyn Write) -> io::Result<()> {
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

fn levels(report: &ForecastReport, out: &mut dyn Write, details: bool) -> io::Result<()> {
    let components = report.levels.iter().flat_map(|level| &level.components);
    let width = components.map(|component| name(component).chars().count()).max().unwrap_or(0);
    for level in &report.levels {
        let mut heading = level_name(level.level);
        heading[..1].make_ascii_uppercase();
        let components = match level.components.len() {
            0 | 1 => String::new(),
            components => format!(" ({components} components in parallel)"),
        };
        let (quiet, shown): (Vec<&ComponentForecast>, Vec<&ComponentForecast>) =
            level.components.iter().partition(|component| component.is_quiet());
        if shown.is_empty() {
            continue;
        }
        writeln!(out, "\n{heading}{components}")?;
        for component in shown {
            let gate =
                gate(report, component).map(|gate| format!(", then {gate}")).unwrap_or_default();
            writeln!(out, "  {:<width$}  {}{gate}", name(component), in_words(&component.counts))?;
            if details {
                steps(component, out)?;
            }
        }
        if !quiet.is_empty() {
            writeln!(out, "  … and {} in which nothing changes", quiet.len())?;
        }
    }
    Ok(())
}

fn name(component: &ComponentForecast) -> &str {
    component.name.as_deref().unwrap_or("(no component)")
}

/// What the component waits for at its end.
fn gate(report: &ForecastReport, component: &ComponentForecast) -> Option<String> {
    let prefix = "clusteroperator.config.openshift.io \"";
    let mut gates = component.steps.iter().filter_map(|step| {
        let operator = step.object.strip_prefix(prefix)?.strip_suffix('"')?;
        let gate = report.gates.iter().find(|gate| gate.operator == operator)?;
        let now = match &gate.now {
            Some(now) => format!(" (now {})", now.reason),
            None => String::new(),
        };
        Some(format!("{operator}{now}"))
    });
    let first = gates.next()?;
    let all = gates.fold(first, |all, next| format!("{all}, {next}"));
    Some(format!("waits for operator {all}"))
}

fn steps(component: &ComponentForecast, out: &mut dyn Write) -> io::Result<()> {
    for step in &component.steps {
        let Some(sign) = sign(step) else { continue };
        writeln!(out, "    {sign} {}", step.object)?;
        for change in &step.fields {
            writeln!(out, "        {}", field(change))?;
        }
        if let Some(after) = &step.after {
            writeln!(out, "        deferred until {after} is there")?;
        }
        if let Some(problem) = &step.problem {
            writeln!(out, "        {}: {}", problem.reason, problem.message)?;
        }
    }
    Ok(())
}

/// The sign of what becomes of an object; none where nothing does.
pub(in crate::render) fn sign(step: &StepReport) -> Option<&'static str> {
    let signs = [
        (StepChangeKind::Created, "+"),
        (StepChangeKind::Changed, "~"),
        (StepChangeKind::Deleted, "-"),
        (StepChangeKind::Refused, "✗"),
        (StepChangeKind::Waiting, "…"),
    ];
    signs.iter().find(|(kind, _)| kind.as_str() == step.change).map(|(_, sign)| *sign)
}

/// The objects that are left behind, the first `max` of them by name.
pub(in crate::render) fn orphans(
    orphans: &[OrphanReport],
    max: usize,
    out: &mut dyn Write,
) -> io::Result<()> {
    if orphans.is_empty() {
        return Ok(());
    }
    let count = orphans.len();
    writeln!(out, "\nOrphaned: {count} objects that the release no longer manages")?;
    for orphan in orphans.iter().take(max) {
        writeln!(out, "  ? {} ({})", orphan.object, orphan.because)?;
    }
    if count > max {
        writeln!(out, "  … and {} more", count - max)?;
    }
    Ok(())
}
