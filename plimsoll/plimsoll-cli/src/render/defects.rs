//! Defects of catalogs and bundles, for people and programs.

use std::io::Write;
use std::process::ExitCode;

use plimsoll_content::diagnostic::{Diagnostic, Severity, has_errors};
use plimsoll_resolve::printable::on_one_line;
use serde::Serialize;

use super::format::Format;
use crate::exit;

/// A defect as programs read it.
#[derive(Debug, Serialize)]
pub(crate) struct Reported<'a> {
    file: &'a str,
    line: usize,
    package: &'a str,
    severity: Severity,
    code: &'a str,
    message: &'a str,
}

/// Defects as programs read them.
pub(crate) fn report(defects: &[Diagnostic]) -> Vec<Reported<'_>> {
    defects.iter().map(reported).collect()
}

fn reported(defect: &Diagnostic) -> Reported<'_> {
    Reported {
        file: &defect.file,
        line: defect.line.unwrap_or(0),
        package: &defect.package,
        severity: defect.severity,
        code: &defect.code,
        message: &defect.message,
    }
}

/// Writes defects; the exit code tells whether there are errors.
pub(crate) fn write_report(
    defects: &[Diagnostic],
    format: &Format,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    if !format.write(&report(defects), out)? {
        for defect in defects {
            writeln!(out, "{}", on_one_line(&defect.to_string()))?;
        }
        let errors = defects.iter().filter(|it| it.severity == Severity::Error).count();
        let warnings = defects.len() - errors;
        writeln!(out, "{errors} errors, {warnings} warnings")?;
    }
    Ok(if has_errors(defects) { exit::FAILURE } else { exit::SUCCESS }.into())
}
