//! `plimsoll completion` and `plimsoll man`: what shells and `man` know of the command line.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use crate::{Arguments, exit};

/// Arguments of `plimsoll completion`.
#[derive(Debug, Args)]
pub struct CompletionArguments {
    /// The shell
    shell: Shell,
}

/// Arguments of `plimsoll man`.
#[derive(Debug, Args)]
pub struct ManArguments {
    /// Directory to write the pages to
    directory: PathBuf,
}

/// Prints the completions.
///
/// # Errors
///
/// When the output cannot be written.
pub fn run(arguments: &CompletionArguments, out: &mut dyn Write) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "plimsoll", &mut script);
    out.write_all(&script)?;
    Ok(exit::SUCCESS.into())
}

/// Writes the manual pages.
///
/// # Errors
///
/// When the directory cannot be written to.
pub fn man(arguments: &ManArguments) -> anyhow::Result<ExitCode> {
    let directory = &arguments.directory;
    let context = || format!("failed to write manual pages to `{}`", directory.display());
    std::fs::create_dir_all(directory).with_context(context)?;
    clap_mangen::generate_to(Arguments::command(), directory).with_context(context)?;
    Ok(exit::SUCCESS.into())
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

    use super::*;

    #[test]
    fn every_shell_completes_every_command() {
        for &shell in Shell::value_variants() {
            let mut script = Vec::new();
            run(&CompletionArguments { shell }, &mut script).unwrap();
            let script = String::from_utf8(script).unwrap();
            for name in ["rehearse", "sandbox", "operator", "who-provides", "request-timeout"] {
                assert!(script.contains(name), "{shell}: {name}");
            }
        }
    }

    #[test]
    fn every_command_has_a_manual_page() {
        let directory = tempfile::tempdir().unwrap();
        man(&ManArguments { directory: directory.path().to_owned() }).unwrap();
        for name in ["plimsoll.1", "plimsoll-update-status.1", "plimsoll-operator-list.1"] {
            assert!(directory.path().join(name).exists(), "{name}");
        }
    }
}
