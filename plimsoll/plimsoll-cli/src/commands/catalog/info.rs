//! `plimsoll catalog info`: how much there is in a catalog.

use std::io::Write;
use std::process::ExitCode;

use plimsoll_content::finding::Severity;
use serde::Serialize;

use super::InfoArguments;
use crate::arguments::catalog::with_catalog;
use crate::exit;

/// What the command says.
#[derive(Debug, Serialize)]
struct Report {
    packages: u64,
    channels: u64,
    entries: u64,
    bundles: u64,
    errors: usize,
    warnings: usize,
    /// Packages of which nothing can be used, and the first reason for it.
    set_aside: Vec<SetAside>,
}

#[derive(Debug, Serialize)]
struct SetAside {
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
        let errors = defects.iter().filter(|it| it.severity() == Severity::Error).count();
        let mut set_aside = Vec::new();
        // Only where there is something to find is every package looked at.
        if counts.invalid > 0 {
            for name in index.package_names() {
                let Some(block) = index.package(name)? else { continue };
                let package = block.read()?;
                if package.invalid {
                    let reason = package.invalid_because().unwrap_or_default().to_owned();
                    set_aside.push(SetAside { package: name.to_owned(), reason });
                }
            }
        }
        Ok(Report {
            packages: counts.packages,
            channels: counts.channels,
            entries: counts.entries,
            bundles: counts.bundles,
            errors,
            warnings: defects.len() - errors,
            set_aside,
        })
    })?;
    if arguments.output.write(&report, out)? {
        return Ok(exit::SUCCESS.into());
    }
    writeln!(out, "Packages:  {}", report.packages)?;
    writeln!(out, "Channels:  {} with {} entries", report.channels, report.entries)?;
    writeln!(out, "Bundles:   {}", report.bundles)?;
    writeln!(out, "Defects:   {} errors, {} warnings", report.errors, report.warnings)?;
    writeln!(out, "Set aside: {} packages", report.set_aside.len())?;
    for SetAside { package, reason } in &report.set_aside {
        writeln!(out, "  {package}: {reason}")?;
    }
    Ok(exit::SUCCESS.into())
}
