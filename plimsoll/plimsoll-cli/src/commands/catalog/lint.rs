//! `plimsoll catalog lint`: every defect of a catalog.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use plimsoll_content::catalog::LoadedCatalog;
use plimsoll_source::catalog::load;

use super::LintArguments;
use crate::arguments::catalog::shown;
use crate::render::diagnostics::{self, Cases, Checked};

pub(super) fn run(
    arguments: &LintArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    // Files are read anew, with or without the cache: an index may be that of an earlier program.
    let path = arguments.catalog.path();
    let loaded = shown(path, |show| load(path, show))
        .with_context(|| format!("failed to read catalog `{}`", path.display()))?;
    // The files of a catalog have names that are relative to it; a single one has its own.
    let file = Path::parent(path).filter(|_| path.is_file());
    let (directory, defects) = (file.unwrap_or(path), loaded.defects.clone());
    let packages = package_names(loaded);
    let command = "plimsoll catalog lint";
    let checked = Checked { command, directory, cases: Cases::Packages(&packages) };
    diagnostics::write(&checked, &defects, &arguments.output, out)
}

fn package_names(loaded: LoadedCatalog) -> Vec<String> {
    loaded.open().package_names().map(str::to_owned).collect()
}
