//! Registries: images of releases by reference, copied between repositories and image layouts.
//!
//! [`Registry`] waits: each request runs on a thread of its own with its own runtime, so that it can
//! be asked from anywhere. What is pulled lands in an image layout and is read by
//! [`OciLayout`], which compares every blob with its digest.
//! Where images are looked for is a matter of `mirrors`, with which credentials of `credentials`.

mod credentials;
mod endpoint;
mod error;
mod image;
mod mirrors;
mod reference;
mod retry;
mod store;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use oci_client::RegistryOperation;
use plimsoll_content::payload::SourceFile;

use crate::store::oci::OciLayout;
use crate::store::oci::write::{BlobDescriptor, ListedImage};

use endpoint::Endpoint;
use image::Platforms;
use mirrors::Place;

pub use error::RegistryError;
pub use reference::{ImageReference, ReferenceError};
pub use store::RegistryStore;

/// How registries are reached. Files that are not given are looked for in the places that podman and
/// docker use.
#[derive(Debug, Clone, Default)]
pub struct RegistrySettings {
    /// File with credentials, in the format of docker's `config.json`.
    pub auth_file: Option<PathBuf>,
    /// File with certificates of further authorities, as PEM.
    pub ca_file: Option<PathBuf>,
    /// Plain HTTP for all registries. For those on this machine and those that `registries.conf`
    /// calls insecure it is tried anyway, after HTTPS.
    pub plain_http: bool,
    /// File with mirrors, in the format `registries.conf`, version 2.
    pub registries_conf: Option<PathBuf>,
}

/// What tests set in place of the process's environment and of waits.
#[derive(Debug, Clone)]
struct Conditions {
    /// The wait after the first failure of a request.
    first_wait: Duration,
    /// How long a registry may send nothing when it is asked for something.
    read_time_max: Duration,
    /// How long an answer may take in all, and a part of a blob.
    request_time_max: Duration,
    /// The environment variables.
    environment: fn(&str) -> Option<OsString>,
}

impl Default for Conditions {
    fn default() -> Self {
        Self {
            first_wait: retry::FIRST_WAIT,
            read_time_max: endpoint::READ_TIME_MAX,
            request_time_max: endpoint::REQUEST_TIME_MAX,
            environment: |name| std::env::var_os(name),
        }
    }
}

/// An image that was copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopiedImage {
    /// Where it is now: a reference with tag or digest.
    pub reference: ImageReference,
    /// Digest of its manifest or index, as `sha256:HEX`; the same in all places.
    pub digest: String,
}

/// Repositories that one piece of work is connected to.
#[derive(Default)]
struct Connections {
    /// By host and repository.
    open: BTreeMap<String, Endpoint>,
    /// Those to which there is no connection.
    failed: BTreeSet<String>,
}

/// A client of registries.
#[derive(Debug, Clone, Default)]
pub struct Registry {
    settings: RegistrySettings,
    conditions: Conditions,
}

impl Registry {
    /// A client with settings; nothing is read or asked yet.
    pub fn new(settings: RegistrySettings) -> Self {
        Self { settings, conditions: Conditions::default() }
    }

    /// The tags of a repository, sorted.
    ///
    /// # Errors
    /// [`RegistryError`] when there is no such repository or the registry cannot be asked.
    pub fn tags(&self, repository: &ImageReference) -> Result<Vec<String>, RegistryError> {
        let repository = repository.without_image();
        wait(|| self.tags_of(&repository))
    }

    /// Makes an image of a release and sends it to a repository, under the tag of the reference or
    /// the version of the release.
    ///
    /// # Errors
    /// [`RegistryError`] when the files are no release or the registry does not take the image.
    pub fn push_release(
        &self,
        files: &[SourceFile],
        to: &ImageReference,
    ) -> Result<CopiedImage, RegistryError> {
        let directory = temporary_directory()?;
        let layout = OciLayout::new(directory.path());
        layout.create()?;
        let (image, version) = layout.add_release(files)?;
        // A tag has no place for build metadata.
        let to = match to.tag() {
            Some(_) => to.clone(),
            None => to.with_tag(&version.replace('+', "_")),
        };
        wait(async || {
            let endpoint = self.connect(direct(&to), RegistryOperation::Push).await?;
            image::push(&endpoint, &layout, &image, to.tag()).await
        })?;
        Ok(CopiedImage { reference: to, digest: image.digest })
    }

    /// Copies an image to a layout and lists it there under its reference: all architectures, as they
    /// are. Without tag and digest, every tag of the repository is copied.
    ///
    /// # Errors
    /// [`RegistryError`] when there is no such image, or it cannot be read or written.
    pub fn pull_to_layout(
        &self,
        from: &ImageReference,
        to: &Path,
    ) -> Result<Vec<CopiedImage>, RegistryError> {
        let layout = OciLayout::new(to);
        layout.create()?;
        let never = AtomicBool::new(false);
        wait(async || {
            let mut copied = Vec::new();
            let mut connections = Connections::default();
            for from in self.images_of(from).await? {
                let image =
                    self.pull(&mut connections, &from, &layout, Platforms::All, &never).await?;
                layout.add_image(&image, &from.to_string())?;
                copied.push(CopiedImage { reference: from, digest: image.digest });
            }
            Ok(copied)
        })
    }

    /// Copies the images that a layout lists to a repository: the only one under the tag of the
    /// reference, or each under the tag that it has in the layout.
    ///
    /// # Errors
    /// [`RegistryError`] when the layout cannot be read or has not one image for the tag, or the
    /// registry does not take an image.
    pub fn push_from_layout(
        &self,
        from: &Path,
        to: &ImageReference,
    ) -> Result<Vec<CopiedImage>, RegistryError> {
        let layout = OciLayout::new(from);
        let images = layout.images()?;
        let unfit = |problem: &str| RegistryError::Content {
            reference: format!("oci:{}", from.display()),
            problem: problem.to_owned(),
        };
        if images.is_empty() {
            return Err(unfit("the layout lists no image"));
        }
        let is_one = images.iter().all(|it| it.descriptor.digest == images[0].descriptor.digest);
        if to.tag().is_some() && !is_one {
            return Err(unfit(
                "the layout lists several images, which cannot all have one tag: leave the tag out, \
                 and each is given the one that it has in the layout",
            ));
        }
        wait(async || {
            let endpoint = self.connect(direct(to), RegistryOperation::Push).await?;
            let mut copied = Vec::new();
            for ListedImage { descriptor, name } in &images {
                let tag = to.tag().or_else(|| tag_of(name));
                image::push(&endpoint, &layout, descriptor, tag).await?;
                let digest = descriptor.digest.clone();
                let reference = match tag {
                    Some(tag) => to.with_tag(tag),
                    None => to.with_digest(&digest),
                };
                copied.push(CopiedImage { reference, digest });
            }
            copied.dedup();
            Ok(copied)
        })
    }

    /// Copies images from one repository to another, as they are.
    ///
    /// # Errors
    /// As [`Self::pull_to_layout`] and [`Self::push_from_layout`].
    pub fn copy(
        &self,
        from: &ImageReference,
        to: &ImageReference,
    ) -> Result<Vec<CopiedImage>, RegistryError> {
        let directory = temporary_directory()?;
        self.pull_to_layout(from, directory.path())?;
        self.push_from_layout(directory.path(), to)
    }

    /// The images that a reference means: itself, or each tag of a repository.
    async fn images_of(&self, from: &ImageReference) -> Result<Vec<ImageReference>, RegistryError> {
        if from.tag().is_some() || from.digest().is_some() {
            return Ok(vec![from.clone()]);
        }
        let tags = self.tags_of(from).await?;
        if tags.is_empty() {
            return Err(RegistryError::NoSuchRepository(from.to_string()));
        }
        Ok(tags.iter().map(|tag| from.with_tag(tag)).collect())
    }

    async fn tags_of(&self, repository: &ImageReference) -> Result<Vec<String>, RegistryError> {
        let mut failure = None;
        for place in self.places(repository)? {
            let listed = async { self.connect(place, RegistryOperation::Pull).await?.tags().await };
            match listed.await {
                Ok(tags) => return Ok(tags),
                Err(RegistryError::NoSuchImage { reference, .. }) => {
                    failure = Some(RegistryError::NoSuchRepository(reference));
                }
                Err(error) => failure = Some(error),
            }
        }
        Err(failure.expect("there is a place to look at"))
    }

    /// Copies an image to a layout, from the first place that has it, without listing it there.
    async fn pull(
        &self,
        connections: &mut Connections,
        from: &ImageReference,
        layout: &OciLayout,
        platforms: Platforms,
        cancelled: &AtomicBool,
    ) -> Result<BlobDescriptor, RegistryError> {
        let image = from.digest().or(from.tag()).unwrap_or_default();
        if let Some(digest) = from.digest()
            && let Some(image) = image::present(layout, digest, platforms)?
        {
            return Ok(image);
        }
        let mut failure = None;
        let places = self.places(from)?;
        let last = places.len().saturating_sub(1);
        for (number, place) in places.into_iter().enumerate() {
            if number < last && connections.failed.contains(&place.reference.name()) {
                continue;
            }
            let pulled = async {
                let endpoint = self.connected(connections, place).await?;
                image::pull(endpoint, image, layout, platforms, cancelled).await
            };
            match pulled.await {
                Ok(image) => return Ok(image),
                Err(error @ RegistryError::Layout(_)) => return Err(error),
                Err(error) => failure = Some(error),
            }
        }
        match failure.expect("there is a place to look at") {
            RegistryError::NoSuchImage { reference, .. } => {
                // What there is helps; that it cannot be listed is not what was asked.
                let tags = self.tags_of(&from.without_image()).await.unwrap_or_default();
                Err(RegistryError::NoSuchImage { reference, tags })
            }
            error => Err(error),
        }
    }

    fn places(&self, reference: &ImageReference) -> Result<Vec<Place>, RegistryError> {
        let given = self.settings.registries_conf.as_deref();
        mirrors::places(reference, given, &self.conditions.environment)
    }

    /// The repository to pull from, connected to once.
    async fn connected<'c>(
        &self,
        connections: &'c mut Connections,
        place: Place,
    ) -> Result<&'c Endpoint, RegistryError> {
        let name = place.reference.name();
        if !connections.open.contains_key(&name) {
            let connected = self.connect(place, RegistryOperation::Pull).await;
            let endpoint = connected.inspect_err(|_| {
                connections.failed.insert(name.clone());
            })?;
            connections.open.insert(name.clone(), endpoint);
        }
        Ok(&connections.open[&name])
    }

    async fn connect(
        &self,
        place: Place,
        operation: RegistryOperation,
    ) -> Result<Endpoint, RegistryError> {
        Endpoint::connect(&self.settings, &self.conditions, place, operation).await
    }
}

/// Where an image is sent: where it says, and to no mirror.
fn direct(reference: &ImageReference) -> Place {
    Place { reference: reference.clone(), insecure: false }
}

/// The tag in the name under which a layout lists an image: the whole of it, or what follows the
/// repository.
fn tag_of(name: &str) -> Option<&str> {
    if name.is_empty() || name.contains('@') {
        return None;
    }
    match name.rsplit_once('/') {
        None => Some(name),
        Some((_, last)) => Some(last.split_once(':')?.1),
    }
}

fn temporary_directory() -> Result<tempfile::TempDir, RegistryError> {
    let made = tempfile::Builder::new().prefix("plimsoll-image-").tempdir();
    made.map_err(|error| RegistryError::Setup(format!("no temporary directory: {error}")))
}

/// Waits for work on a thread and a runtime of its own: the caller may be in another runtime.
fn wait<T: Send>(
    work: impl AsyncFnOnce() -> Result<T, RegistryError> + Send,
) -> Result<T, RegistryError> {
    let run = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| RegistryError::Setup(error.to_string()))?;
        runtime.block_on(work())
    };
    let ended = std::thread::scope(|scope| scope.spawn(run).join());
    ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

#[cfg(test)]
mod tests;
