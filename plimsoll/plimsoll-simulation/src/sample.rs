//! The sample release: a harbour of eight operators in two versions, part of the program.

use include_dir::{Dir, include_dir};
use plimsoll_content::payload::{Directory, SourceFile};

static PAYLOADS: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/../../examples/payloads");

/// Version 1.0.0.
pub fn v1() -> Vec<SourceFile> {
    files("v1.0.0")
}

/// Version 1.1.0: other images and versions everywhere, a component more, a label and a key less.
pub fn v2() -> Vec<SourceFile> {
    files("v1.1.0")
}

fn files(version: &str) -> Vec<SourceFile> {
    [Directory::Manifests, Directory::ReleaseManifests]
        .into_iter()
        .flat_map(|directory| {
            let path = format!("{version}/{}", directory.name());
            let found = PAYLOADS.get_dir(path).into_iter().flat_map(Dir::files);
            found.map(move |file| SourceFile {
                directory,
                name: file.path().file_name().unwrap_or_default().to_string_lossy().into_owned(),
                bytes: file.contents().into(),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests;
