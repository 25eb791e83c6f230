//! Values for programs, JSON and YAML, and readers who have seen enough.

use std::io::{self, Write};

use clap::ValueEnum;
use serde::Serialize;

/// For whom the output is, and how.
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

impl Format {
    /// Writes a value if the format is one for programs; false if it is not.
    ///
    /// # Errors
    ///
    /// When the output cannot be written.
    pub fn write(self, value: &impl Serialize, out: &mut dyn Write) -> anyhow::Result<bool> {
        match self {
            Self::Text => return Ok(false),
            Self::Json => {
                serde_json::to_writer_pretty(&mut *out, value)?;
                writeln!(out)?;
            }
            Self::Yaml => {
                let text = serde_saphyr::to_string(value)?;
                out.write_all(text.as_bytes())?;
                if !text.ends_with('\n') {
                    writeln!(out)?;
                }
            }
        }
        Ok(true)
    }
}

/// What became of writing: who has seen enough of the output and closes it is no error.
///
/// # Errors
///
/// All others.
pub fn ignore_broken_pipe(written: Result<(), impl Into<anyhow::Error>>) -> anyhow::Result<()> {
    match written.map_err(Into::into) {
        Err(error) if is_broken_pipe(&error) => Ok(()),
        other => other,
    }
}

/// Whether an error only says that nobody reads the output any more.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<io::Error>().map(io::Error::kind);
    let json = || error.downcast_ref::<serde_json::Error>().and_then(|it| it.io_error_kind());
    io.or_else(json) == Some(io::ErrorKind::BrokenPipe)
}
