//! The payload files in the layers of an image, later layers over earlier ones.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufReader, Read};
use std::path::{Component, Path};

use flate2::read::MultiGzDecoder;
use plimsoll_content::payload::{Directory, SourceFile};
use tar::{Archive, Entry, EntryType, PaxExtensions};

use super::{StoreError, content};
use crate::bounded::{open_ordinary, read_bounded};
use crate::directory::{FILE_SIZE_MAX, PAYLOAD_SIZE_MAX};

/// In a layer, what begins so takes away a file or directory of an earlier one.
const WHITEOUT: &str = ".wh.";
/// And this takes away all that a directory had before.
const OPAQUE: &str = ".wh..wh..opq";
/// Largest header that holds a long name or further attributes: a path has at most 4,096 bytes, and
/// attributes of files a few thousand.
const HEADER_SIZE_MAX: u64 = 1 << 20;
/// Most bytes that the layers of an image have together when they are decompressed. Those of real
/// releases have some 500 MB.
const LAYERS_SIZE_MAX: u64 = 16 << 30;

/// The files collected so far.
#[derive(Debug, Default)]
pub(super) struct Files {
    files: BTreeMap<(Directory, String), Vec<u8>>,
    /// Bytes of payload files that were read.
    read: u64,
    /// Bytes of layers that were read, decompressed.
    layers: u64,
}

/// What one layer changes.
#[derive(Debug, Default)]
struct Changes {
    files: BTreeMap<(Directory, String), Vec<u8>>,
    /// Files of earlier layers that it takes away.
    gone: BTreeSet<(Directory, String)>,
    /// Directories of which it takes away all that earlier layers have.
    emptied: BTreeSet<Directory>,
}

/// Where an entry lies, as far as that matters.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    /// It takes away all that earlier layers have.
    Opaque,
    /// It takes away all that earlier layers have in a payload directory.
    Emptied(Directory),
    /// It takes away a file.
    Gone(Directory, String),
    /// A payload directory.
    Itself(Directory),
    /// Directly in a payload directory.
    Inside(Directory, String),
    /// Elsewhere.
    Elsewhere,
}

impl Files {
    /// Adds a layer.
    pub(super) fn add(&mut self, path: &Path, media_type: &str) -> Result<(), StoreError> {
        let io_error = |source| StoreError::Io { path: path.to_owned(), source };
        let file = BufReader::new(open_ordinary(path).map_err(io_error)?);
        match media_type.rsplit_once(['+', '.']) {
            Some((_, "gzip")) => self.add_stream(path, MultiGzDecoder::new(file)),
            Some((_, "tar")) => self.add_stream(path, file),
            _ => Err(content(path, &format!("layers of type {media_type:?} cannot be read"))),
        }
    }

    /// Adds the archive of a layer; its path is for errors.
    fn add_stream(&mut self, path: &Path, stream: impl Read) -> Result<(), StoreError> {
        let io_error = |source| StoreError::Io { path: path.to_owned(), source };
        let mut stream = stream.take(LAYERS_SIZE_MAX - self.layers);
        let mut changes = Changes::default();
        let mut archive = Archive::new(&mut stream);
        // Raw entries: the library reads headers of any size into memory.
        let mut long_name = None;
        for entry in archive.entries().map_err(io_error)?.raw(true) {
            let mut entry = entry.map_err(io_error)?;
            match entry.header().entry_type() {
                EntryType::GNULongName => {
                    let mut name = header(path, &mut entry)?;
                    name.truncate(name.iter().position(|byte| *byte == 0).unwrap_or(name.len()));
                    long_name = Some(name);
                }
                EntryType::XHeader => {
                    let attributes = header(path, &mut entry)?;
                    if let Some(name) = attribute(path, &attributes)? {
                        long_name = Some(name);
                    }
                }
                EntryType::GNULongLink | EntryType::XGlobalHeader => {
                    header(path, &mut entry)?;
                }
                _ => {
                    let name = long_name.take().unwrap_or_else(|| entry.path_bytes().into_owned());
                    self.entry(path, entry, &name, &mut changes)?;
                }
            }
        }
        let rest = stream.limit();
        self.layers = LAYERS_SIZE_MAX - rest;
        if rest == 0 {
            let problem = format!("the layers have more than {} GiB", LAYERS_SIZE_MAX >> 30);
            return Err(content(path, &problem));
        }
        let Changes { files, gone, emptied } = changes;
        self.files.retain(|place, _| !emptied.contains(&place.0) && !gone.contains(place));
        self.files.extend(files);
        Ok(())
    }

    fn entry(
        &mut self,
        layer: &Path,
        entry: Entry<'_, impl Read>,
        name: &[u8],
        changes: &mut Changes,
    ) -> Result<(), StoreError> {
        let kind = entry.header().entry_type();
        let refuse = |name: &str, problem: &str| Err(content(layer, &format!("{name}: {problem}")));
        let Ok(name) = std::str::from_utf8(name) else {
            let name = String::from_utf8_lossy(name);
            return match place(&name) {
                Place::Elsewhere => Ok(()),
                _ => refuse(&name, "its name is not UTF-8"),
            };
        };
        let (directory, file) = match place(name) {
            Place::Elsewhere => return Ok(()),
            Place::Opaque => {
                changes.emptied.extend(Directory::ALL);
                return Ok(());
            }
            Place::Emptied(directory) => {
                changes.emptied.insert(directory);
                return Ok(());
            }
            Place::Gone(directory, file) => {
                changes.gone.insert((directory, file));
                return Ok(());
            }
            Place::Itself(_) if kind.is_dir() => return Ok(()),
            Place::Itself(_) => return refuse(name, "not a directory; a payload has no links"),
            Place::Inside(directory, file) => (directory, file),
        };
        if kind.is_dir() {
            // It takes the place of a file, if there was one.
            changes.gone.insert((directory, file));
            return Ok(());
        }
        if !kind.is_file() {
            return refuse(name, "not a plain file; a payload has no links");
        }
        if entry.size() > FILE_SIZE_MAX {
            return refuse(name, "too large for a manifest");
        }
        self.read = self.read.saturating_add(entry.size());
        if self.read > PAYLOAD_SIZE_MAX {
            return refuse(name, "the payload is too large");
        }
        let bytes = read_bounded(entry, FILE_SIZE_MAX)
            .map_err(|source| StoreError::Io { path: layer.to_owned(), source })?;
        changes.files.insert((directory, file), bytes);
        Ok(())
    }

    pub(super) fn into_files(self) -> Vec<SourceFile> {
        let file = |((directory, name), bytes): (_, Vec<u8>)| SourceFile {
            directory,
            name,
            bytes: bytes.into(),
        };
        self.files.into_iter().map(file).collect()
    }
}

/// The content of a header that stands before an entry.
fn header(layer: &Path, entry: &mut Entry<'_, impl Read>) -> Result<Vec<u8>, StoreError> {
    read_bounded(entry, HEADER_SIZE_MAX).map_err(|source| match source.kind() {
        io::ErrorKind::FileTooLarge => {
            content(layer, &format!("a header with a name or attributes is {source}"))
        }
        _ => StoreError::Io { path: layer.to_owned(), source },
    })
}

/// The name of the next entry among its attributes. A size there would belong to a file that is far
/// too large for a payload.
fn attribute(layer: &Path, attributes: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
    let mut name = None;
    for extension in PaxExtensions::new(attributes) {
        let extension =
            extension.map_err(|source| StoreError::Io { path: layer.to_owned(), source })?;
        match extension.key_bytes() {
            b"path" => name = Some(extension.value_bytes().to_owned()),
            b"size" => return Err(content(layer, "an entry of more than 8 GiB")),
            _ => {}
        }
    }
    Ok(name)
}

/// What a path means.
fn place(path: &str) -> Place {
    let parts = Path::new(path).components();
    let parts = parts.filter(|part| !matches!(part, Component::CurDir | Component::RootDir));
    let parts: Vec<&str> = parts.filter_map(|part| part.as_os_str().to_str()).collect();
    let payload = |name: &str| Directory::ALL.into_iter().find(|it| it.name() == name);
    match parts.as_slice() {
        [OPAQUE] => Place::Opaque,
        [name] => match (name.strip_prefix(WHITEOUT).and_then(payload), payload(name)) {
            (Some(directory), _) => Place::Emptied(directory),
            (None, Some(directory)) => Place::Itself(directory),
            (None, None) => Place::Elsewhere,
        },
        [directory, name] => match (payload(directory), name.strip_prefix(WHITEOUT)) {
            (None, _) => Place::Elsewhere,
            (Some(directory), _) if *name == OPAQUE => Place::Emptied(directory),
            (Some(directory), Some(gone)) => Place::Gone(directory, gone.to_owned()),
            (Some(directory), None) => Place::Inside(directory, (*name).to_owned()),
        },
        _ => Place::Elsewhere,
    }
}

#[cfg(test)]
mod tests;
