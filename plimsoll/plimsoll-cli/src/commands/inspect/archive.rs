//! Where files go: a directory, or a compressed archive of one. It is there as a whole, or not at all.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use tempfile::{NamedTempFile, TempDir};

/// How the names begin of what is written before it takes its place.
const PREFIX: &str = ".plimsoll-inspect-";
/// Permissions of an archive, less those that the user's umask takes away.
const MODE: u32 = 0o666;

/// A place for files.
pub(super) enum Archive {
    /// A directory.
    Directory {
        /// Holds the directory that is written, and is removed.
        work: TempDir,
        /// The directory that is written.
        new: PathBuf,
        /// Its place.
        place: PathBuf,
    },
    /// An archive.
    Tar {
        /// Writes it.
        builder: Box<tar::Builder<GzEncoder<NamedTempFile>>>,
        /// The name of the directory that the files lie in.
        stem: PathBuf,
        /// Its place.
        place: PathBuf,
    },
}

impl Archive {
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let place = std::path::absolute(path)?;
        let parent = place.parent().ok_or(io::ErrorKind::InvalidInput)?.to_owned();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match name.strip_suffix(".tar.gz") {
            Some(stem) => {
                let file = tempfile::Builder::new()
                    .prefix(PREFIX)
                    .permissions(Permissions::from_mode(MODE))
                    .tempfile_in(parent)?;
                let builder = tar::Builder::new(GzEncoder::new(file, Compression::default()));
                Ok(Self::Tar { builder: Box::new(builder), stem: stem.into(), place })
            }
            None => {
                fs::create_dir_all(&parent)?;
                let work = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent)?;
                let new = work.path().join("new");
                fs::create_dir(&new)?;
                Ok(Self::Directory { work, new, place })
            }
        }
    }

    pub(super) fn add(&mut self, path: &str, content: &[u8]) -> io::Result<()> {
        match self {
            Self::Directory { new, .. } => {
                let path = new.join(path);
                if let Some(parent) = path.parent() {
                    fs::create_dir_all(parent)?;
                }
                fs::write(path, content)
            }
            Self::Tar { builder, stem, .. } => {
                let mut header = tar::Header::new_gnu();
                header.set_size(content.len().try_into().map_err(io::Error::other)?);
                header.set_mode(0o644);
                header.set_cksum();
                builder.append_data(&mut header, stem.join(path), content)
            }
        }
    }

    /// Puts it in its place.
    ///
    /// # Errors
    ///
    /// When it cannot be written, or something has come to its place meanwhile.
    pub(super) fn finish(self) -> io::Result<()> {
        match self {
            Self::Directory { work, new, place } => {
                fs::rename(new, place)?;
                work.close()
            }
            Self::Tar { builder, place, .. } => {
                let file = builder.into_inner()?.finish()?;
                file.persist_noclobber(place)?;
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_there_as_a_whole_or_not_at_all() {
        let directory = tempfile::tempdir().expect("a directory");
        for name in ["all", "all.tar.gz"] {
            let place = directory.path().join(name);
            let mut given_up = Archive::create(&place).expect("a place");
            given_up.add("a/b.yaml", b"b").expect("it is written");
            assert!(!place.exists(), "it is incomplete");
            drop(given_up);
            let mut archive = Archive::create(&place).expect("a place");
            archive.add("a/b.yaml", b"b").expect("it is written");
            archive.finish().expect("it is complete");
            assert!(place.exists());
        }
        assert_eq!(fs::read(directory.path().join("all/a/b.yaml")).expect("a file"), b"b");
        let left = fs::read_dir(directory.path()).expect("a directory").count();
        assert_eq!(left, 2, "nothing else is left");
    }
}
