//! Symbolic links in the folders of charts and kustomizations.
//!
//! The programs that render them follow links, and a chart can put the content of any file into its
//! manifests: a source must not take the files of whoever builds it into its release.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use plimsoll_content::diagnostic::{Diagnostic, FindingCode};

/// Finds what leads out of the source: links in a folder, and in the directories that its links lead
/// to. What cannot be looked at is reported, too.
pub(super) fn leading_out(source: &Path, folder: &Path) -> Vec<Diagnostic> {
    let root = fs::canonicalize(source).unwrap_or_else(|_| source.to_owned());
    let mut links =
        Links { root, seen: BTreeSet::new(), pending: Vec::new(), problems: Vec::new() };
    links.follow(folder, folder.strip_prefix(source).unwrap_or(folder));
    while let Some(directory) = links.pending.pop() {
        links.look_into(&directory);
    }
    links.problems.sort();
    links.problems
}

/// A search for links.
struct Links {
    /// The source, without symbolic links.
    root: PathBuf,
    /// The directories that were found, so that links in a circle end.
    seen: BTreeSet<PathBuf>,
    pending: Vec<PathBuf>,
    problems: Vec<Diagnostic>,
}

impl Links {
    fn look_into(&mut self, directory: &Path) {
        let entries = fs::read_dir(directory).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let name = directory.strip_prefix(&self.root).unwrap_or(directory).to_owned();
        let entries = match entries {
            Ok(entries) => entries,
            Err(error) => return self.report(&name, error.to_string()),
        };
        for entry in entries {
            let is_followed = entry.file_type().is_ok_and(|it| it.is_symlink() || it.is_dir());
            if is_followed {
                self.follow(&entry.path(), &name.join(entry.file_name()));
            }
        }
    }

    /// Follows a path, whose name in the source is given.
    fn follow(&mut self, path: &Path, name: &Path) {
        let target = match fs::canonicalize(path) {
            Ok(target) => target,
            // A link to nothing gives nothing away; editors make such.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(error) => return self.report(name, error.to_string()),
        };
        if !target.starts_with(&self.root) {
            let target = target.display();
            self.report(name, format!("the symbolic link leads out of the source, to {target}"));
        } else if target.is_dir() && self.seen.insert(target.clone()) {
            self.pending.push(target);
        }
    }

    fn report(&mut self, name: &Path, message: String) {
        let name = name.display().to_string();
        self.problems.push(FindingCode::Source.diagnostic(name, message));
    }
}
