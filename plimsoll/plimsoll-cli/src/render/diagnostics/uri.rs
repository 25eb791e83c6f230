//! Paths of files as reports for code review have them: URIs relative to the repository.

use std::path::{Component, Path, PathBuf};
use std::{env, fs, io};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// What URIs do not allow in any place.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Where the paths of a report begin, and what its URIs are relative to.
#[derive(Debug, Clone)]
pub(super) struct UriBase {
    /// The directory of the paths; absolute.
    directory: PathBuf,
    /// The root of the repository that has the working directory; the working directory without one.
    root: PathBuf,
}

impl UriBase {
    /// Returns the base of paths that are relative to a directory.
    ///
    /// # Errors
    ///
    /// When there is no working directory.
    pub(super) fn of(directory: &Path) -> io::Result<Self> {
        let working = env::current_dir()?;
        let is_root = |directory: &&Path| directory.join(".git").exists();
        let root = working.ancestors().find(is_root).unwrap_or(&working);
        let directory = working.join(directory);
        // Repositories have files by their places, whatever links lead there.
        let directory = fs::canonicalize(&directory).unwrap_or(directory);
        Ok(Self { directory, root: root.to_owned() })
    }

    /// Returns the URI of a file: relative if it is below the root, and with `file://` otherwise.
    pub(super) fn uri(&self, path: &str) -> String {
        let path = normalized(&self.directory.join(path));
        let (start, parts) = match path.strip_prefix(&self.root) {
            Ok(inside) => ("", inside),
            Err(_) => ("file:///", path.as_path()),
        };
        let parts = parts.components().filter_map(|part| match part {
            Component::Normal(name) => {
                Some(utf8_percent_encode(&name.to_string_lossy(), RESERVED).to_string())
            }
            _ => None,
        });
        let parts: Vec<String> = parts.collect();
        format!("{start}{}", if parts.is_empty() { ".".to_owned() } else { parts.join("/") })
    }
}

/// Returns a path without `.` and `..`.
fn normalized(path: &Path) -> PathBuf {
    let mut normalized = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                normalized.pop();
            }
            _ => normalized.push(part),
        }
    }
    normalized
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_are_relative_to_the_repository_and_absolute_outside() {
        let check = |directory: &str, path: &str, expected: &str| {
            let root = PathBuf::from("/srv/repo");
            let base = UriBase { directory: root.join("sub").join(directory), root };
            assert_eq!(base.uri(path), expected, "{directory} {path}");
        };
        check("", "a.yaml", "sub/a.yaml");
        check("release", "web/a b.yaml", "sub/release/web/a%20b.yaml");
        check("./release/", "web/./a.yaml", "sub/release/web/a.yaml");
        check("../other", "ä#1.yaml", "other/%C3%A4%231.yaml");
        check("", "/srv/repo/c:d.yaml", "c%3Ad.yaml");
        check("../../else where", "a.yaml", "file:///srv/else%20where/a.yaml");
        check("/tmp/release", "a.yaml", "file:///tmp/release/a.yaml");
        check("..", "", ".");
    }

    #[test]
    fn paths_begin_in_the_working_directory() {
        let base = UriBase::of(Path::new("nested")).expect("there is a working directory");
        assert!(base.directory.ends_with("nested") && base.directory.starts_with(&base.root));
        assert!(base.uri("a.yaml").ends_with("nested/a.yaml"));
    }

    #[test]
    fn links_to_a_repository_lead_into_it() {
        let elsewhere = tempfile::tempdir().expect("a directory");
        let link = elsewhere.path().join("link");
        let working = env::current_dir().expect("there is a working directory");
        std::os::unix::fs::symlink(&working, &link).expect("a link");
        let there = UriBase::of(Path::new("")).expect("there is a working directory");
        let base = UriBase::of(&link).expect("there is a working directory");
        assert_eq!(base.uri("a.yaml"), there.uri("a.yaml"));
    }
}
