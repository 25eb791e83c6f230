//! Bytes at rest. A payload of fifteen megabytes is held for as long as a process runs, and most of
//! it is definitions that are looked at once: they are kept compressed, in a fifth of the space.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use lz4_flex::block;

/// Shorter ones are kept as they are: there is little to be gained, and there are many.
const LEN_MIN: usize = 4096;

/// Bytes, compressed if that makes them shorter. Equal bytes are packed equally.
#[derive(Clone, PartialEq, Eq)]
pub struct Packed {
    /// The bytes, or what they were compressed to if that is shorter than `len`.
    kept: Arc<[u8]>,
    len: usize,
}

impl Packed {
    /// The bytes as they were.
    pub fn unpack(&self) -> Cow<'_, [u8]> {
        if self.kept.len() == self.len {
            return Cow::Borrowed(&self.kept);
        }
        let bytes = block::decompress(&self.kept, self.len);
        Cow::Owned(bytes.expect("it was compressed here"))
    }
}

impl From<Vec<u8>> for Packed {
    fn from(bytes: Vec<u8>) -> Self {
        let len = bytes.len();
        let mut kept = bytes;
        if len >= LEN_MIN {
            let compressed = block::compress(&kept);
            if compressed.len() < len {
                kept = compressed;
            }
        }
        Self { kept: kept.into(), len }
    }
}

impl fmt::Debug for Packed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", String::from_utf8_lossy(&self.unpack()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_and_repetition_takes_little_space() {
        let noise: Vec<u8> = (0..LEN_MIN as u64 * 2)
            .map(|index| (index.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8)
            .collect();
        for (bytes, kept_max) in [
            (Vec::new(), 0),
            (b"short".to_vec(), 5),
            (b"spec: ".repeat(LEN_MIN), LEN_MIN / 4),
            (noise.clone(), noise.len()),
        ] {
            let packed = Packed::from(bytes.clone());
            assert_eq!(*packed.unpack(), *bytes);
            assert!(packed.kept.len() <= kept_max, "{} of {}", packed.kept.len(), bytes.len());
            assert_eq!(packed, Packed::from(bytes));
        }
    }
}
