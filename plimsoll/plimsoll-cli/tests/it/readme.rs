//! What the documents show of the program is what it does: each command that needs nothing but the
//! repository is run, and its output compared. Those of the guide to self-service are run on a cluster
//! (`operators::self_service`).

#![expect(clippy::panic, reason = "how a test fails")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// A command of a document, and the lines shown below it.
pub(crate) struct Shown<'a> {
    pub(crate) command: &'a str,
    pub(crate) lines: Vec<&'a str>,
}

/// The commands in the `console` blocks of a document.
pub(crate) fn commands(document: &str) -> Vec<Shown<'_>> {
    let mut shown: Vec<Shown<'_>> = Vec::new();
    let mut inside = false;
    for line in document.lines() {
        match line.strip_prefix("$ ") {
            _ if line.trim_start().starts_with("```") => inside = !inside && line == "```console",
            _ if !inside => {}
            Some(command) => {
                let command = command.split_once(" #").map_or(command, |(command, _)| command);
                shown.push(Shown { command: command.trim(), lines: Vec::new() });
            }
            None => shown.last_mut().expect("a block begins with a command").lines.push(line),
        }
    }
    shown
}

/// Whether a command needs nothing but the repository: all its files are there.
fn is_at_home(command: &str) -> bool {
    let paths = ["plimsoll/plimsoll-", "examples/"];
    command.starts_with("plimsoll ") && paths.iter().any(|path| command.contains(path))
}

fn run(command: &str) -> Output {
    let root = std::path::absolute("../..").expect("a working directory");
    Command::new(env!("CARGO_BIN_EXE_plimsoll"))
        .args(command.split_whitespace().skip(1))
        .current_dir(root)
        .output()
        .expect("the program runs")
}

/// Compares lines with what is shown of them; `…` stands for any number of lines.
pub(crate) fn is_shown(output: &str, shown: &[&str]) -> Result<(), String> {
    let lines: Vec<&str> = output.lines().collect();
    let mut at = 0;
    let mut anywhere = false;
    for line in shown {
        if line.trim() == "…" {
            anywhere = true;
            continue;
        }
        let found = lines[at..].iter().position(|other| other == line);
        match found {
            Some(0) => at += 1,
            Some(ahead) if anywhere => at += ahead + 1,
            _ => return Err(format!("{line:?} is not where it is shown, in\n{output}")),
        }
        anywhere = false;
    }
    let rest = lines.len() - at;
    if anywhere || rest == 0 { Ok(()) } else { Err(format!("{rest} lines more, in\n{output}")) }
}

/// Runs the commands of a document; returns how many there were.
fn check(document: &str, name: &str) -> usize {
    let mut ran = 0;
    let mut last = None;
    for Shown { command, lines } in commands(document) {
        if command == "echo $?" {
            let status: i32 = last.expect("a command before it was run");
            assert_eq!(lines, [format!("{status}")], "{name}");
        }
        if !is_at_home(command) {
            continue;
        }
        let Output { status, stdout, stderr } = run(command);
        let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
        last = status.code();
        assert!(stderr.is_empty(), "{name}: {command}: {stderr}");
        if !lines.is_empty() {
            is_shown(&stdout, &lines).unwrap_or_else(|why| panic!("{name}: {command}: {why}"));
        }
        ran += 1;
    }
    ran
}

#[test]
fn what_the_readme_shows_is_what_the_program_prints() {
    assert!(check(include_str!("../../../../README.md"), "README.md") >= 6);
}

#[test]
fn what_the_document_on_rehearsals_shows_is_what_the_program_prints() {
    let document = include_str!("../../../../docs/rehearsal.md");
    assert!(check(document, "docs/rehearsal.md") >= 1);
}

#[test]
fn what_the_document_on_operators_shows_can_be_run() {
    let document = include_str!("../../../../docs/operators.md");
    assert!(check(document, "docs/operators.md") >= 2);
}

#[test]
fn what_the_document_on_actions_shows_of_policies_is_what_the_program_prints() {
    let document = include_str!("../../../../docs/actions.md");
    assert!(check(document, "docs/actions.md") >= 2);
}

#[test]
fn what_the_document_on_making_releases_shows_is_what_the_program_prints() {
    let document = include_str!("../../../../docs/authoring.md");
    if crate::authoring::has_programs() {
        assert!(check(document, "docs/authoring.md") >= 1);
    }
}

/// Adds the Rust sources below a directory to a text.
fn read_sources(directory: &Path, text: &mut String) {
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            read_sources(&path, text);
        } else if path.extension().is_some_and(|it| it == "rs") {
            text.push_str(&fs::read_to_string(&path).expect("a file"));
        }
    }
}

#[test]
fn the_tests_that_the_threat_model_names_exist() {
    let document = include_str!("../../../../docs/threat-model.md");
    let mut sources = String::new();
    read_sources(&std::path::absolute("..").expect("a working directory"), &mut sources);
    let is_test = |it: &&str| {
        let is_plain = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '_';
        it.matches('_').count() >= 2 && it.chars().all(is_plain)
    };
    let named: Vec<&str> = document.split('`').skip(1).step_by(2).filter(is_test).collect();
    assert!(named.len() >= 20, "{named:?}");
    for name in named {
        // A function, or a scenario.
        let forms = [format!("fn {name}()"), format!("    {name}: ")];
        assert!(forms.iter().any(|it| sources.contains(it)), "there is no test {name}");
    }
}
