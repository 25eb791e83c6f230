//! Loads and saves the cluster of an embedded API server.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use k8s_apiserver::{ApiServer, Options, SnapshotError as InvalidSnapshot};
use plimsoll_source::whole_file::{self, FileAccess};
use thiserror::Error;

/// Why a snapshot was not read or written.
#[derive(Debug, Error)]
pub enum SnapshotError {
    /// The file cannot be opened or read.
    #[error("failed to read snapshot `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
    /// The file is no snapshot.
    #[error("failed to load snapshot `{}`", path.display())]
    Load {
        /// The file.
        path: PathBuf,
        /// What is wrong, and in which line.
        source: InvalidSnapshot,
    },
    /// The file cannot be written; what was there stays.
    #[error("failed to write snapshot `{}`", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
}

/// A server with the cluster of a snapshot, or a new one if there is none yet.
///
/// # Errors
///
/// When the file is there but cannot be used; it is left as it is.
pub fn load(path: &Path, options: Options) -> Result<ApiServer, SnapshotError> {
    match open(path) {
        Ok(file) => ApiServer::restore(file, options)
            .map_err(|source| SnapshotError::Load { path: path.to_owned(), source }),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(ApiServer::new(options)),
        Err(source) => Err(SnapshotError::Read { path: path.to_owned(), source }),
    }
}

/// Opens an ordinary file: opening a pipe would wait for its other end.
fn open(path: &Path) -> io::Result<File> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("not an ordinary file"));
    }
    File::open(path)
}

/// Writes the server's cluster to a file that only its owner can read.
///
/// # Errors
///
/// When it cannot be written; what was there stays.
pub fn save(server: &ApiServer, path: &Path) -> Result<(), SnapshotError> {
    write(path, |file| server.snapshot(file))
}

/// Writes a snapshot, which holds the Secrets of its cluster, to a file that only its owner can
/// read.
pub(crate) fn write(
    path: &Path,
    content: impl FnOnce(&File) -> io::Result<()>,
) -> Result<(), SnapshotError> {
    whole_file::write_with(path, FileAccess::Owner, content)
        .map_err(|source| SnapshotError::Write { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_cluster_outlives_its_server() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("cluster.jsonl");
        let server = load(&path, Options::default()).unwrap();
        save(&server, &path).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        save(&server, &path).unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "it holds Secrets");
        let again = load(&path, Options::default()).unwrap();
        assert_eq!(again.resource_version(), server.resource_version());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "nothing lies about");
    }

    #[test]
    fn a_file_that_is_no_snapshot_is_refused_and_kept() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notes.txt");
        fs::write(&path, "buy milk\n").unwrap();
        let error = load(&path, Options::default()).err().expect("it is no snapshot");
        let cause = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
        assert!(cause.contains("line 1"), "{error}: {cause}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "buy milk\n");
    }
    #[test]
    fn a_pipe_is_no_snapshot() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        let error = load(&path, Options::default()).err().expect("it is refused");
        let cause = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
        assert_eq!(cause, "not an ordinary file");
    }
}
