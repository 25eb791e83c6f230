//! Tests of lock files of Operators that come to no bundle, with the catalog of the repository.

use std::path::Path;

use clap::Parser;

use super::super::{lint, lock, update};
use crate::exit::{self, Refusal};
use crate::prompt::Prompter;

#[derive(Parser)]
struct LockLine {
    #[command(flatten)]
    arguments: lock::LockArguments,
}

#[derive(Parser)]
struct LintLine {
    #[command(flatten)]
    arguments: lint::LintArguments,
}

#[derive(Parser)]
struct UpdateLine {
    #[command(flatten)]
    arguments: update::UpdateArguments,
}

/// Returns a command line for files, with the catalog of the repository and without a cluster.
fn line<T: Parser>(words: &[&str]) -> T {
    let catalog = std::path::absolute("../../examples/catalog").expect("a working directory");
    let catalog = catalog.display().to_string();
    let state = ["--no-cache", "--state", "files", "--catalog", &catalog];
    T::try_parse_from(["operator"].iter().chain(words).chain(&state)).expect("a command line")
}

fn write(directory: &Path, name: &str, spec: &str) {
    let text = format!(
        "apiVersion: olm.io/v1\nkind: Operator\nmetadata: {{name: {name}}}\nspec: {{{spec}}}\n"
    );
    std::fs::write(directory.join(format!("{name}.yaml")), text).expect("a file");
}

async fn lock(directory: &Path, options: &[&str]) -> Result<String, anyhow::Error> {
    let path = directory.display().to_string();
    let mut words = vec![path.as_str()];
    words.extend(options);
    let LockLine { arguments } = line(&words);
    let mut out = Vec::new();
    lock::run(None, &arguments, &mut out).await?;
    Ok(String::from_utf8(out)?)
}

#[tokio::test]
async fn what_comes_to_no_bundle_is_named_and_nothing_is_written() {
    for (name, spec, says) in [
        ("lanter", "version: 1.1.1", "no catalog has package `lanter`, did you mean `lantern`?"),
        ("tide", "version: 9.9.9", "no version of tide matches 9.9.9; there is v0.4.0"),
        (
            "tide",
            "version: 0.4.0, channel: slow",
            "tide has no channel slow; its channels are stable",
        ),
        (
            "lantern",
            "version: 1.1.1, constraintPolicy: {install: Enforce}",
            "lantern v1.1.1 waits: lantern depends on ledger",
        ),
    ] {
        let directory = tempfile::tempdir().expect("a directory");
        write(directory.path(), name, spec);
        let file = directory.path().join("operators.lock");
        for is_dry in [false, true] {
            let options: &[&str] = if is_dry { &["--dry-run"] } else { &[] };
            let error = lock(directory.path(), options).await.expect_err("no bundle");
            let says =
                format!("`{}` is not written: {name} comes to no bundle: {says}", file.display());
            assert!(error.to_string().starts_with(&says), "{error}");
            let refusal = error.downcast_ref::<Refusal>().expect("a refusal");
            assert_eq!(refusal.exit, exit::FAILURE);
        }
        assert!(!file.exists(), "{name}");
    }
    let directory = tempfile::tempdir().expect("a directory");
    write(directory.path(), "lanter", "version: 1.1.1");
    write(directory.path(), "tide", "version: 9.9.9");
    let error = lock(directory.path(), &[]).await.expect_err("no bundles");
    let says = "did you mean `lantern`? tide comes to no bundle: no version";
    assert!(error.to_string().contains(says), "{error}");
    // What is paused requests none.
    let directory = tempfile::tempdir().expect("a directory");
    write(directory.path(), "tide", "version: 0.4.0, paused: true");
    let text = lock(directory.path(), &["--dry-run"]).await.expect("a lock");
    assert!(text.contains(r#""operators": {}"#), "{text}");
}

#[tokio::test]
async fn a_lock_that_lacks_an_operator_is_out_of_date() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().display().to_string();
    write(directory.path(), "tide", "version: 0.4.0");
    lock(directory.path(), &[]).await.expect("a lock file");
    write(directory.path(), "lanter", "version: 1.1.1");
    let LintLine { arguments } = line(&[&path, "--locked"]);
    let linted = lint::run(None, &arguments, &mut Vec::new()).await.expect_err("no bundle");
    let UpdateLine { arguments } = line(&["-f", &path, "--latest", "--locked"]);
    let mut prompter = Prompter::NonInteractive;
    let updated = update::run(None, &arguments, &mut prompter, &mut Vec::new()).await;
    let says = "is out of date: lanter comes to no bundle: no catalog has package `lanter`, did you mean \
                `lantern`? write it anew with `operator lock`";
    for error in [linted, updated.expect_err("no bundle")] {
        assert!(error.to_string().ends_with(says), "{error}");
    }
}

#[tokio::test]
async fn an_update_says_what_comes_to_no_bundle() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().display().to_string();
    write(directory.path(), "lanter", "version: 1.1.1");
    let UpdateLine { arguments } = line(&["-f", &path, "--latest"]);
    let mut out = Vec::new();
    update::run(None, &arguments, &mut Prompter::NonInteractive, &mut out).await.expect("a plan");
    let expected = "lanter@v1.1.1 (not installed)\n\
                    * lanter: no catalog has package `lanter`, did you mean `lantern`?\n\
                    Nothing to do\n";
    assert_eq!(String::from_utf8(out).expect("text"), expected);
}
