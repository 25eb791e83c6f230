//! Writing to an image layout: blobs, and the list of its images.
//!
//! A blob appears under its digest only once all of it is there and matches. The index is replaced by
//! renaming, under a lock, so that several programs may add images at the same time.

use std::fs::{self, File};
use std::io::{self, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use plimsoll_content::hash::hexadecimal;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tempfile::NamedTempFile;

use super::{OciLayout, REF_NAME, content, parse, read_document, verify};
use crate::store::StoreError;

/// What every image layout says of itself.
const LAYOUT: &str = r#"{"imageLayoutVersion":"1.0.0"}"#;
/// Media type of an index.
const INDEX_TYPE: &str = "application/vnd.oci.image.index.v1+json";

/// What points to a blob, as documents of an image contain it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BlobDescriptor {
    pub(crate) media_type: String,
    /// As `sha256:HEX`.
    pub(crate) digest: String,
    /// In bytes.
    pub(crate) size: u64,
}

impl BlobDescriptor {
    pub(crate) fn to_json(&self) -> Value {
        let Self { media_type, digest, size } = self;
        json!({ "mediaType": media_type, "digest": digest, "size": size })
    }
}

/// An image that the layout lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListedImage {
    /// Its manifest, or its index of manifests.
    pub(crate) descriptor: BlobDescriptor,
    /// The name that it was listed under; empty if it has none.
    pub(crate) name: String,
}

/// A blob that is being written.
#[derive(Debug)]
pub(crate) struct BlobFile {
    file: NamedTempFile,
    hash: Sha256,
    /// Bytes written so far.
    size: u64,
}

impl BlobFile {
    /// Bytes written so far.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Appends bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.hash.update(bytes);
        self.size += bytes.len() as u64;
        Ok(())
    }

    /// Forgets all that was written.
    pub(crate) fn restart(&mut self) -> io::Result<()> {
        self.file.as_file().set_len(0)?;
        self.file.as_file_mut().rewind()?;
        self.hash = Sha256::new();
        self.size = 0;
        Ok(())
    }

    /// The digest of what was written, as `sha256:HEX`.
    pub(crate) fn digest(&self) -> String {
        format!("sha256:{}", hexadecimal(&self.hash.clone().finalize()))
    }
}

impl OciLayout {
    /// Makes the directory an image layout, unless it is one.
    ///
    /// # Errors
    /// [`StoreError::Io`] when it cannot be written, [`StoreError::Content`] when something else is
    /// there.
    pub(crate) fn create(&self) -> Result<(), StoreError> {
        let marker = self.path.join("oci-layout");
        if marker.is_file() {
            return Ok(());
        }
        let blobs = self.path.join("blobs/sha256");
        let is_empty = match fs::read_dir(&self.path) {
            Ok(mut entries) => entries.next().is_none(),
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
        // Another program may be making the same layout.
        if !is_empty && !blobs.is_dir() {
            return Err(content(&self.path, "neither an OCI image layout nor empty"));
        }
        fs::create_dir_all(&blobs).map_err(|source| io_error(&blobs, source))?;
        if !self.index_path().is_file() {
            let index = json!({ "schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": [] });
            self.replace(&self.index_path(), &index.to_string())?;
        }
        self.replace(&marker, LAYOUT)
    }

    /// Whether a blob is there and is what its digest says. A broken one is no blob.
    ///
    /// # Errors
    /// [`StoreError::Content`] when the digest is none.
    pub(crate) fn has_blob(&self, descriptor: &BlobDescriptor) -> Result<bool, StoreError> {
        let path = self.blob(&descriptor.digest)?;
        let is_complete = fs::metadata(&path).is_ok_and(|it| it.len() == descriptor.size);
        Ok(is_complete && verify(&path, &descriptor.digest).is_ok())
    }

    /// Begins a blob.
    ///
    /// # Errors
    /// [`StoreError::Io`] when no file can be made.
    pub(crate) fn begin_blob(&self) -> Result<BlobFile, StoreError> {
        let blobs = self.path.join("blobs/sha256");
        let file = tempfile::Builder::new().prefix(".partial-").tempfile_in(&blobs);
        let file = file.map_err(|source| io_error(&blobs, source))?;
        Ok(BlobFile { file, hash: Sha256::new(), size: 0 })
    }

    /// Puts a blob under its digest.
    ///
    /// # Errors
    /// [`StoreError::Io`] when it cannot be renamed, [`StoreError::Content`] when the digest is none.
    pub(crate) fn finish_blob(&self, blob: BlobFile) -> Result<String, StoreError> {
        let digest = blob.digest();
        let path = self.blob(&digest)?;
        persist(blob.file, &path)?;
        Ok(digest)
    }

    /// Writes a blob that is in memory.
    ///
    /// # Errors
    /// [`StoreError::Io`] when it cannot be written.
    pub(crate) fn add_blob(
        &self,
        bytes: &[u8],
        media_type: &str,
    ) -> Result<BlobDescriptor, StoreError> {
        let mut blob = self.begin_blob()?;
        blob.push(bytes).map_err(|source| io_error(&self.path, source))?;
        let (media_type, size) = (media_type.to_owned(), blob.size());
        Ok(BlobDescriptor { media_type, digest: self.finish_blob(blob)?, size })
    }

    /// Lists an image under a name. What had that name before is listed no more.
    ///
    /// # Errors
    /// [`StoreError::Io`] and [`StoreError::Content`] when the index cannot be read or written.
    pub(crate) fn add_image(
        &self,
        descriptor: &BlobDescriptor,
        name: &str,
    ) -> Result<(), StoreError> {
        let marker = self.path.join("oci-layout");
        let lock = File::open(&marker).and_then(|file| file.lock().map(|()| file));
        let _lock = lock.map_err(|source| io_error(&marker, source))?;
        let mut index = self.index()?;
        let path = self.index_path();
        let Some(images) = index["manifests"].as_array_mut() else {
            return Err(content(&path, "it has no list `manifests`"));
        };
        images.retain(|image| image["annotations"][REF_NAME] != name);
        let mut listed = descriptor.to_json();
        listed["annotations"] = json!({ REF_NAME: name });
        images.push(listed);
        self.replace(&path, &index.to_string())
    }

    /// The images that the layout lists.
    ///
    /// # Errors
    /// [`StoreError::Io`] and [`StoreError::Content`] when the index cannot be read.
    pub(crate) fn images(&self) -> Result<Vec<ListedImage>, StoreError> {
        let path = self.index_path();
        let index = self.index()?;
        let images = index["manifests"].as_array();
        let images = images.ok_or_else(|| content(&path, "it has no list `manifests`"))?;
        let listed = |image: &Value| {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let descriptor = BlobDescriptor {
                media_type: text(&image["mediaType"]),
                digest: text(&image["digest"]),
                size: image["size"].as_u64().unwrap_or_default(),
            };
            ListedImage { descriptor, name: text(&image["annotations"][REF_NAME]) }
        };
        Ok(images.iter().map(listed).collect())
    }

    /// A small blob, compared with its digest.
    ///
    /// # Errors
    /// [`StoreError::Io`] and [`StoreError::Content`] when it cannot be read or does not match.
    pub(crate) fn small_blob(&self, digest: &str) -> Result<Vec<u8>, StoreError> {
        self.document(digest)
    }

    /// Opens a blob, compared with its digest.
    ///
    /// # Errors
    /// [`StoreError::Io`] and [`StoreError::Content`] when it cannot be read or does not match.
    pub(crate) fn open_blob(&self, digest: &str) -> Result<(File, u64), StoreError> {
        let path = self.blob(digest)?;
        verify(&path, digest)?;
        let opened = File::open(&path).and_then(|file| Ok((file.metadata()?.len(), file)));
        let (size, file) = opened.map_err(|source| io_error(&path, source))?;
        Ok((file, size))
    }

    fn index_path(&self) -> PathBuf {
        self.path.join("index.json")
    }

    fn index(&self) -> Result<Value, StoreError> {
        let path = self.index_path();
        parse(&path, &read_document(&path)?)
    }

    fn replace(&self, path: &Path, text: &str) -> Result<(), StoreError> {
        let file = NamedTempFile::new_in(&self.path).and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            Ok(file)
        });
        persist(file.map_err(|source| io_error(path, source))?, path)
    }
}

/// The digest of bytes, as `sha256:HEX`.
pub(crate) fn digest_of(bytes: &[u8]) -> String {
    format!("sha256:{}", hexadecimal(&Sha256::digest(bytes)))
}

/// Renames a temporary file, readable for everybody as other files of a layout are.
fn persist(file: NamedTempFile, path: &Path) -> Result<(), StoreError> {
    use std::os::unix::fs::PermissionsExt as _;
    let permissions = fs::Permissions::from_mode(0o644);
    file.as_file().set_permissions(permissions).map_err(|source| io_error(path, source))?;
    file.persist(path).map_err(|error| io_error(path, error.error))?;
    Ok(())
}

pub(crate) fn io_error(path: &Path, source: io::Error) -> StoreError {
    StoreError::Io { path: path.to_owned(), source }
}
