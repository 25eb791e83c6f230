//! From the path of a catalog to its index: by reading it, or from the cache.
//!
//! A catalog is a file, a directory of files (`.indexignore` leaves some out), a bundle directory,
//! or a tree of packages with their bundles. What was read once is kept in a cache directory under
//! the digest of its content; which content some files have is remembered by their size, times and
//! inode, so that opening a catalog again reads none of them.

mod cache;
mod files;
mod ignored;
mod roots;
mod source;

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use plimsoll_content::bundle::{self, BundleFile, BundleObjects};
use plimsoll_content::catalog::{
    self, CatalogIndex, CatalogLoader, IndexError, IndexStorage, LoadedCatalog,
};
use plimsoll_content::diagnostic::Diagnostic;
use plimsoll_content::hash::hexadecimal;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

pub use cache::Cache;
use files::{Found, FoundFile, find};
pub use roots::CatalogRoots;
pub use source::{
    ContentError, OpenBundle, OpenCatalog, bundle_content, open_cached, open_source,
    open_source_with, version_of,
};

use crate::bounded::{open_ordinary, read_bounded};
use crate::store::StoreError;

/// How much of a file is read at once.
const PIECE: usize = 256 << 10;
/// Largest file that is read as a whole: one of a bundle directory, or one to be converted.
const WHOLE_FILE_MAX: u64 = 64 << 20;

/// Why a catalog cannot be opened at all. What is wrong inside it is a [`Diagnostic`].
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// The path leads to nothing that can be read.
    #[error("failed to read `{path}`")]
    Unreadable {
        /// The file or directory, as it was given or found below it.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The path leads out of the directories that catalogs are read from.
    #[error(
        "`{path}` is in none of the directories that catalogs are read from ({}): put the catalog \
         into one, or name its directory with `plimsoll run --catalog-dir DIR`", list(.roots)
    )]
    Outside {
        /// The path, as it was given.
        path: PathBuf,
        /// The directories.
        roots: Vec<String>,
    },
    /// There are no files in it.
    #[error("`{0}` contains no files")]
    Empty(PathBuf),
    /// Files changed, came or went while it was read.
    #[error("`{0}` changed while it was read: it is read again when it no longer changes")]
    Changing(PathBuf),
    /// An image layout cannot be read.
    #[error(transparent)]
    Layout(#[from] StoreError),
    /// What was just written cannot be opened.
    #[error("the index of `{path}` cannot be used")]
    Index {
        /// The catalog that the index was made of.
        path: PathBuf,
        /// What is wrong with the index.
        source: IndexError,
    },
}

/// How much of a catalog has been read, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Bytes read so far.
    pub done: u64,
    /// Bytes of all files together.
    pub all: u64,
}

/// The bytes of an index: in memory, or in the cache.
#[derive(Debug)]
pub enum Bytes {
    /// In memory.
    Memory(Vec<u8>),
    /// In a file; what is asked for is read.
    File(File),
}

impl IndexStorage for Bytes {
    fn read(&self, offset: u64, length: usize) -> io::Result<Cow<'_, [u8]>> {
        match self {
            Self::Memory(bytes) => bytes.read(offset, length),
            Self::File(file) => {
                // A damaged length must not make us ask for more memory than there are bytes.
                if offset.saturating_add(length as u64) > self.size()? {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                let mut bytes = vec![0; length];
                file.read_exact_at(&mut bytes, offset)?;
                Ok(Cow::Owned(bytes))
            }
        }
    }

    fn size(&self) -> io::Result<u64> {
        match self {
            Self::Memory(bytes) => bytes.size(),
            Self::File(file) => file.metadata().map(|it| it.len()),
        }
    }
}

/// Opens a catalog, from the cache if it is there.
///
/// # Errors
/// [`CatalogError`] when the path cannot be read or has no files. Defects of the catalog are in the
/// index.
pub fn open(
    path: &Path,
    cache: Option<&Cache>,
    progress: &mut dyn FnMut(Progress),
) -> Result<CatalogIndex<Bytes>, CatalogError> {
    let found = found(path)?;
    if cache.is_none() {
        return index(path, read(&found, progress));
    }
    open_found(path, &found, cache, progress).map(|opened| opened.index)
}

/// Opens the catalog of certain files, from the cache if it is there; its digest has no prefix.
fn open_found(
    path: &Path,
    found: &Found,
    cache: Option<&Cache>,
    progress: &mut dyn FnMut(Progress),
) -> Result<OpenCatalog, CatalogError> {
    let key = found.key();
    if let Some((index, digest)) = cache.and_then(|cache| cache.by_files(&key)) {
        return Ok(OpenCatalog { index, digest });
    }
    // The same content may have been read at another path.
    let digest = digest(found).map_err(|source| unreadable(path, source))?;
    if let Some(cache) = cache
        && let Some(index) = cache.by_content(&digest)
    {
        cache.remember(&key, &digest, found);
        return Ok(OpenCatalog { index, digest });
    }
    let loaded = read(found, progress);
    if let Some(cache) = cache
        && cache.store(&digest, &loaded.index)
    {
        cache.remember(&key, &digest, found);
        // Who keeps it open for long needs little of it at a time.
        if let Some(index) = cache.by_content(&digest) {
            return Ok(OpenCatalog { index, digest });
        }
    }
    Ok(OpenCatalog { index: index(path, loaded)?, digest })
}

/// Reads a catalog without any cache.
///
/// # Errors
/// [`CatalogError`] when the path cannot be read or has no files.
pub fn load(
    path: &Path,
    progress: &mut dyn FnMut(Progress),
) -> Result<LoadedCatalog, CatalogError> {
    Ok(read(&found(path)?, progress))
}

/// Whether a path leads to bundle directories or package manifests, and not to a file-based
/// catalog.
///
/// # Errors
/// [`CatalogError`] when the path cannot be read or has no files.
pub fn is_bundles(path: &Path) -> Result<bool, CatalogError> {
    Ok(found(path)?.is_bundles)
}

/// Opens a catalog anew, whatever the cache says: for an index that turned out to be damaged.
///
/// # Errors
/// [`CatalogError`] when the path cannot be read or has no files.
pub fn rebuild(
    path: &Path,
    cache: Option<&Cache>,
    progress: &mut dyn FnMut(Progress),
) -> Result<CatalogIndex<Bytes>, CatalogError> {
    let found = found(path)?;
    let loaded = read(&found, progress);
    if let Some(cache) = cache
        && let Ok(digest) = digest(&found)
    {
        cache.store(&digest, &loaded.index);
    }
    index(path, loaded)
}

/// The documents of a catalog as a file-based catalog writes them, whatever form it has, and what
/// of it cannot be read.
///
/// # Errors
/// [`CatalogError`] when the path cannot be read or has no files.
pub fn documents(path: &Path) -> Result<(Vec<Value>, Vec<Diagnostic>), CatalogError> {
    let found = found(path)?;
    let (files, mut defects) = contents(&found);
    if found.is_bundles {
        let converted = bundle::convert(&files);
        defects.extend(converted.defects);
        return Ok((converted.documents.into_iter().map(|it| it.value).collect(), defects));
    }
    let mut all = Vec::new();
    for file in &files {
        let (values, wrong) = catalog::documents(&file.path, &file.bytes);
        all.extend(values);
        defects.extend(wrong);
    }
    Ok((all, defects))
}

/// Reads the directory of a bundle, with everything that is wrong with it.
///
/// # Errors
/// [`CatalogError`] when the path cannot be read or has no files.
pub fn bundle(path: &Path) -> Result<bundle::ConvertedBundles, CatalogError> {
    let found = found(path)?;
    let (files, defects) = contents(&found);
    let mut converted = bundle::convert(&files);
    converted.defects.extend(defects);
    converted.defects.sort();
    Ok(converted)
}

/// Reads the files of the directory of a bundle, by their paths in it, and names those that cannot
/// be read.
///
/// # Errors
/// [`CatalogError`] when the path cannot be read or has no files.
pub fn bundle_files(path: &Path) -> Result<(Vec<BundleFile>, Vec<Diagnostic>), CatalogError> {
    Ok(contents(&found(path)?))
}

fn index(path: &Path, loaded: LoadedCatalog) -> Result<CatalogIndex<Bytes>, CatalogError> {
    CatalogIndex::open(Bytes::Memory(loaded.index))
        .map_err(|source| CatalogError::Index { path: path.to_owned(), source })
}

/// Paths as an error lists them.
fn list(paths: &[String]) -> String {
    if paths.is_empty() { "there are none".to_owned() } else { paths.join(", ") }
}

fn unreadable(path: &Path, source: io::Error) -> CatalogError {
    CatalogError::Unreadable { path: path.to_owned(), source }
}

fn found(path: &Path) -> Result<Found, CatalogError> {
    let found = find(path).map_err(|source| unreadable(path, source))?;
    if found.files.is_empty() && found.defects.is_empty() {
        return Err(CatalogError::Empty(path.to_owned()));
    }
    Ok(found)
}

fn read(found: &Found, progress: &mut dyn FnMut(Progress)) -> LoadedCatalog {
    let mut loader = CatalogLoader::new();
    loader.report(found.defects.iter().cloned());
    if found.is_bundles {
        let names: Vec<&str> = found.files.iter().map(|file| file.name.as_str()).collect();
        let all = found.files.iter().map(|file| file.size).sum();
        let mut done = 0;
        let converted = bundle::convert_tree(&names, BundleObjects::LeftOut, &mut |number| {
            let file = &found.files[number];
            done += file.size;
            progress(Progress { done, all });
            whole(file).map_err(|error| error.to_string())
        });
        converted.load_into(&mut loader);
        return loader.finish();
    }
    let all = found.files.iter().map(|file| file.size).sum();
    let mut done = 0;
    let mut piece = vec![0; PIECE];
    for file in &found.files {
        let mut take = || -> io::Result<()> {
            let mut from = File::open(&file.path)?;
            let mut to = loader.file(&file.name);
            loop {
                let read = from.read(&mut piece)?;
                if read == 0 {
                    to.finish();
                    return Ok(());
                }
                to.push(&piece[..read]);
                done += read as u64;
                progress(Progress { done, all });
            }
        };
        if let Err(error) = take() {
            loader.unreadable(&file.name, &error.to_string());
        }
    }
    loader.finish()
}

/// The contents of all files.
fn contents(found: &Found) -> (Vec<BundleFile>, Vec<Diagnostic>) {
    let mut files = Vec::new();
    let mut defects = found.defects.clone();
    for file in &found.files {
        match whole(file) {
            Ok(bytes) => files.push(BundleFile { path: file.name.clone(), bytes }),
            Err(error) => defects.push(bundle::unreadable(&file.name, &error.to_string())),
        }
    }
    (files, defects)
}

/// The content of a file.
fn whole(file: &FoundFile) -> io::Result<Vec<u8>> {
    read_bounded(open_ordinary(&file.path)?, WHOLE_FILE_MAX)
}

/// The digest of what was found: names and contents.
fn digest(found: &Found) -> io::Result<String> {
    let mut all = Sha256::new();
    all.update([u8::from(found.is_bundles)]);
    let mut piece = vec![0; PIECE];
    for file in &found.files {
        let mut one = Sha256::new();
        let mut from = File::open(&file.path)?;
        loop {
            match from.read(&mut piece)? {
                0 => break,
                read => one.update(&piece[..read]),
            }
        }
        all.update((file.name.len() as u64).to_le_bytes());
        all.update(file.name.as_bytes());
        all.update(one.finalize());
    }
    Ok(hexadecimal(&all.finalize()))
}

#[cfg(test)]
mod tests;
