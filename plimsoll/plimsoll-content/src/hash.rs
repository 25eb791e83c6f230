//! Hashes that identify content.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;
use sha2::{Digest as _, Sha256};

use crate::Packed;

const FNV_OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0100_0000_01b3;

/// The hash that `status.versionHash` shows: FNV-1 (multiply, then xor), 64 bits, over the JSON of
/// the included manifests in order, as URL-safe base64 (CV-2.7).
pub fn manifest_hash<'a>(documents: impl IntoIterator<Item = &'a Packed>) -> String {
    let step = |hash: u64, byte: &u8| hash.wrapping_mul(FNV_PRIME) ^ u64::from(*byte);
    let hash = documents
        .into_iter()
        .fold(FNV_OFFSET_BASIS, |hash, document| document.unpack().iter().fold(hash, step));
    URL_SAFE.encode(hash.to_be_bytes())
}

/// SHA-256 over parts, each preceded by its length so that no two lists of parts give the same
/// input; as `sha256:` and hexadecimal digits.
pub fn sha256<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part);
    }
    format!("sha256:{}", hexadecimal(&digest.finalize()))
}

/// Returns the SHA-256 of a text, as `sha256:` and hexadecimal digits: what `sha256sum` prints of it.
pub fn text_sha256(text: &str) -> String {
    format!("sha256:{}", hexadecimal(&Sha256::digest(text)))
}

/// HMAC-SHA256 of a message that is given in parts, under a key.
pub struct Hmac {
    inner: Sha256,
    outer: Sha256,
}

impl Hmac {
    /// Begins a message under a key of at most 64 bytes.
    pub fn new(key: &[u8]) -> Self {
        let padded = |pad: u8| {
            let mut block = [pad; 64];
            block.iter_mut().zip(key).for_each(|(byte, key)| *byte ^= key);
            let mut digest = Sha256::new();
            digest.update(block);
            digest
        };
        Self { inner: padded(0x36), outer: padded(0x5c) }
    }

    /// Appends bytes to the message.
    pub fn update(&mut self, bytes: &[u8]) {
        self.inner.update(bytes);
    }

    /// Returns the code of the message, as hexadecimal digits.
    pub fn finish(mut self) -> String {
        let inner: &[u8] = &self.inner.finalize();
        self.outer.update(inner);
        hexadecimal(&self.outer.finalize())
    }
}

/// Bytes as hexadecimal digits, two for each byte, in lower case.
pub fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a string does not fail");
        text
    })
}

#[cfg(test)]
mod tests {
    //! Known answers.

    use super::{Hmac, manifest_hash, sha256};
    use crate::Packed;

    #[test]
    fn the_hash_is_fnv_1_and_not_1a() {
        let check = |raws: &[&str], expected: &str| {
            let documents: Vec<Packed> =
                raws.iter().map(|raw| raw.as_bytes().to_vec().into()).collect();
            assert_eq!(manifest_hash(&documents), expected, "{raws:?}");
        };
        check(&[], "y_Kc5IQiIyU=");
        // FNV-1 of "foobar" is 0x340d8765a4dda9c2.
        check(&["foobar"], "NA2HZaTdqcI=");
        check(&["foo", "bar"], "NA2HZaTdqcI=");
    }

    #[test]
    fn codes_are_those_of_rfc_4231() {
        let check = |key: &[u8], parts: &[&str], expected: &str| {
            let mut code = Hmac::new(key);
            parts.iter().for_each(|it| code.update(it.as_bytes()));
            assert_eq!(code.finish(), expected, "{parts:?}");
        };
        check(
            &[0x0b; 20],
            &["Hi There"],
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
        );
        check(
            b"Jefe",
            &["what do ya want ", "for nothing?"],
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
        );
    }

    #[test]
    fn a_digest_tells_parts_apart() {
        assert_ne!(sha256([b"ab".as_slice(), b"c"]), sha256([b"a".as_slice(), b"bc"]));
        assert_eq!(sha256([]).len(), "sha256:".len() + 64);
    }
}
