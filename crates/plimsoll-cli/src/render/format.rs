//! Values for programs: JSON and YAML.

use std::io::{self, Write};

use clap::ValueEnum;
use serde::Serialize;

/// For whom the output is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    #[default]
    Text,
    /// For programs
    Json,
    /// For programs and people
    Yaml,
}

/// Writes a value as JSON or YAML; [`Format::Text`] is written as JSON.
///
/// # Errors
/// When the output cannot be written.
pub fn write(
    format: Format,
    value: &impl Serialize,
    out: &mut dyn Write,
) -> Result<(), anyhow::Error> {
    match format {
        Format::Yaml => {
            let text = serde_saphyr::to_string(value)?;
            out.write_all(text.as_bytes())?;
            if !text.ends_with('\n') {
                writeln!(out)?;
            }
        }
        Format::Json | Format::Text => {
            serde_json::to_writer_pretty(&mut *out, value)?;
            writeln!(out)?;
        }
    }
    Ok(())
}

/// Whether an error only says that nobody reads the output any more.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<io::Error>().map(io::Error::kind);
    let json = || error.downcast_ref::<serde_json::Error>().and_then(|it| it.io_error_kind());
    io.or_else(json) == Some(io::ErrorKind::BrokenPipe)
}
