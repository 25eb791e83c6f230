//! Whatever the bytes of an index: they are refused, or what can be asked has an answer.
//!
//! Checksums would stop nearly every input at the door, so the input is what is changed in an
//! index that is right: places and bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_content::catalog::{CatalogIndex, CatalogLoader};

const CATALOG: &str = r#"{"schema":"olm.package","name":"a","defaultChannel":"s"}
{"schema":"olm.channel","package":"a","name":"s","entries":[{"name":"a.v1"}]}
{"schema":"olm.bundle","package":"a","name":"a.v1","image":"i","properties":[{"type":"olm.package","value":{"packageName":"a","version":"1.0.0"}}]}
"#;

fuzz_target!(|bytes: &[u8]| {
    let mut loader = CatalogLoader::new();
    loader.read_file("c", CATALOG.as_bytes());
    let mut index = loader.finish().index;
    for change in bytes.chunks_exact(3) {
        let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % index.len();
        index[at] = change[2];
    }
    for bytes in [index, bytes.to_vec()] {
        let Ok(index) = CatalogIndex::open(bytes) else { continue };
        for name in index.package_names() {
            if let Ok(Some(block)) = index.package(name) {
                let _ = block.read();
            }
        }
        let _ = index.defects();
        let _ = index.providers("g", "v", "k");
    }
});
