//! A release as an image of the form that OpenShift's releases have: its files in
//! `release-manifests/`, and its version in labels and annotations.
//!
//! The same files give the same bytes, and so the same digest: entries are sorted and have neither
//! times nor owners.

use flate2::Compression;
use flate2::write::GzEncoder;
use plimsoll_content::hash::hexadecimal;
use plimsoll_content::payload::{Directory, ReleaseInfo, SourceFile};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::io::{self, Write as _};

use super::OciLayout;
use super::write::{BlobDescriptor, io_error};
use crate::store::{StoreError, head_of};

/// Label with the version of a release.
const RELEASE_LABEL: &str = "io.openshift.release";
/// What the configuration says that the image is for. The files are for any machine; one name for
/// all keeps the digest the same.
pub(super) const ARCHITECTURE: &str = "amd64";
const LAYER_TYPE: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
const CONFIG_TYPE: &str = "application/vnd.oci.image.config.v1+json";
const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";

impl OciLayout {
    /// Adds the image of a release, without listing it; the result is its manifest and its version.
    ///
    /// # Errors
    /// [`StoreError::Content`] when the files do not say which release they are, [`StoreError::Io`]
    /// when the layout cannot be written.
    pub(crate) fn add_release(
        &self,
        files: &[SourceFile],
    ) -> Result<(BlobDescriptor, String), StoreError> {
        let problem = |problem| StoreError::Content {
            path: Directory::ReleaseManifests.name().into(),
            problem,
        };
        let release = head_of(files, None).map_err(problem)?.release;
        let archive = archive(files).map_err(|source| io_error(&self.path, source))?;
        let compressed = compress(&archive).map_err(|source| io_error(&self.path, source))?;
        let layer = self.add_blob(&compressed, LAYER_TYPE)?;
        let config = config(&release, &archive).to_string();
        let config = self.add_blob(config.as_bytes(), CONFIG_TYPE)?;
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "config": config.to_json(),
            "layers": [layer.to_json()],
            "annotations": annotations(&release),
        });
        let manifest = self.add_blob(manifest.to_string().as_bytes(), MANIFEST_TYPE)?;
        Ok((manifest, release.version))
    }
}

fn config(release: &ReleaseInfo, archive: &[u8]) -> Value {
    let diff_id = format!("sha256:{}", hexadecimal(&Sha256::digest(archive)));
    let mut config = json!({
        "architecture": ARCHITECTURE,
        "os": "linux",
        "config": { "Labels": { RELEASE_LABEL: release.version } },
        "rootfs": { "type": "layers", "diff_ids": [diff_id] },
    });
    if let Some(created) = &release.created {
        config["created"] = json!(created);
    }
    config
}

fn annotations(release: &ReleaseInfo) -> Value {
    let mut annotations = json!({ "org.opencontainers.image.version": release.version });
    if let Some(created) = &release.created {
        annotations["org.opencontainers.image.created"] = json!(created);
    }
    if !release.url.is_empty() {
        annotations["org.opencontainers.image.url"] = json!(release.url);
    }
    annotations
}

fn archive(files: &[SourceFile]) -> io::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    for directory in Directory::ALL {
        let mut files: Vec<&SourceFile> =
            files.iter().filter(|file| file.directory == directory).collect();
        if files.is_empty() {
            continue;
        }
        files.sort_by(|one, other| one.name.cmp(&other.name));
        let mut header = header(tar::EntryType::Directory, 0o755, 0);
        archive.append_data(&mut header, format!("{directory}/"), io::empty())?;
        for SourceFile { name, bytes, .. } in files {
            let mut header = self::header(tar::EntryType::Regular, 0o644, bytes.len() as u64);
            archive.append_data(&mut header, format!("{directory}/{name}"), &**bytes)?;
        }
    }
    archive.into_inner()
}

fn header(kind: tar::EntryType, mode: u32, size: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size);
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    header
}

fn compress(archive: &[u8]) -> io::Result<Vec<u8>> {
    // Neither a time nor a name is in the header.
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(archive)?;
    encoder.finish()
}
