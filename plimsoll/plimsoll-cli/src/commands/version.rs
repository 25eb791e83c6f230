//! `plimsoll version`: what this program is.

use std::io::Write;
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;

use crate::exit;
use crate::render::format::Format;

/// Arguments of `plimsoll version`.
#[derive(Debug, Args)]
pub struct VersionArguments {
    /// Output format
    #[arg(long, short, value_name = "FORMAT", default_value_t)]
    output: Format,
}

/// What the program is.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ProgramVersion {
    /// Version of the program.
    version: &'static str,
    /// Operating system and architecture that it is built for, as `linux/x86_64`.
    platform: String,
}

/// Prints the version.
///
/// # Errors
///
/// When the output cannot be written.
pub fn run(arguments: &VersionArguments, out: &mut dyn Write) -> anyhow::Result<ExitCode> {
    let version = ProgramVersion {
        version: env!("CARGO_PKG_VERSION"),
        platform: format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    };
    if !arguments.output.write(&version, out)? {
        writeln!(out, "plimsoll {} ({})", version.version, version.platform)?;
    }
    Ok(exit::SUCCESS.into())
}
