//! The command on the catalog of the repository.

use std::process::ExitCode;

use clap::Parser;

use super::{ResolveArguments, run};

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    arguments: ResolveArguments,
}

fn in_repository(word: &str) -> String {
    let root = std::path::absolute("../..").expect("a working directory");
    let (name, path) = word.rsplit_once('=').unwrap_or(("", word));
    match path.starts_with("examples/") {
        true if name.is_empty() => root.join(path).display().to_string(),
        true => format!("{name}={}", root.join(path).display()),
        false => word.to_owned(),
    }
}

fn attempt(line: &str) -> Result<(ExitCode, String), anyhow::Error> {
    let words = line.split_whitespace().map(in_repository);
    let words = ["resolve".to_owned(), "--no-cache".to_owned()].into_iter().chain(words);
    let line = Line::try_parse_from(words)?;
    let mut out = Vec::new();
    let code = run(&line.arguments, &mut out)?;
    Ok((code, String::from_utf8(out)?))
}

fn check(line: &str, code: u8, expected: &str) {
    let (found, text) = attempt(line).unwrap_or_else(|error| panic!("{line}: {error:#}"));
    assert_eq!(text, expected, "{line}");
    assert_eq!(found, ExitCode::from(code), "{line}");
}

const FRESH: &str = "\
install lantern 2.0.0
  lantern.v2.0.0 from channel stable of catalog catalog
install ledger 2.0.0
  ledger.v2.0.0 from channel stable of catalog catalog
install tide 0.4.0
  tide.v0.4.0 from channel stable of catalog catalog
";

#[test]
fn an_operator_comes_with_what_it_needs() {
    check("lantern --catalog examples/catalog", 0, FRESH);
}

#[test]
fn the_readme_shows_what_is_printed() {
    let readme = include_str!("../../../../../README.md");
    let shown = "$ plimsoll resolve lantern --catalog examples/catalog\n";
    assert!(readme.contains(&format!("{shown}{FRESH}")), "the README shows something else");
}

#[test]
fn a_bundle_can_be_tried_before_it_is_published() {
    let line = "--bundle examples/bundles/lantern/2.2.0 --catalog examples/catalog -o json";
    let (code, text) = attempt(line).expect("the bundle and the catalog can be read");
    assert_eq!(code, ExitCode::SUCCESS, "{text}");
    let answer: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(answer["outcome"], "solved");
    assert_eq!(answer["steps"][0]["install"][0]["bundle"], "lantern.v2.2.0");
}

#[test]
fn what_cannot_be_had_is_said_with_what_can() {
    check(
        "lantern --version >=9 --catalog examples/catalog",
        3,
        "no solution found:\n  `lantern` with version `>=9` is requested, but no version matches \
         `>=9`; available: 1.0.0 to 2.0.0 (3 versions)\n  so `lantern` with version `>=9` cannot be \
         installed\n\nhelp: this change makes it solvable:\n  request another version of lantern, such as 2.0.0\n",
    );
}

#[test]
fn answers_are_drawn_too() {
    for (output, begin) in [("mermaid", "flowchart TD"), ("dot", "digraph"), ("svg", "<svg")] {
        let line = format!("lantern --catalog examples/catalog -o {output}");
        let (_, text) = attempt(&line).expect("it is solved");
        assert!(text.starts_with(begin) && text.contains("ledger"), "{text}");
        let line = format!("nothing --catalog examples/catalog -o {output}");
        let (code, text) = attempt(&line).expect("it is explained");
        assert!(text.starts_with(begin) && text.contains("nothing"), "{text}");
        assert_eq!(code, ExitCode::from(3));
    }
}

#[test]
fn what_is_installed_is_updated_and_a_problem_can_be_resolved_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let installed = directory.path().join("installed.yaml");
    let list = "- {package: lantern, version: 1.1.1, channel: stable}\n\
                - {package: ledger, version: 1.5.0, channel: stable}\n";
    std::fs::write(&installed, list).expect("a file");
    let problem = directory.path().join("problem.json");
    let line = format!(
        "lantern --catalog examples/catalog --explain --installed {} --write-problem {}",
        installed.display(),
        problem.display()
    );
    let (_, text) = attempt(&line).expect("it is solved");
    assert!(text.contains("update lantern 2.0.0\n"), "{text}");
    let (_, again) =
        attempt(&format!("--explain --problem {}", problem.display())).expect("the same");
    assert_eq!(again, text);
}

#[test]
fn what_is_known_of_the_cluster_rules_out_what_does_not_fit() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("cluster.yaml");
    let attempt = |cluster: &str, line: &str| {
        std::fs::write(&file, cluster).expect("a file");
        attempt(&format!("{line} --cluster {}", file.display()))
    };
    let lantern = "lantern --catalog olm/one=examples/catalog --namespace here";
    let (_, text) = attempt("{}", lantern).expect("it is solved");
    assert!(text.contains("of catalog olm/one"), "{text}");
    let unseen = "globalNamespaces: [elsewhere]";
    let (code, text) = attempt(unseen, lantern).expect("it is explained");
    assert_eq!(code, ExitCode::from(3), "{text}");
    for (cluster, says) in [
        ("kubernetes: x", "`x` is not a version"),
        ("kubernets: 1.35", "unknown field `kubernets`"),
        ("operatorGroups: [{targets: []}]", "missing field `namespace`"),
    ] {
        let error = attempt(cluster, lantern).expect_err("bad input");
        assert!(format!("{error:#}").contains(says), "{error:#}");
    }
}

#[test]
fn a_bundle_that_cannot_be_read_says_why() {
    let directory = tempfile::tempdir().expect("a directory");
    let published =
        std::path::absolute("../../examples/bundles/lantern/2.2.0").expect("a working directory");
    for part in ["manifests", "metadata"] {
        std::fs::create_dir(directory.path().join(part)).expect("a directory");
        for entry in std::fs::read_dir(published.join(part)).expect("the example has both") {
            let entry = entry.expect("an entry");
            let copy = directory.path().join(part).join(entry.file_name());
            std::fs::copy(entry.path(), copy).expect("a file");
        }
    }
    let dependencies = "dependencies:\n- type: olm.package\n  version: >1\n";
    let path = directory.path().join("metadata/dependencies.yaml");
    std::fs::write(path, dependencies).expect("a file");
    let error = attempt(&format!("--bundle {}", directory.path().display())).expect_err("broken");
    let error = format!("{error:#}");
    let expected = "cannot be used:\n  metadata/dependencies.yaml:2: error [dependency]";
    assert!(error.contains(expected), "{error}");
}

#[test]
fn bad_input_is_an_error() {
    let error = |line: &str| format!("{:#}", attempt(line).expect_err("bad input"));
    assert_eq!(error("lantern"), "no catalog is given: name one with `--catalog` or `--bundle`");
    assert_eq!(
        error("--catalog examples/catalog"),
        "no package is given: name one, or a bundle with `--bundle`"
    );
    assert!(error("a --catalog examples/catalog --version x||").contains("is not a range"));
    assert!(error("a --catalog examples/catalog --prefer b").contains("no catalog is named `b`"));
    assert!(error("a --catalog examples/nothing").contains("failed to open catalog"));
}
