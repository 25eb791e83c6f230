//! Which payload store a command line names, and what is in it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use plimsoll_content::Payload;
use plimsoll_content::payload::TemplateContext;
use plimsoll_controller::SharedStore;
use plimsoll_source::store::{OciLayout, PayloadDirectory, PayloadStore};

/// Where a store is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// A directory of payload directories, or one of these.
    Directory(PathBuf),
    /// An OCI image layout.
    Oci(PathBuf),
}

/// Reads `DIR` or `oci:DIR`.
///
/// # Errors
///
/// When it names nothing.
pub(super) fn parse(text: &str) -> Result<Location, String> {
    match text.strip_prefix("oci:") {
        Some("") => Err("oci: needs the directory of an image layout".to_owned()),
        Some(path) => Ok(Location::Oci(path.into())),
        None => Ok(Location::Directory(text.into())),
    }
}

impl Location {
    /// The store there; it is read when it is asked.
    pub(super) fn open(&self) -> SharedStore {
        match self {
            Self::Directory(path) => Arc::new(PayloadDirectory::new(path)),
            Self::Oci(path) => Arc::new(OciLayout::new(path)),
        }
    }
}

/// Loads the newest release of a store.
pub(super) fn newest(
    store: &dyn PayloadStore,
    context: &TemplateContext,
) -> Result<Payload, anyhow::Error> {
    let listing = store.list()?;
    let version = |version: &str| semver::Version::parse(version).ok();
    let newest = listing.releases.iter().max_by_key(|head| version(&head.release.version));
    let Some(newest) = newest else {
        let defects = listing.defects.join("\n  ");
        anyhow::bail!("the payload store has no release that can be read\n  {defects}");
    };
    let files = store.fetch(&newest.image, &AtomicBool::new(false))?.files;
    let context = TemplateContext { release_image: newest.image.clone(), ..context.clone() };
    Ok(plimsoll_source::parse(&files, &context)?)
}
