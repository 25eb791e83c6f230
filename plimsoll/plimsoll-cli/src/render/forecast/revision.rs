//! What a revision of an Operator would change: its objects in the order in which they are applied, then those
//! that are deleted.

use std::io::{self, Write};

use plimsoll_plan::forecast::{Forecast, ForecastComponent};

use super::{component, in_words, text};

/// Prints what a revision of an Operator would change, with every field. `risks` are the unsafe changes that
/// it accepts.
pub(crate) fn write_revision(
    operator: &str,
    forecast: &Forecast,
    risks: &[String],
    out: &mut dyn Write,
) -> io::Result<()> {
    let steps = (0..forecast.plan.steps.len()).collect();
    let report = component(forecast, ForecastComponent { name: None, steps });
    let to = &forecast.plan.release.version;
    let title = match &forecast.from {
        Some(from) => format!("Objects of {operator}, from v{} to v{to}", from.version),
        None => format!("Objects of {operator} v{to}"),
    };
    writeln!(out, "\n{title}: {}", in_words(&report.counts))?;
    text::steps(&report, false, "", out, true)?;
    risks.iter().try_for_each(|risk| writeln!(out, "    ! {risk}"))
}
