//! Whatever an image on disk holds, in its layers, its manifest or its index: its files are read or refused, in bounded memory, and
//! nothing outside the payload's directories is among them. The image is read as a catalog, too.
//!
//! The first byte of the input says how many parts there are (up to three), how layers are
//! compressed, and whether the first part is the manifest or the index; the rest of the input is
//! divided evenly among the parts. All other parts are layers.
#![no_main]

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use libfuzzer_sys::fuzz_target;
use plimsoll_api::olm::{CatalogSource, CatalogSourceType};
use plimsoll_source::catalog::{bundle_content, open_source};
use plimsoll_source::store::{OciLayout, PayloadStore as _};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

fn blob(layout: &Path, bytes: &[u8], media_type: &str) -> Value {
    let digest: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    let blobs = layout.join("blobs/sha256");
    fs::create_dir_all(&blobs).expect("a temporary directory can be written");
    fs::write(blobs.join(&digest), bytes).expect("a temporary directory can be written");
    json!({
        "mediaType": format!("application/vnd.oci.image.{media_type}"),
        "digest": format!("sha256:{digest}"),
        "size": bytes.len(),
    })
}

fuzz_target!(|bytes: &[u8]| {
    let Some((how, bytes)) = bytes.split_first() else { return };
    let directory = tempfile::tempdir().expect("there is a temporary directory");
    let path = directory.path();
    let count = usize::from(how % 3) + 1;
    let media_type = match how >> 6 {
        0 | 1 => "layer.v1.tar",
        2 => "layer.v1.tar+gzip",
        _ => "layer.v1.tar+zstd",
    };
    let mut chunks = bytes.chunks(bytes.len().div_ceil(count).max(1));
    let (given_manifest, given_index) = match how >> 4 & 0b11 {
        0b10 => (chunks.next(), None),
        0b11 => (None, chunks.next()),
        _ => (None, None),
    };
    let layers: Vec<Value> = chunks.map(|chunk| blob(path, chunk, media_type)).collect();
    let manifest = json!({ "schemaVersion": 2, "layers": layers }).to_string();
    let manifest = given_manifest.unwrap_or(manifest.as_bytes());
    let mut image = blob(path, manifest, "manifest.v1+json");
    image["annotations"] = json!({ "org.opencontainers.image.ref.name": "example.com/release:1" });
    let digest = image["digest"].as_str().unwrap_or_default().to_owned();
    let index = json!({ "schemaVersion": 2, "manifests": [image] }).to_string();
    fs::write(path.join("index.json"), given_index.unwrap_or(index.as_bytes()))
        .expect("a temporary directory can be written");
    let source = CatalogSource {
        type_: CatalogSourceType::ImageLayout,
        path: path.to_string_lossy().into_owned(),
        reference: String::new(),
    };
    let _ = open_source(&source, None);
    let _ = bundle_content(&source, "a", "a.v1");
    let store = OciLayout::new(path);
    let cancelled = AtomicBool::new(false);
    let _ = store.list();
    if let Ok(fetched) = store.fetch(&format!("example.com/release@{digest}"), &cancelled) {
        for file in &fetched.files {
            assert!(!file.name.contains('/') && file.name != "..", "{}", file.name);
        }
    }
});
