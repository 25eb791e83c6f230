//! Output for programs, in the formats that users of kubectl expect.

use std::io::Write;

use clap::ValueEnum;
use serde::Serialize;

/// For whom the output is, and how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    #[default]
    Table,
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
    pub fn write<T: Serialize>(self, value: &T, out: &mut dyn Write) -> anyhow::Result<bool> {
        match self {
            Self::Table => return Ok(false),
            Self::Json => {
                serde_json::to_writer_pretty(&mut *out, value)?;
                writeln!(out)?;
            }
            Self::Yaml => out.write_all(serde_saphyr::to_string(value)?.as_bytes())?,
        }
        Ok(true)
    }
}
