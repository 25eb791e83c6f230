//! Comments: what a renaming or a merge leaves behind, a word twice in a row or an attribute that has
//! become part of a comment and is without effect.

use super::{Finding, Tree};

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in &tree.files {
        if path.ends_with(".rs") {
            findings.extend(check_source(path, text));
        } else if path.ends_with(".md") {
            findings.extend(check_document(path, text));
        }
    }
    findings
}

fn check_source(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut words = WordPairs::default();
    for (number, line) in text.lines().enumerate() {
        let place = || format!("{path}:{}", number + 1);
        let Some(comment) = comment(line) else {
            words.end();
            continue;
        };
        if comment.contains("#![") || comment.contains("#[cfg_attr(") {
            findings.push(Finding::new(place(), "an attribute inside a comment is without effect"));
        }
        if comment.trim().is_empty() {
            words.end();
            continue;
        }
        let doubled = words.read(comment);
        findings.extend(doubled.map(|word| Finding::new(place(), twice(&word))));
    }
    findings
}

fn check_document(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut words = WordPairs::default();
    let mut is_code = false;
    for (number, line) in text.lines().enumerate() {
        is_code ^= line.trim_start().starts_with("```");
        if is_code || line.trim().is_empty() || line.starts_with('|') {
            words.end();
            continue;
        }
        if let Some(word) = words.read(line) {
            findings.push(Finding::new(format!("{path}:{}", number + 1), twice(&word)));
        }
    }
    findings
}

fn twice(word: &str) -> String {
    format!("`{word} {word}`: a word twice in a row")
}

/// The text of a line that is a comment.
fn comment(line: &str) -> Option<&str> {
    let text = line.trim_start().strip_prefix("//")?;
    Some(text.trim_start_matches(['/', '!']))
}

/// Finds a word that follows itself, at the end of a line too.
#[derive(Default)]
struct WordPairs {
    last: String,
}

impl WordPairs {
    /// The text ends.
    fn end(&mut self) {
        self.last.clear();
    }

    /// Reads a line of a text; the first word that follows itself.
    fn read(&mut self, line: &str) -> Option<String> {
        let mut found = None;
        // What is in backticks is not prose.
        for (index, part) in line.split('`').enumerate() {
            if index % 2 == 1 {
                self.end();
                continue;
            }
            for word in part.split_whitespace() {
                let is_word = word.chars().all(char::is_alphabetic);
                if is_word && word.eq_ignore_ascii_case(&self.last) {
                    found.get_or_insert_with(|| word.to_owned());
                }
                self.last = if is_word { word.to_owned() } else { String::new() };
            }
        }
        found
    }
}

#[test]
fn doubled_words_are_found_across_lines_and_not_in_code() {
    let check = |path: &str, text: &str, expected: &[&str]| {
        let findings = check(&Tree::of(&[(path, text)]));
        let found: Vec<String> = findings.iter().map(ToString::to_string).collect();
        assert_eq!(found, expected, "{text}");
    };
    check("a.rs", "/// It is is so.\n", &["a.rs:1: `is is`: a word twice in a row"]);
    check("a.rs", "//! It is\n//! is so.\n", &["a.rs:2: `is is`: a word twice in a row"]);
    check("a.rs", "//! # What it is\n//!\n//! Is it so?\n", &[]);
    check("a.rs", "// It is\nlet is = 1;\n// is so.\n", &[]);
    check("a.rs", "// It is `is is` so. So it is.\n", &[]);
    check("a.md", "It is the the end.\n", &["a.md:1: `the the`: a word twice in a row"]);
    check("a.md", "```text\nthe the\n```\n| a a |\nthe\n\nthe\n", &[]);
}

#[test]
fn an_attribute_in_a_comment_is_found() {
    let text =
        "//! | a | b |#![cfg_attr(doctest, doc = \"\")]\n#![cfg_attr(doctest, doc = \"\")]\n";
    let findings = check(&Tree::of(&[("a.rs", text)]));
    let found: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert_eq!(found, ["a.rs:1: an attribute inside a comment is without effect"]);
}
