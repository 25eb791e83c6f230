//! Whatever the files of a bundle directory: they become documents or defects, and the documents a
//! catalog.
//!
//! The input is files separated by lines of `===` and a path.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_content::bundle::{BundleFile, convert, is_bundles};

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let files: Vec<BundleFile> = text
        .split("===")
        .filter_map(|part| part.split_once('\n'))
        .map(|(path, text)| BundleFile {
            path: path.trim().to_owned(),
            bytes: text.as_bytes().to_vec(),
        })
        .collect();
    let _ = is_bundles(files.iter().map(|file| file.path.as_str()));
    let _ = convert(&files).all_defects();
});
