//! The content of bundles: the image that it lies in, and its digest.

use anyhow::Context as _;
use plimsoll_api::olm::{BundleReference, CatalogSourceType};
use plimsoll_operators::lock::LockedContent;
use plimsoll_source::catalog::{ContentError, bundle_content};

use super::LoadoutState;

impl LoadoutState {
    /// Returns where the content of a bundle lies, with its digest: that of the image, or of what the catalog has,
    /// or else that the cluster reports of what it has installed. The digest is empty if none is known, as of an
    /// image with a tag alone.
    ///
    /// # Errors
    ///
    /// When a catalog has the content, and it cannot be read.
    pub(crate) fn content(
        &self,
        package: &str,
        reference: &BundleReference,
    ) -> Result<LockedContent, anyhow::Error> {
        let (bundle, catalog) = (reference.name.as_str(), reference.catalog.as_str());
        let image = self.image_of(package, bundle, catalog).unwrap_or_default();
        let digest = match image.rsplit_once('@') {
            Some((_, digest)) => digest.to_owned(),
            None => self.content_digest(package, reference, &image)?,
        };
        Ok(LockedContent { image, digest })
    }

    /// Returns the digest of the content of a bundle that no image has a digest of.
    fn content_digest(
        &self,
        package: &str,
        reference: &BundleReference,
        image: &str,
    ) -> Result<String, anyhow::Error> {
        let (bundle, catalog) = (reference.name.as_str(), reference.catalog.as_str());
        let Some(opened) = self.catalogs.opened.iter().find(|it| it.name == catalog) else {
            let kept = self.snapshot.catalogs.iter().find(|it| it.part.name.name == catalog);
            let digest = kept.and_then(|it| it.digests.get(bundle));
            return Ok(digest.unwrap_or(&reference.digest).clone());
        };
        // A layout of images has the content of its bundles, too.
        if !image.is_empty() && opened.source.type_ == CatalogSourceType::Directory {
            return Ok(String::new());
        }
        match bundle_content(&opened.source, package, bundle) {
            Ok(content) => Ok(content.digest),
            // It may be installed from what the catalog had before.
            Err(ContentError::NoBundle { .. }) => Ok(reference.digest.clone()),
            Err(ContentError::NoContent { .. } | ContentError::OnlyImage { .. }) => {
                Ok(String::new())
            }
            Err(error) => Err(error).with_context(|| {
                format!("failed to read the content of bundle `{bundle}` of catalog `{catalog}`")
            }),
        }
    }
}
