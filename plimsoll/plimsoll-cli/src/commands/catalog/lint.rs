//! `plimsoll catalog lint`: every defect of a catalog.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Context as _;
use plimsoll_source::catalog::load;

use super::LintArguments;
use crate::arguments::catalog::shown;
use crate::render::diagnostics;

pub(super) fn run(
    arguments: &LintArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    // Files are read anew, with or without the cache: an index may be that of an earlier program.
    let path = arguments.catalog.path();
    let loaded = shown(path, |show| load(path, show))
        .with_context(|| format!("failed to read catalog `{}`", path.display()))?;
    let files = [path.display().to_string()];
    diagnostics::write("plimsoll catalog lint", &files, &loaded.defects, &arguments.output, out)
}
