//! Parameters: a tuple in a function's list is either several parameters or a type without a name.

use super::{Finding, Tree};

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let sources = tree.files.iter().filter(|(path, _)| path.ends_with(".rs"));
    let mut findings = Vec::new();
    for (path, text) in sources {
        for (line, function) in tuples(text) {
            let text = format!("`{function}` takes a tuple: give it parameters or a type");
            findings.push(Finding::new(format!("{path}:{line}"), text));
        }
    }
    findings
}

/// The functions that take a tuple apart in their list of parameters: line and name.
fn tuples(source: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (number, line) in source.lines().enumerate() {
        let declared = line.trim_start();
        let is_declaration = declared.starts_with("fn ") || declared.contains(" fn ");
        if !is_declaration || declared.starts_with("//") {
            continue;
        }
        let Some((_, rest)) = line.split_once("fn ") else { continue };
        let end = rest.find(|it: char| !it.is_alphanumeric() && it != '_').unwrap_or(rest.len());
        let name = &rest[..end];
        let start = rest.as_ptr() as usize - source.as_ptr() as usize + end;
        if takes_tuple(&source[start..]) {
            found.push((number + 1, name));
        }
    }
    found
}

/// Whether a list of parameters, which may follow one of generic ones, has one that begins with a
/// parenthesis.
fn takes_tuple(source: &str) -> bool {
    let Some(list) = after_generics(source).strip_prefix('(') else { return false };
    let mut depth = 0_usize;
    let mut is_start = true;
    for letter in list.chars() {
        if depth == 0 && is_start && letter == '(' {
            return true;
        }
        match letter {
            '(' | '[' | '{' | '<' => depth += 1,
            ')' if depth == 0 => return false,
            ')' | ']' | '}' | '>' => depth = depth.saturating_sub(1),
            _ => {}
        }
        is_start = (is_start && letter.is_whitespace()) || (depth == 0 && letter == ',');
    }
    false
}

fn after_generics(source: &str) -> &str {
    if !source.starts_with('<') {
        return source;
    }
    let mut depth = 0_usize;
    let mut before = ' ';
    for (at, letter) in source.char_indices() {
        match letter {
            '<' => depth += 1,
            '>' if before != '-' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &source[at + 1..];
        }
        before = letter;
    }
    ""
}

#[test]
fn tuples_in_lists_of_parameters_are_found() {
    let check = |source: &str, expected: &[&str]| {
        let found: Vec<&str> = tuples(source).into_iter().map(|(_, name)| name).collect();
        assert_eq!(found, expected, "{source}");
    };
    check("fn one((a, b): (u8, u8)) {}", &["one"]);
    check(
        "    pub(crate) async fn two(\n        a: u8,\n        (b, c): Pair,\n    ) {}",
        &["two"],
    );
    check("fn three<T: Fn(u8) -> u8>(a: T, (b, c): Pair) {}", &["three"]);
    check("fn four(a: (u8, u8), f: impl Fn((u8, u8)) -> u8) -> (u8, u8) {}", &[]);
    check("fn five() {}\nlet six = |(a, b): (u8, u8)| a;", &[]);
    check(concat!("// f", "n seven((a, b): Pair)"), &[]);
}
