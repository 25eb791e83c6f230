//! `plimsoll release build`: from the source of a release to its payload.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use plimsoll_content::authoring::BuiltRelease;
use plimsoll_content::diagnostic::{Severity, has_errors};
use plimsoll_content::lint::lint_built;
use plimsoll_content::payload::{TemplateContext, parse};
use plimsoll_resolve::printable::on_one_line;
use plimsoll_source::authoring::{check_output, write_payload};

use super::loaded::LoadedRelease;
use super::tree;
use crate::exit;
use crate::interruption::build as build_source;
use crate::render::count::counted;
use crate::render::diagnostics;

/// Arguments of `plimsoll release build`.
#[derive(Debug, Args)]
pub struct BuildArguments {
    /// Directory of the source
    directory: PathBuf,
    /// Directory for the payload: absent, empty or an earlier build, which is replaced
    #[arg(long, short, value_name = "DIR", required_unless_present = "dry_run")]
    output: Option<PathBuf>,
    /// Version of the release, instead of the one in release.yaml
    #[arg(long, value_name = "VERSION", value_parser = version)]
    version: Option<String>,
    /// Show what would be built, and write nothing
    #[arg(long)]
    dry_run: bool,
}

pub(super) fn run(
    arguments: &BuildArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    // What cannot be written need not be rendered.
    if let Some(output) = arguments.output.as_deref().filter(|_| !arguments.dry_run) {
        check_output(output).context("--output")?;
    }
    let source = &arguments.directory;
    let built = build_source(source, arguments.version.as_deref())
        .with_context(|| format!("failed to build `{}`", source.display()))?;
    for note in &built.notes {
        writeln!(out, "{}", on_one_line(note))?;
    }
    let findings = lint_built(&built.files, &built.origins, &TemplateContext::default());
    out.write_all(diagnostics::text(&findings).as_bytes())?;
    if has_errors(&findings) {
        let errors = findings.iter().filter(|it| it.severity == Severity::Error).count();
        writeln!(out, "not built: {}", counted(errors, "error"))?;
        return Ok(exit::FAILURE.into());
    }
    let payload = parse(&built.files, &TemplateContext::default())?;
    let BuiltRelease { files, origins, .. } = built;
    let release = LoadedRelease { files, payload, origins };
    match &arguments.output {
        Some(output) if !arguments.dry_run => {
            write_payload(&release.files, output)?;
            let (version, digest) = (&release.payload.release.version, &release.payload.digest);
            let count = release.payload.manifests.len();
            let path = output.display();
            writeln!(out, "built {version} in {path}: {count} manifests, {digest}")?;
        }
        Some(_) | None => tree::write_text(&tree::report(&release), out)?,
    }
    Ok(exit::SUCCESS.into())
}

/// Reads the version of a release.
fn version(text: &str) -> Result<String, String> {
    match semver::Version::parse(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(error) => Err(format!("it is not a semantic version, such as 1.0.0: {error}")),
    }
}
