//! A directory of an index: sorted keys with values, searched without being parsed.

use std::collections::BTreeMap;

/// A directory that is looked things up in.
#[derive(Debug)]
pub(super) struct Directory {
    count: u32,
    /// Four bytes an entry.
    offsets: Vec<u8>,
    entries: Vec<u8>,
}

impl Directory {
    /// Takes a directory off the beginning of some bytes.
    pub(super) fn read(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (count, rest) = bytes.split_first_chunk()?;
        let (size, rest) = rest.split_first_chunk()?;
        let (count, size) = (u32::from_le_bytes(*count), u32::from_le_bytes(*size));
        let (offsets, rest) = rest.split_at_checked((count as usize).checked_mul(4)?)?;
        let (entries, rest) = rest.split_at_checked(size as usize)?;
        Some((Self { count, offsets: offsets.to_owned(), entries: entries.to_owned() }, rest))
    }

    fn offset(&self, number: u32) -> Option<usize> {
        if number == self.count {
            return Some(self.entries.len());
        }
        let bytes = self.offsets.chunks_exact(4).nth(number as usize)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?) as usize)
    }

    fn entry(&self, number: u32) -> Option<(&str, &[u8])> {
        if number >= self.count {
            return None;
        }
        let entry = self.entries.get(self.offset(number)?..self.offset(number + 1)?)?;
        let (length, rest) = entry.split_first_chunk()?;
        let (key, value) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        Some((std::str::from_utf8(key).ok()?, value))
    }

    /// The key of an entry.
    pub(super) fn key(&self, number: u32) -> Option<&str> {
        self.entry(number).map(|(key, _)| key)
    }

    /// All keys, in order.
    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        (0..self.count).filter_map(|number| self.key(number))
    }

    /// The value of a key.
    pub(super) fn get(&self, key: &str) -> Option<&[u8]> {
        let (mut from, mut to) = (0, self.count);
        while from < to {
            let middle = from + (to - from) / 2;
            let (found, value) = self.entry(middle)?;
            match found.cmp(key) {
                std::cmp::Ordering::Equal => return Some(value),
                std::cmp::Ordering::Less => from = middle + 1,
                std::cmp::Ordering::Greater => to = middle,
            }
        }
        None
    }
}

/// Writes a directory.
pub(super) fn write(entries: &BTreeMap<String, Vec<u8>>, out: &mut Vec<u8>) -> Option<()> {
    let mut offsets = Vec::with_capacity(entries.len() * 4);
    let mut bytes = Vec::new();
    for (key, value) in entries {
        offsets.extend_from_slice(&u32::try_from(bytes.len()).ok()?.to_le_bytes());
        bytes.extend_from_slice(&u32::try_from(key.len()).ok()?.to_le_bytes());
        bytes.extend_from_slice(key.as_bytes());
        bytes.extend_from_slice(value);
    }
    out.extend_from_slice(&u32::try_from(entries.len()).ok()?.to_le_bytes());
    out.extend_from_slice(&u32::try_from(bytes.len()).ok()?.to_le_bytes());
    out.extend_from_slice(&offsets);
    out.extend_from_slice(&bytes);
    Some(())
}
