//! Transcripts of updates of files, on the bundles that the scenarios use.

use std::path::Path;
use std::process::ExitCode;

use clap::Parser;

use super::super::lock::{self, LockArguments};
use super::super::resolve::tests::{catalog, files};
use super::super::snapshot::{self, SnapshotArguments};
use super::{UpdateArguments, run};
use crate::exit::Refusal;
use crate::prompt::Prompter;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    arguments: UpdateArguments,
}

#[derive(Parser)]
struct LockLine {
    #[command(flatten)]
    arguments: LockArguments,
}

#[derive(Parser)]
struct SnapshotLine {
    #[command(flatten)]
    arguments: SnapshotArguments,
}

/// The bundles of a catalog: package, version, provided kind, and requirement.
const BUNDLES: [(&str, &str, &str, &str); 14] = [
    ("foo-operator", "1.2.2", "Foo", "bar-operator >=1.2.3"),
    ("foo-operator", "1.2.5", "Foo", "bar-operator >=1.2.3"),
    ("foo-operator", "1.2.9", "Foo", "bar-operator >=1.2.7"),
    ("bar-operator", "1.2.5", "Bar", ""),
    ("bar-operator", "1.2.7", "Bar", ""),
    ("baz-operator", "1.2.4", "Baz", ""),
    ("baz-operator", "1.5.6", "Baz", ""),
    ("fiz-operator", "2.9.2", "Fiz", ""),
    ("fiz-operator", "2.9.6", "Fiz", ""),
    ("fiz-operator", "3.0.1", "Fiz", "baz-operator >=1.5.0"),
    ("buz-operator", "0.2.4", "Buz", ""),
    ("left", "1.0.0", "Left", "right <2.0.0"),
    ("left", "2.0.0", "Left", "right >=2.0.0"),
    ("right", "1.0.0", "Right", "left <2.0.0"),
];

const LOADOUT: &str = "\
# Everything that the shop needs.
apiVersion: olm.io/v1
kind: Operator
metadata:
  name: foo-operator
spec:
  version: 1.2.2 # pinned until the sale is over
---
apiVersion: olm.io/v1
kind: Operator
metadata: {name: fiz-operator}
spec: {version: 2.9.2}
---
apiVersion: olm.io/v1
kind: Operator
metadata: {name: buz-operator}
spec: {version: 0.2.4}
";

const BAR: &str = "\
apiVersion: olm.io/v1
kind: Operator
metadata:
  name: bar-operator
  labels:
    olm.io/installed-as: dependency
spec:
  version: 1.2.5
";

/// Runs the command for a directory.
async fn attempt(directory: &Path, options: &[&str]) -> Result<(ExitCode, String), anyhow::Error> {
    let catalogs = tempfile::tempdir()?;
    let catalog_file = catalogs.path().join("main.json");
    std::fs::write(&catalog_file, catalog(&BUNDLES))?;
    let (directory, file) = (directory.display().to_string(), catalog_file.display().to_string());
    let words = ["update", "--no-cache", "--catalog", &file, "-f", &directory];
    let Line { arguments } = Line::try_parse_from(words.iter().chain(options))?;
    let mut out = Vec::new();
    let mut prompter = match arguments.yes {
        true => Prompter::AssumeYes,
        false => Prompter::NonInteractive,
    };
    let code = run(None, &arguments, &mut prompter, &mut out).await?;
    Ok((code, String::from_utf8(out)?))
}

fn loadout() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    for (name, text) in [("loadout.yaml", LOADOUT), ("bar.yaml", BAR)] {
        std::fs::write(directory.path().join(name), text).expect("a file");
    }
    directory
}

/// Checks the output and the exit code of an update.
async fn check(directory: &Path, options: &[&str], expected: &str, code: u8) {
    let (ended, text) = attempt(directory, options).await.expect("a plan");
    assert_eq!(text, expected, "{options:?}");
    assert_eq!(ended, ExitCode::from(code), "{options:?}: {text}");
}

#[tokio::test]
async fn operators_of_a_list_are_rewritten_in_their_place() {
    let directory = tempfile::tempdir().expect("a directory");
    let list = |baz: &str| {
        format!(
            "apiVersion: v1\nkind: List\nitems:\n\
             - {{apiVersion: olm.io/v1, kind: Operator, metadata: {{name: buz-operator}}, spec: {{version: 0.2.4}}}}\n\
             - apiVersion: olm.io/v1\n  kind: Operator\n  metadata: {{name: baz-operator}}\n  \
             spec:\n    version: {baz} # pinned\n"
        )
    };
    std::fs::write(directory.path().join("all.yaml"), list("1.2.4")).expect("a file");
    let (code, text) = attempt(directory.path(), &["--latest", "--yes"]).await.expect("a plan");
    assert_eq!(code, ExitCode::SUCCESS, "{text}");
    assert_eq!(files(directory.path())[0].1, list("1.5.6"));
}

#[tokio::test]
async fn what_is_new_is_written_beside_a_single_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("a.yaml");
    let text = "apiVersion: olm.io/v1\nkind: Operator\nmetadata: {name: fiz-operator}\n\
                spec: {version: 2.9.2}\n";
    std::fs::write(&file, text).expect("a file");
    let options = ["--latest", "-A", "--yes"];
    let (code, text) = attempt(&file, &options).await.expect("a plan");
    assert_eq!(code, ExitCode::SUCCESS, "{text}");
    assert!(directory.path().join("baz-operator.yaml").is_file(), "{text}");
}

#[tokio::test]
async fn the_transcripts_of_the_design_document() {
    let directory = loadout();
    let (path, before) = (directory.path(), files(directory.path()));
    check(
        path,
        &[],
        "All operator versions are pinned. Nothing to do. If you want to bring all your operators to \
         the latest version try with --latest\n",
        0,
    )
    .await;
    check(
        path,
        &["--latest"],
        "bar-operator@v1.2.5 -> bar-operator@v1.2.7\n\
         new operator -> baz-operator@v1.5.6\n\
         buz-operator@v0.2.4\n\
         fiz-operator@v2.9.2 -> fiz-operator@v3.0.1\n\
         foo-operator@v1.2.2 -> foo-operator@v1.2.9\n\
         * foo-operator v1.2.9 depends on bar-operator >= v1.2.7\n\
         * fiz-operator v3.0.1 depends on baz-operator >= v1.5.0\n\
         Would you like to continue? [N/y]: n (no terminal; --yes agrees)\n\
         Nothing was changed\n",
        3,
    )
    .await;
    let planned = "\
bar-operator@v1.2.5 -> bar-operator@v1.2.7
buz-operator@v0.2.4
fiz-operator@v2.9.2 -> fiz-operator@v2.9.6
foo-operator@v1.2.2 -> foo-operator@v1.2.9
* foo-operator v1.2.9 depends on bar-operator >= v1.2.7
* ~1.2 is >= v1.2.0 < v1.3.0
";
    // One option with a list is the same as two options.
    let ranges = "foo-operator@~1.2;fiz-operator@<3.0.0";
    check(path, &["--for-range", ranges, "--dry-run"], planned, 0).await;
    check(path, &["foo-operator@~1.2", "fiz-operator@<3.0.0", "--dry-run"], planned, 0).await;
    let options =
        ["--for-range", "foo-operator@~1.2", "--for-range", "fiz-operator@<3.0.0", "--dry-run"];
    check(path, &options, planned, 0).await;
    assert_eq!(files(path), before);
    let (bar, all) = (path.join("bar.yaml"), path.join("loadout.yaml"));
    let (bar, all) = (bar.display(), all.display());
    let written = format!(
        "{planned}Would you like to continue? [N/y]: y (--yes)\n{bar} written\n{all} written\n"
    );
    check(path, &["--for-range", ranges, "--yes"], &written, 0).await;
    let after = files(path);
    assert_eq!(after[0].1, BAR.replace("1.2.5", "1.2.7"));
    assert_eq!(after[1].1, LOADOUT.replace("1.2.2", "1.2.9").replace("2.9.2", "2.9.6"));
}

#[tokio::test]
async fn what_an_update_needs_is_written_beside_it() {
    let directory = loadout();
    let (code, text) = attempt(directory.path(), &["--for-range", "fiz-operator@3", "--yes"])
        .await
        .expect("a plan");
    assert_eq!(code, ExitCode::SUCCESS, "{text}");
    let written = files(directory.path());
    let names: Vec<&str> = written.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["bar.yaml", "baz-operator.yaml", "loadout.yaml"]);
    assert_eq!(written[1].1, BAR.replace("bar", "baz").replace("1.2.5", "\"1.5.6\""));
}

#[tokio::test]
async fn bad_input_is_an_error_and_writes_nothing() {
    let directory = loadout();
    let before = files(directory.path());
    for (options, says) in [
        (["--for-range", "foo-operator"].as_slice(), "is not of the form NAME@RANGE"),
        (&["--for-range", "foo-operator@"], "put it in quotes"),
        (&["--for-range", "foo-operator@x||"], "foo-operator: `x||` is not a range"),
        (
            &["--for-range", "foo-operator@~1;foo-operator@~2"],
            "foo-operator is named twice, with ~1 and ~2: name it once",
        ),
        (
            &["--for-range", "fooo-operator@~1.2"],
            "there is no Operator `fooo-operator`, did you mean `foo-operator`?",
        ),
        (&["--for-range", "foo-operator@~7"], "no version of foo-operator matches ~7"),
        (&["fooo-operator"], "there is no Operator `fooo-operator`, did you mean `foo-operator`?"),
        (
            &["foo-operator", "foo-operator@~1.2"],
            "foo-operator is named twice, with ~1.2: name it once",
        ),
        (&["foo-operator@1.2.9", "--version", "1.2.9"], "which says its versions itself"),
        (&["--version", "1.2.9"], "are for Operators that are named"),
        (&["foo-operator", "--latest"], "cannot be used with"),
        (&["--state", "cluster", "--latest"], "no cluster is configured"),
    ] {
        let error = attempt(directory.path(), options).await.expect_err("bad input");
        assert!(format!("{error:#}").contains(says), "{error:#}");
    }
    assert_eq!(files(directory.path()), before);
    std::fs::write(directory.path().join("bar.yaml"), "kind: Operator\n").expect("a file");
    let error = attempt(directory.path(), &["--latest"]).await.expect_err("bad input");
    assert!(format!("{error:#}").contains("bar.yaml:1:1: apiVersion is missing"), "{error:#}");
    let twice = format!("{BAR}  version: 1.2.6\n");
    std::fs::write(directory.path().join("bar.yaml"), &twice).expect("a file");
    let error = attempt(directory.path(), &["--latest", "--yes"]).await.expect_err("bad input");
    let says = "key \"version\" stands on line 8 and again on line 9: keep one of them";
    assert!(format!("{error:#}").contains(says), "{error:#}");
    assert_eq!(files(directory.path())[0].1, twice);
    let empty = tempfile::tempdir().expect("a directory");
    let error = attempt(empty.path(), &["--latest"]).await.expect_err("bad input");
    assert!(format!("{error:#}").contains("has no Operators"), "{error:#}");
}

#[tokio::test]
async fn a_range_that_cannot_be_had_is_refused_with_the_reason() {
    let directory = tempfile::tempdir().expect("a directory");
    let operator = |name: &str, version: &str| {
        format!(
            "apiVersion: olm.io/v1\nkind: Operator\nmetadata: {{name: {name}}}\nspec: {{version: \
             \"{version}\"}}\n---\n"
        )
    };
    let text = operator("left", "1.0.0") + &operator("right", "1.0.0");
    std::fs::write(directory.path().join("both.yaml"), &text).expect("a file");
    let error = attempt(directory.path(), &["--for-range", "left@2.0.0", "--yes"])
        .await
        .expect_err("right has no 2.0.0");
    assert!(error.is::<Refusal>(), "{error:#}");
    assert_eq!(error.to_string(), "the update could leave your system in an inconsistent state");
    assert_eq!(files(directory.path())[0].1, text);
}

#[tokio::test]
async fn a_snapshot_is_a_state() {
    let (directory, other) = (loadout(), tempfile::tempdir().expect("a directory"));
    let catalog_file = other.path().join("main.json");
    std::fs::write(&catalog_file, catalog(&BUNDLES)).expect("a file");
    let file = catalog_file.display().to_string();
    let names = ["foo-operator", "bar-operator", "fiz-operator", "buz-operator"];
    let words = [&["snapshot", "--no-cache", "--state", "files", "--catalog", &file], &names[..]];
    let SnapshotLine { arguments } = SnapshotLine::try_parse_from(words.concat()).expect("a line");
    let mut out = Vec::new();
    snapshot::run(None, &arguments, &mut out).await.expect("a snapshot");
    let path = other.path().join("state.json");
    std::fs::write(&path, &out).expect("a file");
    let (state, directory) = (path.display().to_string(), directory.path().display().to_string());
    let words = ["update", "-f", &directory, "--state", &state, "--latest", "--dry-run"];
    let Line { arguments } = Line::try_parse_from(words).expect("a line");
    let mut text = Vec::new();
    run(None, &arguments, &mut Prompter::NonInteractive, &mut text).await.expect("a plan");
    let (_, expected) =
        attempt(Path::new(&directory), &["--latest", "--dry-run"]).await.expect("a plan");
    assert_eq!(String::from_utf8(text).expect("text"), expected);
}

/// Runs `operator lock` for a directory on a catalog with these bundles, and returns the output.
async fn lock_with(directory: &Path, bundles: &[(&str, &str, &str, &str)]) -> String {
    let catalogs = tempfile::tempdir().expect("a directory");
    let catalog_file = catalogs.path().join("main.json");
    std::fs::write(&catalog_file, catalog(bundles)).expect("a file");
    let (directory, file) = (directory.display().to_string(), catalog_file.display().to_string());
    let words = ["lock", &directory, "--no-cache", "--catalog", &file];
    let LockLine { arguments } = LockLine::try_parse_from(words).expect("a line");
    let mut out = Vec::new();
    lock::run(None, &arguments, &mut out).await.expect("a lock file");
    String::from_utf8(out).expect("text")
}

#[tokio::test]
async fn a_lock_file_says_what_is_installed_and_is_kept_up_to_date() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path();
    let foo = LOADOUT.split("---").next().expect("a document").replace("1.2.2 #", "~1.2 #");
    std::fs::write(path.join("foo.yaml"), &foo).expect("a file");
    std::fs::write(path.join("bar.yaml"), BAR.replace("1.2.5", "'>=1.2.5, <1.3'")).expect("a file");
    let error = attempt(path, &["--locked", "--dry-run"]).await.expect_err("no lock file");
    assert!(error.to_string().contains("write it with `operator lock`"), "{error}");
    let older: Vec<_> =
        BUNDLES.into_iter().filter(|it| !["1.2.7", "1.2.9"].contains(&it.1)).collect();
    let lock_file = path.join("operators.lock");
    let written = lock_with(path, &older).await;
    assert_eq!(written, format!("{} written\n", lock_file.display()));
    assert_eq!(lock_with(path, &older).await, "", "a second time");
    let error = attempt(path, &["--locked", "--dry-run"]).await.expect_err("newer versions");
    let says = "bar-operator is locked at v1.2.5, and would be v1.2.7; foo-operator is locked at v1.2.5, \
                and would be v1.2.9; write it anew with `operator lock`";
    assert!(error.to_string().ends_with(says), "{error}");
    let planned = format!(
        "bar-operator >=1.2.5, <1.3 (@v1.2.5) -> bar-operator >=1.2.7, <1.3.0 (@v1.2.7)\n\
         foo-operator ~1.2 (@v1.2.5) -> foo-operator ~1.2 (@v1.2.9)\n\
         * foo-operator v1.2.9 depends on bar-operator >= v1.2.7\n\
         Would you like to continue? [N/y]: y (--yes)\n{} written\n{} written\n",
        path.join("bar.yaml").display(),
        lock_file.display()
    );
    check(path, &["--yes"], &planned, 0).await;
    check(
        path,
        &["--locked"],
        "bar-operator >=1.2.7, <1.3.0 (@v1.2.7)\nfoo-operator ~1.2 (@v1.2.9)\nNothing to do\n",
        0,
    )
    .await;
    assert_eq!(files(path).iter().find(|it| it.0 == "foo.yaml").expect("it is there").1, foo);
}
