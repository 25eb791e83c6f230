//! Rehearsals of Operators as people and programs read them: the verdict, what changes, what is wrong.

use std::io::{self, Write};

use anyhow::bail;
use plimsoll_api::OPERATOR;
use plimsoll_resolve::printable::on_one_line;
use plimsoll_simulation::rehearsal::{
    ObjectCounts, OperatorTrouble, OperatorsResult, RehearsedOperator, TroubleKind,
};
use serde::Serialize;

use super::super::forecast::{escaped, moment, span};
use super::super::format::Format;
use super::super::object::reference;
use super::UNREAD;

/// The number of deleted operands that are named without details.
const OPERANDS_NAMED: usize = 5;

/// A rehearsal of Operators. Times are whole seconds since the changes were requested.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OperatorsReport {
    /// What it was rehearsed on.
    pub on: String,
    /// Whether everything would come to its end.
    pub succeeds: bool,
    /// What became of the Operators.
    #[serde(flatten)]
    pub result: OperatorsResult,
}

impl OperatorsReport {
    /// Reports a rehearsal; `on` says what it was rehearsed on.
    pub fn of(result: OperatorsResult, on: String) -> Self {
        Self { on, succeeds: result.succeeds(), result }
    }

    /// Writes the report; `details` shows every step of Operators and every operand in a text.
    ///
    /// # Errors
    ///
    /// When the output cannot be written, or the format is for releases alone.
    pub fn write(
        &self,
        format: &Format,
        details: bool,
        out: &mut dyn Write,
    ) -> Result<(), anyhow::Error> {
        match format {
            Format::Text | Format::Wide => self.write_text(details || format.is_wide(), out)?,
            Format::Markdown => self.write_markdown(out)?,
            Format::Name => {
                self.changed()
                    .try_for_each(|it| writeln!(out, "{}", reference(OPERATOR, &it.name)))?;
            }
            Format::Diff | Format::Picture(_) => {
                bail!("-o {format} is for rehearsals of releases; use text, markdown, json or yaml")
            }
            Format::PlanJson => {
                bail!("-o {format} is for plans; use text, markdown, json or yaml")
            }
            Format::Json | Format::Yaml | Format::JsonPath(_) | Format::Sarif | Format::Junit => {
                format.write(self, out)?;
            }
        }
        Ok(())
    }

    fn changed(&self) -> impl Iterator<Item = &RehearsedOperator> {
        self.result.operators.iter().filter(|it| it.is_changed())
    }

    fn title(&self) -> String {
        let names: Vec<&str> = self.changed().map(|it| it.name.as_str()).collect();
        match names.as_slice() {
            [] => "No change of Operators".to_owned(),
            [name] => format!("Change of Operator {name}"),
            names => format!("Changes of {} Operators", names.len()),
        }
    }

    fn of_kind(&self, kind: TroubleKind) -> impl Iterator<Item = &OperatorTrouble> {
        self.result.troubles.iter().filter(move |it| it.kind == kind)
    }

    fn write_text(&self, details: bool, out: &mut dyn Write) -> io::Result<()> {
        let OperatorsResult { seconds, objects, .. } = &self.result;
        writeln!(out, "{}, rehearsed on {}", self.title(), self.on)?;
        let (took, objects) = (span(*seconds), counted(*objects));
        if self.succeeds {
            writeln!(out, "It would succeed, in {took} of simulated time: {objects}.")?;
        } else {
            writeln!(out, "It would not succeed: nothing moves any more after {took}. {objects}.")?;
        }
        if self.changed().next().is_some() {
            writeln!(out)?;
        }
        self.changed().try_for_each(|it| writeln!(out, "  {}", change(it)))?;
        for (kind, heading) in KINDS {
            self.write_troubles(kind, heading, out)?;
        }
        if details && !self.result.transitions.is_empty() {
            writeln!(out, "\nSteps")?;
            for it in &self.result.transitions {
                let message = on_one_line(&it.message);
                writeln!(out, "{:>6}  {} {}: {message}", moment(it.at), it.operator, it.reason)?;
            }
        }
        self.write_surroundings(details, out)
    }

    fn write_troubles(
        &self,
        kind: TroubleKind,
        heading: &str,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        if self.of_kind(kind).next().is_none() {
            return Ok(());
        }
        writeln!(out, "\n{heading}")?;
        self.of_kind(kind).try_for_each(|it| {
            let mark = if it.is_earlier || it.is_accepted { '!' } else { '✗' };
            let message = on_one_line(&it.message);
            writeln!(out, "  {mark} {}{}: {message}{}", it.operator, reason(it), note(it))
        })
    }

    /// Writes what is left behind, and what the copy lacks.
    fn write_surroundings(&self, details: bool, out: &mut dyn Write) -> io::Result<()> {
        let OperatorsResult { orphans, deleted_operands, unread_catalogs, .. } = &self.result;
        if !orphans.is_empty() {
            writeln!(out, "\nNothing depends on them any more\n  {}", orphans.join(", "))?;
        }
        if !deleted_operands.is_empty() {
            writeln!(out, "\nOperands that would be deleted")?;
            let named = if details { deleted_operands.len() } else { OPERANDS_NAMED };
            deleted_operands.iter().take(named).try_for_each(|it| writeln!(out, "  - {it}"))?;
            if let Some(more) = deleted_operands.len().checked_sub(named).filter(|it| *it > 0) {
                writeln!(out, "  and {more} more; --details names them")?;
            }
        }
        if !unread_catalogs.is_empty() {
            writeln!(out, "\nCatalogs that cannot be read from here")?;
        }
        for it in unread_catalogs {
            writeln!(out, "  {}: {}", it.name, on_one_line(&it.message))?;
        }
        let OperatorsResult { not_copied, unread_kinds, .. } = &self.result;
        if !not_copied.is_empty() {
            writeln!(out, "\nNot copied, since the embedded server does not serve them")?;
            writeln!(out, "  {}", not_copied.join(", "))?;
        }
        if !unread_kinds.is_empty() {
            writeln!(out, "\n{UNREAD}\n  {}", unread_kinds.join(", "))?;
        }
        Ok(())
    }

    fn write_markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        let OperatorsResult { seconds, objects, orphans, .. } = &self.result;
        writeln!(out, "# Rehearsal: {}\n\nOn {}.\n", self.title(), escaped(&self.on))?;
        let (took, objects) = (span(*seconds), counted(*objects));
        if self.succeeds {
            writeln!(out, "**It would succeed**, in {took} of simulated time: {objects}.\n")?;
        } else {
            writeln!(
                out,
                "**It would not succeed**: nothing moves any more after {took}. {objects}.\n"
            )?;
        }
        self.changed().try_for_each(|it| writeln!(out, "- `{}`", change(it)))?;
        for (kind, heading) in KINDS {
            if self.of_kind(kind).next().is_some() {
                writeln!(out, "\n## {heading}\n")?;
            }
            self.of_kind(kind).try_for_each(|it| {
                let message = escaped(&on_one_line(&it.message));
                writeln!(out, "- **{}**{}: {message}{}", it.operator, reason(it), note(it))
            })?;
        }
        if !orphans.is_empty() {
            writeln!(out, "\nNothing depends on them any more: {}.", orphans.join(", "))?;
        }
        self.write_markdown_surroundings(out)
    }

    /// Writes what is lost, and what the copy lacks.
    fn write_markdown_surroundings(&self, out: &mut dyn Write) -> io::Result<()> {
        let OperatorsResult { deleted_operands, unread_catalogs, .. } = &self.result;
        if !deleted_operands.is_empty() {
            writeln!(out, "\n## Operands that would be deleted\n")?;
            deleted_operands.iter().try_for_each(|it| writeln!(out, "- `{it}`"))?;
        }
        if !unread_catalogs.is_empty() {
            writeln!(out, "\n## Catalogs that cannot be read from here\n")?;
        }
        for it in unread_catalogs {
            writeln!(out, "- **{}**: {}", it.name, escaped(&on_one_line(&it.message)))?;
        }
        let OperatorsResult { not_copied, unread_kinds, .. } = &self.result;
        if !not_copied.is_empty() {
            writeln!(out, "\nNot copied: {}.", not_copied.join(", "))?;
        }
        if !unread_kinds.is_empty() {
            writeln!(out, "\n{UNREAD}: {}.", unread_kinds.join(", "))?;
        }
        Ok(())
    }
}

/// The headings of what is wrong.
const KINDS: [(TroubleKind, &str); 3] = [
    (TroubleKind::Unsatisfied, "Unsatisfied"),
    (TroubleKind::Stuck, "Stuck"),
    (TroubleKind::Invalidated, "Objects that would be invalid"),
];

/// Returns the change of the version of an Operator, as plans of updates show it.
fn change(operator: &RehearsedOperator) -> String {
    let RehearsedOperator { name, before, after, is_deleted, .. } = operator;
    match (before, after) {
        (None, Some(after)) => format!("new operator -> {name}@v{after}"),
        (Some(before), Some(after)) => format!("{name}@v{before} -> {name}@v{after}"),
        (Some(before), None) if *is_deleted => format!("{name}@v{before} -> deleted"),
        (Some(before), None) => format!("{name}@v{before} -> not installed"),
        (None, None) => format!("{name} -> deleted"),
    }
}

fn reason(trouble: &OperatorTrouble) -> String {
    if trouble.reason.is_empty() { String::new() } else { format!(" {}", trouble.reason) }
}

/// Returns why something that is wrong does not count.
fn note(trouble: &OperatorTrouble) -> &'static str {
    match (trouble.is_accepted, trouble.is_earlier) {
        (true, _) => " (accepted by its spec)",
        (false, true) => " (as before)",
        (false, false) => "",
    }
}

/// Returns numbers of objects in words.
fn counted(objects: ObjectCounts) -> String {
    let ObjectCounts { created, changed, deleted } = objects;
    let counts = [(created, "created"), (changed, "changed"), (deleted, "deleted")];
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    let words: Vec<String> = counts.map(|(count, what)| format!("{count} {what}")).collect();
    match words.is_empty() {
        true => "no object changes".to_owned(),
        false => format!("{} of the objects of Operators", words.join(", ")),
    }
}

#[cfg(test)]
mod tests;
