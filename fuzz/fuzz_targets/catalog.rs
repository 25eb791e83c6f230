//! Whatever the bytes of a catalog, and in whatever pieces they come: reading them ends, the index
//! can be opened and every package in it read, and the pieces make no difference.
//!
//! The first byte is the size of the pieces.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_content::catalog::{CatalogLoader, IndexedCatalog};
use plimsoll_resolve::Catalog;

fuzz_target!(|bytes: &[u8]| {
    let Some((size, bytes)) = bytes.split_first() else { return };
    let mut whole = CatalogLoader::new();
    whole.read_file("c", bytes);
    let whole = whole.finish();
    let mut pieces = CatalogLoader::new();
    let mut file = pieces.file("c");
    bytes.chunks(usize::from(*size).max(1)).for_each(|piece| file.push(piece));
    file.finish();
    let pieces = pieces.finish();
    assert_eq!(pieces.defects.is_empty(), whole.defects.is_empty());
    let index = whole.open();
    let offer = IndexedCatalog::new(&index);
    for name in index.package_names() {
        let package = offer.package(name).expect("a package that is listed is there");
        for bundle in &package.bundles {
            assert!(offer.properties(name, &bundle.name).is_some());
        }
    }
    assert!(offer.failure().is_none());
});
