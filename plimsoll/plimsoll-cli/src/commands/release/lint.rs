//! `plimsoll release lint`: every defect of a payload, or of the one that a source makes.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::ExitCode;

use anyhow::Context as _;
use plimsoll_content::diagnostic::{Finding, Severity};
use plimsoll_content::lint::{has_errors, lint};
use plimsoll_content::payload::TemplateContext;
use plimsoll_source::authoring::{build, is_source};
use plimsoll_source::{ReadError, read_directory};
use serde::Serialize;

use super::LintArguments;
use super::loaded::located;
use crate::arguments::store::Location;
use crate::exit;

#[derive(Debug, Serialize)]
struct LintReport {
    errors: usize,
    warnings: usize,
    /// Files that cannot be read; each counts as an error.
    unreadable: Vec<String>,
    findings: Vec<Finding>,
}

/// Lints a payload: fails if it has errors, warnings alone do no harm.
pub(super) fn run(
    arguments: &LintArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let mut origins = BTreeMap::new();
    let (files, unread) = match &arguments.release {
        Location::Directory(directory) if is_source(directory) => {
            let context = || format!("failed to build `{}`", directory.display());
            let built = build(directory, None).with_context(context)?;
            origins = built.origins;
            (built.files, Vec::new())
        }
        Location::Directory(directory) => match read_directory(directory) {
            Ok(files) => (files, Vec::new()),
            Err(errors) => (errors.files, errors.errors),
        },
        location => (location.files(&arguments.registry)?.1, Vec::new()),
    };
    let mut findings = lint(&files, &TemplateContext::default());
    // What follows from a file not having been read is not said twice.
    findings.retain(|finding| !unread.iter().any(|unread| unread.explains(&finding.location)));
    let failed = !unread.is_empty() || has_errors(&findings);
    let errors = findings.iter().filter(|it| it.severity == Severity::Error).count();
    let report = LintReport {
        errors: errors + unread.len(),
        warnings: findings.len() - errors,
        unreadable: unread.iter().map(ReadError::to_string).collect(),
        findings,
    };
    if !arguments.output.write(&report, out)? {
        for unreadable in &report.unreadable {
            writeln!(out, "{unreadable}")?;
        }
        for finding in &report.findings {
            writeln!(out, "{}", located(finding, &origins))?;
        }
        writeln!(out, "{} errors, {} warnings", report.errors, report.warnings)?;
    }
    Ok(if failed { exit::FAILURE } else { exit::SUCCESS }.into())
}
