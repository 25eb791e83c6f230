//! The files of a tree of bundles, read when they are needed: all of them at once may be more than
//! there is memory for.

use super::{BundleFile, unreadable};
use crate::diagnostic::Diagnostic;

/// The files of a tree, read when they are needed.
pub(super) struct TreeFiles<'t> {
    names: &'t [&'t str],
    read: &'t mut dyn FnMut(usize) -> Result<Vec<u8>, String>,
}

impl<'t> TreeFiles<'t> {
    /// The files of such names; `read` gives the content of the numbered one.
    pub(super) fn new(
        names: &'t [&'t str],
        read: &'t mut dyn FnMut(usize) -> Result<Vec<u8>, String>,
    ) -> Self {
        Self { names, read }
    }

    /// The files of such numbers that can be read; the others become defects.
    pub(super) fn load(
        &mut self,
        numbers: &[usize],
        defects: &mut Vec<Diagnostic>,
    ) -> Vec<BundleFile> {
        let mut files = Vec::new();
        for number in numbers {
            let path = self.names[*number];
            match (self.read)(*number) {
                Ok(bytes) => files.push(BundleFile { path: path.to_owned(), bytes }),
                Err(cause) => defects.push(unreadable(path, &cause)),
            }
        }
        files
    }

    pub(super) fn name(&self, number: usize) -> &str {
        self.names[number]
    }
}
