//! Defects of catalogs and bundles, for people and programs.

use std::io::Write;
use std::process::ExitCode;

use plimsoll_content::bundle::has_errors;
use plimsoll_content::catalog::Defect;
use plimsoll_content::diagnostic::Severity;
use plimsoll_resolve::printable::on_one_line;
use serde::Serialize;

use super::format::Format;
use crate::exit;

/// A defect as programs read it.
#[derive(Debug, Serialize)]
pub(crate) struct Reported<'a> {
    file: &'a str,
    line: u32,
    package: &'a str,
    severity: Severity,
    code: &'static str,
    message: &'a str,
}

/// Defects as programs read them.
pub(crate) fn report(defects: &[Defect]) -> Vec<Reported<'_>> {
    defects.iter().map(reported).collect()
}

fn reported(defect: &Defect) -> Reported<'_> {
    Reported {
        file: &defect.file,
        line: defect.line,
        package: &defect.package,
        severity: defect.severity(),
        code: defect.code.as_str(),
        message: &defect.message,
    }
}

/// Writes defects; the exit code tells whether there are errors.
pub(crate) fn write_report(
    defects: &[Defect],
    format: &Format,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    if !format.write(&report(defects), out)? {
        for defect in defects {
            writeln!(out, "{}", on_one_line(&defect.to_string()))?;
        }
        let errors = defects.iter().filter(|it| it.severity() == Severity::Error).count();
        let warnings = defects.len() - errors;
        writeln!(out, "{errors} errors, {warnings} warnings")?;
    }
    Ok(if has_errors(defects) { exit::FAILURE } else { exit::SUCCESS }.into())
}
