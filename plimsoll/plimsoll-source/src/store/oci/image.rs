//! Images of a layout by their references, for catalogs and bundles.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use serde::Deserialize;

use super::{Descriptor, ImageManifest, Index, OciLayout, REF_NAME, parse, read_document};
use crate::store::StoreError;
use crate::store::oci::layer::FileSelection;

/// Largest file of a catalog or a bundle: those of real catalogs have some 40 MB.
const FILE_SIZE_MAX: u64 = 256 << 20;
/// Most bytes of the files of a catalog or a bundle: the largest catalogs have some 200 MB.
const FILES_SIZE_MAX: u64 = 512 << 20;

/// An image of a layout.
#[derive(Debug)]
pub(crate) struct LayoutImage<'l> {
    layout: &'l OciLayout,
    /// Digest of its manifest.
    pub(crate) digest: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ImageConfig {
    /// The architecture that the image is for; empty if it does not say.
    pub(super) architecture: String,
    config: Option<ContainerConfig>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct ContainerConfig {
    labels: Option<BTreeMap<String, String>>,
}

impl OciLayout {
    /// The image that a tag, a digest or a pull specification means; the only one for an empty
    /// reference.
    ///
    /// # Errors
    /// [`StoreError::NoSuchImage`] when the layout has none that is meant, or several;
    /// [`StoreError::Io`] and [`StoreError::Content`] when the layout cannot be read.
    pub(crate) fn image(&self, reference: &str) -> Result<LayoutImage<'_>, StoreError> {
        let path = self.inside("index.json")?;
        let index: Index = parse(&path, &read_document(&path)?)?;
        let mut known: Vec<String> = index.manifests.iter().map(described).collect();
        let descriptor = if reference.is_empty() {
            let mut images = index.manifests.into_iter();
            images.next().filter(|_| images.next().is_none())
        } else {
            self.referenced(reference, index.manifests)
        };
        let Some(descriptor) = descriptor else {
            known.sort();
            return Err(StoreError::NoSuchImage { reference: reference.to_owned(), known });
        };
        Ok(LayoutImage { layout: self, digest: self.manifest(descriptor)?.digest })
    }

    fn referenced(&self, reference: &str, images: Vec<Descriptor>) -> Option<Descriptor> {
        let digest = match reference.rsplit_once('@') {
            Some((_, digest)) => Some(digest),
            None => reference.starts_with("sha256:").then_some(reference),
        };
        let is_meant = |image: &Descriptor| match digest {
            Some(digest) => image.digest == digest,
            None => image.annotations.get(REF_NAME).is_some_and(|name| {
                let tag = || name.rsplit_once('/').map_or(name.as_str(), |(_, last)| last);
                name == reference || tag().rsplit_once(':').is_some_and(|(_, tag)| tag == reference)
            }),
        };
        let listed = images.into_iter().find(|image| is_meant(image));
        listed.or_else(|| {
            // One of several architectures is in the layout without being listed.
            let digest = digest?;
            let is_there = self.blob(digest).is_ok_and(|path| path.is_file());
            is_there.then(|| Descriptor {
                media_type: String::new(),
                digest: digest.to_owned(),
                annotations: BTreeMap::new(),
                platform: None,
            })
        })
    }

    /// The configuration of an image; an empty one if it has none.
    pub(super) fn config(&self, manifest: &ImageManifest) -> Result<ImageConfig, StoreError> {
        let Some(config) = &manifest.config else { return Ok(ImageConfig::default()) };
        parse(&self.blob(&config.digest)?, &self.document(&config.digest)?)
    }
}

impl LayoutImage<'_> {
    /// The value of a label; absent if the image has no such label.
    ///
    /// # Errors
    /// [`StoreError::Io`] and [`StoreError::Content`] when the image cannot be read.
    pub(crate) fn label(&self, name: &str) -> Result<Option<String>, StoreError> {
        let config = self.layout.config(&self.layout.image_manifest(&self.digest)?)?;
        let labels = config.config.and_then(|config| config.labels);
        Ok(labels.and_then(|mut labels| labels.remove(name)))
    }

    /// The files below directories of the image, by their paths in it; `noun` is what they are
    /// together, for errors.
    ///
    /// # Errors
    /// [`StoreError::Io`] and [`StoreError::Content`] when the image cannot be read, or has links
    /// or too many bytes there.
    pub(crate) fn files(
        &self,
        directories: &[&str],
        noun: &'static str,
    ) -> Result<BTreeMap<String, Vec<u8>>, StoreError> {
        let directories = directories.iter().map(|it| it.trim_matches('/').to_owned()).collect();
        let selection = FileSelection {
            directories,
            is_deep: true,
            file_size_max: FILE_SIZE_MAX,
            size_max: FILES_SIZE_MAX,
            noun,
        };
        let manifest: ImageManifest = self.layout.image_manifest(&self.digest)?;
        self.layout.selected(&manifest, selection, &AtomicBool::new(false))
    }

    /// The layout's directory, for errors.
    pub(crate) fn path(&self) -> &Path {
        &self.layout.path
    }
}

/// An image as a person would refer to it.
fn described(image: &Descriptor) -> String {
    image.annotations.get(REF_NAME).unwrap_or(&image.digest).clone()
}
