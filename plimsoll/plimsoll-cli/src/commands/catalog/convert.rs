//! `plimsoll catalog convert`: a catalog of any form as a file-based one.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Context as _;
use plimsoll_content::diagnostic::has_errors;
use plimsoll_source::catalog::documents;

use super::{ConvertArguments, Documents};
use crate::exit;

pub(super) fn run(
    arguments: &ConvertArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    // The index has not everything that the files have.
    let path = arguments.catalog.path();
    let (documents, defects) =
        documents(path).with_context(|| format!("failed to read catalog `{}`", path.display()))?;
    for document in &documents {
        match arguments.output {
            Documents::Json => {
                serde_json::to_writer(&mut *out, document)?;
                writeln!(out)?;
            }
            Documents::Yaml => {
                let text = serde_saphyr::to_string(document)?;
                writeln!(out, "---\n{}", text.trim_end())?;
            }
        }
    }
    for defect in &defects {
        anstream::eprintln!("{defect}");
    }
    Ok(if has_errors(&defects) { exit::FAILURE } else { exit::SUCCESS }.into())
}
