//! Payloads in memory: for demonstrations, rehearsals and tests.

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use plimsoll_content::payload::{ReleaseHeader, SourceFile};

use super::{
    Fetched, Listing, PayloadStore, Signature, StoreError, head_of, names, no_such_release,
    unless_cancelled,
};

/// A set of payloads, which may grow.
#[derive(Debug, Default)]
pub struct PayloadSet {
    payloads: Mutex<Vec<(ReleaseHeader, Fetched)>>,
}

impl PayloadSet {
    /// An empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a payload, named by its digest, or by `image` if there is one. One of that name is
    /// replaced.
    ///
    /// # Errors
    /// When the files do not say which release they are.
    pub fn add(
        &self,
        files: Vec<SourceFile>,
        image: Option<&str>,
        signature: Signature,
    ) -> Result<ReleaseHeader, String> {
        let head = head_of(&files, image)?;
        let mut payloads = self.payloads.lock().expect("no thread panics while it holds the lock");
        payloads.retain(|(known, _)| known.image != head.image);
        payloads.push((head.clone(), Fetched { files, signature }));
        Ok(head)
    }
}

impl PayloadStore for PayloadSet {
    fn list(&self) -> Result<Listing, StoreError> {
        let payloads = self.payloads.lock().expect("no thread panics while it holds the lock");
        let releases = payloads.iter().map(|(head, _)| head.clone()).collect();
        Ok(Listing { releases, defects: Vec::new() })
    }

    fn fetch(&self, image: &str, cancelled: &AtomicBool) -> Result<Fetched, StoreError> {
        unless_cancelled(cancelled)?;
        let payloads = self.payloads.lock().expect("no thread panics while it holds the lock");
        let found = payloads.iter().find(|(head, _)| names(image, head));
        found
            .map(|(_, fetched)| fetched.clone())
            .ok_or_else(|| no_such_release(image, payloads.iter().map(|(head, _)| head)))
    }

    fn is_at_hand(&self) -> bool {
        true
    }
}
