//! The guide to self-service: each command of `docs/self-service.md` is run as it is written, one after
//! the other, and prints what is shown below it. Its `sh` blocks start the programs that a test has
//! itself.

use std::os::unix::fs::symlink;

use plimsoll_operators::actions::files::built_in_classes;
use tempfile::TempDir;

use super::AddOns;
use super::shell::Shell;
use crate::harness::on_each_cluster;
use crate::readme::{Shown, commands, is_shown};

const GUIDE: &str = include_str!("../../../../../docs/self-service.md");

/// What commands of the guide read of the repository.
const FOLDERS: [&str; 2] = ["deploy", "examples"];

/// Makes a directory like the root of the repository, which commands may write to.
fn working_directory() -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    let root = std::path::absolute("../..").expect("a working directory");
    for folder in FOLDERS {
        symlink(root.join(folder), directory.path().join(folder)).expect("a link");
    }
    directory
}

/// Returns whether a line is that of a command which may fail.
fn is_failure(line: &str) -> bool {
    line.starts_with("error: ")
        || line.starts_with("Error from server ")
        || line.contains(" has failed: ")
}

#[test]
fn the_guide_to_self_service_can_be_followed() {
    if !Shell::is_there() {
        return;
    }
    on_each_cluster(|kind| async move {
        let mut add_ons = AddOns::start_with_webhook(kind).await;
        for class in built_in_classes() {
            add_ons.listed(&format!("olm.io/v1 ActionClass {}", class.name)).await;
        }
        let shell = Shell::open(&add_ons.harness.cluster).await;
        let directory = working_directory();
        let mut ran = 0;
        for Shown { command, lines } in commands(GUIDE) {
            let (succeeded, printed) = shell.run(command, directory.path()).await;
            let may_fail = lines.iter().any(|it| is_failure(it));
            assert!(succeeded || may_fail, "{kind}: {command}\n{printed}");
            if !lines.is_empty() {
                let shown = is_shown(&printed, &lines);
                shown.unwrap_or_else(|why| panic!("{kind}: {command}: {why}"));
            }
            ran += 1;
        }
        assert!(ran > 50, "only {ran} commands were run");
        add_ons.stop().await;
    });
}
