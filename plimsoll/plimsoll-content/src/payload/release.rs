//! The two files that say what a payload is: `release-metadata` and `image-references`.

use std::collections::BTreeMap;

use semver::Version;
use serde::Deserialize;
use serde_json::Value;

use super::ReleaseInfo;
use crate::yaml;

/// Name of the file with the version and the update edges.
pub const RELEASE_METADATA: &str = "release-metadata";
/// Name of the file with the images.
pub const IMAGE_REFERENCES: &str = "image-references";

const METADATA_KIND: &str = "cincinnati-metadata-v0";
const URL_KEY: &str = "url";
const ARCHITECTURE_KEY: &str = "release.openshift.io/architecture";
const CHANNELS_KEY: &str = "io.openshift.upgrades.graph.release.channels";
/// Key of the metadata: with the value [`ANY_PROFILE`], manifests whose annotations name no profile are for
/// clusters of any. Without it they are for none.
pub(crate) const PROFILES_KEY: &str = "plimsoll.io/profiles";
/// The value of [`PROFILES_KEY`].
pub(crate) const ANY_PROFILE: &str = "any";

/// What is wrong with one of the two files.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReleaseError {
    /// The file is not there.
    #[error("the payload has no such file")]
    Missing,
    /// It is not UTF-8.
    #[error("not UTF-8 text")]
    NotUtf8,
    /// It is not what it should be.
    #[error("{0}")]
    Malformed(String),
    /// `kind` of the metadata.
    #[error("unrecognized Cincinnati metadata kind {0:?}, expected {METADATA_KIND:?}")]
    MetadataKind(String),
    /// The metadata have no version.
    #[error("missing required Cincinnati metadata version")]
    MissingVersion,
    /// The version is not one.
    #[error("version {version:?} is not a semantic version: {reason}")]
    Version {
        /// The version, as it is written.
        version: String,
        /// What keeps it from being a semantic version.
        reason: String,
    },
    /// Kind and API version of the image references.
    #[error("expected an ImageStream of image.openshift.io/v1, found {0}")]
    NotImageStream(String),
    /// The two files disagree.
    #[error(
        "version from {IMAGE_REFERENCES} ({images}) differs from {RELEASE_METADATA} ({metadata})"
    )]
    VersionMismatch {
        /// What `image-references` says.
        images: String,
        /// What `release-metadata` says.
        metadata: String,
    },
}

#[derive(Deserialize)]
struct Metadata {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    version: String,
    #[serde(default)]
    previous: Option<Vec<String>>,
    #[serde(default)]
    next: Option<Vec<String>>,
    #[serde(default)]
    metadata: Option<BTreeMap<String, Value>>,
}

/// Reads `release-metadata`; keys of its free part that cannot be honoured become warnings.
pub(super) fn read_metadata(
    bytes: &[u8],
    warnings: &mut Vec<String>,
) -> Result<ReleaseInfo, ReleaseError> {
    let text = std::str::from_utf8(bytes).map_err(|_| ReleaseError::NotUtf8)?;
    let metadata: Metadata = serde_json::from_str(text)
        .map_err(|error| ReleaseError::Malformed(format!("invalid JSON: {error}")))?;
    if metadata.kind != METADATA_KIND {
        return Err(ReleaseError::MetadataKind(metadata.kind));
    }
    if metadata.version.is_empty() {
        return Err(ReleaseError::MissingVersion);
    }
    Version::parse(&metadata.version).map_err(|error| ReleaseError::Version {
        version: metadata.version.clone(),
        reason: error.to_string(),
    })?;
    let mut free = FreeMetadata { entries: metadata.metadata.unwrap_or_default(), warnings };
    let mut channels: Vec<String> = free
        .text(CHANNELS_KEY)
        .split(',')
        .filter(|channel| !channel.is_empty())
        .map(str::to_owned)
        .collect();
    channels.sort_unstable();
    Ok(ReleaseInfo {
        url: free.url(),
        channels,
        architecture: free.architecture(),
        any_profile: free.any_profile(),
        version: metadata.version,
        previous: metadata.previous.unwrap_or_default(),
        next: metadata.next.unwrap_or_default(),
        ..ReleaseInfo::default()
    })
}

/// The free part of the metadata.
struct FreeMetadata<'warnings> {
    entries: BTreeMap<String, Value>,
    warnings: &'warnings mut Vec<String>,
}

impl FreeMetadata<'_> {
    fn text(&mut self, key: &str) -> String {
        match self.entries.remove(key) {
            None => String::new(),
            Some(Value::String(text)) => text,
            Some(other) => {
                self.warnings
                    .push(format!("metadata {key:?} is not a string but {other}, ignored"));
                String::new()
            }
        }
    }

    fn url(&mut self) -> String {
        let url = self.text(URL_KEY);
        let well_formed = url.split_once("://").is_some_and(|(scheme, rest)| {
            let scheme_char = |char: char| char.is_ascii_alphanumeric() || "+-.".contains(char);
            !scheme.is_empty() && scheme.chars().all(scheme_char) && !rest.is_empty()
        });
        if !url.is_empty() && !well_formed {
            self.warnings.push(format!("metadata {URL_KEY:?} is not a URL: {url:?}"));
        }
        url
    }

    fn any_profile(&mut self) -> bool {
        match self.text(PROFILES_KEY).as_str() {
            "" => false,
            ANY_PROFILE => true,
            other => {
                self.warnings.push(format!(
                    "metadata {PROFILES_KEY:?} is {other:?}, ignored: only {ANY_PROFILE:?} counts"
                ));
                false
            }
        }
    }

    fn architecture(&mut self) -> String {
        match self.text(ARCHITECTURE_KEY).as_str() {
            "" => String::new(),
            "multi" => "Multi".to_owned(),
            other => {
                self.warnings.push(format!("metadata {ARCHITECTURE_KEY:?} is {other:?}, ignored"));
                String::new()
            }
        }
    }
}

/// What `image-references` says.
#[derive(Debug, Default)]
pub(super) struct ImageReferences {
    pub(super) name: String,
    pub(super) created: Option<String>,
    pub(super) images: BTreeMap<String, String>,
}

/// Reads `image-references`, which may be JSON or YAML.
pub(super) fn read_images(bytes: &[u8]) -> Result<ImageReferences, ReleaseError> {
    let text = std::str::from_utf8(bytes).map_err(|_| ReleaseError::NotUtf8)?;
    let document = yaml::parse(text).into_iter().find(|document| document.value != Ok(Value::Null));
    let value = document
        .map_or(Ok(Value::Null), |document| document.value)
        .map_err(|error| ReleaseError::Malformed(format!("line {}: {error}", error.line)))?;
    let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str);
    let (kind, version) = (text("/kind").unwrap_or("?"), text("/apiVersion").unwrap_or("?"));
    if kind != "ImageStream" || version != "image.openshift.io/v1" {
        return Err(ReleaseError::NotImageStream(format!("{kind} of {version}")));
    }
    let tags = value.pointer("/spec/tags").and_then(Value::as_array);
    let image = |tag: &Value| {
        let from = tag.get("from")?;
        let is_image = from.get("kind")?.as_str()? == "DockerImage";
        let name = tag.get("name")?.as_str()?;
        is_image.then_some((name.to_owned(), from.get("name")?.as_str()?.to_owned()))
    };
    Ok(ImageReferences {
        name: text("/metadata/name").unwrap_or_default().to_owned(),
        created: text("/metadata/creationTimestamp").map(str::to_owned),
        images: tags.into_iter().flatten().filter_map(image).collect(),
    })
}
