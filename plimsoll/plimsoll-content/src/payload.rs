//! A release payload: from the bytes of its files to manifests, or to everything that is wrong.
//!
//! Loading follows CV-1 and CV-2: `manifests` before `release-manifests`, file
//! names in byte order, documents in the order of their file.

mod choices;
mod document;
mod error;
mod gates;
mod release;

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use plimsoll_api::GroupKind;
use plimsoll_api::config::Release;
use serde::Serialize;

pub use crate::location::Directory;
pub use choices::UnknownChoice;
pub use error::{PayloadError, PayloadErrorCause, PayloadErrors};
pub(crate) use release::{ANY_PROFILE, PROFILES_KEY};
pub use release::{IMAGE_REFERENCES, RELEASE_METADATA, ReleaseError};

use document::{ParsedFile, parse_file};

use crate::capability::CapabilityRegistry;
use crate::diagnostic::{Diagnostic, FindingCode};
use crate::location::FileLocation;
use crate::template::TemplateValues;
use crate::{Manifest, hash, kinds};

/// The endings of the names of manifest files; case matters.
const EXTENSIONS: [&str; 3] = [".yaml", ".yml", ".json"];

/// A file of a payload, as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    /// Where it lies.
    pub directory: Directory,
    /// Its name in that directory.
    pub name: String,
    /// Its content.
    pub bytes: Bytes,
}

impl SourceFile {
    /// Whether the file holds manifests, by its name.
    pub fn holds_manifests(&self) -> bool {
        EXTENSIONS.iter().any(|extension| self.name.ends_with(extension))
    }

    /// Returns its path in the payload.
    pub fn path(&self) -> String {
        self.location().path()
    }

    fn is_special(&self, name: &str) -> bool {
        self.directory == Directory::ReleaseManifests && self.name == name
    }

    pub(crate) fn location(&self) -> FileLocation {
        FileLocation {
            directory: self.directory,
            file: self.name.as_str().into(),
            document: None,
            line: None,
        }
    }
}

/// What the templates of a payload may ask for, beyond what the payload says itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TemplateContext {
    /// Pull specification of the release image; empty for a payload that comes without an image,
    /// which is named by its digest.
    pub release_image: String,
    /// Cluster profile.
    pub cluster_profile: String,
}

/// What a payload says about its release.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ReleaseInfo {
    /// Version of the release.
    pub version: String,
    /// Where its release notes are.
    pub url: String,
    /// Update channels it belongs to, sorted.
    pub channels: Vec<String>,
    /// `Multi` for a payload of several architectures; empty for a single one.
    pub architecture: String,
    /// Whether manifests whose annotations name no profile are for clusters of any.
    #[serde(rename = "anyProfile", skip_serializing_if = "std::ops::Not::not")]
    pub any_profile: bool,
    /// Versions from which an update leads here.
    pub previous: Vec<String>,
    /// Versions to which an update leads from here.
    pub next: Vec<String>,
    /// When it was created, as `image-references` says.
    pub created: Option<String>,
    /// Pull specifications by image tag.
    pub images: BTreeMap<String, String>,
}

impl ReleaseInfo {
    /// The release as status names it, with the pull specification that stands for it.
    fn named(&self, image: &str) -> Release {
        Release {
            architecture: String::new(),
            version: self.version.clone(),
            image: image.to_owned(),
            url: self.url.clone(),
            channels: self.channels.clone(),
        }
    }
}

/// A release as a store lists it, without its manifests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReleaseHeader {
    /// Pull specification that stands for it.
    pub image: String,
    /// What it says about itself; images may be left out.
    pub release: ReleaseInfo,
}

impl ReleaseHeader {
    /// The release as status names it.
    pub fn named(&self) -> Release {
        self.release.named(&self.image)
    }
}

/// A release payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payload {
    /// What it says about itself.
    pub release: ReleaseInfo,
    /// Its documents in loading order, before inclusion.
    pub manifests: Vec<Manifest>,
    /// Identifies its content: `sha256:` and hexadecimal digits.
    pub digest: String,
    /// Pull specification that stands for it in templates and status.
    pub image: String,
    /// What is odd about it but does not keep it from being loaded.
    pub warnings: Vec<Diagnostic>,
    /// The capabilities and sets that there are: those of the published API and those that it
    /// declares.
    pub capabilities: CapabilityRegistry,
}

impl Payload {
    /// Its release as status names it.
    pub fn named(&self) -> Release {
        self.release.named(&self.image)
    }

    /// The kinds known to have no namespace: those built into Kubernetes and those that
    /// CustomResourceDefinitions of the payload define so.
    pub fn cluster_kinds(&self) -> BTreeSet<GroupKind> {
        kinds::cluster_kinds(&self.manifests)
    }

    /// Major version of the release.
    pub fn major_version(&self) -> Option<u64> {
        semver::Version::parse(&self.release.version).ok().map(|version| version.major)
    }
}

/// What a payload says about itself, and what its templates may ask for.
#[derive(Debug, Clone, Default)]
pub struct PayloadHeader {
    /// What it says about itself, as far as that can be read.
    pub release: ReleaseInfo,
    /// What templates may ask for.
    pub values: TemplateValues,
    digest: String,
    warnings: Vec<Diagnostic>,
    errors: Vec<PayloadError>,
}

impl PayloadHeader {
    /// Reads the two special files; what is wrong with them is kept for `assemble`.
    pub fn read(files: &[SourceFile], context: &TemplateContext) -> Self {
        let mut head = Self { digest: digest(files), ..Self::default() };
        let special = |name: &str| files.iter().find(|file| file.is_special(name));
        let location = |name: &str| FileLocation {
            directory: Directory::ReleaseManifests,
            file: name.into(),
            document: None,
            line: None,
        };
        let mut warnings = Vec::new();
        let metadata = special(RELEASE_METADATA).ok_or(ReleaseError::Missing);
        match metadata.and_then(|file| release::read_metadata(&file.bytes, &mut warnings)) {
            Ok(release) => head.release = release,
            Err(problem) => head.fail(location(RELEASE_METADATA), problem),
        }
        let warning =
            |text| location(RELEASE_METADATA).diagnostic(FindingCode::ReleaseMetadata, text);
        head.warnings.extend(warnings.into_iter().map(warning));

        let images = special(IMAGE_REFERENCES).ok_or(ReleaseError::Missing);
        match images.and_then(|file| release::read_images(&file.bytes)) {
            Ok(references) => {
                let metadata = &head.release.version;
                if !metadata.is_empty() && *metadata != references.name {
                    let problem = ReleaseError::VersionMismatch {
                        images: references.name,
                        metadata: metadata.clone(),
                    };
                    head.fail(location(IMAGE_REFERENCES), problem);
                }
                head.release.created = references.created;
                head.release.images = references.images;
            }
            Err(problem) => head.fail(location(IMAGE_REFERENCES), problem),
        }
        let release_image = if context.release_image.is_empty() {
            format!("{IMAGELESS}@{}", head.digest)
        } else {
            context.release_image.clone()
        };
        head.values = TemplateValues {
            release_image,
            cluster_profile: context.cluster_profile.clone(),
            images: head.release.images.clone(),
        };
        head
    }

    /// What is wrong with the two special files.
    pub fn problems(&self) -> &[PayloadError] {
        &self.errors
    }

    fn fail(&mut self, location: FileLocation, problem: ReleaseError) {
        self.errors.push(PayloadError { location, cause: PayloadErrorCause::Release(problem) });
    }
}

/// Puts a payload together from what [`PayloadHeader::read`] made of its files and [`parse_file`] of those
/// that hold manifests, in any order; and everything that is wrong with it.
fn assemble(head: PayloadHeader, mut parsed: Vec<ParsedFile>) -> (Payload, Vec<PayloadError>) {
    let PayloadHeader { release, values, digest, mut warnings, mut errors } = head;
    parsed.sort_by(|left, right| left.order().cmp(&right.order()));
    let cluster_kinds = kinds::cluster_kinds(parsed.iter().flat_map(|file| &file.manifests));
    parsed.iter_mut().for_each(|file| file.normalize_keys(&cluster_kinds));
    let mut manifests = Vec::new();
    // A manifest does not know its directory, which a defect is to be found in.
    let mut directories = BTreeMap::new();
    for mut file in parsed {
        file.manifests.iter_mut().for_each(|it| it.any_profile = release.any_profile);
        directories.insert(manifests.len(), file.directory);
        manifests.extend(file.manifests);
        warnings.extend(file.warnings);
        errors.extend(file.errors);
    }
    let mut capabilities = CapabilityRegistry::built_in();
    for (number, problem) in capabilities.declare(&manifests) {
        let manifest: &Manifest = &manifests[number];
        let directory = directories.range(..=number).next_back().map(|(_, directory)| *directory);
        let location = FileLocation {
            directory: directory.unwrap_or(Directory::ReleaseManifests),
            file: Arc::clone(&manifest.file),
            document: Some(manifest.document),
            line: None,
        };
        errors.push(PayloadError { location, cause: PayloadErrorCause::Capabilities(problem) });
    }
    let image = values.release_image;
    let payload = Payload { release, manifests, digest, image, warnings, capabilities };
    (payload, errors)
}

/// Name of the image that stands for a payload without one; nothing can be pulled from there.
pub const IMAGELESS: &str = "release.localhost/payload";

/// Identifies the content: the special files and the manifest files, by name and bytes.
fn digest(files: &[SourceFile]) -> String {
    let belongs = |file: &&SourceFile| {
        file.holds_manifests()
            || file.is_special(RELEASE_METADATA)
            || file.is_special(IMAGE_REFERENCES)
    };
    let mut files: Vec<&SourceFile> = files.iter().filter(belongs).collect();
    files.sort_by(|left, right| (left.directory, &left.name).cmp(&(right.directory, &right.name)));
    hash::sha256(
        files.into_iter().flat_map(|file| {
            [file.directory.name().as_bytes(), file.name.as_bytes(), &*file.bytes]
        }),
    )
}

/// Reads a payload. Of files that are handed over, each is freed once it is read, before the next one:
/// a payload and its files are never in memory at once.
///
/// # Errors
/// [`PayloadErrors`] with every error in any of the files.
pub fn parse(
    files: impl AsRef<[SourceFile]> + IntoIterator<Item: Borrow<SourceFile>>,
    context: &TemplateContext,
) -> Result<Payload, PayloadErrors> {
    let (payload, errors) = parse_partly(files, context);
    if errors.is_empty() { Ok(payload) } else { Err(PayloadErrors { errors }) }
}

/// As [`parse`], with what can be read of a payload that cannot be loaded.
pub(crate) fn parse_partly(
    files: impl AsRef<[SourceFile]> + IntoIterator<Item: Borrow<SourceFile>>,
    context: &TemplateContext,
) -> (Payload, Vec<PayloadError>) {
    let head = PayloadHeader::read(files.as_ref(), context);
    let manifest_files = files.into_iter().filter(|file| file.borrow().holds_manifests());
    let parsed = manifest_files.map(|file| parse_file(file.borrow(), &head.values)).collect();
    assemble(head, parsed)
}

#[cfg(test)]
mod tests;
