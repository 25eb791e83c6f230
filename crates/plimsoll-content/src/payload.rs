//! A release payload: from the bytes of its files to manifests, or to everything that is wrong.
//!
//! Loading follows cluster-version §1.1 and §1.2: `manifests` before `release-manifests`, file
//! names in byte order, documents in the order of their file.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use plimsoll_model::GroupKind;
use serde::Serialize;

use crate::Manifest;

/// The directories of a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Directory {
    /// `manifests`: the manifests of the program that applies the payload. Only these are
    /// templates.
    #[serde(rename = "manifests")]
    Manifests,
    /// `release-manifests`: everybody else's.
    #[serde(rename = "release-manifests")]
    ReleaseManifests,
}

impl Directory {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Manifests => "manifests",
            Self::ReleaseManifests => "release-manifests",
        }
    }
}

impl fmt::Display for Directory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A file of a payload, as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    /// Where it lies.
    pub directory: Directory,
    /// Its name in that directory.
    pub name: String,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// What the templates of a payload may ask for, beyond what the payload says itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TemplateContext {
    /// Pull specification of the release image.
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
    /// Versions from which an update leads here.
    pub previous: Vec<String>,
    /// Versions to which an update leads from here.
    pub next: Vec<String>,
    /// When it was created, as `image-references` says.
    pub created: Option<String>,
    /// Pull specifications by image tag.
    pub images: BTreeMap<String, String>,
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
    /// What is odd about it but does not keep it from being loaded.
    pub warnings: Vec<Finding>,
}

/// Something to say about a place in a payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The directory.
    pub directory: Directory,
    /// The file in it.
    pub file: Arc<str>,
    /// Document in the file, from 0, where it is about one.
    pub document: Option<usize>,
    /// Line in the file, from 1, where it is known.
    pub line: Option<usize>,
    /// What there is to say.
    pub message: String,
}

impl Payload {
    /// The kinds known to have no namespace: those built into Kubernetes and those that
    /// CustomResourceDefinitions of the payload define so.
    pub fn cluster_kinds(&self) -> BTreeSet<GroupKind> {
        BTreeSet::new()
    }
}
