//! Where files go: a directory, or a compressed archive of one.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

/// A place for files.
pub(super) enum Archive {
    /// A directory.
    Directory(PathBuf),
    /// An archive, whose files lie in a directory of this name.
    Tar(Box<tar::Builder<GzEncoder<File>>>, PathBuf),
}

impl Archive {
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match name.strip_suffix(".tar.gz") {
            Some(stem) => {
                let file = GzEncoder::new(File::create_new(path)?, Compression::default());
                Ok(Self::Tar(Box::new(tar::Builder::new(file)), stem.into()))
            }
            None => {
                fs::create_dir_all(path)?;
                Ok(Self::Directory(path.to_owned()))
            }
        }
    }

    pub(super) fn add(&mut self, path: &str, content: &[u8]) -> io::Result<()> {
        match self {
            Self::Directory(directory) => {
                let path = directory.join(path);
                if let Some(parent) = path.parent() {
                    fs::create_dir_all(parent)?;
                }
                fs::write(path, content)
            }
            Self::Tar(builder, stem) => {
                let mut header = tar::Header::new_gnu();
                header.set_size(content.len().try_into().map_err(io::Error::other)?);
                header.set_mode(0o644);
                header.set_cksum();
                builder.append_data(&mut header, stem.join(path), content)
            }
        }
    }

    pub(super) fn finish(self) -> io::Result<()> {
        match self {
            Self::Directory(_) => Ok(()),
            Self::Tar(builder, _) => builder.into_inner()?.finish().map(drop),
        }
    }
}
