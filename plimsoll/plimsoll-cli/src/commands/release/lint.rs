//! `plimsoll release lint`: every defect of a payload, or of the one that a source makes.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use plimsoll_content::authoring::SourceProblems;
use plimsoll_content::lint::{lint_built, lint_update};
use plimsoll_content::payload::{SourceFile, TemplateContext};
use plimsoll_source::authoring::{BuildError, is_source};
use plimsoll_source::{ReadError, read_directory};

use super::LintArguments;
use crate::arguments::store::Location;
use crate::interruption::build;
use crate::render::diagnostics::{self, Cases, Checked};

/// How reports name the command.
const COMMAND: &str = "plimsoll release lint";

/// Lints a payload: fails if it has errors, warnings alone do no harm.
pub(super) fn run(
    arguments: &LintArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let directory = match &arguments.release {
        Location::Directory(directory) => directory.as_path(),
        Location::Oci(_) | Location::Registry(_) => Path::new(""),
    };
    let checked = Checked { command: COMMAND, directory, cases: Cases::Files(&[]) };
    let mut origins = BTreeMap::new();
    let (files, unread) = match &arguments.release {
        Location::Directory(directory) if is_source(directory) => match build(directory, None) {
            Ok(built) => {
                origins = built.origins;
                (built.files, Vec::new())
            }
            Err(BuildError::Problems(SourceProblems(findings))) => {
                return diagnostics::write(&checked, &findings, &arguments.output, out);
            }
            Err(error) => {
                let context = format!("failed to build `{}`", directory.display());
                return Err(anyhow::Error::new(error).context(context));
            }
        },
        Location::Directory(directory) => match read_directory(directory) {
            Ok(files) => (files, Vec::new()),
            Err(errors) => (errors.files, errors.errors),
        },
        location => (location.files(&arguments.registry)?.1, Vec::new()),
    };
    let context = TemplateContext::default();
    let mut findings = lint_built(&files, &origins, &context);
    if let Some(from) = &arguments.from {
        let earlier = match from {
            Location::Directory(directory) if is_source(directory) => {
                let context = || format!("failed to build `{}`", directory.display());
                build(directory, None).with_context(context)?.files
            }
            location => location.files(&arguments.registry)?.1,
        };
        findings.extend(lint_update(&earlier, &files, &origins, &context));
    }
    // What follows from a file not having been read is not said twice.
    findings.retain(|finding| !unread.iter().any(|unread| unread.explains(&finding.file)));
    findings.extend(unread.iter().map(ReadError::diagnostic));
    findings.sort();
    let path = |file: &SourceFile| match origins.get(&file.name) {
        Some(origin) => origin.path.clone(),
        None => file.path(),
    };
    let files: Vec<String> = files.iter().map(path).collect();
    let mut checked = Checked { cases: Cases::Files(&files), ..checked };
    if findings.iter().any(|it| Path::new(&it.file) == directory) {
        // The directory itself cannot be read: it is named as the user named it.
        checked.directory = Path::new("");
    }
    diagnostics::write(&checked, &findings, &arguments.output, out)
}
