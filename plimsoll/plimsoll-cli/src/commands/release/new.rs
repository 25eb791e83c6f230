//! `plimsoll release new`: a source to start from.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, anyhow, ensure};
use clap::Args;
use plimsoll_content::authoring::check_name;
use plimsoll_source::whole_file;

use crate::exit;

/// The files of the source; `NAME` in them is the name of the release.
const FILES: [(&str, &str); 5] = [
    ("release.yaml", include_str!("scaffold/release.yaml")),
    ("base/namespace.yaml", include_str!("scaffold/base/namespace.yaml")),
    ("base/quota.yaml", include_str!("scaffold/base/quota.yaml")),
    ("web/deployment.yaml", include_str!("scaffold/web/deployment.yaml")),
    ("web/service.yaml", include_str!("scaffold/web/service.yaml")),
];
const NAME: &str = "NAME";

/// Arguments of `plimsoll release new`.
#[derive(Debug, Args)]
pub struct NewArguments {
    /// Directory of the source: absent or empty
    directory: PathBuf,
    /// Name of the release; without it, that of the directory
    #[arg(long)]
    name: Option<String>,
}

pub(super) fn run(
    arguments: &NewArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let directory = &arguments.directory;
    let name = match &arguments.name {
        Some(name) => name.clone(),
        None => directory_name(directory)?,
    };
    check_name(&name).map_err(|message| match arguments.name {
        Some(_) => anyhow!("--name: {message}"),
        None => anyhow!("the name of the directory: {message}; or give one with --name"),
    })?;
    let path = directory.display();
    let mut entries = match fs::read_dir(directory) {
        Ok(entries) => Some(entries),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(error).with_context(|| format!("failed to read `{path}`")),
    };
    let is_empty = entries.as_mut().is_none_or(|entries| entries.next().is_none());
    ensure!(is_empty, "`{path}` is not empty: name a directory that is absent or empty");
    for (file, text) in FILES {
        let file = directory.join(file);
        let written = file.parent().map_or(Ok(()), fs::create_dir_all);
        written
            .and_then(|()| whole_file::write(&file, text.replace(NAME, &name).as_bytes()))
            .with_context(|| format!("failed to write `{}`", file.display()))?;
    }
    writeln!(out, "made release {name} in {path}; release.yaml explains its files")?;
    writeln!(out, "next: plimsoll release build {path} --output PAYLOAD")?;
    Ok(exit::SUCCESS.into())
}

/// The name of a directory, which need not be there.
fn directory_name(directory: &Path) -> Result<String, anyhow::Error> {
    let absolute = fs::canonicalize(directory).or_else(|_| std::path::absolute(directory));
    let absolute = absolute.with_context(|| format!("failed to read `{}`", directory.display()))?;
    let name = absolute.file_name().unwrap_or_default();
    Ok(name.to_string_lossy().into_owned())
}
