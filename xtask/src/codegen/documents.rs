//! The OpenAPI documents with all their prose: `cargo xtask codegen documents --from DIR`.
//!
//! DIR holds what a real server published: `v2.json`, as `kubectl get --raw /openapi/v2` prints it,
//! and in `v3/` a file for each path of `/openapi/v3`, with `__` for the slashes of the path. What
//! comes out is `kubernetes/k8s-schema/data/documents.bin`: a length (4 bytes, little endian), that
//! many bytes of a compressed JSON index (name, offset, length and digest of each document), then
//! the documents, each a gzip file, so that they can be sent as they are.
use std::fs;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha512};

const OUTPUT: &str = "kubernetes/k8s-schema/data/documents.bin";

/// Writes the documents.
pub(super) fn write(directory: &Path) -> Result<()> {
    let mut names = vec![("v2".to_owned(), directory.join("v2.json"))];
    for entry in fs::read_dir(directory.join("v3"))? {
        let path = entry?.path();
        let file = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let Some(name) = file.strip_suffix(".json") else {
            continue;
        };
        names.push((format!("v3/{}", name.replace("__", "/")), path));
    }
    names.sort();
    let (mut index, mut body) = (Map::new(), Vec::new());
    for (name, path) in names {
        // Not a byte is changed: the digest is what a real server tells of the document.
        let document =
            fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(&document)?;
        let packed = encoder.finish()?;
        index.insert(name, json!([body.len(), packed.len(), digest(&document)]));
        body.extend(packed);
    }
    let index = super::pack(&Value::Object(index))?;
    let mut out = u32::try_from(index.len())?.to_le_bytes().to_vec();
    out.extend(index);
    out.extend(body);
    let target = crate::workspace_root()?.join(OUTPUT);
    fs::write(&target, &out).with_context(|| format!("cannot write {}", target.display()))
}

/// What a server tells one document from another by: SHA-512, in hexadecimal.
fn digest(document: &[u8]) -> String {
    let digest = Sha512::digest(document);
    digest.iter().map(|byte| format!("{byte:02X}")).collect()
}
