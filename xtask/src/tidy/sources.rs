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

/// Calls that change a cluster, and the one file of the controller where they may stand.
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
const WRITER: &str = "plimsoll/plimsoll-controller/src/write.rs";

/// The one file of tests that waits on a real clock.
const POLL: &str = "kubernetes/k8s-testkit/src/poll.rs";
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
            sleeps(path, text, &mut findings);
            upstream(path, text, &mut findings);
        }
    }
    findings
}

/// Tests do not sleep on a real clock.
fn sleeps(path: &str, text: &str, findings: &mut Vec<Finding>) {
    let tests = if path.contains("/tests/") || path.ends_with("tests.rs") {
        text
    } else {
        text.find("#[cfg(test)]\nmod tests {").map_or("", |start| &text[start..])
    };
    if path == POLL || PAUSED.iter().any(|paused| text.contains(paused)) {
        return;
    }
    let slept = concat!("slee", "p(");
    if tests.contains(slept) {
        let text = format!("sleeps on a real clock: pause the clock, watch, or use {POLL}");
        findings.push(Finding::new(path, text));
    }
}

/// Comments that name upstream sources have one form: a module, a path in it, functions.
fn upstream(path: &str, text: &str, findings: &mut Vec<Finding>) {
    for (number, line) in text.lines().enumerate() {
        let Some(comment) = line.trim_start().strip_prefix("//") else { continue };
        let comment = comment.trim_start_matches(['/', '!']).trim_start();
        let Some(source) = comment.strip_prefix(UPSTREAM) else { continue };
        let (file, functions) = source.split_once(": ").unwrap_or((source, ""));
        let is_path = file.contains('.') && file.contains('/') && !file.contains(' ');
        if !is_path || functions.trim().is_empty() {
            let place = format!("{path}:{}", number + 1);
            let text = format!("`{UPSTREAM}` wants MODULE/PATH: FUNCTION");
            findings.push(Finding::new(place, text));
        }
    }
}

fn lines(path: &str, text: &str, findings: &mut Vec<Finding>) {
    let controller = path.starts_with("plimsoll/plimsoll-controller/src/") && path != WRITER;
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
