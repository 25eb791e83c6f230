//! A child process that does not outlive its handle.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::error::StartError;

/// How much of the end of a log an error quotes.
const QUOTED_LINES: usize = 20;

/// A program of the control plane; dropping it kills it and waits for its end.
pub(crate) struct Process {
    name: &'static str,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Runs `name` from `assets` in `directory`, where its output goes to `<name>.log`.
    pub(crate) fn spawn(
        assets: &Path,
        name: &'static str,
        directory: &Path,
        arguments: &[String],
    ) -> Result<Self, StartError> {
        let program = assets.join(name);
        let log = directory.join(format!("{name}.log"));
        let prepare = |source| StartError::Prepare { action: "create a log file", source };
        let output = File::create(&log).map_err(prepare)?;
        let errors = output.try_clone().map_err(prepare)?;
        let child = Command::new(&program)
            .args(arguments)
            .current_dir(directory)
            // No garbage is collected before there is much of it: most tests end before.
            .env("GOGC", "off")
            .env("GOMEMLIMIT", "2GiB")
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .spawn()
            .map_err(|source| StartError::Spawn {
                program: program.display().to_string(),
                source,
            })?;
        Ok(Self { name, child, log })
    }

    /// An error if the process has ended.
    pub(crate) fn check(&mut self) -> Result<(), StartError> {
        let ended = self.child.try_wait().map_err(|source| StartError::Prepare {
            action: "look after a process of the control plane",
            source,
        })?;
        match ended {
            None => Ok(()),
            Some(status) => {
                Err(StartError::Exited { program: self.name, status, log: self.log_end() })
            }
        }
    }

    /// The id of the process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The name of the program.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// The last lines of what the process logged.
    pub(crate) fn log_end(&self) -> String {
        let text = std::fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(QUOTED_LINES)..].join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Either fails only if the process is gone already, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
