//! `plimsoll release tree`: what is applied in which order.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::Args;
use plimsoll_content::Manifest;
use plimsoll_content::position::Position;
use plimsoll_plan::plan::DELETE;
use plimsoll_resolve::printable::on_one_line;
use serde::Serialize;

use super::loaded::{LoadedRelease, load, origin_text};
use crate::arguments::registry::RegistryArguments;
use crate::arguments::store;
use crate::exit;
use crate::render::format::Format;

/// Arguments of `plimsoll release tree`.
#[derive(Debug, Args)]
pub struct TreeArguments {
    /// The release: the directory of its payload or its source, or a reference to its image
    #[arg(value_name = "DIR|REFERENCE", value_parser = store::parse)]
    release: store::Location,
    /// How registries are reached
    #[command(flatten)]
    registry: RegistryArguments,
    /// Output format
    #[arg(long, short, value_name = "FORMAT", default_value_t)]
    output: Format,
}

pub(super) fn run(
    arguments: &TreeArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let release = load(&arguments.release, &arguments.registry)?;
    let report = report(&release);
    if !arguments.output.write(&report, out)? {
        write_text(&report, out)?;
    }
    Ok(exit::SUCCESS.into())
}

/// What the command says.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TreeReport {
    version: String,
    run_levels: Vec<RunLevel>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct RunLevel {
    /// `None` for files whose names give none.
    run_level: Option<u32>,
    components: Vec<ComponentTree>,
}

#[derive(Debug, Serialize)]
struct ComponentTree {
    name: String,
    manifests: Vec<TreeManifest>,
}

#[derive(Debug, Serialize)]
struct TreeManifest {
    file: String,
    document: usize,
    object: String,
    /// Whether an update deletes the object.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    deleted: bool,
    /// Where it comes from in the source; absent for a payload and for what was added.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
}

/// The run levels of a release, in their order.
pub(super) fn report(release: &LoadedRelease) -> TreeReport {
    let mut levels: BTreeMap<(bool, u32), BTreeMap<&str, Vec<TreeManifest>>> = BTreeMap::new();
    for manifest in &release.payload.manifests {
        let position = Position::of(&manifest.file);
        // Files without a level come last.
        let level = position.map_or((true, 0), |position| (false, position.level));
        let component = position.map_or("", |position| position.component);
        let components = levels.entry(level).or_default();
        components.entry(component).or_default().push(entry(manifest, release));
    }
    let run_levels = levels.into_iter().map(|((is_without, level), components)| RunLevel {
        run_level: (!is_without).then_some(level),
        components: components
            .into_iter()
            .map(|(name, manifests)| ComponentTree { name: name.to_owned(), manifests })
            .collect(),
    });
    TreeReport {
        version: release.payload.release.version.clone(),
        run_levels: run_levels.collect(),
    }
}

fn entry(manifest: &Manifest, release: &LoadedRelease) -> TreeManifest {
    TreeManifest {
        file: manifest.file.to_string(),
        document: manifest.document,
        object: manifest.key.reference(),
        deleted: manifest.is_annotated_true(DELETE),
        source: release.origins.get(&*manifest.file).map(origin_text),
    }
}

pub(super) fn write_text(report: &TreeReport, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", report.version)?;
    for level in &report.run_levels {
        match level.run_level {
            Some(level) => writeln!(out, "level {level:02}")?,
            None => writeln!(out, "no level")?,
        }
        for component in &level.components {
            writeln!(out, "  {}", component.name)?;
            let object = |it: &TreeManifest| {
                let deleted = if it.deleted { " (deleted)" } else { "" };
                format!("{}{deleted}", on_one_line(&it.object))
            };
            let width = component.manifests.iter().map(|it| object(it).chars().count()).max();
            let width = width.unwrap_or_default();
            for manifest in &component.manifests {
                let file = on_one_line(&manifest.file);
                let line = format!("    {:<width$}  {file}", object(manifest));
                match &manifest.source {
                    Some(source) => writeln!(out, "{line} < {}", on_one_line(source))?,
                    None => writeln!(out, "{line}")?,
                }
            }
        }
    }
    Ok(())
}
