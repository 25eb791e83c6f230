//! The crate graph is the one that ARCHITECTURE.md shows.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};

use super::{Finding, Tree};

/// How the names of our crates begin.
pub(super) const PREFIXES: [&str; 2] = ["k8s-", "plimsoll-"];
/// Longest chain of crates of one family that build on each other: what emulates Kubernetes is a
/// library to the product, as any other.
const DEPTH_MAX: usize = 7;

pub(super) fn check(tree: &Tree) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let documented = documented(tree.text("ARCHITECTURE.md"));
    let mut actual: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in tree.crates() {
        let name = path.rsplit('/').next().unwrap_or(path);
        actual.insert(name.to_owned(), internal(tree.text(&format!("{path}/Cargo.toml"))));
    }
    for (name, dependencies) in &actual {
        let place = format!("{name}/Cargo.toml");
        match documented.get(name) {
            None => findings.push(Finding::new(place, "ARCHITECTURE.md does not list this crate")),
            Some(allowed) => {
                for dependency in dependencies.difference(allowed) {
                    let text = format!("may not depend on `{dependency}` (ARCHITECTURE.md)");
                    findings.push(Finding::new(place.clone(), text));
                }
            }
        }
        let depth = depth(name, &actual).context("crates depend on each other in a circle")?;
        if depth > DEPTH_MAX {
            let text = format!("depth {depth}, at most {DEPTH_MAX}");
            findings.push(Finding::new(name.clone(), text));
        }
    }
    for name in documented.keys().filter(|name| !actual.contains_key(*name)) {
        findings.push(Finding::new("ARCHITECTURE.md", format!("there is no crate `{name}`")));
    }
    Ok(findings)
}

/// The rows ``| `crate` | … | `dependency`, … |`` of the table of crates.
fn documented(text: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut crates = BTreeMap::new();
    for line in text
        .lines()
        .filter(|line| PREFIXES.iter().any(|prefix| line.starts_with(&format!("| `{prefix}"))))
    {
        let cells: Vec<&str> = line.trim_matches('|').split('|').collect();
        let names = |cell: &str| -> BTreeSet<String> {
            cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
        };
        if let (Some(name), Some(last)) = (names(cells[0]).pop_first(), cells.last()) {
            crates.insert(name, names(last));
        }
    }
    crates
}

/// Our crates among the ordinary dependencies of a manifest; tests may use what they like.
fn internal(manifest: &str) -> BTreeSet<String> {
    let mut section = "";
    let mut found = BTreeSet::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            section = line;
        } else if section == "[dependencies]"
            && PREFIXES.iter().any(|prefix| line.starts_with(prefix))
            && !line.starts_with("k8s-openapi")
        {
            let end = line.find(['.', ' ', '=']).unwrap_or(line.len());
            found.insert(line[..end].to_owned());
        }
    }
    found
}

/// The prefix of a crate's name.
fn family(name: &str) -> Option<&'static str> {
    PREFIXES.into_iter().find(|prefix| name.starts_with(prefix))
}

/// How long the longest chain is that ends at a crate, in crates of its family; nothing if there is
/// a circle.
fn depth(name: &str, graph: &BTreeMap<String, BTreeSet<String>>) -> Option<usize> {
    fn walk(
        name: &str,
        graph: &BTreeMap<String, BTreeSet<String>>,
        path: &mut Vec<String>,
    ) -> Option<usize> {
        if path.iter().any(|before| before == name) {
            return None;
        }
        path.push(name.to_owned());
        let mut deepest = 0;
        for dependency in graph.get(name).into_iter().flatten() {
            deepest = deepest.max(walk(dependency, graph, path)?);
        }
        path.pop();
        let root = path.first().map_or(name, String::as_str);
        Some(deepest + usize::from(family(root) == family(name)))
    }
    walk(name, graph, &mut Vec::new())
}
