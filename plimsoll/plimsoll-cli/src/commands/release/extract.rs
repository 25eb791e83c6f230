//! `plimsoll release extract`: files of a payload.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::{ArgGroup, Args};
use plimsoll_source::authoring::write_payload;

use super::loaded::load;
use crate::arguments::name;
use crate::arguments::registry::RegistryArguments;
use crate::arguments::store;
use crate::exit;

/// Arguments of `plimsoll release extract`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("content").args(["file", "to"]).required(true))]
pub struct ExtractArguments {
    /// The release: the directory of its payload or its source, or a reference to its image
    #[arg(value_name = "DIR|REFERENCE", value_parser = store::parse)]
    release: store::Location,
    /// How registries are reached
    #[command(flatten)]
    registry: RegistryArguments,
    /// Print a file: its name in release-manifests or manifests
    #[arg(long, value_name = "NAME")]
    file: Option<String>,
    /// Write the files to a directory, which is absent, empty or an earlier build
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
}

pub(super) fn run(
    arguments: &ExtractArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let files = load(&arguments.release, &arguments.registry)?.files;
    if let Some(to) = &arguments.to {
        write_payload(&files, to).context("--to")?;
        writeln!(out, "wrote {} files to {}", files.len(), to.display())?;
        return Ok(exit::SUCCESS.into());
    }
    let wanted = arguments.file.as_deref().unwrap_or_default();
    let Some(file) = files.iter().find(|file| file.name == wanted) else {
        let hint = name::hint(wanted, files.iter().map(|file| file.name.as_str()));
        bail!("the release has no file `{wanted}`{hint}");
    };
    out.write_all(&file.bytes)?;
    Ok(exit::SUCCESS.into())
}
