//! Every dependency has a permissive licence, by what `cargo metadata` says of it, and comes from the
//! public registry of crates, by what the lock files say.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::{Finding, Tree};

/// Licences that we may ship under. `deny.toml` has the same list for those with a network.
const PERMISSIVE: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// The lock files of the tree.
const LOCK_FILES: [&str; 2] = ["Cargo.lock", "fuzz/Cargo.lock"];
/// Where packages come from, but for our own. `deny.toml` says the same.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

pub(super) fn check(tree: &Tree) -> Result<Vec<Finding>> {
    let mut findings = licences(tree)?;
    for file in LOCK_FILES {
        let text = std::fs::read_to_string(tree.root.join(file))
            .with_context(|| format!("failed to read {file}"))?;
        findings.extend(foreign(file, &text));
    }
    Ok(findings)
}

/// The packages of a lock file that come from elsewhere.
fn foreign(file: &str, text: &str) -> Vec<Finding> {
    let sources = text.lines().filter_map(|line| line.strip_prefix("source = "));
    let sources = sources.map(|it| it.trim_matches('"')).filter(|it| *it != REGISTRY);
    let finding = |it: &str| Finding::new(file, format!("a package comes from `{it}`"));
    sources.map(finding).collect()
}

fn licences(tree: &Tree) -> Result<Vec<Finding>> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--locked", "--filter-platform", &host()?])
        .current_dir(&tree.root)
        .output()
        .context("failed to run `cargo metadata`")?;
    ensure!(
        output.status.success(),
        "`cargo metadata` failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().context("metadata lists packages")?;
    ensure!(!packages.is_empty(), "`cargo metadata` lists no packages");
    let mut findings = Vec::new();
    for package in packages {
        let name = package["name"].as_str().unwrap_or_default();
        let licence = package["license"].as_str().unwrap_or_default();
        if !is_permissive(licence) {
            let text = format!("licence `{licence}` is not on the list of permissive ones");
            findings.push(Finding::new(format!("dependency {name}"), text));
        }
    }
    Ok(findings)
}

/// The platform that is built for: only what is linked here has been fetched.
fn host() -> Result<String> {
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let output = Command::new(rustc).arg("-vV").output().context("failed to run `rustc -vV`")?;
    let text = String::from_utf8(output.stdout)?;
    let line = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(line.context("`rustc -vV` names the host")?.to_owned())
}

/// Whether a licence expression can be met with permissive licences alone.
fn is_permissive(expression: &str) -> bool {
    let expression = expression.replace('/', " OR ");
    let expression = expression.replace(['(', ')'], " ");
    // AND binds tighter than OR; with parentheses dropped this can only be too strict.
    expression.split(" OR ").any(|alternative| {
        alternative.split(" AND ").all(|licence| PERMISSIVE.contains(&licence.trim()))
    })
}

#[cfg(test)]
mod tests {
    //! Packages from elsewhere are found.

    use super::*;

    #[test]
    fn a_package_from_elsewhere_is_found() {
        let git = "git+https://example.com/fork?rev=1#1";
        let text =
            format!("name = \"a\"\nsource = \"{REGISTRY}\"\nname = \"b\"\nsource = \"{git}\"\n");
        let findings = foreign("Cargo.lock", &text);
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(findings[0].text.contains(git), "{findings:?}");
    }
}
