//! `plimsoll catalog search`: the packages of a catalog.

use std::io::Write;
use std::process::ExitCode;

use plimsoll_content::catalog::{CatalogIndex, IndexStorage, PackageSummary};
use plimsoll_operators::version_text;

use super::SearchArguments;
use crate::arguments::catalog::with_catalog;
use crate::exit;
use crate::render::format::Format;
use crate::render::table;

/// Most characters of a description in the table.
const DESCRIPTION_MAX: usize = 60;

pub(super) fn run(
    arguments: &SearchArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let found = with_catalog(&arguments.catalog, |index| packages(index, &arguments.words, None))?;
    write(&found, &arguments.output, out)?;
    Ok(exit::SUCCESS.into())
}

/// The packages of a catalog that match all words, in order of their names; `catalog` is its name, if it
/// is one of several.
///
/// # Errors
///
/// When the index is damaged.
pub(crate) fn packages<S: IndexStorage>(
    index: &CatalogIndex<S>,
    words: &[String],
    catalog: Option<&str>,
) -> Result<Vec<PackageSummary>, anyhow::Error> {
    let words: Vec<String> = words.iter().map(|word| word.to_lowercase()).collect();
    let mut found = Vec::new();
    for name in index.package_names() {
        let Some(block) = index.package(name)? else { continue };
        let summary = PackageSummary::of(&block.read()?, catalog);
        if summary.matches(&words) {
            found.push(summary);
        }
    }
    Ok(found)
}

/// Writes a list of packages.
///
/// # Errors
///
/// When the output cannot be written.
pub(crate) fn write(
    found: &[PackageSummary],
    output: &Format,
    out: &mut dyn Write,
) -> Result<(), anyhow::Error> {
    if output.write(&found, out)? {
        return Ok(());
    }
    if found.is_empty() {
        writeln!(out, "No packages found")?;
        return Ok(());
    }
    let is_of_several = found.iter().any(|it| it.catalog.is_some());
    let rows: Vec<Vec<String>> = found.iter().map(cells).collect();
    let headings = ["NAME", "CATALOG", "CHANNEL", "VERSION", "STATE", "DESCRIPTION"];
    let headings = headings.into_iter().filter(|it| is_of_several || *it != "CATALOG");
    Ok(table::print(out, &headings.collect::<Vec<_>>(), &rows)?)
}

fn cells(row: &PackageSummary) -> Vec<String> {
    let state = match (row.invalid, row.deprecated) {
        (true, _) => "invalid",
        (false, true) => "deprecated",
        (false, false) => "",
    };
    let described = if row.description.is_empty() { &row.display_name } else { &row.description };
    let line = described.lines().next().unwrap_or_default();
    let mut description: String = line.chars().take(DESCRIPTION_MAX).collect();
    if description.len() < line.len() {
        description.push('…');
    }
    let (name, channel, version) = (&row.name, &row.default_channel, version_text(&row.version));
    let catalog = row.catalog.clone();
    let rest = [channel.clone(), version, state.to_owned(), description];
    [name.clone()].into_iter().chain(catalog).chain(rest).collect()
}
