//! What every source file looks like, and what none contains.

use super::{Finding, Tree};

/// What has no place on the main branch, and what to do instead.
const BANNED: &[(&str, &str)] = &[
    (concat!("#[", "ignore"), "an ignored test: assert what happens today and say so"),
    (concat!("#[", "allow("), "use #[expect(…, reason = …)]"),
    (concat!("#![", "allow("), "use #[expect(…, reason = …)]"),
    (concat!("dbg", "!("), "a debugging aid"),
    (concat!("FIX", "ME"), "to be mended before it lands"),
    (concat!("to", "do!("), "unfinished"),
    (concat!("unimple", "mented!("), "unfinished"),
];

/// Module names that say nothing of what is in them.
const EMPTY_NAMES: &[&str] = &["utils.rs", "util.rs", "helpers.rs", "common.rs", "misc.rs"];

/// Calls that change a cluster, and the one module of the controller that may have them.
const WRITES: &[&str] = &[
    ".patch(",
    ".patch_status(",
    ".patch_metadata(",
    ".replace(name",
    ".replace_status(",
    ".create(",
    ".delete(",
    ".delete_collection(",
];
const WRITER: &str = "plimsoll/plimsoll-controller/src/write";

/// The files of tests that wait on a real clock, between two looks at a server: those of the poll
/// helpers in Rust and in Python.
const POLLS: [&str; 2] =
    ["kubernetes/k8s-testkit/src/poll.rs", "kubernetes/k8s-testkit/tests/it/python/poll.py"];
/// What a file of tests says whose clock is paused.
const PAUSED: [&str; 2] = ["start_paused", "virtual time"];

/// A comment that names the upstream source of a rule: `Upstream: PATH: FUNCTION`.
const UPSTREAM: &str = "Upstream: ";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for folder in ["kubernetes/", "plimsoll/", "xtask/", "fuzz/"] {
        for (path, text) in tree.sources(folder) {
            if !text.starts_with("//!") && !text.starts_with("#!") {
                findings.push(Finding::new(path, "starts without saying what it is about (//!)"));
            }
            if EMPTY_NAMES.iter().any(|name| path.ends_with(&format!("/{name}"))) {
                findings.push(Finding::new(path, "a name that says nothing of what is in it"));
            }
            lines(path, text, &mut findings);
        }
    }
    for (path, text) in &tree.files {
        sleeps(path, text, &mut findings);
    }
    findings.extend(upstream_sources(tree).filter(|(_, source)| !is_source(source)).map(
        |(place, _)| Finding::new(place, format!("`{UPSTREAM}` wants MODULE/PATH: FUNCTION")),
    ));
    findings
}

/// Tests do not sleep on a real clock, and neither do the scripts and programs that they run.
fn sleeps(path: &str, text: &str, findings: &mut Vec<Finding>) {
    let is_test = path.contains("/tests/");
    let called = |text: &str| text.contains(concat!("slee", "p("));
    let is_slept = match path.rsplit_once('.').map(|(_, extension)| extension) {
        Some("rs") if is_test || path.ends_with("tests.rs") => called(text),
        Some("rs") => {
            text.find("#[cfg(test)]\nmod tests {").is_some_and(|start| called(&text[start..]))
        }
        Some("py") => is_test && called(text),
        // The documentation of kinds has the word without a number of seconds.
        Some("txt" | "sh") => {
            is_test
                && text
                    .split(concat!("slee", "p "))
                    .skip(1)
                    .any(|rest| rest.starts_with(|letter: char| letter.is_ascii_digit()))
        }
        _ => false,
    };
    let is_allowed = POLLS.contains(&path) || PAUSED.iter().any(|paused| text.contains(paused));
    if is_slept && !is_allowed {
        let text = format!("sleeps on a real clock: pause the clock, watch, or use {}", POLLS[0]);
        findings.push(Finding::new(path, text));
    }
}

/// The sources that comments name, in Rust and in data files, each with its place.
pub(crate) fn upstream_sources(tree: &Tree) -> impl Iterator<Item = (String, &str)> {
    let files = tree.files.iter().filter_map(|(path, text)| {
        let marker = if path.ends_with(".rs") {
            "//"
        } else if path.contains("/data/") {
            "#"
        } else {
            return None;
        };
        Some((path, text, marker))
    });
    files.flat_map(|(path, text, marker)| {
        text.lines().enumerate().filter_map(move |(number, line)| {
            let comment = line.trim_start().strip_prefix(marker)?;
            let comment = comment.trim_start_matches(['/', '!']).trim_start();
            Some((format!("{path}:{}", number + 1), comment.strip_prefix(UPSTREAM)?))
        })
    })
}

/// Whether a source has the one form: a module, a path in it, functions.
fn is_source(source: &str) -> bool {
    let (file, functions) = source.split_once(": ").unwrap_or((source, ""));
    let is_path = file.contains('.') && file.contains('/') && !file.contains(' ');
    is_path && !functions.trim().is_empty()
}

fn lines(path: &str, text: &str, findings: &mut Vec<Finding>) {
    let of_writer = path.strip_prefix(WRITER).is_some_and(|it| it.starts_with(['.', '/']));
    let controller = path.starts_with("plimsoll/plimsoll-controller/src/") && !of_writer;
    for (number, line) in text.lines().enumerate() {
        let place = || format!("{path}:{}", number + 1);
        for (banned, why) in BANNED {
            if line.contains(banned) {
                findings.push(Finding::new(place(), format!("`{banned}`: {why}")));
            }
        }
        if controller && WRITES.iter().any(|write| line.contains(write)) {
            let text = format!("writes to a cluster; only {WRITER} does");
            findings.push(Finding::new(place(), text));
        }
    }
}
