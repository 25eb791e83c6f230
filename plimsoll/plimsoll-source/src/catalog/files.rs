//! Which files belong to a catalog.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use ignore::WalkBuilder;
use plimsoll_content::bundle;
use plimsoll_content::diagnostic::Diagnostic;
use plimsoll_content::hash::hexadecimal;
use sha2::{Digest as _, Sha256};

use super::ignored::IgnorePatterns;

/// Names of patterns that leave files out, in the syntax of `.gitignore`.
pub(super) const IGNORE_FILE: &str = ".indexignore";
/// Most files of a catalog: a tree of seven thousand real bundles has some 60,000.
const FILES_MAX: usize = 1_000_000;
/// What the entries begin with that Kubernetes puts into a mounted volume to replace all of its files
/// at once. Those that are meant lead to them.
const VOLUME_ENTRY: &str = "..";
/// What is wrong with a symbolic link that is not followed.
const LINK_OUT: &str = "the symbolic link leads out of the catalog";

/// The files of a catalog.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// In the order of their names.
    pub(super) files: Vec<FoundFile>,
    /// What could not be looked at.
    pub(super) defects: Vec<Diagnostic>,
    /// Whether it is a tree of bundles.
    pub(super) is_bundles: bool,
}

/// A file of a catalog.
#[derive(Debug)]
pub(super) struct FoundFile {
    /// Relative to the catalog, with slashes.
    pub(super) name: String,
    pub(super) path: PathBuf,
    pub(super) size: u64,
    /// Seconds and nanoseconds.
    pub(super) modified: (i64, i64),
    changed: (i64, i64),
    inode: (u64, u64),
}

impl FoundFile {
    fn new(name: String, path: PathBuf, metadata: &Metadata) -> Self {
        Self {
            name,
            path,
            size: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
            inode: (metadata.dev(), metadata.ino()),
        }
    }
}

impl Found {
    /// Changes when any of the files does.
    pub(super) fn key(&self) -> String {
        let mut digest = Sha256::new();
        digest.update([u8::from(self.is_bundles)]);
        for file in &self.files {
            digest.update((file.name.len() as u64).to_le_bytes());
            digest.update(file.name.as_bytes());
            for number in [file.size, file.inode.0, file.inode.1] {
                digest.update(number.to_le_bytes());
            }
            for number in [file.modified.0, file.modified.1, file.changed.0, file.changed.1] {
                digest.update(number.to_le_bytes());
            }
        }
        hexadecimal(&digest.finalize())
    }
}

/// Finds the files of a catalog.
pub(super) fn find(path: &Path) -> io::Result<Found> {
    let metadata = fs::metadata(path)?;
    if !metadata.is_dir() {
        if !metadata.is_file() {
            return Err(io::Error::other("neither a file nor a directory"));
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let file = FoundFile::new(name, path.to_owned(), &metadata);
        return Ok(Found { files: vec![file], ..Found::default() });
    }
    let root = fs::canonicalize(path)?;
    let Walked { paths, outside, patterns, mut defects } = walk(&root)?;
    let name_of =
        |path: &Path| path.strip_prefix(&root).unwrap_or(path).to_string_lossy().into_owned();
    let mut files = Vec::new();
    for path in paths.into_iter().filter(|path| !patterns.is_left_out(path)) {
        let name = name_of(&path);
        match inspect(&root, &path) {
            Ok(metadata) => files.push(FoundFile::new(name, path, &metadata)),
            Err(error) => defects.push(bundle::unreadable(&name, &error.to_string())),
        }
    }
    let outside = outside.iter().filter(|path| !patterns.is_left_out(path));
    defects.extend(outside.map(|path| bundle::unreadable(&name_of(path), LINK_OUT)));
    files.sort_by(|one, other| one.name.cmp(&other.name));
    let is_bundles = bundle::is_bundles(files.iter().map(|file| file.name.as_str()));
    Ok(Found { files, defects, is_bundles })
}

/// What lies in a directory, whether it belongs to the catalog or not.
struct Walked {
    /// The files, besides those with patterns.
    paths: Vec<PathBuf>,
    /// The symbolic links that lead out of the directory.
    outside: Vec<PathBuf>,
    patterns: IgnorePatterns,
    /// What could not be looked at.
    defects: Vec<Diagnostic>,
}

/// Walks through every directory: patterns decide about files.
fn walk(root: &Path) -> io::Result<Walked> {
    let mut walk = WalkBuilder::new(root);
    walk.standard_filters(false).follow_links(true);
    // A link out of the catalog is a defect, and not followed: it may lead to everything there is.
    let (inside, outside) = (root.to_owned(), Arc::new(Mutex::new(Vec::new())));
    let refused = Arc::clone(&outside);
    walk.filter_entry(move |entry| {
        let name = entry.file_name().as_encoded_bytes();
        if entry.depth() > 0 && name.starts_with(VOLUME_ENTRY.as_bytes()) {
            return false;
        }
        let leaves = entry.path_is_symlink()
            && fs::canonicalize(entry.path()).is_ok_and(|target| !target.starts_with(&inside));
        if leaves {
            let path = entry.path().to_owned();
            refused.lock().expect("no thread panics while it holds the lock").push(path);
        }
        !leaves
    });
    walk.sort_by_file_name(|one, other| one.cmp(other));
    let (mut paths, mut defects) = (Vec::new(), Vec::new());
    let mut patterns = IgnorePatterns::default();
    for entry in walk.build() {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                defects.push(bundle::unreadable("", &error.to_string()));
                continue;
            }
        };
        if entry.file_type().is_some_and(|it| it.is_dir()) {
            continue;
        }
        if entry.file_name() == IGNORE_FILE {
            if let Err(error) = patterns.read(entry.path()) {
                let name = entry.path().strip_prefix(root).unwrap_or(entry.path());
                defects.push(bundle::unreadable(&name.to_string_lossy(), &error));
            }
            continue;
        }
        if paths.len() == FILES_MAX {
            return Err(io::Error::other(format!("it has more than {FILES_MAX} files")));
        }
        paths.push(entry.into_path());
    }
    let outside =
        std::mem::take(&mut *outside.lock().expect("no thread panics while it holds the lock"));
    Ok(Walked { paths, outside, patterns, defects })
}

fn inspect(root: &Path, path: &Path) -> io::Result<Metadata> {
    let target = fs::canonicalize(path)?;
    if !target.starts_with(root) {
        return Err(io::Error::other(LINK_OUT));
    }
    let metadata = fs::metadata(&target)?;
    // Opening a pipe would wait for its other end.
    if metadata.is_file() { Ok(metadata) } else { Err(io::Error::other("not an ordinary file")) }
}
