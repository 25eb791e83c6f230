//! Which payload store a command line names, and which release.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context as _;
use clap::Args;
use plimsoll_content::Payload;
use plimsoll_content::authoring::{BuiltRelease, Origin};
use plimsoll_content::payload::{self, ReleaseHeader, SourceFile, TemplateContext};
use plimsoll_controller::SharedStore;
use plimsoll_source::authoring::is_source;
use plimsoll_source::read_directory;
use plimsoll_source::registry::{ImageReference, ReferenceError};
use plimsoll_source::store::{
    Fetched, Listing, OciLayout, PayloadDirectory, PayloadStore, StoreError, names,
};

use super::registry::RegistryArguments;
use crate::interruption::build;

/// Where a store is, or a release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// A directory of payload directories, or one of these.
    Directory(PathBuf),
    /// An OCI image layout.
    Oci(PathBuf),
    /// A repository of a registry, or an image in it.
    Registry(ImageReference),
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(path) => path.display().fmt(f),
            Self::Oci(path) => write!(f, "oci:{}", path.display()),
            Self::Registry(reference) => reference.fmt(f),
        }
    }
}

/// Reads `DIR`, `oci:DIR` or a reference to an image or a repository. What is there as a file is a
/// path, whatever it looks like.
///
/// # Errors
///
/// When it names nothing, or a reference is malformed.
pub(crate) fn parse(text: &str) -> Result<Location, String> {
    match text.strip_prefix("oci:") {
        _ if text.is_empty() => Err("it is empty; name a directory, or oci:DIR".to_owned()),
        Some("") => Err("oci: needs the directory of an image layout".to_owned()),
        Some(path) => Ok(Location::Oci(path.into())),
        None if ImageReference::is_likely(text) && !Path::new(text).exists() => {
            text.parse().map(Location::Registry).map_err(|error: ReferenceError| error.to_string())
        }
        None => Ok(Location::Directory(text.into())),
    }
}

impl Location {
    /// The store there; it is read when it is asked.
    pub(crate) fn open(&self, registry: &RegistryArguments) -> SharedStore {
        match self {
            Self::Directory(path) => Arc::new(PayloadDirectory::new(path)),
            Self::Oci(path) => Arc::new(OciLayout::new(path)),
            Self::Registry(reference) => Arc::new(registry.store(reference)),
        }
    }

    /// Loads the one release there, for clusters of a profile with a feature set.
    ///
    /// # Errors
    ///
    /// When there is none or several, it is defective, or has nothing for the profile or the feature
    /// set.
    pub(crate) fn load(
        &self,
        registry: &RegistryArguments,
        profile: &str,
        feature_set: Option<&str>,
    ) -> Result<Payload, anyhow::Error> {
        let payload = release_as(self, registry, "", profile)?;
        check_choices(&payload, profile, feature_set)?;
        Ok(payload)
    }

    /// The files of the one release there, and the image that it is; empty for a directory.
    ///
    /// # Errors
    ///
    /// When there is none or several, or it cannot be read.
    pub(crate) fn files(
        &self,
        registry: &RegistryArguments,
    ) -> Result<(String, Vec<SourceFile>), anyhow::Error> {
        let context = || format!("failed to load release `{self}`");
        match self {
            Self::Directory(path) => {
                Ok((String::new(), read_directory(path).with_context(context)?))
            }
            Self::Oci(path) => Err(refused(path)),
            Self::Registry(reference) => {
                if reference.tag().is_none() && reference.digest().is_none() {
                    let tags = registry.client().tags(reference).with_context(context)?;
                    anyhow::bail!(
                        "`{self}` is a repository, which may hold several releases: name one by \
                         :TAG or @DIGEST{}",
                        if tags.is_empty() {
                            String::new()
                        } else {
                            format!("; it has {}", tags.join(", "))
                        }
                    );
                }
                let store = self.open(registry);
                let listing = store.list().with_context(context)?;
                let Some(head) = listing.releases.first() else {
                    anyhow::bail!("{}: {}", context(), listing.defects.join("; "));
                };
                let fetched = store.fetch(&head.image, &AtomicBool::new(false));
                Ok((head.image.clone(), fetched.with_context(context)?.files))
            }
        }
    }
}

/// A release that was loaded.
pub(crate) struct LoadedRelease {
    pub(crate) files: Vec<SourceFile>,
    pub(crate) payload: Payload,
    /// Where its objects come from, by file; empty for a payload.
    pub(crate) origins: BTreeMap<String, Origin>,
}

/// Where the releases are that a command line names by their versions.
#[derive(Debug, Clone, Default, Args)]
pub struct StoreArguments {
    /// Store in which releases are looked for by their versions: a directory of payload
    /// directories, oci:DIR for an OCI image layout, or a repository of a registry
    #[arg(long, value_name = "DIR|oci:DIR|REPOSITORY", value_parser = parse)]
    pub payloads: Option<Location>,
    /// How registries are reached
    #[command(flatten)]
    pub registry: RegistryArguments,
}

impl StoreArguments {
    /// Loads the release that a name means: one of the store, by its version or its pull
    /// specification, the payload in a directory, or an image in a registry.
    ///
    /// # Errors
    ///
    /// When there is none, it is defective, or has nothing for the profile or the feature set; the
    /// message says what there is.
    pub fn load(
        &self,
        name: &str,
        profile: &str,
        feature_set: Option<&str>,
    ) -> Result<Payload, anyhow::Error> {
        Ok(self.load_with_files(name, profile, feature_set)?.payload)
    }

    /// Does the same as [`Self::load`], and returns the files of the release as well.
    ///
    /// # Errors
    ///
    /// As [`Self::load`].
    pub(crate) fn load_with_files(
        &self,
        name: &str,
        profile: &str,
        feature_set: Option<&str>,
    ) -> Result<LoadedRelease, anyhow::Error> {
        let release = self.find(name, profile)?;
        check_choices(&release.payload, profile, feature_set)?;
        Ok(release)
    }

    fn find(&self, name: &str, profile: &str) -> Result<LoadedRelease, anyhow::Error> {
        let listed = match &self.payloads {
            Some(location) => {
                let store = location.open(&self.registry);
                let listing = list(location, &store)?;
                if let Some(head) = find(&listing.releases, name)? {
                    let files = store.fetch(&head.image, &AtomicBool::new(false));
                    return loaded(files, &head.image, profile)
                        .with_context(|| format!("failed to load release {name}"));
                }
                Some((location, listing))
            }
            None => None,
        };
        let path = Path::new(name);
        if path.exists() {
            return directory_or_store(path, profile);
        }
        match parse(name).map_err(anyhow::Error::msg)? {
            Location::Oci(path) => return Err(refused(&path)),
            location @ Location::Registry(_) => {
                let (image, files) = location.files(&self.registry)?;
                return parsed(files, &template(&image, profile))
                    .with_context(|| format!("failed to load release `{location}`"));
            }
            Location::Directory(_) => {}
        }
        match listed {
            Some((location, Listing { releases, defects })) => {
                let mut versions = versions(&releases);
                versions.extend(defects.iter().map(|defect| format!("(unreadable) {defect}")));
                anyhow::bail!(
                    "the store `{location}` has no release {name:?}, nor is there a directory of \
                     that name; the store has {}",
                    if versions.is_empty() { "none".to_owned() } else { versions.join(", ") }
                )
            }
            None if semver::Version::parse(name).is_ok() => anyhow::bail!(
                "release {name} has no store to load from: name one with --payloads DIR, or the \
                 directory of the payload instead of its version"
            ),
            None => anyhow::bail!(
                "{name:?} is neither a version nor a directory; name the directory of a payload, \
                 or a version and its store with --payloads DIR"
            ),
        }
    }
}

fn list(location: &Location, store: &SharedStore) -> Result<Listing, anyhow::Error> {
    store.list().with_context(|| format!("--payloads: the store `{location}` cannot be read"))
}

/// The release of a store that a name means.
fn find<'a>(
    releases: &'a [ReleaseHeader],
    name: &str,
) -> Result<Option<&'a ReleaseHeader>, anyhow::Error> {
    let is_meant = |head: &&ReleaseHeader| head.release.version == name || names(name, head);
    let mut found: Vec<&ReleaseHeader> = releases.iter().filter(is_meant).collect();
    found.dedup_by(|one, other| one.image == other.image);
    if found.len() > 1 {
        let images: Vec<String> = found.iter().map(|head| format!("\n  {}", head.image)).collect();
        anyhow::bail!(
            "the store has several releases {name}; name one by its image:{}",
            images.concat()
        );
    }
    Ok(found.first().copied())
}

/// Checks that a payload has something for `--profile` and `--feature-set`.
///
/// # Errors
///
/// When it has not; the message names those that it has.
pub(crate) fn check_choices(
    payload: &Payload,
    profile: &str,
    feature_set: Option<&str>,
) -> Result<(), anyhow::Error> {
    payload.check_profile(profile).context("--profile")?;
    payload.check_feature_set(feature_set.unwrap_or_default()).context("--feature-set")
}

/// Loads the one release at a location under the name of an image, whatever it has. Without an
/// image it is named by the one that it is, or by its digest if it is a directory.
///
/// # Errors
///
/// When there is none or it is defective.
pub(crate) fn release_as(
    location: &Location,
    registry: &RegistryArguments,
    image: &str,
    profile: &str,
) -> Result<Payload, anyhow::Error> {
    let context = || format!("failed to load release `{location}`");
    if let Location::Directory(path) = location {
        return in_directory(path, &template(image, profile)).with_context(context);
    }
    let (own, files) = location.files(registry)?;
    let image = if image.is_empty() { &own } else { image };
    payload::parse(files, &template(image, profile)).with_context(context)
}

/// The error where one release is wanted and an image layout is named.
fn refused(layout: &Path) -> anyhow::Error {
    anyhow::anyhow!(
        "`oci:{0}` is an image layout, which may hold several releases: use --payloads oci:{0} and \
         name one of them where the command has that option, or name the directory of a payload",
        layout.display()
    )
}

/// The same where a store could have been named.
fn directory_or_store(path: &Path, profile: &str) -> Result<LoadedRelease, anyhow::Error> {
    let context = template("", profile);
    let release = if is_source(path) {
        built(path, &context)
    } else {
        in_directory(path, &context).and_then(|payload| {
            let (files, origins) = (read_directory(path)?, BTreeMap::new());
            Ok(LoadedRelease { files, payload, origins })
        })
    };
    release.with_context(|| {
        // A store that was taken for one of its payloads.
        let inside = PayloadDirectory::new(path).list().unwrap_or_default();
        let inside = match versions(&inside.releases).as_slice() {
            [] => String::new(),
            versions => format!(
                "; it is a store of releases: use --payloads {} and name one of {}",
                path.display(),
                versions.join(", ")
            ),
        };
        format!("failed to load release `{}`{inside}", path.display())
    })
}

/// Loads the payload in a directory, or the one that the source there makes.
fn in_directory(path: &Path, context: &TemplateContext) -> Result<Payload, anyhow::Error> {
    if is_source(path) {
        return Ok(built(path, context)?.payload);
    }
    Ok(plimsoll_source::load(path, context)?)
}

/// Builds the release of a source in memory.
fn built(path: &Path, context: &TemplateContext) -> Result<LoadedRelease, anyhow::Error> {
    let BuiltRelease { files, origins, .. } = build(path, None)?;
    Ok(LoadedRelease { origins, ..parsed(files, context)? })
}

fn parsed(
    files: Vec<SourceFile>,
    context: &TemplateContext,
) -> Result<LoadedRelease, anyhow::Error> {
    let payload = payload::parse(&files, context)?;
    Ok(LoadedRelease { files, payload, origins: BTreeMap::new() })
}

fn loaded(
    fetched: Result<Fetched, StoreError>,
    image: &str,
    profile: &str,
) -> Result<LoadedRelease, anyhow::Error> {
    parsed(fetched?.files, &template(image, profile))
}

fn template(image: &str, profile: &str) -> TemplateContext {
    TemplateContext { release_image: image.to_owned(), cluster_profile: profile.to_owned() }
}

/// The versions of releases, oldest first.
fn versions(releases: &[ReleaseHeader]) -> Vec<String> {
    let mut versions: Vec<&str> = releases.iter().map(|it| it.release.version.as_str()).collect();
    versions.sort_by_key(|version| semver::Version::parse(version).ok());
    versions.dedup();
    versions.into_iter().map(str::to_owned).collect()
}

/// Loads the newest release of a store.
///
/// # Errors
///
/// When the store cannot be read, has no readable release, or the newest is defective.
pub(crate) fn newest(
    location: &Location,
    registry: &RegistryArguments,
    profile: &str,
) -> Result<Payload, anyhow::Error> {
    let store = location.open(registry);
    let listing = list(location, &store)?;
    let version = |version: &str| semver::Version::parse(version).ok();
    let newest = listing.releases.iter().max_by_key(|head| version(&head.release.version));
    let Some(newest) = newest else {
        let defects: Vec<String> =
            listing.defects.iter().map(|defect| format!("\n  {defect}")).collect();
        anyhow::bail!(
            "--payloads: the store `{location}` has no readable release{}",
            defects.concat()
        );
    };
    let context = || format!("failed to load release {}", newest.release.version);
    let fetched = store.fetch(&newest.image, &AtomicBool::new(false)).with_context(context)?;
    payload::parse(fetched.files, &template(&newest.image, profile)).with_context(context)
}

#[cfg(test)]
mod tests;
