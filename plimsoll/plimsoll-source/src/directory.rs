//! From a directory to the bytes of a payload's files.

use std::fmt;
use std::fs::{self, DirEntry, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use bytes::buf::BufMut as _;
use bytes::{Bytes, BytesMut};
use plimsoll_content::diagnostic::{Diagnostic, FindingCode};
use plimsoll_content::payload::{Directory, IMAGE_REFERENCES, RELEASE_METADATA, SourceFile};

use crate::bounded::kind_of;

/// Largest file that is read; the largest of real payloads has 1.5 MB.
pub const FILE_SIZE_MAX: u64 = 32 << 20;
/// Most bytes that are read of a payload; real ones have under 20 MB.
pub const PAYLOAD_SIZE_MAX: u64 = 512 << 20;

/// Files share stretches of memory of this size at least: a system's allocator gives back large ones
/// at once, and keeps what a thousand small ones leave.
const STRETCH_LEN_MIN: usize = 1 << 20;

/// `ELOOP` on Linux: the standard library has no stable name for it.
const TOO_MANY_LINKS: i32 = 40;

/// Everything that keeps the files of a payload from being read, and those that could be.
#[derive(Debug)]
pub struct ReadErrors {
    /// What is wrong: never empty.
    pub errors: Vec<ReadError>,
    /// What could be read.
    pub files: Vec<SourceFile>,
}

impl fmt::Display for ReadErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.errors.len();
        let plural = if count == 1 { "" } else { "s" };
        write!(f, "{count} file{plural} of the payload cannot be read")?;
        self.errors.iter().try_for_each(|error| write!(f, "\n  {error}"))
    }
}

impl std::error::Error for ReadErrors {}

/// A file or directory that cannot be read.
#[derive(Debug)]
pub struct ReadError {
    /// The directory of the payload that it is or lies in; `None` for the payload's own.
    pub directory: Option<Directory>,
    /// Its name in that directory; empty for the directory itself.
    pub name: String,
    /// Its path in the file system.
    pub path: PathBuf,
    /// What keeps it from being read.
    pub cause: ReadCause,
}

impl ReadError {
    /// Returns whether a defect of a file of the payload follows from this file or directory not having
    /// been read.
    pub fn explains(&self, defective: &str) -> bool {
        self.directory.is_none() || Path::new(defective).starts_with(self.file())
    }

    /// Returns the error as a diagnostic.
    pub fn diagnostic(&self) -> Diagnostic {
        FindingCode::Load.diagnostic(self.file(), self.cause.to_string())
    }

    /// Returns its path in the payload; of the payload's own directory, the one in the file system.
    fn file(&self) -> String {
        match self.directory {
            Some(directory) if self.name.is_empty() => directory.to_string(),
            Some(directory) => format!("{directory}/{}", self.name),
            None => self.path.display().to_string(),
        }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file(), self.cause)
    }
}

impl std::error::Error for ReadError {}

/// Why a file or directory cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadCause {
    /// A directory that every payload has is missing.
    #[error("no such directory: a payload has the directories manifests and release-manifests")]
    MissingDirectory,
    /// Something else stands where a directory should.
    #[error("not a directory")]
    NotADirectory,
    /// The system refuses.
    #[error("{0}")]
    Io(io::Error),
    /// Symbolic links lead back to themselves.
    #[error("symbolic links form a loop")]
    LinkLoop,
    /// A symbolic link leads nowhere.
    #[error("the symbolic link leads nowhere")]
    DanglingLink,
    /// A symbolic link leads out of the payload.
    #[error("the symbolic link leads out of the payload directory, to {}", .0.display())]
    Outside(PathBuf),
    /// A manifest whose name is not text.
    #[error("its name is not UTF-8; rename the file")]
    Name,
    /// Not an ordinary file.
    #[error("{0}, not an ordinary file")]
    Special(&'static str),
    /// The file exceeds [`FILE_SIZE_MAX`].
    #[error("larger than {max} MiB", max = FILE_SIZE_MAX >> 20)]
    FileSize,
    /// The files together exceed [`PAYLOAD_SIZE_MAX`].
    #[error("the payload is larger than {max} MiB", max = PAYLOAD_SIZE_MAX >> 20)]
    PayloadSize,
}

/// Reads the files of a payload that matter: manifests and the two special files. Sub-directories
/// and other files are left alone.
///
/// # Errors
/// [`ReadErrors`] with every file and directory that cannot be read, and with the files that can.
pub fn read_directory(path: &Path) -> Result<Vec<SourceFile>, ReadErrors> {
    let mut reader = Reader {
        root: PathBuf::new(),
        read: 0,
        stretch: BytesMut::new(),
        files: Vec::new(),
        errors: Vec::new(),
    };
    match fs::canonicalize(path) {
        Err(error) => reader.fail(None, "", path, link_cause(path, error)),
        Ok(root) if !root.is_dir() => reader.fail(None, "", path, ReadCause::NotADirectory),
        Ok(root) => {
            reader.root = root;
            for directory in Directory::ALL {
                reader.read_directory(directory, &path.join(directory.name()));
            }
        }
    }
    let Reader { files, errors, .. } = reader;
    if errors.is_empty() { Ok(files) } else { Err(ReadErrors { errors, files }) }
}

struct Reader {
    /// The payload's directory without symbolic links.
    root: PathBuf,
    /// Bytes read so far.
    read: u64,
    /// Where the next file goes.
    stretch: BytesMut,
    files: Vec<SourceFile>,
    errors: Vec<ReadError>,
}

impl Reader {
    fn fail(&mut self, directory: Option<Directory>, name: &str, path: &Path, cause: ReadCause) {
        let (name, path) = (name.to_owned(), path.to_owned());
        self.errors.push(ReadError { directory, name, path, cause });
    }

    fn read_directory(&mut self, directory: Directory, path: &Path) {
        match self.entries(path) {
            Err(cause) => self.fail(Some(directory), "", path, cause),
            Ok(mut entries) => {
                entries.sort_by_key(DirEntry::file_name);
                for entry in entries {
                    self.read_entry(directory, &entry);
                }
            }
        }
    }

    fn entries(&self, path: &Path) -> Result<Vec<DirEntry>, ReadCause> {
        match fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(ReadCause::MissingDirectory);
            }
            Err(error) => return Err(ReadCause::Io(error)),
            Ok(metadata) if metadata.is_symlink() => {
                self.resolve(path)?;
            }
            Ok(_) => {}
        }
        if !path.is_dir() {
            return Err(ReadCause::NotADirectory);
        }
        fs::read_dir(path).and_then(Iterator::collect).map_err(ReadCause::Io)
    }

    fn read_entry(&mut self, directory: Directory, entry: &DirEntry) {
        let written = entry.file_name();
        let name = written.to_string_lossy().into_owned();
        let mut file = SourceFile { directory, name, bytes: Bytes::new() };
        let is_special = directory == Directory::ReleaseManifests
            && [RELEASE_METADATA, IMAGE_REFERENCES].contains(&file.name.as_str());
        if !file.holds_manifests() && !is_special {
            return;
        }
        if written.to_str().is_none() {
            return self.fail(Some(directory), &file.name, &entry.path(), ReadCause::Name);
        }
        match self.bytes(&entry.path()) {
            Ok(Some(bytes)) => {
                file.bytes = bytes;
                self.files.push(file);
            }
            Ok(None) => {}
            Err(cause) => self.fail(Some(directory), &file.name, &entry.path(), cause),
        }
    }

    /// The content of a file; `None` for a directory.
    fn bytes(&mut self, path: &Path) -> Result<Option<Bytes>, ReadCause> {
        let metadata = fs::symlink_metadata(path).map_err(ReadCause::Io)?;
        let (path, metadata) = if metadata.is_symlink() {
            let target = self.resolve(path)?;
            let metadata = fs::symlink_metadata(&target).map_err(ReadCause::Io)?;
            (target, metadata)
        } else {
            (path.to_owned(), metadata)
        };
        if metadata.is_dir() {
            return Ok(None);
        }
        // Opening a pipe would wait for its other end, and a device may do anything.
        if !metadata.is_file() {
            return Err(ReadCause::Special(kind_of(metadata.file_type())));
        }
        if metadata.len() > FILE_SIZE_MAX {
            return Err(ReadCause::FileSize);
        }
        if self.read + metadata.len() > PAYLOAD_SIZE_MAX {
            return Err(ReadCause::PayloadSize);
        }
        let len = usize::try_from(metadata.len()).unwrap_or_default();
        if self.stretch.capacity() < len {
            self.stretch = BytesMut::with_capacity(len.max(STRETCH_LEN_MIN));
        }
        let mut writer = (&mut self.stretch).writer();
        // The file may grow while it is read.
        let read = File::open(&path)
            .and_then(|file| io::copy(&mut file.take(FILE_SIZE_MAX + 1), &mut writer));
        let bytes = self.stretch.split().freeze();
        if read.map_err(ReadCause::Io)? > FILE_SIZE_MAX {
            return Err(ReadCause::FileSize);
        }
        self.read += bytes.len() as u64;
        Ok(Some(bytes))
    }

    /// Where a symbolic link leads, which must be inside the payload.
    fn resolve(&self, path: &Path) -> Result<PathBuf, ReadCause> {
        let target = fs::canonicalize(path).map_err(|error| link_cause(path, error))?;
        if target.starts_with(&self.root) { Ok(target) } else { Err(ReadCause::Outside(target)) }
    }
}

/// Why a path that may be a symbolic link cannot be followed.
fn link_cause(path: &Path, error: io::Error) -> ReadCause {
    if error.raw_os_error() == Some(TOO_MANY_LINKS) {
        ReadCause::LinkLoop
    } else if error.kind() == io::ErrorKind::NotFound && path.is_symlink() {
        ReadCause::DanglingLink
    } else {
        ReadCause::Io(error)
    }
}

#[cfg(test)]
mod tests;
