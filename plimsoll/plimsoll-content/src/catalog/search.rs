//! One bundle of a file-based catalog, without keeping anything else in memory.

use super::load::{CatalogLoader, FileLoader};
use super::wanted::{CatalogBundle, WantedBundle};

/// Looks for a bundle in the files of a catalog.
#[derive(Debug)]
pub struct BundleSearch {
    loader: CatalogLoader,
}

impl BundleSearch {
    /// A search for a bundle by its package and name.
    pub fn new(package: &str, name: &str) -> Self {
        Self { loader: CatalogLoader::searching(WantedBundle::new(package, name)) }
    }

    /// Begins a file, which is passed on in pieces.
    pub fn file(&mut self, name: &str) -> FileLoader<'_> {
        self.loader.file(name)
    }

    /// Whether the bundle was found, so that no other file needs to be read.
    pub fn is_found(&self) -> bool {
        self.loader.wanted().is_some_and(WantedBundle::is_found)
    }

    /// The bundle; absent if no file has it.
    ///
    /// # Errors
    /// When its document cannot be read: why.
    pub fn finish(self) -> Result<Option<CatalogBundle>, String> {
        self.loader.into_wanted().and_then(WantedBundle::into_found).transpose()
    }
}
