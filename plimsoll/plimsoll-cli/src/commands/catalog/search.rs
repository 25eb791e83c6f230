//! `plimsoll catalog search`: the packages of a catalog.

use std::io::Write;
use std::process::ExitCode;

use plimsoll_content::catalog::{CatalogIndex, IndexStorage, IndexedPackage};
use serde::Serialize;

use super::SearchArguments;
use crate::arguments::catalog::with_catalog;
use crate::exit;
use crate::render::format::Format;
use crate::render::table;

/// Most characters of a description in the table.
const DESCRIPTION_MAX: usize = 60;

/// A package in the list.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FoundPackage {
    name: String,
    /// The catalog that has it; absent if only one was searched.
    #[serde(skip_serializing_if = "Option::is_none")]
    catalog: Option<String>,
    display_name: String,
    default_channel: String,
    /// The version at the head of the default channel.
    version: String,
    description: String,
    /// Whether nothing of it can be used.
    invalid: bool,
    deprecated: bool,
}

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
) -> Result<Vec<FoundPackage>, anyhow::Error> {
    let words: Vec<String> = words.iter().map(|word| word.to_lowercase()).collect();
    let mut found = Vec::new();
    for name in index.package_names() {
        let Some(block) = index.package(name)? else { continue };
        let package = block.read()?;
        if matches(&package, &words) {
            found.push(found_package(&package, catalog));
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
    found: &[FoundPackage],
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

fn matches(package: &IndexedPackage<'_>, words: &[String]) -> bool {
    if words.is_empty() {
        return true;
    }
    let mut text = vec![package.name.to_lowercase(), package.description.to_lowercase()];
    for details in &package.details {
        let texts = [&details.display_name, &details.description, &details.provider];
        text.extend(texts.map(|it| it.to_lowercase()));
    }
    text.extend(
        package.apis.iter().map(|api| format!("{} {}", api.group, api.kind).to_lowercase()),
    );
    words.iter().all(|word| text.iter().any(|text| text.contains(word.as_str())))
}

fn found_package(package: &IndexedPackage<'_>, catalog: Option<&str>) -> FoundPackage {
    let bundle = package.default_bundle();
    let details = bundle.and_then(|bundle| package.details(bundle));
    let described = details.map(|it| it.description.to_string()).filter(|text| !text.is_empty());
    FoundPackage {
        name: package.name.to_string(),
        catalog: catalog.map(str::to_owned),
        display_name: details.map(|it| it.display_name.to_string()).unwrap_or_default(),
        default_channel: package.default_channel.to_string(),
        version: bundle.map(|it| it.version.to_string()).unwrap_or_default(),
        description: described.unwrap_or_else(|| package.description.to_string()),
        invalid: package.invalid,
        deprecated: package.deprecated.is_some(),
    }
}

fn cells(row: &FoundPackage) -> Vec<String> {
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
    let (name, channel, version) = (&row.name, &row.default_channel, &row.version);
    let catalog = row.catalog.clone();
    let rest = [channel.clone(), version.clone(), state.to_owned(), description];
    [name.clone()].into_iter().chain(catalog).chain(rest).collect()
}
