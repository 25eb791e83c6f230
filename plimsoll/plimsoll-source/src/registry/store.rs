//! A repository of a registry as a store of releases.
//!
//! Images are kept in an image layout, by their digests: what was pulled once is not asked for again,
//! and is compared with its digest each time it is read. Images that were not used for long go when the
//! cache gets too large.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, SystemTime};

use plimsoll_content::payload::{ReleaseHeader, SourceFile};

use super::error::RegistryError;
use super::image::Platforms;
use super::reference::ImageReference;
use super::{Connections, Registry, temporary_directory, wait};
use crate::store::oci::OciLayout;
use crate::store::oci::write::BlobDescriptor;
use crate::store::{
    Fetched, Listing, PayloadStore, Signature, StoreError, head_of, no_such_release,
};

/// How long what was listed counts: controllers ask every few seconds, and registries count requests.
const LISTING_AGE_MAX: Duration = Duration::from_secs(60);
/// Most tags of a repository that is listed: each may be an image to pull.
const TAGS_MAX: usize = 200;
/// Most bytes of images that are kept: some tens of OpenShift's releases, or thousands of small ones.
const CACHE_SIZE_MAX: u64 = 8 << 30;
/// What follows the digest in the tags of signatures and their like.
const ATTACHMENTS: [&str; 3] = [".sig", ".att", ".sbom"];

/// The releases in a repository, or the one of a tag or a digest.
#[derive(Debug)]
pub struct RegistryStore {
    registry: Registry,
    reference: ImageReference,
    /// Directory of the images that were pulled; absent for a temporary one.
    cache: Option<PathBuf>,
    temporary: Mutex<Option<tempfile::TempDir>>,
    /// The last listing and when it was made.
    listed: Mutex<Option<(Instant, Listing)>>,
    /// Headers by the digests of images, which never change.
    heads: Mutex<BTreeMap<String, ReleaseHeader>>,
}

impl RegistryStore {
    /// The store; nothing is asked yet. Images are kept in the directory `cache`, which is made an
    /// image layout; without it, in a temporary directory until the store is dropped.
    pub fn new(registry: Registry, reference: ImageReference, cache: Option<&Path>) -> Self {
        Self {
            registry,
            reference,
            cache: cache.map(Path::to_owned),
            temporary: Mutex::default(),
            listed: Mutex::default(),
            heads: Mutex::default(),
        }
    }

    fn layout(&self) -> Result<OciLayout, RegistryError> {
        let path = match &self.cache {
            Some(path) => path.clone(),
            None => {
                let mut temporary =
                    self.temporary.lock().expect("no thread panics while it holds the lock");
                let directory = match temporary.take() {
                    Some(directory) => directory,
                    None => temporary_directory()?,
                };
                temporary.insert(directory).path().to_owned()
            }
        };
        let layout = OciLayout::new(path);
        layout.create()?;
        Ok(layout)
    }

    /// Pulls images: for each, what of it is in the layout now, or why it is not.
    fn pull(
        &self,
        layout: &OciLayout,
        images: &[ImageReference],
        cancelled: &AtomicBool,
    ) -> Result<Vec<Result<BlobDescriptor, RegistryError>>, RegistryError> {
        wait(async || {
            let mut connections = Connections::default();
            let mut pulled = Vec::new();
            for image in images {
                layout.prune(CACHE_SIZE_MAX, SystemTime::now())?;
                let own = Platforms::Own;
                let image =
                    self.registry.pull(&mut connections, image, layout, own, cancelled).await;
                pulled.push(image);
            }
            Ok(pulled)
        })
    }

    /// The images of the store, without signatures and their like.
    fn images(&self) -> Result<Vec<ImageReference>, RegistryError> {
        let mut images = wait(|| self.registry.images_of(&self.reference))?;
        images.retain(|it| {
            it.tag().is_none_or(|tag| !ATTACHMENTS.iter().any(|suffix| tag.ends_with(suffix)))
        });
        if images.len() > TAGS_MAX {
            let problem = format!(
                "the repository has {} tags, and a store at most {TAGS_MAX}: name a release by its \
                 tag or digest, or mirror those that are wanted to a repository of their own",
                images.len()
            );
            return Err(RegistryError::Content { reference: self.reference.to_string(), problem });
        }
        Ok(images)
    }

    fn list_now(&self) -> Result<Listing, RegistryError> {
        let layout = self.layout()?;
        let images = self.images()?;
        let never = AtomicBool::new(false);
        let mut listing = Listing::default();
        let pulled = self.pull(&layout, &images, &never)?;
        for (image, pulled) in images.iter().zip(pulled) {
            let head = match pulled {
                Ok(pulled) => self.head(&layout, &pulled),
                // What is said of one image of several is a defect; of the only one, the answer.
                Err(error) if images.len() == 1 => return Err(error),
                Err(error) => Err(error.to_string()),
            };
            match head {
                Ok(head) if listing.releases.contains(&head) => {}
                Ok(head) => listing.releases.push(head),
                Err(problem) => listing.defects.push(format!("{image}: {problem}")),
            }
        }
        Ok(listing)
    }

    fn head(&self, layout: &OciLayout, image: &BlobDescriptor) -> Result<ReleaseHeader, String> {
        let mut heads = self.heads.lock().expect("no thread panics while it holds the lock");
        if let Some(head) = heads.get(&image.digest) {
            return Ok(head.clone());
        }
        let files = layout
            .release(&image.digest, &image.media_type, &AtomicBool::new(false))
            .map_err(|error| error.to_string())?;
        let pullspec = self.reference.with_digest(&image.digest).to_string();
        let head = head_of(&files, Some(&pullspec))?;
        heads.insert(image.digest.clone(), head.clone());
        Ok(head)
    }

    fn files(
        &self,
        image: &ImageReference,
        cancelled: &AtomicBool,
    ) -> Result<Vec<SourceFile>, StoreError> {
        let layout = self.layout()?;
        let pulled = self.pull(&layout, std::slice::from_ref(image), cancelled)?;
        let pulled = pulled.into_iter().next().expect("one image was asked for")?;
        layout.release(&pulled.digest, &pulled.media_type, cancelled)
    }
}

impl PayloadStore for RegistryStore {
    fn list(&self) -> Result<Listing, StoreError> {
        let mut listed = self.listed.lock().expect("no thread panics while it holds the lock");
        if let Some((when, listing)) = &*listed
            && when.elapsed() < LISTING_AGE_MAX
        {
            return Ok(listing.clone());
        }
        let listing = self.list_now()?;
        *listed = Some((Instant::now(), listing.clone()));
        Ok(listing)
    }

    fn fetch(&self, image: &str, cancelled: &AtomicBool) -> Result<Fetched, StoreError> {
        let digest = image.rsplit_once('@').map(|(_, digest)| digest);
        let wanted = digest.map(|digest| self.reference.with_digest(digest).to_string());
        // What is no digest of an image is no name of one.
        let wanted = wanted.and_then(|text| text.parse::<ImageReference>().ok());
        let fetched = match &wanted {
            Some(wanted) => self.files(wanted, cancelled),
            None => return Err(no_such_release(image, self.list()?.releases.iter())),
        };
        match fetched {
            Ok(files) => Ok(Fetched { files, signature: Signature::NotSigned }),
            Err(StoreError::Registry(error))
                if matches!(
                    error.downcast_ref::<RegistryError>(),
                    Some(RegistryError::NoSuchImage { .. })
                ) =>
            {
                Err(no_such_release(image, self.list()?.releases.iter()))
            }
            Err(error) => Err(error),
        }
    }
}
