//! A directory of payload directories, or a single payload directory.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::SystemTime;

use plimsoll_content::payload::{Directory, ReleaseHeader};

use super::{
    Fetched, Listing, PayloadStore, Signature, StoreError, head_of, names, no_such_release,
    unless_cancelled,
};
use crate::directory::read_directory;

/// What tells whether the files of a payload changed: name, size and time of each.
type Stamp = Vec<(String, u64, Option<SystemTime>)>;
/// What a payload says of itself, or why it cannot be read.
type Head = Result<ReleaseHeader, String>;

/// A directory of payloads. Payloads may be added and taken away at any time; one that did not
/// change is not read again to be listed.
#[derive(Debug)]
pub struct PayloadDirectory {
    path: PathBuf,
    known: Mutex<BTreeMap<PathBuf, (Stamp, Head)>>,
}

impl PayloadDirectory {
    /// The payloads in a directory.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), known: Mutex::default() }
    }

    /// The directories that look like payloads, with what is known of each.
    fn survey(&self) -> Result<Vec<(PathBuf, Head)>, StoreError> {
        let mut known = self.known.lock().expect("no thread panics while it holds the lock");
        let mut surveyed = Vec::new();
        for path in payloads(&self.path)? {
            let stamp = stamp(&path).map_err(|source| io_error(&path, source))?;
            let head = match known.get(&path) {
                Some((before, head)) if *before == stamp => head.clone(),
                _ => read_directory(&path)
                    .map_err(|error| error.to_string())
                    .and_then(|files| head_of(&files, None)),
            };
            surveyed.push((path, stamp, head));
        }
        *known = surveyed
            .iter()
            .map(|(path, stamp, head)| (path.clone(), (stamp.clone(), head.clone())))
            .collect();
        Ok(surveyed.into_iter().map(|(path, _, head)| (path, head)).collect())
    }
}

impl PayloadStore for PayloadDirectory {
    fn list(&self) -> Result<Listing, StoreError> {
        let mut listing = Listing::default();
        for (path, head) in self.survey()? {
            match head {
                Ok(head) => listing.releases.push(head),
                Err(problem) => listing.defects.push(format!("{}: {problem}", path.display())),
            }
        }
        Ok(listing)
    }

    fn fetch(&self, image: &str, cancelled: &AtomicBool) -> Result<Fetched, StoreError> {
        let surveyed = self.survey()?;
        unless_cancelled(cancelled)?;
        let heads = || surveyed.iter().filter_map(|(path, head)| Some((path, head.as_ref().ok()?)));
        let Some((path, head)) = heads().find(|(_, head)| names(image, head)) else {
            return Err(no_such_release(image, heads().map(|(_, head)| head)));
        };
        let files = read_directory(path).map_err(StoreError::Files)?;
        // The directory may have changed since it was listed: then it is not what was asked for.
        match head_of(&files, None) {
            Ok(now) if now.image == head.image => {
                Ok(Fetched { files, signature: Signature::NotSigned })
            }
            _ => Err(StoreError::Content {
                path: path.clone(),
                problem: "changed while it was read; a release is not changed but replaced"
                    .to_owned(),
            }),
        }
    }
}

/// The path itself if it is a payload, or else the payloads in it, in order.
fn payloads(path: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let is_payload = |path: &Path| path.join(Directory::ReleaseManifests.name()).is_dir();
    if is_payload(path) {
        return Ok(vec![path.to_owned()]);
    }
    let entries = fs::read_dir(path).map_err(|source| io_error(path, source))?;
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|source| io_error(path, source))?.path();
        if is_payload(&entry) {
            found.push(entry);
        }
    }
    found.sort();
    Ok(found)
}

fn stamp(payload: &Path) -> io::Result<Stamp> {
    let mut stamp = Stamp::new();
    for directory in Directory::ALL {
        let path = payload.join(directory.name());
        if !path.is_dir() {
            continue;
        }
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            // Through links: what they lead to is what is read.
            let Ok(metadata) = fs::metadata(entry.path()) else { continue };
            let name = format!("{directory}/{}", entry.file_name().to_string_lossy());
            stamp.push((name, metadata.len(), metadata.modified().ok()));
        }
    }
    stamp.sort();
    Ok(stamp)
}

fn io_error(path: &Path, source: io::Error) -> StoreError {
    StoreError::Io { path: path.to_owned(), source }
}
