//! A forecast for a change request: headings, tables, and the details folded away.

use std::io::{self, Write};

use plimsoll_plan::forecast::ForecastBlocker;

use super::{ComponentForecast, ForecastReport, field, in_words, level_name, sign};

pub(super) fn write(report: &ForecastReport, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "# {}\n", report.title())?;
    writeln!(out, "{}. Plan `{}`.\n", in_words(&report.counts), report.plan_hash)?;
    if report.blockers.is_empty() {
        writeln!(out, "No blockers.\n")?;
    }
    blockers(&report.blockers, &report.accepted_risks, out)?;
    if !report.capabilities.is_empty() {
        writeln!(out, "## Capabilities enabled by the update\n")?;
        for capability in &report.capabilities {
            writeln!(out, "- `{}`: {}", capability.name, escaped(&capability.because))?;
        }
        writeln!(out)?;
    }
    writeln!(out, "## Order\n")?;
    writeln!(out, "Levels follow each other; the components of a level run in parallel.\n")?;
    writeln!(out, "| Level | Component | What happens | Waits for |\n|---|---|---|---|")?;
    for level in &report.levels {
        for component in &level.components {
            writeln!(
                out,
                "| {} | {} | {} | {} |",
                level.level.map_or_else(|| "-".to_owned(), |level| format!("{level:02}")),
                component.name.as_deref().unwrap_or("-"),
                in_words(&component.counts),
                gates(report, component)
            )?;
        }
    }
    writeln!(out, "\n## Objects\n")?;
    for level in &report.levels {
        objects(&level_name(level.level), &level.components, out)?;
    }
    if !report.orphans.is_empty() {
        writeln!(out, "## Orphans\n\nObjects that the release no longer manages.\n")?;
        for orphan in &report.orphans {
            writeln!(out, "- `{}`: {}", orphan.object, escaped(&orphan.because))?;
        }
    }
    Ok(())
}

/// What stands in the way, and the risks that are accepted by going on.
pub(in crate::render) fn blockers(
    stops: &[ForecastBlocker],
    accepted: &[ForecastBlocker],
    out: &mut dyn Write,
) -> io::Result<()> {
    for (heading, list) in [("Blockers", stops), ("Accepted risks", accepted)] {
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

fn gates(report: &ForecastReport, component: &ComponentForecast) -> String {
    let named = |operator: &str| {
        let object = format!("clusteroperator.config.openshift.io \"{operator}\"");
        component.steps.iter().any(|step| step.object == object)
    };
    let gates = report.gates.iter().filter(|gate| named(&gate.operator));
    let gates: Vec<String> = gates
        .map(|gate| match &gate.now {
            Some(now) => format!("`{}` (now {})", gate.operator, now.reason),
            None => format!("`{}`", gate.operator),
        })
        .collect();
    gates.join(", ")
}

/// The objects of a level that something happens to.
fn objects(name: &str, components: &[ComponentForecast], out: &mut dyn Write) -> io::Result<()> {
    let steps: Vec<_> = components
        .iter()
        .flat_map(|component| &component.steps)
        .filter_map(|step| Some((sign(step)?, step)))
        .collect();
    if steps.is_empty() {
        return Ok(());
    }
    writeln!(out, "<details><summary>{name}: {} objects</summary>\n", steps.len())?;
    for (_, step) in steps {
        writeln!(out, "- {} `{}`", step.change, step.object)?;
        for change in &step.fields {
            writeln!(out, "  - `{}`", field(change).replace('`', "'"))?;
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

/// A text without what Markdown would take for its own.
pub(in crate::render) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        if matches!(letter, '|' | '*' | '_' | '`' | '<' | '>') {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    escaped
}
