//! Whatever the files of a bundle directory: they become documents or defects, and the documents a
//! catalog; and the files of each bundle can be looked for.
//!
//! The input is files separated by lines of `===` and a path.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_content::bundle::{BundleFile, carried_files, convert, find, is_bundles};
use plimsoll_content::catalog::BundleSearch;

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
    let converted = convert(&files);
    let _ = converted.all_defects();
    let names: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
    let written: String = converted.documents.iter().map(|it| format!("{}\n", it.value)).collect();
    for document in converted.documents.iter().filter(|it| it.value["schema"] == "olm.bundle") {
        let text = |field: &str| document.value[field].as_str().unwrap_or_default();
        let (package, name) = (text("package"), text("name"));
        let _ = find(&names, package, name, &mut |number| Ok(files[number].bytes.clone()));
        let mut search = BundleSearch::new(package, name);
        let mut file = search.file("catalog.json");
        file.push(written.as_bytes());
        file.finish();
        if let Ok(Some(found)) = search.finish() {
            let _ = carried_files(package, &found);
        }
    }
});
