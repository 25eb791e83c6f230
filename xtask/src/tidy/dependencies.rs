//! Every dependency that a crate declares is used by it.

use super::{Finding, Tree};

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let xtask = std::iter::once("xtask");
    for path in tree.crates().into_iter().chain(xtask) {
        let manifest = format!("{path}/Cargo.toml");
        let folder = format!("{path}/");
        let sources: Vec<&str> = tree.sources(&folder).map(|(_, text)| text).collect();
        for dependency in declared(tree.text(&manifest)) {
            let name = dependency.replace('-', "_");
            if !sources.iter().any(|text| uses(text, &name)) {
                let text =
                    format!("`{dependency}` is not used; `# Unused: why` before it says why");
                findings.push(Finding::new(manifest.clone(), text));
            }
        }
    }
    findings
}

/// The dependencies of a manifest, without those that a comment declares to be unused on purpose.
fn declared(manifest: &str) -> Vec<&str> {
    let mut section = "";
    let mut excused = false;
    let mut found = Vec::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            section = line;
        } else if line.starts_with("# Unused: ") {
            excused = true;
        } else if section.ends_with("dependencies]")
            && let Some(end) = line.find(['.', ' ', '='])
            && !line.starts_with(['#', ' ', ']'])
        {
            if !excused {
                found.push(&line[..end]);
            }
            excused = false;
        }
    }
    found
}

/// Whether a text has a name as a word of its own.
fn uses(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        !text[..at].ends_with(is_part) && !text[at + name.len()..].starts_with(is_part)
    })
}

#[cfg(test)]
mod tests {
    //! What no source names is found, unless a comment says why it is there.

    use std::path::PathBuf;

    use super::*;

    #[test]
    fn a_dependency_that_no_source_names_is_found() {
        let manifest = "[package]\nname = \"a\"\n[dependencies]\nserde-json.workspace = true\n\
                        unused = \"1\"\n# Unused: chooses features\nk8s = \"1\"\n";
        let files = [
            ("plimsoll/a/Cargo.toml", manifest),
            ("plimsoll/a/src/lib.rs", "//! x\nuse serde_json::Value; fn not_unused() {}"),
        ];
        let files = files.map(|(path, text)| (path.to_owned(), text.to_owned())).to_vec();
        let findings = check(&Tree { root: PathBuf::new(), files });
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(findings[0].text.starts_with("`unused`"), "{findings:?}");
    }
}
