//! The OpenAPI documents of the built-in kinds, as a real server published them.
//!
//! `cargo xtask codegen documents` writes them. Each is kept compressed and only unpacked for a
//! client that cannot do that itself.
use std::collections::BTreeMap;
use std::io::Read as _;
use std::sync::OnceLock;

static DATA: &[u8] = include_bytes!("../../data/documents.bin");

/// One document.
#[derive(Clone, Copy, Debug)]
pub struct Document {
    /// Its name: `v2`, or `v3/` and the path that it describes, such as `v3/apis/apps/v1`.
    pub name: &'static str,
    /// Differs if the document does.
    pub digest: &'static str,
    /// The document, as a gzip file.
    pub gzip: &'static [u8],
}

impl Document {
    /// The text of the document, which is JSON.
    pub fn text(&self) -> Vec<u8> {
        let mut text = Vec::new();
        flate2::read::GzDecoder::new(self.gzip)
            .read_to_end(&mut text)
            .expect("the generated documents are well compressed");
        text
    }
}

/// Offset, length and digest by name.
type Index = BTreeMap<String, (usize, usize, String)>;

/// The index and where the documents begin.
fn index() -> &'static (Index, usize) {
    static INDEX: OnceLock<(Index, usize)> = OnceLock::new();
    INDEX.get_or_init(|| {
        let length = DATA[..4].iter().rev().fold(0, |sum, byte| (sum << 8) | usize::from(*byte));
        let start = 4 + length;
        let index = serde_json::from_value(crate::builtin_data::unpack(&DATA[4..start]));
        (index.expect("the generated index is well formed"), start)
    })
}

/// All documents, by name.
pub fn documents() -> impl Iterator<Item = Document> {
    let (index, start) = index();
    index.iter().map(move |(name, (offset, length, digest))| Document {
        name,
        digest,
        gzip: &DATA[start + offset..start + offset + length],
    })
}

/// One document.
pub fn document(name: &str) -> Option<Document> {
    let (index, start) = index();
    let (name, (offset, length, digest)) = index.get_key_value(name)?;
    Some(Document { name, digest, gzip: &DATA[start + offset..start + offset + length] })
}
