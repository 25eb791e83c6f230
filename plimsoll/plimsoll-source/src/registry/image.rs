//! Images between a repository and a layout on disk, with all that belongs to them.
//!
//! A manifest is written after what it points to, here and there: whoever finds it finds all of it.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;

use bytes::Bytes;
use serde::Deserialize;

use super::endpoint::Endpoint;
use super::error::RegistryError;
use crate::store::oci::write::BlobDescriptor;
use crate::store::oci::{OciLayout, is_index_type, own_manifest};
use crate::store::{StoreError, unless_cancelled};

/// Most bytes of the blobs of one manifest.
const IMAGE_SIZE_MAX: u64 = 16 << 30;
/// How deep indexes may lie in indexes, as where layouts are read.
const DEPTH_MAX: usize = 4;

/// Which images of an index of several architectures are copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Platforms {
    /// The one for this machine, which is the one that is read.
    Own,
    /// All of them, so that the index can be pushed elsewhere.
    All,
}

/// What a manifest or an index points to.
struct Document {
    descriptor: BlobDescriptor,
    /// Configuration and layers; none for an index.
    blobs: Vec<BlobDescriptor>,
    /// Digests of further manifests.
    manifests: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Raw {
    #[serde(default)]
    media_type: String,
    config: Option<RawDescriptor>,
    layers: Option<Vec<RawDescriptor>>,
    manifests: Option<Vec<RawDescriptor>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawDescriptor {
    #[serde(default)]
    media_type: String,
    digest: String,
    size: u64,
}

impl Document {
    fn parse(bytes: &[u8], platforms: Platforms) -> Result<Self, String> {
        let raw: Raw = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        let descriptor = |it: RawDescriptor| BlobDescriptor {
            media_type: it.media_type,
            digest: it.digest,
            size: it.size,
        };
        let is_index = raw.manifests.is_some();
        let media_type = match (raw.media_type.as_str(), is_index) {
            ("", true) => "application/vnd.oci.image.index.v1+json".to_owned(),
            ("", false) => "application/vnd.oci.image.manifest.v1+json".to_owned(),
            (given, _) if is_index_type(given) != is_index => {
                return Err(format!("it is not of its media type {given:?}"));
            }
            (given, _) => given.to_owned(),
        };
        let own = BlobDescriptor {
            media_type,
            digest: crate::store::oci::write::digest_of(bytes),
            size: bytes.len() as u64,
        };
        if let Some(manifests) = raw.manifests {
            let manifests = match platforms {
                Platforms::All => manifests.into_iter().map(|it| it.digest).collect(),
                Platforms::Own => vec![own_manifest(bytes)?],
            };
            return Ok(Self { descriptor: own, blobs: Vec::new(), manifests });
        }
        let layers = raw.layers.ok_or("its manifest has no layers; schema 1 is not supported")?;
        let blobs: Vec<_> = raw.config.into_iter().chain(layers).map(descriptor).collect();
        let size = blobs.iter().try_fold(0_u64, |sum, it| sum.checked_add(it.size));
        if size.is_none_or(|size| size > IMAGE_SIZE_MAX) {
            return Err(format!("it has more than {} GiB", IMAGE_SIZE_MAX >> 30));
        }
        Ok(Self { descriptor: own, blobs, manifests: Vec::new() })
    }
}

/// The image of a digest, if the layout has all of it.
pub(super) fn present(
    layout: &OciLayout,
    digest: &str,
    platforms: Platforms,
) -> Result<Option<BlobDescriptor>, StoreError> {
    let mut digests = vec![digest.to_owned()];
    let mut root = None;
    let mut seen = BTreeSet::new();
    while let Some(digest) = digests.pop() {
        if !seen.insert(digest.clone()) {
            continue;
        }
        let Ok(bytes) = layout.small_blob(&digest) else { return Ok(None) };
        let Ok(document) = Document::parse(&bytes, platforms) else { return Ok(None) };
        for blob in &document.blobs {
            if !layout.has_blob(blob)? {
                return Ok(None);
            }
            layout.mark_used(&blob.digest);
        }
        layout.mark_used(&digest);
        digests.extend(document.manifests);
        root.get_or_insert(document.descriptor);
    }
    Ok(root)
}

/// Copies an image to a layout, without listing it there. `image` is a tag or a digest.
pub(super) async fn pull(
    endpoint: &Endpoint,
    image: &str,
    layout: &OciLayout,
    platforms: Platforms,
    cancelled: &AtomicBool,
) -> Result<BlobDescriptor, RegistryError> {
    // Manifests of manifests, each before those that it points to; written in reverse.
    let mut open: Vec<(String, usize)> = vec![(image.to_owned(), 0)];
    let mut documents: Vec<(Bytes, BlobDescriptor)> = Vec::new();
    let mut seen = BTreeSet::new();
    while let Some((image, depth)) = open.pop() {
        if !seen.insert(image.clone()) {
            continue;
        }
        unless_cancelled(cancelled)?;
        if depth > DEPTH_MAX {
            return Err(endpoint.content(&image, "indexes lie too deep in each other"));
        }
        let bytes = endpoint.manifest(&image).await?;
        let document = Document::parse(&bytes, platforms)
            .map_err(|problem| endpoint.content(&image, &problem))?;
        if image.contains(':') && image != document.descriptor.digest {
            return Err(endpoint.content(&image, "its manifest does not match its digest"));
        }
        for blob in &document.blobs {
            pull_blob(endpoint, blob, layout, cancelled).await?;
        }
        open.extend(document.manifests.into_iter().map(|digest| (digest, depth + 1)));
        documents.push((bytes, document.descriptor));
    }
    for (bytes, descriptor) in documents.iter().rev() {
        layout.add_blob(bytes, &descriptor.media_type)?;
    }
    let root = documents.into_iter().next().map(|(_, descriptor)| descriptor);
    root.ok_or_else(|| endpoint.content(image, "it has no manifest"))
}

async fn pull_blob(
    endpoint: &Endpoint,
    blob: &BlobDescriptor,
    layout: &OciLayout,
    cancelled: &AtomicBool,
) -> Result<(), RegistryError> {
    unless_cancelled(cancelled)?;
    if layout.has_blob(blob)? {
        layout.mark_used(&blob.digest);
        return Ok(());
    }
    let mut file = layout.begin_blob()?;
    endpoint.blob(blob, &mut file, cancelled).await?;
    layout.finish_blob(file)?;
    Ok(())
}

/// Copies an image from a layout, under a tag if there is one.
pub(super) async fn push(
    endpoint: &Endpoint,
    layout: &OciLayout,
    image: &BlobDescriptor,
    tag: Option<&str>,
) -> Result<(), RegistryError> {
    let mut digests = vec![image.digest.clone()];
    let mut documents = Vec::new();
    let mut seen = BTreeSet::new();
    while let Some(digest) = digests.pop() {
        if !seen.insert(digest.clone()) {
            continue;
        }
        let bytes = Bytes::from(layout.small_blob(&digest)?);
        let document = Document::parse(&bytes, Platforms::All)
            .map_err(|problem| endpoint.content(&digest, &problem))?;
        for blob in &document.blobs {
            if !endpoint.has_blob(&blob.digest).await? {
                endpoint.push_blob(&blob.digest, || layout.open_blob(&blob.digest)).await?;
            }
        }
        digests.extend(document.manifests);
        documents.push((bytes, document.descriptor));
    }
    for (bytes, descriptor) in documents.iter().rev() {
        let name = tag.filter(|_| descriptor.digest == image.digest);
        let name = name.unwrap_or(&descriptor.digest);
        endpoint.push_manifest(name, bytes, &descriptor.media_type).await?;
    }
    Ok(())
}
