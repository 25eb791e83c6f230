//! The header of an index: what it is, and where its parts lie.

use super::{CatalogCounts, FORMAT_VERSION, IndexError, IndexSection, checksum};

/// Size of the header in bytes.
pub(super) const HEADER_SIZE: usize = 8 + 4 + 8 + 5 * 8 + 2 * IndexSection::SIZE + 4;

const MAGIC: &[u8; 8] = b"plimcatl";

/// What the header says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) size: u64,
    pub(super) counts: CatalogCounts,
    pub(super) directories: IndexSection,
    pub(super) defects: IndexSection,
}

impl Header {
    pub(super) fn read(bytes: &[u8]) -> Result<Self, IndexError> {
        let (body, sum) = bytes.split_last_chunk::<4>().ok_or(IndexError::Format)?;
        let rest = body.strip_prefix(MAGIC).ok_or(IndexError::Format)?;
        let (version, rest) = rest.split_first_chunk().ok_or(IndexError::Format)?;
        if u32::from_le_bytes(*version) != FORMAT_VERSION {
            return Err(IndexError::Format);
        }
        if checksum(body) != u32::from_le_bytes(*sum) {
            return Err(IndexError::Damaged("its header"));
        }
        let mut rest = rest;
        let mut number = || -> Result<u64, IndexError> {
            let (bytes, after) = rest.split_first_chunk().ok_or(IndexError::Format)?;
            rest = after;
            Ok(u64::from_le_bytes(*bytes))
        };
        let size = number()?;
        let counts = CatalogCounts {
            packages: number()?,
            channels: number()?,
            entries: number()?,
            bundles: number()?,
            invalid: number()?,
        };
        let directories = IndexSection::of(rest).ok_or(IndexError::Format)?;
        let defects =
            rest.get(IndexSection::SIZE..).and_then(IndexSection::of).ok_or(IndexError::Format)?;
        Ok(Self { size, counts, directories, defects })
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let CatalogCounts { packages, channels, entries, bundles, invalid } = self.counts;
        let mut bytes = Vec::with_capacity(HEADER_SIZE);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
        for number in [self.size, packages, channels, entries, bundles, invalid] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(&self.directories.bytes());
        bytes.extend_from_slice(&self.defects.bytes());
        let sum = checksum(&bytes);
        bytes.extend_from_slice(&sum.to_le_bytes());
        bytes
    }
}
