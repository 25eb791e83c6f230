//! Selected files in the layers of an image, later layers over earlier ones.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufReader, Read};
use std::path::{Component, Path};

use flate2::read::MultiGzDecoder;
use tar::{Archive, Entry, EntryType, PaxExtensions};

use super::{StoreError, content};
use crate::bounded::{open_ordinary, read_bounded};

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

/// Which files of an image are read, and how many bytes of them.
#[derive(Debug, Clone)]
pub(super) struct FileSelection {
    /// The directories that they lie in, relative to the root of the image; empty for the root.
    pub(super) directories: Vec<String>,
    /// Whether those of directories inside of these belong to it, too.
    pub(super) is_deep: bool,
    /// Most bytes of one file.
    pub(super) file_size_max: u64,
    /// Most bytes of all files together, in all layers.
    pub(super) size_max: u64,
    /// What the files are together, for errors: `payload`.
    pub(super) noun: &'static str,
}

/// The files collected so far.
#[derive(Debug)]
pub(super) struct Files {
    selection: FileSelection,
    /// By their paths in the image.
    files: BTreeMap<String, Vec<u8>>,
    /// Bytes of selected files that were read.
    read: u64,
    /// Bytes of layers that were read, decompressed.
    layers: u64,
}

/// What one layer changes.
#[derive(Debug, Default)]
struct Changes {
    files: BTreeMap<String, Vec<u8>>,
    /// Files of earlier layers that it takes away.
    gone: BTreeSet<String>,
    /// Directories of which it takes away all that earlier layers have below them.
    emptied: BTreeSet<String>,
}

/// Where an entry lies, as far as that matters.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    /// It takes away all that earlier layers have below a directory.
    Emptied(String),
    /// It takes away a file, or a directory with all that is below it.
    Gone(String),
    /// A selected directory, or one that it lies in.
    Itself,
    /// A selected file, by its path.
    Inside(String),
    /// Elsewhere.
    Elsewhere,
}

impl Files {
    /// No files yet.
    pub(super) fn new(selection: FileSelection) -> Self {
        Self { selection, files: BTreeMap::new(), read: 0, layers: 0 }
    }

    /// Adds a layer.
    pub(super) fn add(&mut self, path: &Path, media_type: &str) -> Result<(), StoreError> {
        let io_error = |source| StoreError::Io { path: path.to_owned(), source };
        let file = BufReader::new(open_ordinary(path).map_err(io_error)?);
        match media_type.rsplit_once(['+', '.']) {
            Some((_, "gzip")) => self.add_stream(path, MultiGzDecoder::new(file)),
            Some((_, "zstd")) => {
                let decoder = zstd::Decoder::with_buffer(file).map_err(io_error)?;
                self.add_stream(path, decoder)
            }
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
        self.files.retain(|path, _| {
            !gone.contains(path) && !ancestors(path).any(|it| emptied.contains(it))
        });
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
            return match place(&self.selection, &name) {
                Place::Elsewhere => Ok(()),
                _ => refuse(&name, "its name is not UTF-8"),
            };
        };
        let noun = self.selection.noun;
        let path = match place(&self.selection, name) {
            Place::Elsewhere => return Ok(()),
            Place::Emptied(directory) => {
                changes.emptied.insert(directory);
                return Ok(());
            }
            Place::Gone(path) => {
                changes.emptied.insert(path.clone());
                changes.gone.insert(path);
                return Ok(());
            }
            Place::Itself if kind.is_dir() => return Ok(()),
            Place::Itself => {
                return refuse(name, &format!("not a directory; a {noun} has no links"));
            }
            Place::Inside(path) => path,
        };
        if kind.is_dir() {
            // It takes the place of a file, if there was one.
            changes.gone.insert(path);
            return Ok(());
        }
        if !kind.is_file() {
            return refuse(name, &format!("not a plain file; a {noun} has no links"));
        }
        let file_size_max = self.selection.file_size_max;
        if entry.size() > file_size_max {
            return refuse(name, &format!("larger than {} MiB", file_size_max >> 20));
        }
        self.read = self.read.saturating_add(entry.size());
        if self.read > self.selection.size_max {
            let size = self.selection.size_max >> 20;
            return refuse(name, &format!("the files of the {noun} are larger than {size} MiB"));
        }
        let bytes = read_bounded(entry, file_size_max)
            .map_err(|source| StoreError::Io { path: layer.to_owned(), source })?;
        // It takes the place of a directory, if there was one.
        changes.emptied.insert(path.clone());
        changes.files.insert(path, bytes);
        Ok(())
    }

    /// The files, by their paths in the image.
    pub(super) fn into_files(self) -> BTreeMap<String, Vec<u8>> {
        self.files
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

/// What a path means. One that leads upwards means nothing.
fn place(selection: &FileSelection, path: &str) -> Place {
    let parts = Path::new(path).components();
    let parts = parts.filter(|part| !matches!(part, Component::CurDir | Component::RootDir));
    let parts: Option<Vec<&str>> = parts
        .map(|part| match part {
            Component::Normal(name) => name.to_str(),
            _ => None,
        })
        .collect();
    let Some(parts) = parts else { return Place::Elsewhere };
    let Some((name, parents)) = parts.split_last() else { return Place::Itself };
    let (path, parent) = (parts.join("/"), parents.join("/"));
    if *name == OPAQUE {
        return if selection.touches(&parent) { Place::Emptied(parent) } else { Place::Elsewhere };
    }
    if let Some(gone) = name.strip_prefix(WHITEOUT) {
        let path = if parent.is_empty() { gone.to_owned() } else { format!("{parent}/{gone}") };
        return if selection.touches(&path) { Place::Gone(path) } else { Place::Elsewhere };
    }
    let leads_to = |directory: &String| *directory == path || is_below(directory, &path);
    if selection.directories.iter().any(leads_to) {
        return Place::Itself;
    }
    let holds = |directory: &String| {
        if selection.is_deep { is_below(&path, directory) } else { parent == *directory }
    };
    if selection.directories.iter().any(holds) { Place::Inside(path) } else { Place::Elsewhere }
}

impl FileSelection {
    /// Whether something selected may lie at a path, below it, or above it.
    fn touches(&self, path: &str) -> bool {
        self.directories.iter().any(|it| it == path || is_below(it, path) || is_below(path, it))
    }
}

/// Whether a path lies below a directory; everything lies below the root.
fn is_below(path: &str, directory: &str) -> bool {
    if directory.is_empty() {
        return !path.is_empty();
    }
    path.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'))
}

/// The directories that a path lies in, the root among them.
fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(end, _)| &path[..end]).chain([""])
}

#[cfg(test)]
mod tests;
