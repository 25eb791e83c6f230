//! The payload files in the layers of an image, later layers over earlier ones.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Component, Path};

use flate2::read::MultiGzDecoder;
use plimsoll_content::payload::{Directory, SourceFile};
use tar::{Archive, Entry};

use super::{StoreError, content};
use crate::directory::{FILE_SIZE_MAX, PAYLOAD_SIZE_MAX};

/// In a layer, what begins so takes away a file of an earlier one.
const WHITEOUT: &str = ".wh.";
/// And this takes away all that a directory had before.
const OPAQUE: &str = ".wh..wh..opq";

/// The files collected so far.
#[derive(Debug, Default)]
pub(super) struct Files {
    files: BTreeMap<(Directory, String), Vec<u8>>,
    read: u64,
}

impl Files {
    /// Adds a layer.
    pub(super) fn add(&mut self, path: &Path, media_type: &str) -> Result<(), StoreError> {
        let io_error = |source| StoreError::Io { path: path.to_owned(), source };
        let file = BufReader::new(File::open(path).map_err(io_error)?);
        let stream: Box<dyn Read> = match media_type.rsplit_once(['+', '.']) {
            Some((_, "gzip")) => Box::new(MultiGzDecoder::new(file)),
            Some((_, "tar")) => Box::new(file),
            _ => {
                let problem = format!("layers of type {media_type:?} cannot be read");
                return Err(content(path, &problem));
            }
        };
        let mut archive = Archive::new(stream);
        for entry in archive.entries().map_err(io_error)? {
            self.entry(path, entry.map_err(io_error)?)?;
        }
        Ok(())
    }

    fn entry(
        &mut self,
        layer: &Path,
        mut entry: Entry<'_, Box<dyn Read>>,
    ) -> Result<(), StoreError> {
        let io_error = |source| StoreError::Io { path: layer.to_owned(), source };
        let inside = entry.path().map_err(io_error)?.into_owned();
        let Some((directory, name)) = place(&inside) else {
            return Ok(());
        };
        if name == OPAQUE {
            self.files.retain(|(it, _), _| *it != directory);
            return Ok(());
        }
        if let Some(gone) = name.strip_prefix(WHITEOUT) {
            self.files.remove(&(directory, gone.to_owned()));
            return Ok(());
        }
        let kind = entry.header().entry_type();
        if kind.is_dir() {
            return Ok(());
        }
        let refuse = |problem: &str| Err(content(layer, &format!("{directory}/{name}: {problem}")));
        if !kind.is_file() {
            return refuse("not a plain file; a payload has no links");
        }
        self.read += entry.size();
        if entry.size() > FILE_SIZE_MAX {
            return refuse("too large for a manifest");
        }
        if self.read > PAYLOAD_SIZE_MAX {
            return refuse("the payload is too large");
        }
        let mut bytes = Vec::with_capacity(usize::try_from(entry.size()).unwrap_or_default());
        entry.read_to_end(&mut bytes).map_err(io_error)?;
        self.files.insert((directory, name), bytes);
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

/// The payload directory and the name in it, for what lies directly in one.
fn place(path: &Path) -> Option<(Directory, String)> {
    let mut parts =
        path.components().filter(|part| !matches!(part, Component::CurDir | Component::RootDir));
    let (directory, name) = (parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    let text = |part: Component<'_>| part.as_os_str().to_str().map(str::to_owned);
    let directory = text(directory)?;
    let directory = Directory::ALL.into_iter().find(|it| it.name() == directory)?;
    Some((directory, text(name)?))
}
