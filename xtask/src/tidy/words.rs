//! One noun for each concept: the words that the glossary replaces do not occur in our texts,
//! and the tree speaks of nothing but the project.

use super::{Finding, Tree};

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let banned = banned(tree.text("docs/glossary.md"));
    for (path, text) in &tree.files {
        if !path.ends_with(".md") || path == "docs/glossary.md" {
            continue;
        }
        for (number, line) in text.lines().enumerate() {
            for word in &banned {
                if contains_word(line, word) {
                    let place = format!("{path}:{}", number + 1);
                    let text = format!("`{word}`: the glossary has another word for it");
                    findings.push(Finding::new(place, text));
                }
            }
        }
    }
    for (path, text) in &tree.files {
        for (number, line) in text.lines().enumerate() {
            if let Some(found) = MACHINE_PATHS.iter().find(|found| line.contains(**found)) {
                let place = format!("{path}:{}", number + 1);
                findings.push(Finding::new(place, format!("`{found}`: a path of one machine")));
            }
        }
    }
    findings
}

/// Paths that only exist on somebody's machine.
const MACHINE_PATHS: &[&str] =
    &[concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/")];

/// The last column of the glossary's table: words that are not used.
fn banned(glossary: &str) -> Vec<String> {
    glossary
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| Term"))
        .filter_map(|line| line.trim_end_matches(['|', ' ']).rsplit('|').next())
        .flat_map(|cell| cell.split(','))
        .map(|word| word.trim().to_lowercase())
        .filter(|word| !word.is_empty() && word != "-")
        .collect()
}

/// Whether a line uses a word in running text; names in backticks are not ours to choose.
fn contains_word(line: &str, word: &str) -> bool {
    let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join(" ").to_lowercase();
    prose.split(|c: char| !c.is_alphanumeric() && c != '-').any(|found| found == word)
}
