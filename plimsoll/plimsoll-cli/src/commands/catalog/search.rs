//! `plimsoll catalog search`: the packages of a catalog.

use std::io::Write;
use std::process::ExitCode;

use plimsoll_content::catalog::IndexedPackage;
use serde::Serialize;

use super::SearchArguments;
use crate::arguments::catalog::with_catalog;
use crate::exit;
use crate::render::table;

/// Most characters of a description in the table.
const DESCRIPTION_MAX: usize = 60;

/// A package in the list.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    name: String,
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
    let words: Vec<String> = arguments.words.iter().map(|word| word.to_lowercase()).collect();
    let rows = with_catalog(&arguments.catalog, |index| {
        let mut rows = Vec::new();
        for name in index.package_names() {
            let Some(block) = index.package(name)? else { continue };
            let package = block.read()?;
            if matches(&package, &words) {
                rows.push(row(&package));
            }
        }
        Ok(rows)
    })?;
    if arguments.output.write(&rows, out)? {
        return Ok(exit::SUCCESS.into());
    }
    if rows.is_empty() {
        writeln!(out, "No packages found")?;
    } else {
        let cells: Vec<Vec<String>> = rows.iter().map(cells).collect();
        let headings = ["NAME", "CHANNEL", "VERSION", "STATE", "DESCRIPTION"];
        table::print(out, &headings, &cells)?;
    }
    Ok(exit::SUCCESS.into())
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

fn row(package: &IndexedPackage<'_>) -> Row {
    let bundle = package.default_bundle();
    let details = bundle.and_then(|bundle| package.details(bundle));
    let described = details.map(|it| it.description.to_string()).filter(|text| !text.is_empty());
    Row {
        name: package.name.to_string(),
        display_name: details.map(|it| it.display_name.to_string()).unwrap_or_default(),
        default_channel: package.default_channel.to_string(),
        version: bundle.map(|it| it.version.to_string()).unwrap_or_default(),
        description: described.unwrap_or_else(|| package.description.to_string()),
        invalid: package.invalid,
        deprecated: package.deprecated.is_some(),
    }
}

fn cells(row: &Row) -> Vec<String> {
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
    vec![name.clone(), channel.clone(), version.clone(), state.to_owned(), description]
}
