//! Which payload store a command line names, and which release.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context as _;
use clap::Args;
use plimsoll_content::Payload;
use plimsoll_content::payload::{self, ReleaseHeader, TemplateContext};
use plimsoll_controller::SharedStore;
use plimsoll_source::store::{
    Fetched, Listing, OciLayout, PayloadDirectory, PayloadStore, StoreError, names,
};

/// Where a store is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// A directory of payload directories, or one of these.
    Directory(PathBuf),
    /// An OCI image layout.
    Oci(PathBuf),
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(path) => path.display().fmt(f),
            Self::Oci(path) => write!(f, "oci:{}", path.display()),
        }
    }
}

/// Reads `DIR` or `oci:DIR`.
///
/// # Errors
///
/// When it names nothing.
pub(crate) fn parse(text: &str) -> Result<Location, String> {
    match text.strip_prefix("oci:") {
        _ if text.is_empty() => Err("it is empty; name a directory, or oci:DIR".to_owned()),
        Some("") => Err("oci: needs the directory of an image layout".to_owned()),
        Some(path) => Ok(Location::Oci(path.into())),
        None => Ok(Location::Directory(text.into())),
    }
}

impl Location {
    /// The store there; it is read when it is asked.
    pub(crate) fn open(&self) -> SharedStore {
        match self {
            Self::Directory(path) => Arc::new(PayloadDirectory::new(path)),
            Self::Oci(path) => Arc::new(OciLayout::new(path)),
        }
    }
}

/// Where the releases are that a command line names by their versions.
#[derive(Debug, Clone, Default, Args)]
pub struct StoreArguments {
    /// Store in which releases are looked for by their versions: a directory of payload
    /// directories, or oci:DIR for an OCI image layout
    #[arg(long, value_name = "DIR|oci:DIR", value_parser = parse)]
    pub payloads: Option<Location>,
}

impl StoreArguments {
    /// Loads the release that a name means: one of the store, by its version or its pull
    /// specification, or the payload in a directory.
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
        let payload = self.find(name, profile)?;
        check_choices(&payload, profile, feature_set)?;
        Ok(payload)
    }

    fn find(&self, name: &str, profile: &str) -> Result<Payload, anyhow::Error> {
        let listed = match &self.payloads {
            Some(location) => {
                let store = location.open();
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
        refuse_layout(path)?;
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

/// Loads the payload in a directory, for clusters of a profile with a feature set.
///
/// # Errors
///
/// When there is none, it is defective, or has nothing for the profile or the feature set.
pub(crate) fn directory(
    path: &Path,
    profile: &str,
    feature_set: Option<&str>,
) -> Result<Payload, anyhow::Error> {
    let payload = directory_as(path, "", profile)?;
    check_choices(&payload, profile, feature_set)?;
    Ok(payload)
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

/// Loads the payload in a directory under the name of an image, whatever it has; without an image
/// it is named by its digest.
///
/// # Errors
///
/// When there is none or it is defective.
pub(crate) fn directory_as(
    path: &Path,
    image: &str,
    profile: &str,
) -> Result<Payload, anyhow::Error> {
    refuse_layout(path)?;
    plimsoll_source::load(path, &template(image, profile))
        .with_context(|| format!("failed to load release `{}`", path.display()))
}

/// Refuses an image layout where the directory of a payload is wanted.
fn refuse_layout(path: &Path) -> Result<(), anyhow::Error> {
    let is_layout = path.to_str().is_some_and(|text| text.starts_with("oci:"));
    anyhow::ensure!(
        !is_layout,
        "`{}` is an image layout, which may hold several releases: use --payloads {} and name \
         one of them where the command has that option, or name the directory of a payload",
        path.display(),
        path.display()
    );
    Ok(())
}

/// The same where a store could have been named.
fn directory_or_store(path: &Path, profile: &str) -> Result<Payload, anyhow::Error> {
    plimsoll_source::load(path, &template("", profile)).with_context(|| {
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

fn loaded(
    fetched: Result<Fetched, StoreError>,
    image: &str,
    profile: &str,
) -> Result<Payload, anyhow::Error> {
    Ok(payload::parse(&fetched?.files, &template(image, profile))?)
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
pub(crate) fn newest(location: &Location, profile: &str) -> Result<Payload, anyhow::Error> {
    let store = location.open();
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
    let fetched = store.fetch(&newest.image, &AtomicBool::new(false));
    loaded(fetched, &newest.image, profile)
        .with_context(|| format!("failed to load release {}", newest.release.version))
}

#[cfg(test)]
mod tests;
