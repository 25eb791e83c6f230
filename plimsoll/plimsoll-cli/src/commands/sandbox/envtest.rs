//! `plimsoll sandbox envtest`: scripts that run this program as `etcd` and as `kube-apiserver`.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use k8s_apiserver::envtest::Program;
use tempfile::NamedTempFile;

use crate::process::stop_on_signal;

/// Where to write the programs.
#[derive(Debug, Args)]
pub struct EnvtestArguments {
    /// Directory to write `etcd` and `kube-apiserver` to; made if it is not there
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
}

/// The flags of a program that is stood in for.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub struct ProgramArguments {
    /// Flags of the program
    #[arg(value_name = "FLAG", trailing_var_arg = true, allow_hyphen_values = true)]
    pub flags: Vec<String>,
}

/// Writes the programs.
///
/// # Errors
///
/// When the directory cannot be written to, or this program does not know its own path.
pub(super) fn install(arguments: &EnvtestArguments) -> Result<(), anyhow::Error> {
    let directory = std::path::absolute(&arguments.directory)?;
    let plimsoll = std::env::current_exe().context("failed to find the path of this program")?;
    let plimsoll = plimsoll.to_str().context("the path of this program is not UTF-8")?;
    std::fs::create_dir_all(&directory)
        .with_context(|| format!("failed to make directory `{}`", directory.display()))?;
    for program in Program::ALL {
        let path = directory.join(program.name());
        write_script(&path, plimsoll, program)
            .with_context(|| format!("failed to write `{}`", path.display()))?;
    }
    anstream::println!("export KUBEBUILDER_ASSETS={}", quoted(&directory.to_string_lossy()));
    Ok(())
}

/// Runs a program until a signal.
///
/// # Errors
///
/// When the program fails.
pub(super) async fn run(
    program: Program,
    arguments: &ProgramArguments,
) -> Result<(), anyhow::Error> {
    if let Some(text) = program.information(&arguments.flags) {
        anstream::print!("{text}");
        return Ok(());
    }
    let stop = stop_on_signal()?;
    Ok(program.run(&arguments.flags, stop.cancelled_owned()).await?)
}

/// Writes a script beside its place first, since a program that runs cannot be written to.
fn write_script(path: &Path, plimsoll: &str, program: Program) -> std::io::Result<()> {
    let mut new = NamedTempFile::new_in(path.parent().unwrap_or(Path::new(".")))?;
    let text = format!("#!/bin/sh\nexec {} sandbox {} \"$@\"\n", quoted(plimsoll), program.name());
    new.write_all(text.as_bytes())?;
    new.as_file().set_permissions(std::fs::Permissions::from_mode(0o755))?;
    new.persist(path)?;
    Ok(())
}

/// A text as one word of a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_are_scripts_that_anybody_may_run() {
        let directory = tempfile::tempdir().unwrap();
        let assets = directory.path().join("it's here");
        install(&EnvtestArguments { directory: assets.clone() }).unwrap();
        for name in ["etcd", "kube-apiserver"] {
            let path = assets.join(name);
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(text.ends_with(&format!("sandbox {name} \"$@\"\n")), "{text}");
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o755);
        }
        assert_eq!(std::fs::read_dir(&assets).unwrap().count(), 2, "nothing else is left");
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
