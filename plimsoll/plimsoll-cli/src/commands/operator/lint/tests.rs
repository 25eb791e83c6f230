//! Tests of the command on files in a directory, with the catalog of the repository and without a
//! cluster.

use std::path::Path;
use std::process::{Command, ExitCode};

use clap::Parser;

use super::super::lock::{self, LockArguments};
use super::{LintArguments, run};

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    arguments: LintArguments,
}

/// Lints a directory with the catalog of the repository.
async fn attempt(directory: &Path, options: &[&str]) -> Result<(ExitCode, String), anyhow::Error> {
    let catalog = std::path::absolute("../../examples/catalog").expect("a working directory");
    let (directory, catalog) = (directory.display().to_string(), catalog.display().to_string());
    let words = ["lint", &directory, "--no-cache", "--state", "files", "--catalog", &catalog];
    let line = Line::try_parse_from(words.iter().chain(options))?;
    let mut out = Vec::new();
    let code = run(None, &line.arguments, &mut out).await?;
    Ok((code, String::from_utf8(out)?.replace(&format!("{directory}/"), "")))
}

fn operator(name: &str, spec: &str) -> String {
    format!(
        "# {name}\napiVersion: olm.io/v1\nkind: Operator\nmetadata: {{name: {name}}}\nspec: {spec}\n"
    )
}

#[tokio::test]
async fn findings_name_their_place_and_errors_fail() {
    let directory = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| {
        std::fs::write(directory.path().join(name), text).expect("a file");
    };
    write("lantern.yaml", &operator("lantern", "{version: 1.1.1}"));
    write("notes.txt", "no manifest");
    let (code, text) = attempt(directory.path(), &[]).await.expect("files");
    assert_eq!(code, ExitCode::SUCCESS, "{text}");
    assert!(
        text.contains("lantern.yaml:4:12: warning [OL003]: lantern depends on ledger"),
        "{text}"
    );
    assert!(text.ends_with("0 errors, 1 warning\n"), "{text}");
    write("tide.yaml", &operator("tide", "{version: 9.9.9}"));
    for (format, says) in [
        ("text", "tide.yaml:5:8: error [OL002]: no version of tide matches 9.9.9"),
        ("json", "\"code\": \"OL002\""),
        ("sarif", "\"ruleId\": \"OL002\""),
        ("junit", "<failure type=\"OL002\""),
    ] {
        let (code, text) = attempt(directory.path(), &["-o", format]).await.expect("files");
        assert_eq!(code, ExitCode::FAILURE, "{text}");
        assert!(text.contains(says), "{text}");
    }
}

#[tokio::test]
async fn what_may_be_meant_is_any_package_of_the_catalogs() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("lanter.yaml");
    std::fs::write(path, operator("lanter", "{version: 1.1.1}")).expect("a file");
    let (code, text) = attempt(directory.path(), &[]).await.expect("files");
    assert_eq!(code, ExitCode::FAILURE, "{text}");
    let finding = "lanter.yaml:4:12: error [OL001]: no catalog has package `lanter`, did you mean `lantern`?\n  \
                   help: choose one of those that `kubectl operator search` lists\n";
    assert!(text.starts_with(finding), "{text}");
}

#[tokio::test]
async fn what_has_one_answer_is_changed_in_the_files() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("tide.yaml");
    std::fs::write(&path, operator("tide", "{} # any")).expect("a file");
    let (_, text) = attempt(directory.path(), &["--fix"]).await.expect("files");
    assert_eq!(text, "0 errors, 0 warnings\n");
    let fixed = std::fs::read_to_string(&path).expect("the file");
    assert_eq!(fixed, operator("tide", "{version: 0.4.0} # any"));
}

/// Writes a version of the example bundle to a tree of bundles, whose definition admits these colours.
fn write_bundle(catalog: &Path, version: &str, colours: &str) {
    for part in ["manifests", "metadata"] {
        let to = catalog.join("lantern").join(version).join(part);
        std::fs::create_dir_all(&to).expect("a directory");
        let original = Path::new("../../examples/bundles/lantern/2.2.0").join(part);
        for entry in original.read_dir().expect("the bundle") {
            let from = entry.expect("a file").path();
            let text = std::fs::read_to_string(&from).expect("a file");
            let text = text.replace("2.2.0", version).replace("[red, yellow, green]", colours);
            std::fs::write(to.join(from.file_name().expect("a name")), text).expect("a file");
        }
    }
}

/// Runs Git in a directory.
fn git(directory: &Path, arguments: &[&str]) {
    let identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
    let all = identity.iter().chain(arguments);
    let mut git = Command::new("git");
    let output = git.arg("-C").arg(directory).args(all).output().expect("git runs");
    assert!(output.status.success(), "{output:?}");
}

#[tokio::test]
async fn what_a_bundle_refuses_of_a_configuration_is_an_error() {
    let catalog = tempfile::tempdir().expect("a directory");
    write_bundle(catalog.path(), "2.2.0", "[red, yellow, green]");
    let directory = tempfile::tempdir().expect("a directory");
    for (config, says) in [
        ("{env: []}", Some("lantern.yaml:5:33: error [OL000]: spec.config.env: unknown field")),
        ("{deploymentConfig: {env: []}}", None),
    ] {
        let spec = format!("{{version: 2.2.0, config: {config}}}");
        let path = directory.path().join("lantern.yaml");
        std::fs::write(path, operator("lantern", &spec)).expect("a file");
        let (loadout, catalog) = (directory.path().display(), catalog.path().display());
        let line = format!("lint {loadout} --no-cache --state files --catalog {catalog}");
        let Line { arguments } = Line::try_parse_from(line.split(' ')).expect("a line");
        let mut out = Vec::new();
        run(None, &arguments, &mut out).await.expect("files");
        let text = String::from_utf8(out).expect("text");
        match says {
            Some(says) => assert!(text.contains(says), "{text}"),
            None => assert!(!text.contains("OL000"), "{text}"),
        }
    }
}

#[derive(Parser)]
struct LockLine {
    #[command(flatten)]
    arguments: LockArguments,
}

#[tokio::test]
async fn a_lock_is_out_of_date_once_the_content_of_a_bundle_changed() {
    let catalog = tempfile::tempdir().expect("a directory");
    write_bundle(catalog.path(), "2.2.0", "[red, yellow, green]");
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("lantern.yaml");
    std::fs::write(&path, operator("lantern", "{version: 2.2.0}")).expect("a file");
    let tree = catalog.path().to_owned();
    let (loadout, catalog) = (directory.path().display(), tree.display());
    let state = format!("--no-cache --state files --catalog {catalog}");
    let line = format!("lock {loadout} {state}");
    let LockLine { arguments } = LockLine::try_parse_from(line.split(' ')).expect("a line");
    lock::run(None, &arguments, &mut Vec::new()).await.expect("a lock file");
    let line = format!("lint {loadout} {state} --locked");
    let Line { arguments } = Line::try_parse_from(line.split(' ')).expect("a line");
    run(None, &arguments, &mut Vec::new()).await.expect("it is as locked");
    write_bundle(&tree, "2.2.0", "[red]");
    let error = run(None, &arguments, &mut Vec::new()).await.expect_err("it changed");
    let says = "lantern v2.2.0 is another bundle than the locked one; write it anew";
    assert!(error.to_string().contains(says), "{error}");
}

/// Lints an update from version 2.2.0 of the example bundle, which a revision of Git has, to another one of a tree
/// of bundles.
async fn updated(catalog: &Path, version: &str) -> String {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("lantern.yaml");
    let spec = |version: &str| {
        let policy = "{upgrade: Warn}";
        operator("lantern", &format!("{{version: {version}, constraintPolicy: {policy}}}"))
    };
    std::fs::write(&path, spec("2.2.0")).expect("a file");
    git(directory.path(), &["init", "-q"]);
    git(directory.path(), &["add", "."]);
    git(directory.path(), &["commit", "-q", "-m", "all"]);
    std::fs::write(&path, spec(version)).expect("a file");
    let (loadout, catalog) = (directory.path().display(), catalog.display());
    let line = format!("lint {loadout} --no-cache --state files --catalog {catalog} --base HEAD");
    let Line { arguments } = Line::try_parse_from(line.split(' ')).expect("a line");
    let mut out = Vec::new();
    run(None, &arguments, &mut out).await.expect("files");
    String::from_utf8(out).expect("text")
}

#[tokio::test]
async fn definitions_of_steps_between_are_compared() {
    let catalog = tempfile::tempdir().expect("a directory");
    let all = "[red, yellow, green]";
    write_bundle(catalog.path(), "2.2.0", all);
    for (before, version, colours) in [("2.2.0", "2.3.0", "[red]"), ("2.3.0", "2.4.0", all)] {
        write_bundle(catalog.path(), version, colours);
        let manifest = "manifests/lantern.clusterserviceversion.yaml";
        let path = catalog.path().join("lantern").join(version).join(manifest);
        let text = std::fs::read_to_string(&path).expect("a file");
        let text = text
            .replace("'>=2.0.0 <", &format!("'>={before} <"))
            .replace("replaces: lantern.v2.0.0", &format!("replaces: lantern.v{before}"));
        std::fs::write(&path, text).expect("a file");
    }
    let text = updated(catalog.path(), "2.4.0").await;
    let says = "warning [OL012]: the update from v2.2.0 to v2.3.0 on the way to v2.4.0 changes \
                beacons.lantern.example.com v1 ^.spec.colour: ";
    assert!(text.contains(says), "{text}");
}

#[tokio::test]
async fn definitions_are_compared_with_those_of_the_files_before() {
    let catalog = tempfile::tempdir().expect("a directory");
    write_bundle(catalog.path(), "2.2.0", "[red, yellow, green]");
    write_bundle(catalog.path(), "2.3.0", "[red]");
    let text = updated(catalog.path(), "2.3.0").await;
    let says = "lantern.yaml:5:8: warning [OL012]: the update from v2.2.0 to v2.3.0 changes \
                beacons.lantern.example.com v1 ^.spec.colour: ";
    assert!(text.contains(says), "{text}");
}

#[tokio::test]
async fn what_a_revision_had_is_compared() {
    let directory = tempfile::tempdir().expect("a directory");
    git(directory.path(), &["init", "-q"]);
    for (name, version) in [("lantern", "{version: 1.1.1}"), ("ledger", "{version: 1.4.0}")] {
        let path = directory.path().join(format!("{name}.yaml"));
        std::fs::write(path, operator(name, version)).expect("a file");
    }
    git(directory.path(), &["add", "."]);
    git(directory.path(), &["commit", "-q", "-m", "all"]);
    std::fs::remove_file(directory.path().join("ledger.yaml")).expect("the file");
    let (_, text) = attempt(directory.path(), &["--base", "HEAD"]).await.expect("files");
    assert!(text.contains("[OL016]"), "{text}");
    let file = directory.path().join("lantern.yaml");
    let (_, text) = attempt(&file, &["--base", "HEAD"]).await.expect("a file");
    assert!(text.contains("[OL003]"), "{text}");
    let new = directory.path().join("tide.yaml");
    std::fs::write(&new, operator("tide", "{version: 0.4.0}")).expect("a file");
    let (_, text) = attempt(&new, &["--base", "HEAD"]).await.expect("a file");
    assert_eq!(text, "0 errors, 0 warnings\n");
    let error = attempt(directory.path(), &["--base", "--upload-pack=x"]).await;
    assert!(error.is_err(), "no revision");
    let error = attempt(directory.path(), &["--base", "nowhere"]).await.expect_err("no revision");
    assert!(format!("{error:#}").contains("at nowhere"), "{error:#}");
}
