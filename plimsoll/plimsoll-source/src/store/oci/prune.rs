//! Keeping a layout that is a cache below a size: what was used longest ago goes first.
//!
//! A blob's time of modification is the time of its last use. What was used a moment ago stays, even
//! if the cache is too large for that: this or another program may be about to read it.

use std::fs::{self, File};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use super::OciLayout;
use super::write::io_error;
use crate::store::StoreError;

/// How long a blob is spared after its use: longer than an image takes to be pulled and read.
const IN_USE: Duration = Duration::from_secs(60 * 60);

impl OciLayout {
    /// Notes that a blob was used now. That it cannot be noted is no reason not to use it.
    pub(crate) fn mark_used(&self, digest: &str) {
        let Ok(path) = self.blob(digest) else { return };
        let _ = File::open(path).and_then(|file| file.set_modified(SystemTime::now()));
    }

    /// Removes the blobs that were used longest ago, and unfinished ones, until those that are left
    /// have no more than so many bytes.
    ///
    /// # Errors
    /// [`StoreError::Io`] when they cannot be listed. A blob that cannot be removed stays.
    pub(crate) fn prune(&self, size_max: u64, now: SystemTime) -> Result<(), StoreError> {
        let blobs = self.path.join("blobs/sha256");
        let mut size = 0_u64;
        let mut found: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
        for entry in fs::read_dir(&blobs).map_err(|source| io_error(&blobs, source))? {
            let entry = entry.map_err(|source| io_error(&blobs, source))?;
            // Another program may have removed it meanwhile.
            let Ok(metadata) = entry.metadata() else { continue };
            let Ok(used) = metadata.modified() else { continue };
            size = size.saturating_add(metadata.len());
            found.push((used, metadata.len(), entry.path()));
        }
        found.sort();
        for (used, length, path) in found {
            let is_in_use = now.duration_since(used).is_ok_and(|age| age < IN_USE) || used > now;
            if size <= size_max || is_in_use {
                break;
            }
            if fs::remove_file(path).is_ok() {
                size -= length;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    //! What goes and what stays.

    use super::*;

    #[test]
    fn what_was_used_longest_ago_goes_first_and_what_is_in_use_stays() {
        let here = tempfile::tempdir().expect("a directory");
        let layout = OciLayout::new(here.path());
        layout.create().expect("it is made");
        let now = SystemTime::now();
        let blob = |text: &str, hours: u64| {
            let digest = layout.add_blob(text.as_bytes(), "").expect("it is written").digest;
            let file = File::open(layout.blob(&digest).expect("a path")).expect("it is there");
            let used = now - Duration::from_secs(60 * 60 * hours);
            file.set_modified(used).expect("it can be set");
            digest
        };
        let all = [blob("12345", 3), blob("1234", 5), blob("123", 4), blob("12", 0)];
        let left = |size_max: u64| {
            layout.prune(size_max, now).expect("it can be listed");
            let size = |digest: &String| {
                let path = layout.blob(digest).expect("a path");
                fs::metadata(path).map_or(0, |metadata| metadata.len())
            };
            all.iter().map(size).collect::<Vec<u64>>()
        };
        assert_eq!(left(14), [5, 4, 3, 2]);
        assert_eq!(left(10), [5, 0, 3, 2]);
        layout.mark_used(&all[0]);
        assert_eq!(left(0), [5, 0, 0, 2]);
    }
}
