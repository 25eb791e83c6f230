//! `plimsoll operator policy compile`: policies as a ValidatingAdmissionPolicy.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use plimsoll_operators::actions::policy::compilation::{CompiledPolicies, compiled};

use super::read;
use crate::exit;

/// Arguments of `plimsoll operator policy compile`.
#[derive(Debug, Args)]
pub struct CompileArguments {
    /// File or directory with all ActionPolicies and ActionClasses of a cluster; `-` for standard input
    #[arg(long = "filename", short = 'f', required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// Runs `plimsoll operator policy compile`.
///
/// # Errors
///
/// When files cannot be read, or have no policy.
pub(in super::super) fn compile(
    arguments: &CompileArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let (files, classes) = read(&arguments.files)?;
    let CompiledPolicies { objects, left } = compiled(&files.policies, &classes);
    writeln!(
        out,
        "# Made of ActionPolicies by `kubectl operator policy compile`: make it again when they change."
    )?;
    if !left.is_empty() {
        writeln!(
            out,
            "# Left to the controller, which looks at all rules when an Action is executed:"
        )?;
    }
    for rule in left {
        writeln!(out, "# - {rule}")?;
    }
    for object in objects {
        write!(out, "---\n{}", serde_saphyr::to_string(&object)?)?;
    }
    Ok(exit::SUCCESS.into())
}
