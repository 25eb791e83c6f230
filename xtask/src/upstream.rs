//! Checks where rules come from: `cargo xtask upstream --from GOMODCACHE`.
//!
//! Each `Upstream: MODULE/PATH: NAME` of the tree names a file and what it declares. GOMODCACHE is
//! the module cache (`go env GOMODCACHE`); the version of a module is the one that
//! `tests/control-plane/go.mod` pins, so `go mod download` in that directory fetches the files.
//! Sources in modules that it does not pin are counted, not read.
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Result, bail, ensure};

use crate::tidy::{Finding, Tree, sources};

const GO_MOD: &str = "tests/control-plane/go.mod";

/// Compares all sources with the modules in the cache.
#[expect(clippy::print_stdout, reason = "the findings are what the command is run for")]
pub(crate) fn run(cache: &Path) -> Result<()> {
    let tree = Tree::read()?;
    let versions = versions(tree.text(GO_MOD));
    ensure!(cache.is_dir(), "{}: no directory; `go env GOMODCACHE` prints it", cache.display());
    let (findings, counts) =
        check(&tree, &versions, |file| fs::read_to_string(cache.join(file)).ok());
    for finding in &findings {
        println!("{finding}");
    }
    println!(
        "{} sources, and {} in modules that {GO_MOD} does not pin",
        counts.read, counts.unpinned
    );
    if findings.is_empty() {
        return Ok(());
    }
    bail!("{} findings", findings.len())
}

/// How many sources there are.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    read: usize,
    unpinned: usize,
}

/// `read` returns the text of a file below the cache, or nothing if there is none.
fn check(
    tree: &Tree,
    versions: &BTreeMap<String, String>,
    read: impl Fn(&str) -> Option<String>,
) -> (Vec<Finding>, Counts) {
    let (mut findings, mut counts) = (Vec::new(), Counts::default());
    for (place, source) in sources::upstream_sources(tree) {
        let Some((path, names)) = source.split_once(": ") else {
            continue;
        };
        let pinned = versions.iter().filter_map(|(module, version)| {
            Some((module, version, path.strip_prefix(module.as_str())?.strip_prefix('/')?))
        });
        let Some((module, version, file)) = pinned.max_by_key(|(module, ..)| module.len()) else {
            counts.unpinned += 1;
            continue;
        };
        counts.read += 1;
        let Some(text) = read(&format!("{}@{version}/{file}", escaped(module))) else {
            findings.push(Finding::new(place, format!("{module}@{version} has no file {file}")));
            continue;
        };
        for name in names.split(", ").filter(|name| !declares(&text, name)) {
            findings.push(Finding::new(&place, format!("{path} at {version} declares no {name}")));
        }
    }
    (findings, counts)
}

/// The versions of the modules of a `go.mod`, those of replacements first.
fn versions(go_mod: &str) -> BTreeMap<String, String> {
    let mut versions = BTreeMap::new();
    for line in go_mod.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            [module, "=>", _, version] => {
                versions.insert((*module).to_owned(), (*version).to_owned());
            }
            [module, version, ..] if module.contains('.') && version.starts_with('v') => {
                versions.entry((*module).to_owned()).or_insert_with(|| (*version).to_owned());
            }
            _ => {}
        }
    }
    versions
}

/// The path of a module in the cache, where a capital letter is `!` and the small one.
fn escaped(module: &str) -> String {
    let mut out = String::new();
    for letter in module.chars() {
        if letter.is_ascii_uppercase() {
            out.push('!');
        }
        out.push(letter.to_ascii_lowercase());
    }
    out
}

/// Whether a Go file or a protocol buffer file declares a name: at the top, as a method, or in a
/// block of declarations.
fn declares(text: &str, name: &str) -> bool {
    let is_name = |rest: &str| {
        rest.strip_prefix(name).is_some_and(|after| {
            !after.starts_with(|letter: char| letter.is_alphanumeric() || letter == '_')
        })
    };
    text.lines().any(|line| {
        let declaration = ["func ", "type ", "var ", "const ", "message "]
            .iter()
            .find_map(|keyword| line.strip_prefix(keyword));
        match declaration {
            Some(rest) => is_name(
                rest.split_once(") ")
                    .filter(|_| rest.starts_with('('))
                    .map_or(rest, |(_, rest)| rest),
            ),
            None => line
                .strip_prefix('\t')
                .is_some_and(|rest| is_name(rest) && !rest[name.len()..].starts_with('(')),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_has_to_be_in_the_pinned_module() {
        let text = "//! x\n// Upstream: example.com/A/v2/dir/f.go: Known\n\
                    // Upstream: example.com/A/v2/dir/f.go: method, Missing\n\
                    // Upstream: example.com/A/v2/dir/none.go: Known\n\
                    // Upstream: other.example.com/f.go: Known\n";
        let data = "# Upstream: example.com/A/v2/dir/f.go: Gone\n";
        let tree =
            Tree::of(&[("kubernetes/a/src/lib.rs", text), ("kubernetes/a/data/a.tsv", data)]);
        let versions = versions(
            "require (\n\texample.com/A/v2 v2.0.0 // indirect\n)\nreplace (\n\texample.com/A/v2 => example.com/A/v2 v2.0.1\n)\n",
        );
        let (findings, counts) = check(&tree, &versions, |file| {
            (file == "example.com/!a/v2@v2.0.1/dir/f.go")
                .then(|| "func Known() {\n}\n\nfunc (a *A) method() {\n\tMissing()\n}\n".to_owned())
        });
        let found: Vec<String> = findings.iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "kubernetes/a/data/a.tsv:1: example.com/A/v2/dir/f.go at v2.0.1 declares no Gone",
                "kubernetes/a/src/lib.rs:3: example.com/A/v2/dir/f.go at v2.0.1 declares no Missing",
                "kubernetes/a/src/lib.rs:4: example.com/A/v2@v2.0.1 has no file dir/none.go",
            ]
        );
        assert_eq!(counts, Counts { read: 4, unpinned: 1 });
    }

    #[test]
    fn declarations_are_found_at_the_top_as_methods_and_in_blocks() {
        let text = "func F(a int) {\n\tg(a)\n}\nfunc (r *R) M() {}\nvar (\n\tV = 1\n)\ntype T struct {\n}\nmessage P {\n";
        for (name, expected) in [
            ("F", true),
            ("M", true),
            ("V", true),
            ("T", true),
            ("P", true),
            ("g", false),
            ("R", false),
        ] {
            assert_eq!(declares(text, name), expected, "{name}");
        }
    }
}
