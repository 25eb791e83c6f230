//! The crates that decide do nothing else: no async, no IO, no clock, no chance, no hash order.

use super::layers::PREFIXES;
use super::{Finding, Tree};

/// The crates that decide, by their paths.
pub(crate) const PURE_CRATES: &[&str] = &[
    "kubernetes/k8s-cel",
    "kubernetes/k8s-schema",
    "kubernetes/k8s-yaml",
    "plimsoll/plimsoll-api",
    "plimsoll/plimsoll-bundle",
    "plimsoll/plimsoll-content",
    "plimsoll/plimsoll-operators",
    "plimsoll/plimsoll-plan",
    "plimsoll/plimsoll-resolve",
];

/// External crates that the pure ones may use: values, parsing, hashing, time as a value.
const ALLOWED: &[&str] = &[
    "base64",
    "batsat",
    "bytes",
    "croner",
    "flate2",
    "fnv",
    "granit-parser",
    "jiff",
    "json-patch",
    "lz4_flex",
    "postcard",
    "regex",
    "semver",
    "serde",
    "serde-saphyr",
    "serde_json",
    "serde_path_to_error",
    "sha2",
    "strsim",
    "thiserror",
];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for path in PURE_CRATES {
        let folder = format!("{path}/");
        for (path, text) in tree.sources(&folder) {
            for (number, line) in text.lines().enumerate() {
                let code = line.split("//").next().unwrap_or_default();
                if code.contains("async fn") || code.contains("async move") {
                    let place = format!("{path}:{}", number + 1);
                    findings.push(Finding::new(place, "async code in a pure crate"));
                }
            }
        }
        let manifest = format!("{folder}Cargo.toml");
        for dependency in external(tree.text(&manifest)) {
            if !ALLOWED.contains(&dependency.as_str()) {
                let text = format!("`{dependency}` is not on the list of pure dependencies");
                findings.push(Finding::new(manifest.clone(), text));
            }
        }
        let config = format!("{folder}clippy.toml");
        if tree.text(&config) != clippy_config() {
            findings.push(Finding::new(config, "differs: run `cargo xtask codegen clippy`"));
        }
    }
    findings
}

fn external(manifest: &str) -> Vec<String> {
    let start = manifest.find("[dependencies]").unwrap_or(manifest.len());
    manifest[start..]
        .lines()
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split(['.', ' ', '=']).next())
        .filter(|name| {
            !name.is_empty()
                && !PREFIXES.iter().any(|prefix| name.starts_with(prefix))
                && !name.starts_with('#')
        })
        .map(str::to_owned)
        .collect()
}

/// The `clippy.toml` of a pure crate. Clippy reads the nearest one and no other, so it repeats
/// what the root's says.
pub(crate) fn clippy_config() -> String {
    let mut text = String::from(
        "# Written by `cargo xtask codegen clippy`: this crate decides and does nothing else.\n\
         allow-unwrap-in-tests = true\n\
         allow-expect-in-tests = true\n\
         allow-panic-in-tests = true\n\
         allow-dbg-in-tests = false\n\
         allow-print-in-tests = true\n\
         disallowed-methods = [\n",
    );
    let methods = [
        ("std::time::SystemTime::now", "time is passed in"),
        ("std::time::Instant::now", "time is passed in"),
        ("jiff::Timestamp::now", "time is passed in"),
        ("std::env::var", "settings are passed in"),
        ("std::env::var_os", "settings are passed in"),
        ("std::env::args", "settings are passed in"),
        ("std::fs::read", "bytes are passed in"),
        ("std::fs::read_to_string", "bytes are passed in"),
        ("std::fs::write", "values are returned"),
        ("std::thread::spawn", "the shell decides what runs beside what"),
        ("std::thread::sleep", "nothing waits here"),
    ];
    for (path, reason) in methods {
        text.push_str(&format!("    {{ path = \"{path}\", reason = \"{reason}\" }},\n"));
    }
    text.push_str("]\ndisallowed-types = [\n");
    let types = [
        ("std::collections::HashMap", "its order differs from run to run"),
        ("std::collections::HashSet", "its order differs from run to run"),
        ("std::fs::File", "bytes are passed in"),
        ("std::net::TcpStream", "no IO here"),
        ("std::process::Command", "no IO here"),
    ];
    for (path, reason) in types {
        text.push_str(&format!("    {{ path = \"{path}\", reason = \"{reason}\" }},\n"));
    }
    text.push_str("]\n");
    text
}
