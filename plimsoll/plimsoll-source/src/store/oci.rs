//! An OCI image layout on disk: images of releases, catalogs and bundles as `skopeo copy … oci:DIR`
//! and its like leave them.
//!
//! Every blob is compared with its digest before anything in it is believed. Of the layers, only
//! selected files are read: of a release those that lie directly in the two payload directories.

mod image;
mod layer;
pub(crate) mod pack;
mod prune;
pub(crate) mod write;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use plimsoll_content::hash::hexadecimal;
use plimsoll_content::payload::{Directory, IMAGELESS, ReleaseHeader, SourceFile};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};

pub(crate) use image::LayoutImage;

use super::{
    Fetched, Listing, PayloadStore, Signature, StoreError, head_of, names, no_such_release,
    unless_cancelled,
};
use crate::bounded::{open_ordinary, read_bounded};
use crate::directory::{FILE_SIZE_MAX, PAYLOAD_SIZE_MAX};

/// Largest index or manifest that is read: theirs are lists of a few descriptors.
pub(crate) const DOCUMENT_SIZE_MAX: u64 = 4 << 20;
/// How deep indexes may lie in indexes: an image of several architectures is one deep.
const DEPTH_MAX: usize = 4;
/// Where tools note the name of an image.
pub(crate) const REF_NAME: &str = "org.opencontainers.image.ref.name";

/// An OCI image layout.
#[derive(Debug)]
pub struct OciLayout {
    path: PathBuf,
    /// What is known by the digest of an image manifest: that never changes.
    known: Mutex<BTreeMap<String, Result<ReleaseHeader, String>>>,
}

/// What points to a blob.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor {
    #[serde(default)]
    media_type: String,
    digest: String,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
    platform: Option<Platform>,
}

#[derive(Debug, Clone, Deserialize)]
struct Platform {
    #[serde(default)]
    architecture: String,
    #[serde(default)]
    os: String,
}

#[derive(Debug, Deserialize)]
struct Index {
    manifests: Vec<Descriptor>,
}

#[derive(Debug, Deserialize)]
struct ImageManifest {
    config: Option<Descriptor>,
    layers: Vec<Descriptor>,
}

/// An image of the layout: its pull specification and where its manifest is.
#[derive(Debug, Clone)]
struct Entry {
    image: String,
    manifest: Result<Descriptor, String>,
}

impl OciLayout {
    /// The layout in a directory.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), known: Mutex::default() }
    }

    fn entries(&self) -> Result<Vec<Entry>, StoreError> {
        let path = self.inside("index.json")?;
        let index: Index = parse(&path, &read_document(&path)?)?;
        Ok(index.manifests.into_iter().map(|descriptor| self.entry(descriptor)).collect())
    }

    /// The image behind a descriptor.
    fn entry(&self, descriptor: Descriptor) -> Entry {
        let name = descriptor.annotations.get(REF_NAME).map_or(IMAGELESS, |name| repository(name));
        let image = format!("{name}@{}", descriptor.digest);
        Entry { image, manifest: self.manifest(descriptor).map_err(|error| error.to_string()) }
    }

    /// The descriptor of the manifest behind another one; of several architectures, that of this
    /// machine.
    fn manifest(&self, descriptor: Descriptor) -> Result<Descriptor, StoreError> {
        let mut manifest = descriptor;
        for _ in 0..DEPTH_MAX {
            if !is_index(&manifest) {
                return Ok(manifest);
            }
            let path = self.blob(&manifest.digest)?;
            let index: Index = parse(&path, &self.document(&manifest.digest)?)?;
            manifest = own(index.manifests).map_err(|problem| content(&path, &problem))?;
        }
        Err(content(&self.path, "indexes lie too deep in each other"))
    }

    /// The release whose manifest, or index of manifests, has a digest; listed or not.
    ///
    /// # Errors
    /// [`StoreError::Io`] and [`StoreError::Content`] when the image cannot be read or is no release.
    pub(crate) fn release(
        &self,
        digest: &str,
        media_type: &str,
        cancelled: &AtomicBool,
    ) -> Result<Vec<SourceFile>, StoreError> {
        let descriptor = Descriptor {
            media_type: media_type.to_owned(),
            digest: digest.to_owned(),
            annotations: BTreeMap::new(),
            platform: None,
        };
        self.files(&self.entry(descriptor), cancelled)
    }

    fn files(&self, entry: &Entry, cancelled: &AtomicBool) -> Result<Vec<SourceFile>, StoreError> {
        let descriptor = match &entry.manifest {
            Ok(manifest) => manifest,
            Err(problem) => return Err(content(&self.path, problem)),
        };
        let manifest = self.image_manifest(&descriptor.digest)?;
        // An index has said already what it is for.
        if descriptor.platform.is_none() {
            let config = self.config(&manifest)?;
            is_for_machine(&config.architecture).map_err(|why| content(&self.path, &why))?;
        }
        let selection = layer::FileSelection {
            directories: Directory::ALL.map(|it| it.name().to_owned()).to_vec(),
            is_deep: false,
            file_size_max: FILE_SIZE_MAX,
            size_max: PAYLOAD_SIZE_MAX,
            noun: "payload",
        };
        let files = self.selected(&manifest, selection, cancelled)?;
        let payload_file = |(path, bytes): (String, Vec<u8>)| {
            let (directory, name) = path.split_once('/')?;
            let directory = Directory::ALL.into_iter().find(|it| it.name() == directory)?;
            Some(SourceFile { directory, name: name.to_owned(), bytes: bytes.into() })
        };
        Ok(files.into_iter().filter_map(payload_file).collect())
    }

    fn image_manifest(&self, digest: &str) -> Result<ImageManifest, StoreError> {
        parse(&self.blob(digest)?, &self.document(digest)?)
    }

    /// The selected files of an image, by their paths in it.
    fn selected(
        &self,
        manifest: &ImageManifest,
        selection: layer::FileSelection,
        cancelled: &AtomicBool,
    ) -> Result<BTreeMap<String, Vec<u8>>, StoreError> {
        let mut files = layer::Files::new(selection);
        for layer in &manifest.layers {
            unless_cancelled(cancelled)?;
            let path = self.blob(&layer.digest)?;
            verify(&path, &layer.digest)?;
            unless_cancelled(cancelled)?;
            files.add(&path, &layer.media_type)?;
        }
        Ok(files.into_files())
    }

    /// A small blob, compared with its digest.
    fn document(&self, digest: &str) -> Result<Vec<u8>, StoreError> {
        let path = self.blob(digest)?;
        let bytes = read_document(&path)?;
        compare(&path, digest, &Sha256::digest(&bytes))?;
        Ok(bytes)
    }

    /// Where a blob lies; only SHA-256 is in use.
    fn blob(&self, digest: &str) -> Result<PathBuf, StoreError> {
        let hex = digest.strip_prefix("sha256:").filter(|hex| {
            hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
        });
        let hex =
            hex.ok_or_else(|| content(&self.path, &format!("{digest:?} is not a SHA-256 digest")))?;
        self.inside(&format!("blobs/sha256/{hex}"))
    }

    /// A path in the layout, unless a symbolic link there leads out of it.
    fn inside(&self, name: &str) -> Result<PathBuf, StoreError> {
        let path = self.path.join(name);
        match (fs::canonicalize(&self.path), fs::canonicalize(&path)) {
            (Ok(root), Ok(target)) if !target.starts_with(&root) => {
                Err(content(&path, "the symbolic link leads out of the layout"))
            }
            // What is not there is the error of whoever reads it.
            _ => Ok(path),
        }
    }
}

impl PayloadStore for OciLayout {
    fn list(&self) -> Result<Listing, StoreError> {
        let mut listing = Listing::default();
        let mut known = self.known.lock().expect("no thread panics while it holds the lock");
        for entry in self.entries()? {
            let head = known.entry(entry.image.clone()).or_insert_with(|| {
                self.files(&entry, &AtomicBool::new(false))
                    .map_err(|error| error.to_string())
                    .and_then(|files| head_of(&files, Some(&entry.image)))
            });
            match head {
                Ok(head) => listing.releases.push(head.clone()),
                Err(problem) => listing.defects.push(format!("{}: {problem}", entry.image)),
            }
        }
        // What could not be read may be repaired by the next time.
        known.retain(|_, head| head.is_ok());
        Ok(listing)
    }

    fn fetch(&self, image: &str, cancelled: &AtomicBool) -> Result<Fetched, StoreError> {
        let entries = self.entries()?;
        let release = Default::default();
        let mut head = ReleaseHeader { image: String::new(), release };
        let is_meant = |entry: &&Entry| {
            head.image.clone_from(&entry.image);
            names(image, &head)
        };
        let Some(entry) = entries.iter().find(is_meant) else {
            return Err(no_such_release(image, self.list()?.releases.iter()));
        };
        let files = self.files(entry, cancelled)?;
        Ok(Fetched { files, signature: Signature::NotSigned })
    }
}

/// The digest of an index's manifest for this machine, from the bytes of the index.
///
/// # Errors
/// When it is no index, or has no such manifest: the reason, in a clause.
pub(crate) fn own_manifest(index: &[u8]) -> Result<String, String> {
    let index: Index = serde_json::from_slice(index).map_err(|error| error.to_string())?;
    own(index.manifests).map(|manifest| manifest.digest)
}

/// The manifest of an index for this machine, or one that is for any.
fn own(manifests: Vec<Descriptor>) -> Result<Descriptor, String> {
    let platforms: BTreeSet<String> = manifests
        .iter()
        .filter_map(|it| it.platform.as_ref())
        .map(|platform| format!("{}/{}", platform.os, platform.architecture))
        .collect();
    let is_own = |it: &Descriptor| {
        it.platform.as_ref().is_some_and(|platform| {
            platform.architecture == architecture() && ["linux", ""].contains(&&*platform.os)
        })
    };
    let at = manifests.iter().position(is_own);
    let at = at.or_else(|| manifests.iter().position(|it| it.platform.is_none()));
    match at.and_then(|at| manifests.into_iter().nth(at)) {
        Some(manifest) => Ok(manifest),
        None if platforms.is_empty() => Err("an index of no images".to_owned()),
        None => Err(format!(
            "it has no image for linux/{}, only for {}",
            architecture(),
            platforms.into_iter().collect::<Vec<_>>().join(", ")
        )),
    }
}

fn is_index(descriptor: &Descriptor) -> bool {
    is_index_type(&descriptor.media_type)
}

/// Whether a media type is that of an index of several images.
pub(crate) fn is_index_type(media_type: &str) -> bool {
    media_type.ends_with("image.index.v1+json") || media_type.ends_with("manifest.list.v2+json")
}

/// A name as tools note it, without tag; a mere tag names nothing.
fn repository(name: &str) -> &str {
    let Some((path, last)) = name.rsplit_once('/') else {
        return IMAGELESS;
    };
    let end = last.find([':', '@']).unwrap_or(last.len());
    &name[..path.len() + 1 + end]
}

/// Whether a release of an architecture can be applied here, by its configuration; otherwise why not, in a
/// clause. One that a release is packed under for any machine says nothing.
fn is_for_machine(given: &str) -> Result<(), String> {
    match given {
        "" | pack::ARCHITECTURE => Ok(()),
        own if own == architecture() => Ok(()),
        other => Err(format!(
            "the image is for linux/{other}, as its configuration says, and not for linux/{}: name one \
             for this architecture, or an index of several",
            architecture()
        )),
    }
}

/// This machine's architecture, as images name it.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "powerpc64" => "ppc64le",
        other => other,
    }
}

fn read_document(path: &Path) -> Result<Vec<u8>, StoreError> {
    let read = open_ordinary(path).and_then(|file| read_bounded(file, DOCUMENT_SIZE_MAX));
    read.map_err(|source| StoreError::Io { path: path.to_owned(), source })
}

fn parse<T: DeserializeOwned>(path: &Path, bytes: &[u8]) -> Result<T, StoreError> {
    serde_json::from_slice(bytes).map_err(|error| {
        let problem = error.to_string();
        // The parser quotes values of another form, and a Catalog's status would show them.
        if error.is_data() && !problem.starts_with("missing field") {
            let (line, column) = (error.line(), error.column());
            return content(
                path,
                &format!("not of the form of a layout at line {line} column {column}"),
            );
        }
        content(path, &problem)
    })
}

fn verify(path: &Path, digest: &str) -> Result<(), StoreError> {
    let hash = || {
        let mut hash = Sha256::new();
        let mut file = open_ordinary(path)?;
        let mut buffer = vec![0; 1 << 16];
        loop {
            match file.read(&mut buffer)? {
                0 => return io::Result::Ok(hash.finalize()),
                read => hash.update(&buffer[..read]),
            }
        }
    };
    let hash = hash().map_err(|source| StoreError::Io { path: path.to_owned(), source })?;
    compare(path, digest, &hash)
}

fn compare(path: &Path, digest: &str, hash: &[u8]) -> Result<(), StoreError> {
    let hex = hexadecimal(hash);
    if digest.strip_prefix("sha256:") == Some(hex.as_str()) {
        return Ok(());
    }
    Err(content(path, &format!("content does not match its digest: it is sha256:{hex}")))
}

fn content(path: &Path, problem: &str) -> StoreError {
    StoreError::Content { path: path.to_owned(), problem: problem.to_owned() }
}
