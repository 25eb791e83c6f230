//! Command lines of a person's shell, with `kubectl` and its plug-in.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use k8s_testkit::TestCluster;
use k8s_testkit::prerequisites::skip;
use serde::Deserialize;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use tokio::task::JoinSet;

use crate::harness::kubeconfig;

/// The users, and the groups of those who are not the administrator.
const USERS: [(&str, &[&str]); 4] =
    [("admin", &[]), ("alice", &["dev"]), ("carol", &["sre"]), ("dora", &["sre"])];

/// The timeout of a command, in seconds.
const TIMEOUT: &str = "120";

/// A command line, and what is expected of it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ShellCommand {
    /// What is typed.
    pub(super) run: String,
    /// Who types it: the administrator, or one of [`USERS`].
    #[serde(default = "administrator", rename = "as")]
    pub(super) user: String,
    /// An object that is written to the standard input; absent for none.
    #[serde(default)]
    input: Option<Value>,
    /// Texts of the output and the errors, in any order.
    #[serde(default)]
    pub(super) shows: Vec<String>,
    /// The exit code.
    #[serde(default)]
    pub(super) exit: i32,
}

impl ShellCommand {
    /// Returns whether it deletes Operators by the plug-in.
    pub(super) fn deletes(&self) -> bool {
        self.run.contains("operator delete ")
    }
}

fn administrator() -> String {
    USERS[0].0.to_owned()
}

/// A shell whose `kubectl` reaches a cluster.
pub(super) struct Shell {
    directory: TempDir,
    /// Serves an embedded cluster.
    _listening: JoinSet<()>,
}

impl Shell {
    /// Returns whether there is a `kubectl`; otherwise that is on record.
    pub(super) fn is_there() -> bool {
        let found = std::process::Command::new("kubectl").args(["version", "--client"]).output();
        let is_there = found.is_ok_and(|it| it.status.success());
        if !is_there {
            skip("kubectl is not in PATH");
        }
        is_there
    }

    /// A shell for a cluster.
    pub(super) async fn open(cluster: &TestCluster) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let (kubeconfig, listening) = kubeconfig(cluster).await;
        for (user, groups) in USERS {
            let mut kubeconfig = kubeconfig.clone();
            if !groups.is_empty() {
                kubeconfig["users"][0]["user"]["as"] = json!(user);
                kubeconfig["users"][0]["user"]["as-groups"] = json!(groups);
            }
            let path = directory.path().join(user);
            std::fs::write(path, kubeconfig.to_string()).expect("a kubeconfig");
        }
        for name in ["kubectl-operator", "plimsoll"] {
            let link = directory.path().join(name);
            std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_plimsoll"), link).expect("a link");
        }
        Self { directory, _listening: listening }
    }

    /// Runs a command line in a directory, and checks what it prints.
    pub(super) async fn play(&self, command: &ShellCommand, directory: &Path) {
        let ShellCommand { run, user, input, shows, exit } = command;
        let mut child = self.command(run, user, directory).spawn().expect("there is a shell");
        let mut stdin = child.stdin.take().expect("it is piped");
        if let Some(input) = input {
            stdin.write_all(input.to_string().as_bytes()).await.expect("it is read");
        }
        drop(stdin);
        let Output { status, stdout, stderr } = child.wait_with_output().await.expect("it ends");
        let printed =
            String::from_utf8_lossy(&stdout).into_owned() + &String::from_utf8_lossy(&stderr);
        assert_eq!(status.code(), Some(*exit), "{user}: {run}\n{printed}");
        for text in shows {
            assert!(printed.contains(text), "{user}: {run}\ndoes not show {text:?}:\n{printed}");
        }
    }

    /// Runs a command line of the administrator in a directory; returns whether it succeeded, and what a
    /// terminal shows.
    pub(super) async fn run(&self, line: &str, directory: &Path) -> (bool, String) {
        let line = format!("exec 2>&1\n{line}");
        let mut command = self.command(&line, &administrator(), directory);
        let mut child = command.spawn().expect("there is a shell");
        drop(child.stdin.take());
        let Output { status, stdout, .. } = child.wait_with_output().await.expect("it ends");
        (status.success(), String::from_utf8_lossy(&stdout).into_owned())
    }

    fn command(&self, line: &str, user: &str, directory: &Path) -> Command {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let paths: Vec<PathBuf> = [self.directory.path().to_owned()]
            .into_iter()
            .chain(std::env::split_paths(&path))
            .collect();
        let environment = BTreeMap::from([
            ("PATH", std::env::join_paths(paths).expect("no path has a colon")),
            ("KUBECONFIG", self.directory.path().join(user).into_os_string()),
            ("HOME", self.directory.path().into()),
        ]);
        let mut command = Command::new("timeout");
        command
            .args([TIMEOUT, "sh", "-c", line])
            .current_dir(directory)
            .env_clear()
            .envs(environment)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }
}
