//! Writing a payload directory: as a whole or not at all.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use plimsoll_content::authoring::NAME_KEY;
use plimsoll_content::location::Directory;
use plimsoll_content::payload::{IMAGE_REFERENCES, RELEASE_METADATA, SourceFile};
use serde_json::Value;

use crate::bounded::{WRITTEN_SIZE_MAX, read_text};

/// How the names of built manifests begin.
const BUILT_PREFIX: &str = "0000_";
/// Permissions of the directory of a payload.
const MODE: u32 = 0o755;

/// Why a payload cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// Something else is there.
    #[error("`{}` is not empty and not an earlier build: name another directory, or delete it", .0.display())]
    Occupied(PathBuf),
    /// The system refuses.
    #[error("failed to write `{}`", .path.display())]
    Io {
        /// The directory.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

/// Checks that a payload can be written to a directory: it is absent, empty, or an earlier build.
///
/// # Errors
/// [`WriteError`] if something else is there.
pub fn check_output(path: &Path) -> Result<(), WriteError> {
    let failed = |source| WriteError::Io { path: path.to_owned(), source };
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
    };
    let mut is_empty = true;
    let mut has_others = false;
    for entry in entries {
        let name = entry.map_err(failed)?.file_name();
        is_empty = false;
        has_others |= !Directory::ALL.iter().any(|directory| name == directory.name());
    }
    if is_empty || !has_others && is_build(path) {
        return Ok(());
    }
    Err(WriteError::Occupied(path.to_owned()))
}

/// Whether a directory holds a payload that was built.
fn is_build(path: &Path) -> bool {
    let metadata = path.join(Directory::ReleaseManifests.name()).join(RELEASE_METADATA);
    let text = read_text(&metadata, WRITTEN_SIZE_MAX).unwrap_or_default();
    let metadata: Value = serde_json::from_str(&text).unwrap_or_default();
    metadata["metadata"][NAME_KEY].is_string() && !has_strangers(path)
}

/// Whether the directory of a payload has files that no build makes: any in `manifests`, or one of another
/// name than a component's in `release-manifests`.
fn has_strangers(path: &Path) -> bool {
    let names = |directory: Directory| {
        let entries = fs::read_dir(path.join(directory.name())).into_iter().flatten();
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned())
    };
    let is_built = |name: &str| {
        name.starts_with(BUILT_PREFIX) || name == RELEASE_METADATA || name == IMAGE_REFERENCES
    };
    names(Directory::Manifests).next().is_some()
        || names(Directory::ReleaseManifests).any(|name| !is_built(&name))
}

/// Writes a payload to a directory that is absent, empty, or an earlier build, which is replaced as a
/// whole: it is written beside it and renamed.
///
/// # Errors
/// [`WriteError`] if something else is there, or it cannot be written.
pub fn write_payload(files: &[SourceFile], path: &Path) -> Result<(), WriteError> {
    check_output(path)?;
    let failed = |source| WriteError::Io { path: path.to_owned(), source };
    replace(files, path).map_err(failed)
}

fn replace(files: &[SourceFile], path: &Path) -> io::Result<()> {
    // What a symbolic link leads to is replaced, not the link.
    let target = fs::canonicalize(path).or_else(|_| std::path::absolute(path))?;
    let parent = target.parent().ok_or(io::ErrorKind::InvalidInput)?;
    fs::create_dir_all(parent)?;
    let work = tempfile::Builder::new().prefix(".plimsoll-build-").tempdir_in(parent)?;
    let (new, old) = (work.path().join("new"), work.path().join("old"));
    for directory in Directory::ALL {
        fs::create_dir_all(new.join(directory.name()))?;
    }
    for file in files {
        fs::write(new.join(file.directory.name()).join(&file.name), &file.bytes)?;
    }
    fs::set_permissions(&new, fs::Permissions::from_mode(MODE))?;
    if target.exists() {
        fs::rename(&target, &old)?;
    }
    if let Err(error) = fs::rename(&new, &target) {
        // What was there before is better than nothing.
        if old.exists() {
            fs::rename(&old, &target)?;
        }
        return Err(error);
    }
    Ok(())
}
