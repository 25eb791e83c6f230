//! A directory of indices, by the digest of the content they were made from.
//!
//! Nothing here fails: what cannot be read or written is as if it were not there, and what is
//! damaged is removed, to be built anew.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use plimsoll_content::catalog::{CatalogIndex, FORMAT_VERSION};

use super::Bytes;
use super::files::Found;

/// Most files that are kept; the oldest go.
const KEPT_MAX: usize = 128;
/// A file that changed so few seconds ago may change once more without its times telling.
const RECENT_SECONDS: i64 = 2;

/// A directory of indices.
#[derive(Debug, Clone)]
pub struct Cache {
    directory: PathBuf,
}

impl Cache {
    /// The cache in a directory, which is made when something is stored.
    pub fn new(directory: &Path) -> Self {
        Self { directory: directory.join(format!("v{FORMAT_VERSION}")) }
    }

    /// The index that was made of certain files as they are now, and the digest of their content.
    pub(super) fn by_files(&self, key: &str) -> Option<(CatalogIndex<Bytes>, String)> {
        let digest = fs::read_to_string(self.path(key, "files")).ok()?.trim().to_owned();
        Some((self.by_content(&digest)?, digest))
    }

    /// The index that was made of some content.
    pub(super) fn by_content(&self, digest: &str) -> Option<CatalogIndex<Bytes>> {
        // A damaged record must not lead anywhere.
        if digest.len() != 64 || !digest.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        let path = self.path(digest, "index");
        let file = File::open(&path).ok()?;
        match CatalogIndex::open(Bytes::File(file)) {
            Ok(index) => Some(index),
            Err(_) => {
                let _ = fs::remove_file(&path);
                None
            }
        }
    }

    /// Keeps an index; whether that worked.
    pub(super) fn store(&self, digest: &str, index: &[u8]) -> bool {
        let stored = self.write(&self.path(digest, "index"), index);
        self.prune();
        stored
    }

    /// Remembers which content some files have, unless one of them changed a moment ago.
    pub(super) fn remember(&self, key: &str, digest: &str, found: &Found) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let unchanged_since = i64::try_from(now).unwrap_or(i64::MAX) - RECENT_SECONDS;
        if found.files.iter().all(|file| file.modified.0 < unchanged_since) {
            self.write(&self.path(key, "files"), digest.as_bytes());
        }
    }

    fn path(&self, name: &str, extension: &str) -> PathBuf {
        self.directory.join(format!("{name}.{extension}"))
    }

    /// Writes a file so that no reader sees a part of it.
    fn write(&self, path: &Path, bytes: &[u8]) -> bool {
        let write = || -> std::io::Result<()> {
            fs::create_dir_all(&self.directory)?;
            let mut file = tempfile::NamedTempFile::new_in(&self.directory)?;
            file.write_all(bytes)?;
            file.persist(path)?;
            Ok(())
        };
        write().is_ok()
    }

    fn prune(&self) {
        let Ok(entries) = fs::read_dir(&self.directory) else { return };
        let mut files: Vec<(SystemTime, PathBuf)> = entries
            .filter_map(Result::ok)
            .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
            .collect();
        files.sort();
        for (_, path) in files.iter().take(files.len().saturating_sub(KEPT_MAX)) {
            let _ = fs::remove_file(path);
        }
    }
}
