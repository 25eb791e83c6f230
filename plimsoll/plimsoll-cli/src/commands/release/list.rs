//! `plimsoll release list`: the releases of a store.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use plimsoll_content::payload::ReleaseHeader;
use serde::Serialize;

use crate::arguments::registry::RegistryArguments;
use crate::arguments::store::{self, Location};
use crate::exit;
use crate::render::format::Format;
use crate::render::table;

/// Arguments of `plimsoll release list`.
#[derive(Debug, Args)]
pub struct ListArguments {
    /// A repository of a registry, oci:DIR for an OCI image layout, or a directory of payload
    /// directories
    #[arg(value_name = "REPOSITORY|oci:DIR|DIR", value_parser = store::parse)]
    store: Location,
    /// How registries are reached
    #[command(flatten)]
    registry: RegistryArguments,
    /// Output format
    #[arg(long, short, value_name = "FORMAT", default_value_t)]
    output: Format,
}

/// What the command says.
#[derive(Debug, Serialize)]
struct ListReport {
    /// Oldest first.
    releases: Vec<ReleaseHeader>,
    /// What cannot be read, and why.
    unreadable: Vec<String>,
}

pub(super) fn run(
    arguments: &ListArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let ListArguments { store, registry, output } = arguments;
    let listing = store.open(registry).list();
    let listing = listing.with_context(|| format!("the store `{store}` cannot be read"))?;
    let mut report = ListReport { releases: listing.releases, unreadable: listing.defects };
    let order = |head: &ReleaseHeader| semver::Version::parse(&head.release.version).ok();
    report.releases.sort_by_cached_key(|head| (order(head), head.release.version.clone()));
    if !output.write(&report, out)? {
        let row = |head: &ReleaseHeader| vec![head.release.version.clone(), head.image.clone()];
        let rows: Vec<Vec<String>> = report.releases.iter().map(row).collect();
        table::print(out, &["VERSION", "IMAGE"], &rows)?;
        for problem in &report.unreadable {
            writeln!(out, "unreadable: {problem}")?;
        }
    }
    Ok(exit::SUCCESS.into())
}
