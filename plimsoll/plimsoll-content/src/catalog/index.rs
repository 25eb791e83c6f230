//! A catalog as an index: one block of bytes a package, and directories that lead to them.
//!
//! The index is one run of bytes, in memory or in a file, that is never parsed as a whole.
//! Opening it reads the header and the directories; a package is read when it is asked for. Each
//! part carries a checksum of its own, so what is damaged is noticed when it is read.
//!
//! Layout, numbers in little endian: a header of [`HEADER_SIZE`] bytes, the packages' blocks
//! (postcard), then the directories of packages, APIs and labels, then the catalog's defects. A
//! directory is a number of entries, the offset of each in what follows, and the entries, sorted
//! by key: length of the key, key, value.

use std::borrow::Cow;
use std::io;

use serde::Deserialize;

use super::model::IndexedPackage;
use crate::diagnostic::Diagnostic;

mod directory;
mod header;
mod write;

pub(super) use write::Writer;

use directory::Directory;
use header::{HEADER_SIZE, Header};

/// Version of the format; indices of another version are built anew.
pub const FORMAT_VERSION: u32 = 3;

/// Where the bytes of an index lie.
pub trait IndexStorage {
    /// The bytes of a range.
    ///
    /// # Errors
    /// `UnexpectedEof` when the storage ends before the range does; else that of reading.
    fn read(&self, offset: u64, length: usize) -> io::Result<Cow<'_, [u8]>>;

    /// The number of bytes there are.
    ///
    /// # Errors
    /// That of the storage, such as of reading the metadata of a file.
    fn size(&self) -> io::Result<u64>;
}

impl IndexStorage for Vec<u8> {
    fn read(&self, offset: u64, length: usize) -> io::Result<Cow<'_, [u8]>> {
        let start = usize::try_from(offset).ok();
        let bytes = start.and_then(|start| self.get(start..start.checked_add(length)?));
        bytes.map(Cow::Borrowed).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }
}

/// Why an index cannot be used. It can be built anew from the catalog.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// Its bytes cannot be read.
    #[error("the index cannot be read")]
    Io(#[from] io::Error),
    /// It is of another version, or no index at all.
    #[error("not an index of format version {FORMAT_VERSION}")]
    Format,
    /// A checksum does not match.
    #[error("the index is damaged: {0}")]
    Damaged(&'static str),
}

/// How much there is in a catalog.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CatalogCounts {
    /// Packages.
    pub packages: u64,
    /// Channels.
    pub channels: u64,
    /// Entries of channels.
    pub entries: u64,
    /// Bundles.
    pub bundles: u64,
    /// Packages that are invalid.
    pub invalid: u64,
}

/// A loaded catalog.
#[derive(Debug)]
pub struct CatalogIndex<S = Vec<u8>> {
    storage: S,
    header: Header,
    packages: Directory,
    apis: Directory,
    labels: Directory,
}

impl<S: IndexStorage> CatalogIndex<S> {
    /// Opens an index: reads its header and its directories.
    ///
    /// # Errors
    /// When it cannot be read, is of another format or is damaged.
    pub fn open(storage: S) -> Result<Self, IndexError> {
        let header = Header::read(&storage.read(0, HEADER_SIZE)?)?;
        if storage.size()? != header.size {
            return Err(IndexError::Damaged("it has not the size that it should have"));
        }
        let length = usize::try_from(header.directories.length)
            .map_err(|_| IndexError::Damaged("it is too large"))?;
        let bytes = storage.read(header.directories.offset, length)?;
        if checksum(&bytes) != header.directories.checksum {
            return Err(IndexError::Damaged("its directories"));
        }
        let wrong = IndexError::Damaged("the form of its directories");
        let (packages, rest) = Directory::read(&bytes).ok_or(IndexError::Damaged("packages"))?;
        let (apis, rest) = Directory::read(rest).ok_or(IndexError::Damaged("APIs"))?;
        let (labels, rest) = Directory::read(rest).ok_or(IndexError::Damaged("labels"))?;
        if !rest.is_empty() {
            return Err(wrong);
        }
        drop(bytes);
        Ok(Self { storage, header, packages, apis, labels })
    }

    /// How much there is in the catalog.
    pub fn counts(&self) -> CatalogCounts {
        self.header.counts
    }

    /// The names of all packages, in order.
    pub fn package_names(&self) -> impl Iterator<Item = &str> {
        self.packages.keys()
    }

    /// The package of a name. Only its own bytes are read.
    ///
    /// # Errors
    /// When they cannot be read or are damaged.
    pub fn package(&self, name: &str) -> Result<Option<PackageBlock<'_>>, IndexError> {
        let Some(value) = self.packages.get(name) else { return Ok(None) };
        let part = IndexSection::of(value).ok_or(IndexError::Damaged("a directory entry"))?;
        self.part(part).map(|bytes| Some(PackageBlock { bytes }))
    }

    /// The names of the packages of which a bundle provides an API.
    pub fn providers(&self, group: &str, version: &str, kind: &str) -> Vec<&str> {
        self.names(self.apis.get(&api_key(group, version, kind)))
    }

    /// The names of the packages of which a bundle has a label.
    pub fn labelled(&self, label: &str) -> Vec<&str> {
        self.names(self.labels.get(label))
    }

    /// What is wrong with the catalog, in the order of its files.
    ///
    /// # Errors
    /// When it cannot be read or is damaged.
    pub fn defects(&self) -> Result<Vec<Diagnostic>, IndexError> {
        let bytes = self.part(self.header.defects)?;
        postcard::from_bytes(&bytes).map_err(|_| IndexError::Damaged("the list of defects"))
    }

    fn names(&self, value: Option<&[u8]>) -> Vec<&str> {
        let numbers = value.unwrap_or_default().chunks_exact(4);
        let numbers = numbers.filter_map(|bytes| bytes.try_into().ok().map(u32::from_le_bytes));
        numbers.filter_map(|number| self.packages.key(number)).collect()
    }

    fn part(&self, part: IndexSection) -> Result<Cow<'_, [u8]>, IndexError> {
        let length =
            usize::try_from(part.length).map_err(|_| IndexError::Damaged("a part is too large"))?;
        if part.offset.saturating_add(part.length) > self.header.size {
            return Err(IndexError::Damaged("a part lies outside of it"));
        }
        let bytes = self.storage.read(part.offset, length)?;
        if checksum(&bytes) == part.checksum {
            Ok(bytes)
        } else {
            Err(IndexError::Damaged("a part's checksum does not match"))
        }
    }
}

/// The bytes of a package.
#[derive(Debug)]
pub struct PackageBlock<'i> {
    bytes: Cow<'i, [u8]>,
}

impl PackageBlock<'_> {
    /// What they say; texts borrow from them.
    ///
    /// # Errors
    /// When they are damaged after all.
    pub fn read(&self) -> Result<IndexedPackage<'_>, IndexError> {
        decode(&self.bytes)
    }
}

fn decode<'b, T: Deserialize<'b>>(bytes: &'b [u8]) -> Result<T, IndexError> {
    postcard::from_bytes(bytes).map_err(|_| IndexError::Damaged("a package"))
}

/// The key of an API in its directory. Whoever looks up an API looks at what it finds: two strange
/// names may share a key.
fn api_key(group: &str, version: &str, kind: &str) -> String {
    [group, version, kind].join("\0")
}

fn checksum(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}

/// A part of an index.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct IndexSection {
    offset: u64,
    length: u64,
    checksum: u32,
}

impl IndexSection {
    const SIZE: usize = 20;

    fn of(bytes: &[u8]) -> Option<Self> {
        let (offset, rest) = bytes.split_first_chunk()?;
        let (length, rest) = rest.split_first_chunk()?;
        let (checksum, _) = rest.split_first_chunk()?;
        Some(Self {
            offset: u64::from_le_bytes(*offset),
            length: u64::from_le_bytes(*length),
            checksum: u32::from_le_bytes(*checksum),
        })
    }

    fn bytes(self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        bytes[..8].copy_from_slice(&self.offset.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.length.to_le_bytes());
        bytes[16..].copy_from_slice(&self.checksum.to_le_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests;
