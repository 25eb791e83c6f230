//! Wrong invocations: what the program answers to each, and with which exit code.
//!
//! `invocations.txt` begins with files (`//- NAME`, then its content); a line `//-` ends them. Then
//! come the invocations: `$` and a command line, the lines of its standard output after `>`, those
//! of standard error after `!`, and the exit code after `?`. They run in a directory with these
//! files and links to the examples of the repository, without a cluster.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Fewest invocations: who shortens the table notices.
const INVOCATIONS_MIN: usize = 150;

/// A row of the table.
#[derive(Default)]
struct Invocation<'a> {
    command: &'a str,
    answer: String,
}

/// The files and the invocations of the table.
fn parse(table: &str) -> (Vec<(&str, String)>, Vec<Invocation<'_>>) {
    let mut files: Vec<(&str, String)> = Vec::new();
    let mut invocations: Vec<Invocation<'_>> = Vec::new();
    let mut in_files = true;
    for line in table.lines() {
        match line.strip_prefix("//-") {
            Some("") => in_files = false,
            Some(name) => files.push((name.trim(), String::new())),
            None if in_files => {
                if let Some((_, content)) = files.last_mut() {
                    content.push_str(line);
                    content.push('\n');
                }
            }
            None if line.is_empty() || line.starts_with('#') => {}
            None => match line.strip_prefix("$ ") {
                Some(command) => {
                    invocations.push(Invocation { command, ..Invocation::default() });
                }
                None => {
                    let row = invocations.last_mut().expect("an answer follows its command");
                    row.answer.push_str(line);
                    row.answer.push('\n');
                }
            },
        }
    }
    (files, invocations)
}

/// The words of a command line; single quotes keep spaces.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quoted = false;
    for character in line.chars() {
        match character {
            '\'' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            ' ' if !quoted => words.extend(word.take()),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    words
}

/// What the program answers, in the notation of the table.
fn answer(line: &str, directory: &Path) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    command.env_clear().env("HOME", directory.join("home")).current_dir(directory);
    let mut words = words(line).into_iter().peekable();
    while let Some((name, value)) = words.peek().and_then(|word| word.split_once('=')) {
        command.env(name, value);
        words.next();
    }
    assert_eq!(words.next().as_deref(), Some("plimsoll"), "{line}");
    let output = command.args(words).output().expect("the program runs");
    let mut answer = String::new();
    for (sign, bytes) in [('>', output.stdout), ('!', output.stderr)] {
        for text in String::from_utf8_lossy(&bytes).lines() {
            let text = format!("{sign} {text}");
            writeln!(answer, "{}", text.trim_end()).expect("a string takes everything");
        }
    }
    let code = output.status.code().expect("no signal ends it");
    writeln!(answer, "? {code}").expect("a string takes everything");
    answer
}

#[test]
fn wrong_invocations_are_answered_with_what_is_wrong_and_what_to_do() {
    let table = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/invocations.txt");
    let table = fs::read_to_string(table).expect("the table");
    let (files, invocations) = parse(&table);
    let directory = tempfile::tempdir().expect("a directory");
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    for name in ["payloads", "catalog", "bundles", "faults"] {
        std::os::unix::fs::symlink(examples.join(name), directory.path().join(name))
            .expect("a link");
    }
    for (name, content) in files {
        let path = directory.path().join(name);
        fs::create_dir_all(path.parent().expect("it is in the directory")).expect("a directory");
        fs::write(path, content).expect("a file");
    }
    let mut wrong = String::new();
    for Invocation { command, answer: expected } in &invocations {
        let actual = answer(command, directory.path());
        if actual != *expected {
            write!(wrong, "$ {command}\n{actual}\n").expect("a string takes everything");
        }
    }
    assert!(wrong.is_empty(), "answers that differ from the table:\n\n{wrong}");
    assert!(invocations.len() >= INVOCATIONS_MIN, "{} invocations", invocations.len());
}
