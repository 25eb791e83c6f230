//! Transcripts of resolutions, on a catalog with a chain of dependencies.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use plimsoll_content::expressions::Cel;
use plimsoll_content::yaml;
use plimsoll_operators::OperatorInputs;
use plimsoll_operators::install::{InstallError, expanded, plan_install, spelled};
use plimsoll_resolve::CatalogPart;
use serde_json::Value;

use super::{ResolveArguments, run};
use crate::exit::Refusal;
use crate::prompt::Prompter;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    arguments: ResolveArguments,
}

/// The bundles of a catalog: package, version, provided kind, and requirement.
const BUNDLES: [(&str, &str, &str, &str); 11] = [
    ("foo-operator", "1.2.2", "Foo", "bar-operator >=1.2.3"),
    ("foo-operator", "1.2.5", "Foo", "bar-operator >=1.2.3"),
    ("foo-operator", "1.2.9", "Foo", "bar-operator >=1.2.7"),
    ("bar-operator", "1.2.1", "Bar", ""),
    ("bar-operator", "1.2.5", "Bar", "baz-operator >=1.2.3 <1.5.0"),
    ("bar-operator", "1.2.7", "Bar", "baz-operator >=1.2.3 <1.5.0"),
    ("baz-operator", "1.2.4", "Baz", ""),
    ("baz-operator", "1.5.6", "Baz", ""),
    // Provides the same kind as baz-operator, so the two conflict.
    ("fiz-operator", "2.9.2", "Baz", ""),
    ("buz-operator", "0.2.4", "Buz", ""),
    ("caller-operator", "1.0.0", "Caller", "Baz"),
];

/// Returns the text of a catalog with these bundles: package, version, provided kind, and
/// requirement, which is a kind, or a package with a range.
pub(in super::super) fn catalog(bundles: &[(&str, &str, &str, &str)]) -> String {
    let mut text = String::new();
    for (at, (package, version, kind, requires)) in bundles.iter().enumerate() {
        let of = |it: &&(&str, &str, &str, &str)| it.0 == *package;
        if bundles[..at].iter().find(of).is_none() {
            let versions: Vec<&str> = bundles.iter().filter(of).map(|it| it.1).collect();
            let entries: Vec<String> = versions
                .iter()
                .enumerate()
                .map(|(at, version)| {
                    let before = at.checked_sub(1).map(|at| versions[at]);
                    let replaces = before
                        .map(|it| format!(r#","replaces":"{package}.v{it}""#))
                        .unwrap_or_default();
                    format!(r#"{{"name":"{package}.v{version}"{replaces}}}"#)
                })
                .collect();
            let _ = writeln!(
                text,
                r#"{{"schema":"olm.package","name":"{package}","defaultChannel":"stable"}}
{{"schema":"olm.channel","package":"{package}","name":"stable","entries":[{}]}}"#,
                entries.join(",")
            );
        }
        let required = match requires.split_once(' ') {
            Some((name, range)) => format!(
                r#",{{"type":"olm.package.required","value":{{"packageName":"{name}","versionRange":"{range}"}}}}"#
            ),
            None if requires.is_empty() => String::new(),
            None => format!(
                r#",{{"type":"olm.gvk.required","value":{{"group":"example.com","version":"v1","kind":"{requires}"}}}}"#
            ),
        };
        let _ = writeln!(
            text,
            r#"{{"schema":"olm.bundle","package":"{package}","name":"{package}.v{version}","image":"example.com/{package}:{version}","properties":[{{"type":"olm.package","value":{{"packageName":"{package}","version":"{version}"}}}},{{"type":"olm.gvk","value":{{"group":"example.com","version":"v1","kind":"{kind}"}}}}{required}]}}"#,
        );
    }
    text
}

/// Runs the command for a directory.
async fn attempt(directory: &Path, options: &[&str]) -> Result<(ExitCode, String), anyhow::Error> {
    let catalogs = tempfile::tempdir()?;
    let catalog_file = catalogs.path().join("main.json");
    std::fs::write(&catalog_file, catalog(&BUNDLES))?;
    let (directory, file) = (directory.display().to_string(), catalog_file.display().to_string());
    let words =
        ["resolve", "--no-cache", "--state", "files", "--catalog", &file, "--write", &directory];
    answer(Line::try_parse_from(words.iter().chain(options))?).await
}

async fn answer(line: Line) -> Result<(ExitCode, String), anyhow::Error> {
    let mut out = Vec::new();
    let mut prompter = match line.arguments.yes {
        true => Prompter::AssumeYes,
        false => Prompter::NonInteractive,
    };
    let code = match run(None, &line.arguments, &mut prompter, &mut out).await {
        Ok(code) => code,
        Err(error) => match error.downcast_ref::<Refusal>() {
            Some(refusal) => refusal.exit.into(),
            None => return Err(error),
        },
    };
    Ok((code, String::from_utf8(out)?))
}

/// Returns the names and the texts of the files of a directory.
pub(in super::super) fn files(directory: &Path) -> Vec<(String, String)> {
    let mut files: Vec<(String, String)> = std::fs::read_dir(directory)
        .expect("a directory")
        .map(|entry| {
            let path = entry.expect("an entry").path();
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            (name, std::fs::read_to_string(path).expect("a file"))
        })
        .collect();
    files.sort();
    files
}

#[tokio::test]
async fn a_dependency_that_is_asked_for_is_written_as_such() {
    let directory = tempfile::tempdir().expect("a directory");
    let attempt = async |package: &str| {
        let written = attempt(directory.path(), &[package, "--yes"]).await;
        let (code, text) = written.expect("a solution");
        assert_eq!(code, ExitCode::SUCCESS, "{text}");
        text
    };
    attempt("foo-operator@~1.2").await;
    let text = attempt("bar-operator").await;
    let kept = "* bar-operator is kept for itself: it was installed as a dependency\n";
    assert!(text.contains(kept), "{text}");
    let files = files(directory.path());
    let (_, bar) = files.iter().find(|it| it.0 == "bar-operator.yaml").expect("a file");
    assert!(bar.contains("olm.io/installed-as: user\n"), "{bar}");
    let text = attempt("bar-operator").await;
    assert!(text.contains("Nothing to do: bar-operator is installed\n"), "{text}");
}

#[tokio::test]
async fn an_operator_is_written_with_what_it_depends_on() {
    let directory = tempfile::tempdir().expect("a directory");
    let options = ["foo-operator", "--version-range", "~1.2, <1.2.9"];
    let (code, text) = attempt(directory.path(), &options).await.expect("a solution");
    let planned = "\
* foo-operator v1.2.5 depends on bar-operator >= v1.2.3
* bar-operator v1.2.7 depends on baz-operator >= v1.2.3 < v1.5.0
Generate Operator resources for:
- foo-operator@v1.2.5
- bar-operator@v1.2.7
- baz-operator@v1.2.4
";
    assert_eq!(text, format!("{planned}[Y/n]: n (no terminal; --yes agrees)\n"));
    assert_eq!(code, ExitCode::from(3));
    assert_eq!(files(directory.path()), []);
    let (code, text) =
        attempt(directory.path(), &[&options[..], &["--yes"]].concat()).await.expect("a solution");
    assert_eq!((code, text), (ExitCode::SUCCESS, format!("{planned}[Y/n]: y (--yes)\n")));
    let written = files(directory.path());
    let names: Vec<&str> = written.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["bar-operator.yaml", "baz-operator.yaml", "foo-operator.yaml"]);
    assert_eq!(
        written[0].1,
        "apiVersion: olm.io/v1\nkind: Operator\nmetadata:\n  name: bar-operator\n  labels:\n    \
         olm.io/installed-as: dependency\nspec:\n  version: \">=1.2.7, <1.3.0\"\n"
    );
    assert!(written[2].1.ends_with("spec:\n  version: \"~1.2, <1.2.9\"\n"), "{}", written[2].1);
    let (code, text) =
        attempt(directory.path(), &[&options[..], &["--yes"]].concat()).await.expect("a solution");
    assert_eq!(code, ExitCode::SUCCESS, "{text}");
    assert_eq!(files(directory.path()), written, "a second time: {text}");
}

#[tokio::test]
async fn versions_are_written_beside_names_or_declared_in_files() {
    let directory = tempfile::tempdir().expect("a directory");
    for options in [
        &["foo-operator@1.2.5"][..],
        &["foo-operator", "--version", "1.2.5"],
        &["foo-operator@<1.2.9", "buz-operator@0.2.4"],
    ] {
        let options = [options, &["--dry-run"]].concat();
        let (_, text) = attempt(directory.path(), &options).await.expect("a solution");
        assert!(text.contains("- foo-operator@v1.2.5\n"), "{options:?}: {text}");
    }
    let elsewhere = tempfile::tempdir().expect("a directory");
    let file = elsewhere.path().join("foo.yaml").display().to_string();
    let declared = "apiVersion: olm.io/v1\nkind: Operator\nmetadata:\n  name: foo-operator\n  \
                    labels: {team: quay}\nspec: {version: '<1.2.9', channel: stable, paused: true}\n";
    std::fs::write(&file, declared).expect("a file");
    let options = ["-f", &file, "--yes", "-o", "name"];
    let (code, text) = attempt(directory.path(), &options).await.expect("a solution");
    let names = ["baz-operator", "bar-operator", "foo-operator"];
    let names = names.map(|it| format!("operator.olm.io/{it}\n"));
    assert_eq!((code, text), (ExitCode::SUCCESS, names.concat()));
    let written = files(directory.path());
    for text in ["team: quay", "channel: stable", "paused: true", "<1.2.9", "name: foo-operator"] {
        assert!(written[2].1.contains(text), "{}", written[2].1);
    }
}

#[tokio::test]
async fn what_is_printed_is_what_was_written() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path();
    let foo = "# Until the sale is over.\napiVersion: olm.io/v1\nkind: Operator\nmetadata:\n  \
               name: foo-operator\nspec: {version: 1.2.2, channel: stable}\n";
    std::fs::write(path.join("foo-operator.yaml"), foo).expect("a file");
    let options = ["foo-operator@1.2.5", "buz-operator", "-o", "json"];
    let (_, shown) =
        attempt(path, &[&options[..], &["--dry-run"]].concat()).await.expect("a solution");
    let (_, printed) =
        attempt(path, &[&options[..], &["--yes"]].concat()).await.expect("a solution");
    assert_eq!(shown, printed);
    let list: Value = serde_json::from_str(&printed).expect("JSON");
    let mut printed: Vec<Value> = list["items"].as_array().expect("a list").clone();
    printed.sort_by_key(|it| it["metadata"]["name"].to_string());
    let written = files(path);
    let written = written.iter().flat_map(|(_, text)| yaml::parse(text));
    let written: Vec<Value> = written.filter_map(|it| it.value.ok()).collect();
    assert_eq!(printed, written);
    let label = |name: &str| {
        let object = printed.iter().find(|it| it["metadata"]["name"] == name);
        object.expect("it is there")["metadata"]["labels"]["olm.io/installed-as"].clone()
    };
    let labels = ["foo-operator", "buz-operator", "bar-operator"].map(label);
    assert_eq!(labels, [Value::Null, "user".into(), "dependency".into()]);
    assert!(files(path).iter().any(|(_, text)| *text == foo.replace("1.2.2", "1.2.5")));
}

#[tokio::test]
async fn a_second_time_nothing_changes() {
    for options in [
        &["buz-operator"][..],
        &["foo-operator"],
        &["foo-operator", "buz-operator"],
        &["foo-operator", "--version-range", "~1.2"],
        &[
            "foo-operator@~1.2",
            "bar-operator@~1.2",
            "--exclude",
            "bar-operator/bar-operator.v1.2.7",
        ],
    ] {
        let directory = tempfile::tempdir().expect("a directory");
        let options = [options, &["--yes"]].concat();
        attempt(directory.path(), &options).await.expect("a solution");
        let written = files(directory.path());
        let (code, text) = attempt(directory.path(), &options).await.expect("a solution");
        assert_eq!(code, ExitCode::SUCCESS, "{text}");
        assert!(text.contains("Nothing to do: "), "{options:?}: {text}");
        assert_eq!(files(directory.path()), written, "{options:?}");
    }
}

#[tokio::test]
async fn a_conflict_with_what_is_there_writes_nothing_unless_forced() {
    let directory = tempfile::tempdir().expect("a directory");
    let fiz = "apiVersion: olm.io/v1\nkind: Operator\nmetadata: {name: fiz-operator}\nspec: {version: 2.9.2}\n";
    std::fs::write(directory.path().join("fiz-operator.yaml"), fiz).expect("a file");
    let before = files(directory.path());
    let (code, text) = attempt(directory.path(), &["foo-operator", "--yes"]).await.expect("files");
    assert_eq!(code, ExitCode::from(3), "{text}");
    assert!(text.contains("* foo-operator v1.2.9 depends on bar-operator >= v1.2.7\n"), "{text}");
    assert!(text.contains("baz-operator") && text.contains("fiz-operator"), "{text}");
    assert_eq!(files(directory.path()), before);
    let (code, _) =
        attempt(directory.path(), &["foo-operator", "--yes", "--force"]).await.expect("files");
    assert_eq!(code, ExitCode::SUCCESS);
    let written = files(directory.path());
    assert_eq!(written.len(), 4);
    assert!(written[0].1.starts_with("# WARNING: installing foo-operator could"), "{written:?}");
}

#[tokio::test]
async fn who_provides_an_api_is_chosen_and_what_cannot_be_chosen_is_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let conflict = "* --use baz-operator=buz-operator cannot be satisfied: without it there is a \
                    solution\n";
    let excluded = "* --exclude baz-operator cannot be satisfied: without it there is a solution\n";
    let cases = [
        (&["caller-operator"][..], 0, ["- baz-operator@v1.5.6\n", ""]),
        (
            &["caller-operator", "--use", "baz-operator=fiz-operator"],
            0,
            ["* override: fiz-operator provides Baz (example.com/v1)\n", "- fiz-operator@v2.9.2\n"],
        ),
        (&["caller-operator", "--use", "baz-operator=buz-operator"], 3, [conflict, "no solution"]),
        (&["foo-operator", "--exclude", "baz-operator"], 3, [excluded, "no solution found"]),
    ];
    for (options, code, says) in cases {
        let options = [options, &["--dry-run"]].concat();
        let (found, text) = attempt(directory.path(), &options).await.expect("an answer");
        assert_eq!(found, ExitCode::from(code), "{options:?}: {text}");
        assert!(says.iter().all(|it| text.contains(it)), "{options:?}: {text}");
    }
}

#[tokio::test]
async fn a_snapshot_has_the_answer_that_the_controller_gives() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str| directory.path().join(name).display().to_string();
    std::fs::write(file("main.json"), catalog(&BUNDLES)).expect("a file");
    let (catalog, snapshot) = (file("main.json"), file("state.json"));
    let words =
        ["resolve", "foo-operator", "--no-cache", "--state", "files", "--catalog", &catalog];
    let line = Line::try_parse_from(words).expect("it is a command line");
    let state = line.arguments.state.read(None, &[]).await.expect("a state");
    let taken = state.snapshot(&["foo-operator".to_owned(), "caller-operator".to_owned()]);
    std::fs::write(&snapshot, taken.text()).expect("a file");
    let parts: Vec<CatalogPart> = taken.catalogs.iter().map(|it| it.part.clone()).collect();
    let inputs = OperatorInputs {
        operators: &taken.operators,
        unavailable: &taken.unavailable,
        facts: &taken.facts,
        expressions: &Cel,
    };
    let nowhere = file("nowhere");
    let cases: [&[&str]; 4] = [
        &["foo-operator"],
        &["foo-operator", "--version-range", "~1.2"],
        &["caller-operator", "--use", "baz-operator=fiz-operator"],
        &["foo-operator", "--exclude", "baz-operator"],
    ];
    for options in cases {
        let words = [&["resolve", "--state", &snapshot, "--dry-run", "--write", &nowhere], options]
            .concat();
        let line = Line::try_parse_from(words).expect("it is a command line");
        let request = line.arguments.choice.request(Vec::new()).expect("a request");
        let planned = match plan_install(inputs, &parts, &request) {
            Ok(plan) => plan.text(),
            Err(InstallError::Unsatisfiable(conflict)) => conflict.text(),
            Err(error) => unreachable!("{error:?}"),
        };
        let (_, text) = answer(line).await.expect("an answer");
        assert_eq!(text, planned, "{options:?}");
    }
}

#[tokio::test]
async fn bad_input_is_an_error_and_writes_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    for (options, says) in [
        (["fox-operator", "--yes"].as_slice(), "no catalog has package `fox-operator`"),
        (["foo-operator", "--version-range", "x||"].as_slice(), "is not a range"),
        (&["foo-operator@x||"], "is not a range"),
        (&["foo-operator", "--version", "~1.2"], "--version-range takes ranges"),
        (["foo-operator", "--use", "bar"].as_slice(), "is not of the form"),
        (["foo-operator", "--use", "nothing=bar-operator"].as_slice(), "no catalog has package"),
        (&["foo-operator", "foo-operator"], "foo-operator is named twice"),
        (
            &["foo-operator@7"],
            "no version of foo-operator matches 7; there is v1.2.9, v1.2.5, v1.2.2",
        ),
        (&["foo-operator", "--channel", "beta"], "has no channel beta; its channels are stable"),
        (&["foo-operator", "--channel", "stabel"], "has no channel stabel, did you mean `stable`?"),
        (&["foo-operator", "--exclude", "nope"], "no catalog has package `nope`"),
        (&["foo-operator", "--use", "a.b/v1/C=bar-operator"], "no package provides `a.b/v1/C`"),
    ] {
        let error = attempt(directory.path(), options).await.expect_err("bad input");
        assert!(format!("{error:#}").contains(says), "{error:#}");
    }
    assert_eq!(files(directory.path()), []);
}

#[test]
fn ranges_are_spelled_out() {
    assert_eq!(spelled("bar >=1.2.3 <v2.0.0"), "bar >= v1.2.3 < v2.0.0");
    assert_eq!(spelled("bar >= 1.2.3 < 1.2.6"), "bar >= v1.2.3 < v1.2.6");
    assert_eq!(spelled("bar 1.2.5 || v1.2.7"), "bar v1.2.5 || v1.2.7");
    assert_eq!(spelled("an API"), "an API");
    let rule = "a bundle for which `size >=3`";
    assert_eq!(spelled(rule), rule);
    let caret = "^1.2.x is >= v1.2.0 < v2.0.0; for patch releases alone, use ~1.2";
    assert_eq!(expanded("^1.2.x").as_deref(), Some(caret));
    assert_eq!(expanded("~1.2").as_deref(), Some("~1.2 is >= v1.2.0 < v1.3.0"));
    assert_eq!(expanded("^0.2.1").as_deref(), Some("^0.2.1 is >= v0.2.1 < v0.3.0"));
    assert_eq!(expanded(">=1.2, <2"), None);
}
