//! Whatever the layers of an image on disk hold: its files are read or refused, in bounded memory, and
//! nothing outside the payload's directories is among them. The image is read as a catalog, too.
//!
//! The first byte of the input says how many layers there are (up to three) and whether they are
//! compressed; the rest is divided evenly among them.
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
    let media_type = if how & 0x80 == 0 { "layer.v1.tar" } else { "layer.v1.tar+gzip" };
    let chunks = bytes.chunks(bytes.len().div_ceil(count).max(1));
    let layers: Vec<Value> = chunks.map(|chunk| blob(path, chunk, media_type)).collect();
    let manifest = json!({ "schemaVersion": 2, "layers": layers });
    let mut image = blob(path, manifest.to_string().as_bytes(), "manifest.v1+json");
    image["annotations"] = json!({ "org.opencontainers.image.ref.name": "example.com/release:1" });
    let digest = image["digest"].as_str().unwrap_or_default().to_owned();
    let index = json!({ "schemaVersion": 2, "manifests": [image] });
    fs::write(path.join("index.json"), index.to_string())
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
