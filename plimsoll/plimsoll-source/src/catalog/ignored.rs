//! Patterns of files that do not belong to a catalog, read as opm reads them: the last one that matches a
//! file, or a directory that it lies in, decides. So a pattern may bring back a file of a directory that an
//! earlier one leaves out.

use std::path::Path;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::bounded::{open_ordinary, read_bounded};

/// Largest file with patterns. Real ones have some lines.
const FILE_SIZE_MAX: u64 = 1 << 20;
/// Most patterns of a catalog: each is compared with each file.
const PATTERNS_MAX: usize = 1_000;

/// The patterns of a catalog.
#[derive(Debug, Default)]
pub(super) struct IgnorePatterns {
    /// One pattern each, with the directory that it is about; the later, the more it counts.
    patterns: Vec<Gitignore>,
}

impl IgnorePatterns {
    /// Reads a file of patterns, which are about the directory that it lies in.
    ///
    /// # Errors
    /// When it cannot be read; else as [`Self::add`].
    pub(super) fn read(&mut self, path: &Path) -> Result<(), String> {
        let read = open_ordinary(path).and_then(|file| read_bounded(file, FILE_SIZE_MAX));
        let bytes = read.map_err(|error| error.to_string())?;
        self.add(path.parent().unwrap_or(path), &bytes)
    }

    /// Adds the patterns of a file, which are about a directory.
    ///
    /// # Errors
    /// What is wrong with the file or the first of its patterns that cannot be read; the other patterns
    /// count.
    pub(super) fn add(&mut self, directory: &Path, bytes: &[u8]) -> Result<(), String> {
        let text = std::str::from_utf8(bytes).map_err(|_| "not UTF-8".to_owned())?;
        let mut result = Ok(());
        for (number, line) in (1..).zip(text.trim_start_matches('\u{feff}').lines()) {
            match pattern(directory, line.trim()) {
                Ok(pattern) if pattern.is_empty() => {}
                Ok(_) if self.patterns.len() == PATTERNS_MAX => {
                    return Err(format!("the catalog has more than {PATTERNS_MAX} patterns"));
                }
                Ok(pattern) => self.patterns.push(pattern),
                Err(error) => result = result.and_then(|()| Err(format!("line {number}: {error}"))),
            }
        }
        result
    }

    /// Returns whether the patterns leave a file out.
    pub(super) fn is_left_out(&self, path: &Path) -> bool {
        self.patterns.iter().rev().find_map(|pattern| decision(pattern, path)).unwrap_or(false)
    }
}

/// A pattern; an empty one for a comment.
fn pattern(directory: &Path, line: &str) -> Result<Gitignore, ignore::Error> {
    let mut builder = GitignoreBuilder::new(directory);
    builder.add_line(None, line)?;
    builder.build()
}

/// Whether a pattern leaves a file out, or brings it back; `None` if it matches neither the file nor a
/// directory that it lies in.
fn decision(pattern: &Gitignore, path: &Path) -> Option<bool> {
    if !path.starts_with(pattern.path()) {
        return None;
    }
    let below = path.ancestors().take_while(|it| *it != pattern.path());
    below.enumerate().find_map(|(height, path)| match pattern.matched(path, height > 0) {
        Match::None => None,
        Match::Ignore(_) => Some(true),
        Match::Whitelist(_) => Some(false),
    })
}

#[cfg(test)]
mod tests {
    //! Patterns, and the files that they leave.

    use std::fs;

    use super::*;

    /// The files that are left of a few, with patterns in the root and in the directory `a`.
    fn check(of_root: &str, of_a: &str, expected: &str) {
        let root = tempfile::tempdir().expect("a directory");
        fs::create_dir(root.path().join("a")).expect("a directory");
        let mut patterns = IgnorePatterns::default();
        for (name, text) in [(".indexignore", of_root), ("a/.indexignore", of_a)] {
            fs::write(root.path().join(name), text).expect("a file");
            patterns.read(&root.path().join(name)).expect("patterns");
        }
        let files = ["a/b/c.yaml", "a/b/notes", "a/c.yaml", "c.yaml", "notes"];
        let left = files.into_iter().filter(|name| !patterns.is_left_out(&root.path().join(name)));
        let left = left.collect::<Vec<_>>().join(" ");
        assert_eq!(left, expected, "{of_root:?} {of_a:?}");
        // The same with relative paths, as in an image.
        let mut patterns = IgnorePatterns::default();
        for (directory, text) in [("", of_root), ("a", of_a)] {
            patterns.add(Path::new(directory), text.as_bytes()).expect("patterns");
        }
        let left = files.into_iter().filter(|name| !patterns.is_left_out(Path::new(name)));
        assert_eq!(left.collect::<Vec<_>>().join(" "), expected, "{of_root:?} {of_a:?}, relative");
    }

    #[test]
    fn the_last_pattern_that_matches_a_file_or_its_directories_decides() {
        check("", "", "a/b/c.yaml a/b/notes a/c.yaml c.yaml notes");
        check("**/*\n!*.yaml\n", "", "a/b/c.yaml a/c.yaml c.yaml");
        check("*\n!*.yaml", "", "a/b/c.yaml a/c.yaml c.yaml");
        check("!*.yaml\n*\n", "", "");
        check("a/\n", "", "c.yaml notes");
        check("a/\n!c.yaml\n", "", "a/b/c.yaml a/c.yaml c.yaml notes");
        check("!c.yaml\na/\n", "", "c.yaml notes");
        check("/c.yaml\n", "", "a/b/c.yaml a/b/notes a/c.yaml notes");
        check("*/\n", "", "c.yaml notes");
        check("# notes\n\n  notes  \n", "!b/notes\n", "a/b/c.yaml a/b/notes a/c.yaml c.yaml");
        check("", "/c.yaml", "a/b/c.yaml a/b/notes c.yaml notes");
    }

    #[test]
    fn patterns_that_cannot_be_read_are_named_and_the_others_count() {
        let root = tempfile::tempdir().expect("a directory");
        let path = root.path().join(".indexignore");
        let mut patterns = IgnorePatterns::default();
        fs::write(&path, "notes\n[z-a]\n*.txt\n").expect("a file");
        let error = patterns.read(&path).expect_err("a range that is none");
        assert!(error.starts_with("line 2: "), "{error}");
        assert!(patterns.is_left_out(&root.path().join("notes")));
        assert!(patterns.is_left_out(&root.path().join("a.txt")));
        assert!(!patterns.is_left_out(&root.path().join("a.yaml")));
        fs::write(&path, "a\n".repeat(PATTERNS_MAX)).expect("a file");
        let error = patterns.read(&path).expect_err("too many");
        assert_eq!(error, "the catalog has more than 1000 patterns");
    }
}
