//! `plimsoll catalog info`: how much there is in a catalog.

use std::io::Write;
use std::process::ExitCode;

use plimsoll_content::diagnostic::Severity;
use plimsoll_resolve::printable::on_one_line;
use serde::Serialize;

use super::InfoArguments;
use crate::arguments::catalog::with_catalog;
use crate::exit;
use crate::render::count::counted;

/// The output of the command.
#[derive(Debug, Serialize)]
struct CatalogSummary {
    packages: u64,
    channels: u64,
    entries: u64,
    bundles: u64,
    errors: usize,
    warnings: usize,
    /// Packages of which nothing can be used, and the first reason for it.
    invalid: Vec<InvalidPackage>,
}

#[derive(Debug, Serialize)]
struct InvalidPackage {
    package: String,
    reason: String,
}

pub(super) fn run(
    arguments: &InfoArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let report = with_catalog(&arguments.catalog, |index| {
        let counts = index.counts();
        let defects = index.defects()?;
        let errors = defects.iter().filter(|it| it.severity == Severity::Error).count();
        let mut invalid = Vec::new();
        // Only where there is something to find is every package looked at.
        if counts.invalid > 0 {
            for name in index.package_names() {
                let Some(block) = index.package(name)? else { continue };
                let package = block.read()?;
                if package.invalid {
                    let reason = package.invalid_because().unwrap_or_default().to_owned();
                    invalid.push(InvalidPackage { package: name.to_owned(), reason });
                }
            }
        }
        Ok(CatalogSummary {
            packages: counts.packages,
            channels: counts.channels,
            entries: counts.entries,
            bundles: counts.bundles,
            errors,
            warnings: defects.len() - errors,
            invalid,
        })
    })?;
    anyhow::ensure!(
        report.packages > 0 || report.errors == 0,
        "`{}` has no package and {}, so it is no catalog; `plimsoll catalog lint` lists \
         them, and a release payload is shown by `plimsoll release info`",
        arguments.catalog.path().display(),
        counted(report.errors, "error")
    );
    if arguments.output.write(&report, out)? {
        return Ok(exit::SUCCESS.into());
    }
    writeln!(out, "Packages:  {}", report.packages)?;
    writeln!(out, "Channels:  {} with {} entries", report.channels, report.entries)?;
    writeln!(out, "Bundles:   {}", report.bundles)?;
    let errors = counted(report.errors, "error");
    writeln!(out, "Defects:   {errors}, {}", counted(report.warnings, "warning"))?;
    writeln!(out, "Invalid packages: {}", report.invalid.len())?;
    for InvalidPackage { package, reason } in &report.invalid {
        writeln!(out, "  {}", on_one_line(&format!("{package}: {reason}")))?;
    }
    Ok(exit::SUCCESS.into())
}
