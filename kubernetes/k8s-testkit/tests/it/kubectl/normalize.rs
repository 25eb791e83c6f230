//! Makes what two servers print comparable: what no two clusters share becomes a placeholder.
use std::path::Path;

use serde_json::Value;

/// Replaces what differs from run to run.
pub(super) fn normalize(text: &str, home: &Path) -> String {
    if let Ok(document @ Value::Object(_)) = serde_json::from_str(text) {
        // The order of fields is not promised.
        return format!("{document:#}\n")
            .lines()
            .map(|line| format!("{}\n", comparable(line)))
            .collect();
    }
    let text = text.replace(&home.display().to_string(), "HOME");
    let mut out = String::new();
    for line in text.lines().filter(|line| !is_noise(line)) {
        out.push_str(&comparable(line));
        out.push('\n');
    }
    without_repairs(&out)
}

/// Who looks through the addresses of services every few minutes, in a real server, and may find one
/// between the writes of its address and of the service.
const REPAIR: &str = "ipallocator-repair-controller";

/// Text without the events of [`REPAIR`], which depend on when a script runs.
fn without_repairs(text: &str) -> String {
    let mut lines: Vec<&str> = text.lines().filter(|line| !line.contains(REPAIR)).collect();
    if lines.len() == text.lines().count() {
        return text.to_owned();
    }
    // A table of events that had no other rows.
    let is_empty_table = |at: usize| {
        lines[at] == "Events:"
            && lines.get(at + 2).is_some_and(|line| line.trim_start().starts_with("---- "))
            && lines.get(at + 3).is_none_or(|line| !line.starts_with(' '))
    };
    if let Some(at) = (0..lines.len()).find(|at| is_empty_table(*at)) {
        lines.splice(at..at + 3, ["Events: <none>"]);
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

#[test]
fn events_of_the_repair_of_addresses_do_not_show() {
    let table = "Events:\n  Type Reason Age From Message\n  ---- ------ ---- ---- -------\n";
    let repair = format!("  Warning ClusterIPNotAllocated AGE {REPAIR} Cluster IP\n");
    let check = |text: String, expected: &str| assert_eq!(without_repairs(&text), expected);
    check(format!("Name: a\n{table}{repair}"), "Name: a\nEvents: <none>\n");
    let other = format!("{table}  Normal Other AGE me It\n");
    check(format!("{table}{repair}  Normal Other AGE me It\n"), &other);
    check(table.to_owned(), table);
}

#[test]
fn resource_versions_do_not_show_in_descriptions() {
    assert_eq!(comparable("  Resource Version:  217"), "  Resource Version: RV");
    assert_eq!(comparable("API Version:  1"), "API Version: 1");
}

#[test]
fn the_log_of_a_watch_that_a_timeout_ended_does_not_show() {
    let log = "E1127 18:23:25.728427 27421 reflector.go:227] \"Failed to watch\" err=\"context deadline exceeded\"\n";
    let error = "error: timed out waiting for the condition on configmaps/held\n";
    assert_eq!(normalize(&format!("{log}{error}"), Path::new("/home")), error);
}

fn comparable(line: &str) -> String {
    if let Some((label, _)) = line.split_once("CreationTimestamp: ") {
        return format!("{label}CreationTimestamp: TIME");
    }
    let line: String = words(line).map(word).collect();
    squeezed(&line).trim_end().to_owned()
}

/// Lines about the connection, and names of temporary files. kubectl logs that its `--timeout` ended a watch
/// only if the watch was being opened at that moment.
fn is_noise(line: &str) -> bool {
    line.contains("memcache.go")
        || (line.contains("reflector.go") && line.contains("context deadline exceeded"))
        || line.contains("Warning: watch ended with error")
        || line.contains("keeps changing, diffing without lock")
        || ["diff -u -N ", "--- /", "+++ /"].iter().any(|start| line.starts_with(start))
}

/// Words and what lies between them.
fn words(line: &str) -> impl Iterator<Item = &str> {
    let is_inside = |c: char| c.is_ascii_alphanumeric() || "-_./:+<>".contains(c);
    let mut rest = line;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let end = rest.find(|c| is_inside(c) != is_inside(first)).unwrap_or(rest.len());
        let (taken, left) = rest.split_at(end);
        rest = left;
        Some(taken)
    })
}

fn word(word: &str) -> String {
    let core = word.trim_end_matches(['.', ':']);
    let end = &word[core.len()..];
    let placeholder = if is_uid(core) {
        "UID"
    } else if is_time(core) {
        "TIME"
    } else if is_age(core) {
        "AGE"
    } else if ["http://127.0.0.1", "https://127.0.0.1", "127.0.0.1"]
        .iter()
        .any(|url| core.starts_with(url))
    {
        "URL"
    } else if ["10.0.", "10.96."].iter().any(|network| core.starts_with(network)) {
        "ADDRESS"
    } else if core.starts_with("/tmp/kubectl-edit-") {
        "FILE"
    } else if core.starts_with("kube-api-access-") {
        "kube-api-access-NAME"
    } else {
        return word.to_owned();
    };
    format!("{placeholder}{end}")
}

fn is_uid(word: &str) -> bool {
    let parts: Vec<usize> = word.split('-').map(str::len).collect();
    parts == [8, 4, 4, 4, 12] && word.bytes().all(|b| b == b'-' || b.is_ascii_hexdigit())
}

fn is_time(word: &str) -> bool {
    let bytes = word.as_bytes();
    bytes.len() >= 19
        && bytes[4] == b'-'
        && bytes[7] == b'-'
        && bytes[10] == b'T'
        && bytes[..4].iter().all(u8::is_ascii_digit)
}

/// An age such as `5s` or `2m3s`: at most as long as a script takes.
fn is_age(word: &str) -> bool {
    let (minutes, seconds) = match word.split_once('m') {
        Some((minutes, "")) => return is_short_number(minutes),
        Some((minutes, rest)) => (minutes, rest),
        None => ("0", word),
    };
    is_short_number(minutes) && seconds.strip_suffix('s').is_some_and(is_short_number)
}

fn is_short_number(text: &str) -> bool {
    (1..=3).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Columns are as wide as their widest cell, which may have been replaced; resource versions are
/// numbers after their name.
fn squeezed(line: &str) -> String {
    let indent = line.len() - line.trim_start().len();
    let mut out = line[..indent].to_owned();
    let words: Vec<&str> = line.split_whitespace().collect();
    let mut after_version = false;
    for (index, word) in words.iter().enumerate() {
        if index > 0 {
            out.push(' ');
        }
        let digits = word.trim_matches(|c| "\",".contains(c));
        if after_version && !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
            out.push_str(&word.replace(digits, "RV"));
        } else {
            out.push_str(word);
        }
        let name = word.trim_matches('"').trim_end_matches(':').trim_end_matches('"');
        let is_described = *word == "Version:" && index > 0 && words[index - 1] == "Resource";
        after_version = is_described || matches!(name, "resourceVersion" | "ResourceVersion");
    }
    out
}
