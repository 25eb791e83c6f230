//! Samples that the program has without any files: the sample release, a harbour of eight operators in two
//! versions, and the example catalog.

mod files;

use plimsoll_content::payload::{Directory, SourceFile};

/// Version 1.0.0.
pub fn v1() -> Vec<SourceFile> {
    files("v1.0.0")
}

/// Version 1.1.0: other images and versions everywhere, a component more, a label and a key less.
pub fn v2() -> Vec<SourceFile> {
    files("v1.1.0")
}

/// The files of the example catalog: their paths in it, and what they contain.
pub fn catalog() -> &'static [(&'static str, &'static [u8])] {
    files::CATALOG
}

fn files(version: &str) -> Vec<SourceFile> {
    let directories = [Directory::Manifests, Directory::ReleaseManifests];
    let files = directories.into_iter().flat_map(|directory| {
        let prefix = format!("{version}/{}/", directory.name());
        files::FILES.iter().filter_map(move |(path, bytes)| {
            let name = path.strip_prefix(&prefix)?.to_owned();
            Some(SourceFile { directory, name, bytes: (*bytes).into() })
        })
    });
    files.collect()
}

#[cfg(test)]
mod tests;
