//! Stores of payloads: what there is, and one of them.
//!
//! A store is asked from a thread that may wait. [`PayloadDirectory`] is a directory of payload
//! directories, [`OciLayout`] an OCI image layout on disk, [`PayloadSet`] lies in memory, and
//! [`RegistryStore`](crate::registry::RegistryStore) is a repository of a registry. Signatures are to
//! come behind the same trait.

mod directory;
mod memory;
pub(crate) mod oci;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_content::payload::{PayloadHeader, ReleaseHeader, SourceFile, TemplateContext};

use crate::directory::ReadErrors;

pub use directory::PayloadDirectory;
pub use memory::PayloadSet;
pub use oci::OciLayout;

/// A place that payloads are listed in and fetched from.
pub trait PayloadStore: Send + Sync {
    /// Lists the releases that are there, in no particular order.
    ///
    /// # Errors
    /// [`StoreError::Io`] or [`StoreError::Content`] when the store itself cannot be read. A release
    /// that cannot be read is a defect of the listing instead.
    fn list(&self) -> Result<Listing, StoreError>;

    /// Fetches the files of the release that a pull specification names, to the letter or by its
    /// digest. What was asked for is given up once `cancelled` is set.
    ///
    /// # Errors
    /// [`StoreError::NoSuchRelease`]; [`StoreError::Io`], [`StoreError::Files`] or
    /// [`StoreError::Content`] when the release cannot be read or does not match its digest;
    /// [`StoreError::Cancelled`] once `cancelled` is set.
    fn fetch(&self, image: &str, cancelled: &AtomicBool) -> Result<Fetched, StoreError>;

    /// Whether nothing is to be waited for: then no thread is needed to ask it, and who asks in
    /// simulated time gets its answers at moments that are always the same.
    fn is_at_hand(&self) -> bool {
        false
    }
}

/// The releases of a store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// Its releases.
    pub releases: Vec<ReleaseHeader>,
    /// Releases that cannot be read, each as a sentence that names the file and the reason.
    pub defects: Vec<String>,
}

/// The files of a release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// Its files, in no particular order.
    pub files: Vec<SourceFile>,
    /// The result of verifying its signature.
    pub signature: Signature,
}

/// The result of verifying the signature of a release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Signature {
    /// Nothing is signed in this store; whoever writes to it is trusted.
    NotSigned,
    /// A signature by a trusted key covers the release.
    Verified,
    /// The signature is missing or does not verify: the reason.
    Failed(String),
}

/// Why a store or a release of it cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file or directory of the store cannot be read.
    #[error("cannot read {path}: {source}", path = path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: std::io::Error,
    },
    /// There is no such release.
    #[error("the store has no release {image:?}; it has {}", listed(known))]
    NoSuchRelease {
        /// The pull specification that was requested.
        image: String,
        /// The versions that the store has; empty when it has none.
        known: Vec<String>,
    },
    /// There is no such image, or it is not clear which one is meant.
    #[error("{}; it has {}", wanted_image(reference), listed(known))]
    NoSuchImage {
        /// The tag, digest or pull specification that was requested; empty for the only image.
        reference: String,
        /// The names of the images that the layout has, or their digests.
        known: Vec<String>,
    },
    /// Files of a payload cannot be read.
    #[error("{0}")]
    Files(ReadErrors),
    /// Content is not what it should be.
    #[error("{path}: {problem}", path = path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong with its content, in a clause.
        problem: String,
    },
    /// The registry that the store is in does not answer as it should.
    #[error(transparent)]
    Registry(Box<dyn std::error::Error + Send + Sync>),
    /// The caller set its flag while the release was fetched.
    #[error("cancelled")]
    Cancelled,
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

fn wanted_image(reference: &str) -> String {
    if reference.is_empty() {
        return "the layout has not one image: name the one that is meant".to_owned();
    }
    format!("the layout has no image {reference:?}")
}

/// Whether a pull specification means a release: to the letter, or by its digest.
pub fn names(image: &str, head: &ReleaseHeader) -> bool {
    let digest = |image: &str| image.rsplit_once('@').map(|(_, digest)| digest.to_owned());
    image == head.image || digest(image).is_some_and(|it| Some(it) == digest(&head.image))
}

pub(crate) fn no_such_release<'a>(
    image: &str,
    heads: impl Iterator<Item = &'a ReleaseHeader>,
) -> StoreError {
    let mut known: Vec<String> = heads.map(|head| head.release.version.clone()).collect();
    known.sort();
    StoreError::NoSuchRelease { image: image.to_owned(), known }
}

/// What files say about their release; images are left out, since lists are kept.
pub(crate) fn head_of(files: &[SourceFile], image: Option<&str>) -> Result<ReleaseHeader, String> {
    let head = PayloadHeader::read(files, &TemplateContext::default());
    let problems: Vec<String> = head.problems().iter().map(ToString::to_string).collect();
    if !problems.is_empty() {
        return Err(problems.join("; "));
    }
    let image = image.unwrap_or(&head.values.release_image).to_owned();
    let mut release = head.release;
    release.images.clear();
    Ok(ReleaseHeader { image, release })
}

pub(crate) fn unless_cancelled(cancelled: &AtomicBool) -> Result<(), StoreError> {
    if cancelled.load(Ordering::Relaxed) { Err(StoreError::Cancelled) } else { Ok(()) }
}

#[cfg(test)]
pub(crate) mod tests;
