//! Whatever the bytes of a payload's files: it is loaded or refused, and linted.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_content::inclusion::{DEFAULT_PROFILE, decide};
use plimsoll_content::lint::lint;
use plimsoll_content::payload::{Directory, SourceFile, TemplateContext, parse};

const METADATA: &[u8] = br#"{"kind":"cincinnati-metadata-v0","version":"4.1.0"}"#;
const IMAGES: &[u8] =
    br#"{"kind":"ImageStream","apiVersion":"image.openshift.io/v1","metadata":{"name":"4.1.0"}}"#;

/// The first byte says which file the rest is; the others are in order.
fn files(data: &[u8]) -> Vec<SourceFile> {
    let (choice, data) = data.split_first().unwrap_or((&0, &[]));
    let mut files = vec![
        (Directory::ReleaseManifests, "release-metadata", METADATA),
        (Directory::ReleaseManifests, "image-references", IMAGES),
        (Directory::Manifests, "0000_00_a_b.yaml", b"".as_slice()),
        (Directory::ReleaseManifests, "0000_50_a_b.yaml", b"".as_slice()),
    ];
    let count = files.len();
    files[usize::from(*choice) % count].2 = data;
    let file = |(directory, name, bytes): (Directory, &str, &[u8])| SourceFile {
        directory,
        name: name.to_owned(),
        bytes: bytes.to_vec().into(),
    };
    files.into_iter().map(file).collect()
}

fuzz_target!(|data: &[u8]| {
    let files = files(data);
    let context = TemplateContext::default();
    if let Ok(payload) = parse(&files, &context) {
        let inclusion = payload.context(DEFAULT_PROFILE, "");
        for manifest in &payload.manifests {
            let _ = decide(manifest, &inclusion);
            assert!(manifest.object().is_object());
        }
    }
    let _ = lint(&files, &context);
});
