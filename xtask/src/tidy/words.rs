//! One noun for each concept: the words that the glossary replaces occur neither in docs nor in
//! code, and the tree speaks of nothing but the project.
//!
//! The third column of the glossary lists replaced words, separated by commas. A word alone is
//! banned in docs and in Rust sources. `word (docs)` and `word (code)` ban it in one of the two,
//! `word (plimsoll/)` in the Rust sources below a folder: outside of the scope the word has
//! another, legitimate meaning. A hyphen matches a compound (`stand-in`, `stand_in`, `StandIn`), a
//! space matches both a compound and separate words.

use super::{Finding, Tree};

const GLOSSARY: &str = "docs/glossary.md";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let banned = banned(tree.text(GLOSSARY));
    for (path, text) in &tree.files {
        let docs = path.ends_with(".md");
        if path == GLOSSARY || !docs && !path.ends_with(".rs") {
            continue;
        }
        let banned: Vec<&Banned> = banned.iter().filter(|word| word.scope.covers(path)).collect();
        for (number, line) in text.lines().enumerate() {
            let words = if docs { words(&prose(line)) } else { words(line) };
            for word in banned.iter().filter(|word| word.occurs_in(&words)) {
                let place = format!("{path}:{}", number + 1);
                let text = format!("`{}`: the glossary says `{}`", word.text, word.term);
                findings.push(Finding::new(place, text));
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

/// Paths that only exist on one machine.
const MACHINE_PATHS: &[&str] =
    &[concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/")];

/// A word that the glossary replaces.
struct Banned {
    text: String,
    words: Vec<Word>,
    /// The term to use instead.
    term: String,
    scope: Scope,
}

/// Where a replaced word may not occur.
enum Scope {
    Everywhere,
    Docs,
    /// Rust sources whose path begins with this; empty for all.
    Code(String),
}

impl Scope {
    fn covers(&self, path: &str) -> bool {
        match self {
            Self::Everywhere => true,
            Self::Docs => path.ends_with(".md"),
            Self::Code(folder) => path.ends_with(".rs") && path.starts_with(folder),
        }
    }
}

impl Banned {
    fn occurs_in(&self, words: &[Word]) -> bool {
        words.windows(self.words.len()).any(|window| {
            window.iter().zip(&self.words).enumerate().all(|(index, (found, wanted))| {
                found.text == wanted.text && (index == 0 || found.joined || !wanted.joined)
            })
        })
    }
}

/// The rows of the glossary: the third column lists the words that the first one replaces.
fn banned(glossary: &str) -> Vec<Banned> {
    let mut banned = Vec::new();
    for row in glossary.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [term, _, replaced] = cells.as_slice() else {
            continue;
        };
        for entry in replaced.split(',').map(str::trim) {
            let (text, scope) = match entry.split_once(" (") {
                None => (entry, Scope::Everywhere),
                Some((text, "docs)")) => (text, Scope::Docs),
                Some((text, "code)")) => (text, Scope::Code(String::new())),
                Some((text, folder)) => {
                    (text, Scope::Code(folder.trim_end_matches(')').to_owned()))
                }
            };
            let words = words(text);
            if !words.is_empty() && *term != "Term" {
                let (text, term) = (text.to_owned(), (*term).to_owned());
                banned.push(Banned { text, words, term, scope });
            }
        }
    }
    banned
}

/// What a line of a document says itself; names in backticks are not ours to choose.
fn prose(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join(" ")
}

/// One word of a text or part of a name, in lower case.
#[derive(Debug, PartialEq)]
struct Word {
    text: String,
    /// Whether it continues a compound: no space between it and the word before.
    joined: bool,
}

/// Splits a line into words, names at `_`, `-` and where upper case begins.
fn words(line: &str) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    let mut current = String::new();
    let mut joined = false;
    let mut before_lower = false;
    for c in line.chars().chain([' ']) {
        let starts_word = c.is_uppercase() && before_lower;
        if (starts_word || !c.is_alphanumeric()) && !current.is_empty() {
            words.push(Word { text: std::mem::take(&mut current), joined });
            joined = true;
        }
        if c.is_alphanumeric() {
            current.extend(c.to_lowercase());
        } else if c != '_' && c != '-' {
            joined = false;
        }
        before_lower = c.is_lowercase() || c.is_numeric();
    }
    words
}

#[cfg(test)]
mod tests {
    //! What counts as a use of a replaced word.

    use super::*;

    /// Which words of a glossary with one row are found in a file.
    fn found(replaced: &str, path: &str, text: &str) -> Vec<String> {
        let glossary = format!("| Term | Meaning | Instead of |\n| good | it | {replaced} |\n");
        let files = [(GLOSSARY, glossary.as_str()), (path, text)];
        let files = files.iter().map(|(p, t)| ((*p).to_owned(), (*t).to_owned())).collect();
        let tree = Tree { root: std::path::PathBuf::new(), files };
        check(&tree).into_iter().map(|finding| finding.text).collect()
    }

    #[test]
    fn names_comments_and_strings_of_code_are_split_into_words() {
        let code = "crates/a.rs";
        for text in ["fn old_word() {}", "struct NewOld;", "// It is old.", "let x = \"old\";"] {
            assert_eq!(found("old", code, text), ["`old`: the glossary says `good`"], "{text}");
        }
        for text in ["fn older() {}", "struct Folder;", "let gold = 1;"] {
            assert!(found("old", code, text).is_empty(), "{text}");
        }
    }

    #[test]
    fn a_hyphen_means_a_compound_and_a_space_means_either() {
        for (replaced, text, finds) in [
            ("stand-in", "struct StandIn;", true),
            ("stand-in", "mod stand_in;", true),
            ("stand-in", "// A stand-in for it.", true),
            ("stand-in", "// They stand in the way.", false),
            ("set aside", "// It is set aside.", true),
            ("set aside", "fn set_aside() {}", true),
            ("set aside", "// Set it aside.", false),
        ] {
            assert_eq!(!found(replaced, "a.rs", text).is_empty(), finds, "{replaced}: {text}");
        }
    }

    #[test]
    fn a_scope_says_where_a_word_is_banned() {
        for (replaced, path, finds) in [
            ("old", "README.md", true),
            ("old (docs)", "README.md", true),
            ("old (docs)", "kubernetes/a.rs", false),
            ("old (code)", "README.md", false),
            ("old (code)", "kubernetes/a.rs", true),
            ("old (plimsoll/)", "kubernetes/a.rs", false),
            ("old (plimsoll/)", "plimsoll/a.rs", true),
            ("new, old (plimsoll/)", "plimsoll/a.rs", true),
            ("-", "README.md", false),
        ] {
            assert_eq!(!found(replaced, path, "old").is_empty(), finds, "{replaced}: {path}");
        }
    }

    #[test]
    fn names_in_backticks_of_a_document_are_not_ours() {
        assert!(found("old", "README.md", "Run `kubectl old`.").is_empty());
        assert!(!found("old", "README.md", "Run `kubectl`, an old one.").is_empty());
    }
}
