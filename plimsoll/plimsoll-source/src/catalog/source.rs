//! Catalogs by the source of a Catalog object: their index, whether they changed, and the content of
//! a bundle.
//!
//! A source is a directory, or an image in an OCI layout. What changes while it is read is an error
//! and not a defect of the catalog: it is to be read again.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use plimsoll_api::olm::{CatalogSource, CatalogSourceType};
use plimsoll_content::bundle::{self, BundleFile, BundleObjects};
use plimsoll_content::catalog::{
    BundleSearch, CatalogBundle, CatalogIndex, CatalogLoader, LoadedCatalog,
};
use plimsoll_content::hash::hexadecimal;
use sha2::{Digest as _, Sha256};

use super::files::{Found, IGNORE_FILE};
use super::ignored::IgnorePatterns;
use super::{
    Bytes, Cache, CatalogError, PIECE, Progress, found, index, open_found, unreadable, whole,
};
use crate::store::StoreError;
use crate::store::oci::{LayoutImage, OciLayout};

/// Label of a catalog's image: the directory with the files.
const CONFIGS_LABEL: &str = "operators.operatorframework.io.index.configs.v1";
/// That directory without the label.
const CONFIGS: &str = "/configs";
/// The directories of a bundle's image with its files.
const BUNDLE_DIRECTORIES: [&str; 2] = ["manifests", "metadata"];
/// What the digests of layouts begin with.
const SHA256: &str = "sha256:";

/// A catalog that was read.
#[derive(Debug)]
pub struct OpenCatalog {
    /// Its index, defects and all.
    pub index: CatalogIndex<Bytes>,
    /// Digest of its content, as `sha256:HEX`: that of the files, or that of the image's manifest.
    pub digest: String,
}

/// The content of a bundle.
#[derive(Debug)]
pub struct OpenBundle {
    /// The files, by their paths in the bundle's directory.
    pub files: Vec<BundleFile>,
    /// Digest of the content, as `sha256:HEX`: that of the files, or that of the image's manifest.
    pub digest: String,
}

impl OpenBundle {
    fn of_files(files: Vec<BundleFile>) -> Self {
        let mut sorted: Vec<&BundleFile> = files.iter().collect();
        sorted.sort_by(|left, right| left.path.cmp(&right.path));
        let mut all = Sha256::new();
        for file in sorted {
            all.update((file.path.len() as u64).to_le_bytes());
            all.update(file.path.as_bytes());
            all.update(Sha256::digest(&file.bytes));
        }
        Self { digest: format!("{SHA256}{}", hexadecimal(&all.finalize())), files }
    }
}

/// Why the content of a bundle cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ContentError {
    /// The catalog cannot be read.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The catalog has no such bundle.
    #[error("the catalog has no bundle `{bundle}` of package `{package}`")]
    NoBundle {
        /// The package.
        package: String,
        /// The name of the bundle.
        bundle: String,
    },
    /// The catalog names an image, which is not where the catalog is.
    #[error(
        "the content of bundle `{bundle}` is in the image `{image}`, which the catalog's source does \
         not have: copy the image into an image layout together with the catalog, or use a catalog \
         that contains the manifests, as `plimsoll catalog convert` makes one of bundle directories"
    )]
    OnlyImage {
        /// The name of the bundle.
        bundle: String,
        /// Pull specification of the image.
        image: String,
    },
    /// The catalog has neither manifests of the bundle nor an image.
    #[error("the catalog has neither manifests nor an image of bundle `{bundle}`")]
    NoContent {
        /// The name of the bundle.
        bundle: String,
    },
    /// What the catalog says of the bundle cannot be read.
    #[error("bundle `{bundle}`: {problem}")]
    Defective {
        /// The name of the bundle.
        bundle: String,
        /// What is wrong, in a clause.
        problem: String,
    },
}

/// Opens the catalog of a source, from the cache if it is there. It may take long, and waits for the
/// disk.
///
/// # Errors
/// [`CatalogError`] when the source cannot be read, has no files, or changes while it is read.
/// Defects of the catalog are in the index.
pub fn open_source(
    source: &CatalogSource,
    cache: Option<&Cache>,
) -> Result<OpenCatalog, CatalogError> {
    open_source_with(source, cache, &mut |_| {})
}

/// Does the same as [`open_source`], and reports how much of a directory is read.
///
/// # Errors
/// As [`open_source`].
pub fn open_source_with(
    source: &CatalogSource,
    cache: Option<&Cache>,
    progress: &mut dyn FnMut(Progress),
) -> Result<OpenCatalog, CatalogError> {
    let path = Path::new(&source.path);
    match source.type_ {
        CatalogSourceType::Directory => unchanged(path, |found| {
            let opened = open_found(path, found, cache, progress)?;
            Ok(OpenCatalog { digest: format!("{SHA256}{}", opened.digest), ..opened })
        }),
        CatalogSourceType::ImageLayout => {
            let layout = OciLayout::new(path);
            let image = layout.image(&source.reference)?;
            let hex = image.digest.trim_start_matches(SHA256).to_owned();
            let digest = image.digest.clone();
            if let Some(index) = cache.and_then(|cache| cache.by_content(&hex)) {
                return Ok(OpenCatalog { index, digest });
            }
            let loaded = loaded(&catalog_files(&image)?);
            if let Some(cache) = cache
                && cache.store(&hex, &loaded.index)
                && let Some(index) = cache.by_content(&hex)
            {
                return Ok(OpenCatalog { index, digest });
            }
            Ok(OpenCatalog { index: index(path, loaded)?, digest })
        }
    }
}

/// Opens the content that a source had, by its digest, if the cache still has it.
pub fn open_cached(digest: &str, cache: &Cache) -> Option<OpenCatalog> {
    let index = cache.by_content(digest.strip_prefix(SHA256)?)?;
    Some(OpenCatalog { index, digest: digest.to_owned() })
}

/// A text that differs when the source may have changed: of the sizes, times and inodes of a
/// directory's files, or the digest of the image's manifest. Cheap compared with opening it.
///
/// # Errors
/// [`CatalogError`] when the source cannot be read or has no files.
pub fn version_of(source: &CatalogSource) -> Result<String, CatalogError> {
    let path = Path::new(&source.path);
    match source.type_ {
        CatalogSourceType::Directory => Ok(found(path)?.key()),
        CatalogSourceType::ImageLayout => Ok(OciLayout::new(path).image(&source.reference)?.digest),
    }
}

/// The content of a bundle. It is taken from a tree of bundles, from the manifests that a file-based
/// catalog contains, or from the bundle's image in the same layout.
///
/// # Errors
/// [`ContentError`] when the catalog has no such bundle, when the source does not have its content,
/// or when either cannot be read.
pub fn bundle_content(
    source: &CatalogSource,
    package: &str,
    bundle: &str,
) -> Result<OpenBundle, ContentError> {
    let path = Path::new(&source.path);
    let wanted = Wanted { package, bundle };
    match source.type_ {
        CatalogSourceType::Directory => {
            unchanged(path, |found| Ok(wanted.in_directory(path, found)))?.map(OpenBundle::of_files)
        }
        CatalogSourceType::ImageLayout => wanted.in_layout(&OciLayout::new(path), source),
    }
}

/// What is read of a directory, unless it changes meanwhile.
fn unchanged<T>(
    path: &Path,
    read: impl FnOnce(&Found) -> Result<T, CatalogError>,
) -> Result<T, CatalogError> {
    let before = found(path)?;
    let result = read(&before);
    if found(path).is_ok_and(|after| after.key() == before.key()) {
        return result;
    }
    Err(CatalogError::Changing(path.to_owned()))
}

/// The bundle that is looked for.
struct Wanted<'w> {
    package: &'w str,
    bundle: &'w str,
}

impl Wanted<'_> {
    fn in_directory(&self, path: &Path, found: &Found) -> Result<Vec<BundleFile>, ContentError> {
        let names: Vec<&str> = found.files.iter().map(|file| file.name.as_str()).collect();
        if found.is_bundles {
            return self.in_tree(&names, &mut |number| {
                whole(&found.files[number]).map_err(|error| error.to_string())
            });
        }
        let mut search = BundleSearch::new(self.package, self.bundle);
        let mut piece = vec![0; PIECE];
        for file in &found.files {
            let mut read = || -> std::io::Result<()> {
                let mut from = File::open(&file.path)?;
                let mut to = search.file(&file.name);
                loop {
                    match from.read(&mut piece)? {
                        0 => break,
                        read => to.push(&piece[..read]),
                    }
                }
                to.finish();
                Ok(())
            };
            read().map_err(|source| unreadable(&path.join(&file.name), source))?;
            if search.is_found() {
                break;
            }
        }
        let found = self.found(search)?;
        self.carried(&found).ok_or_else(|| self.only_image(found.image))
    }

    fn in_layout(
        &self,
        layout: &OciLayout,
        source: &CatalogSource,
    ) -> Result<OpenBundle, ContentError> {
        let image = layout.image(&source.reference).map_err(CatalogError::from)?;
        let files = catalog_files(&image)?;
        let names: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
        if bundle::is_bundles(names.iter().copied()) {
            let found = self.in_tree(&names, &mut |number| Ok(files[number].bytes.clone()));
            return found.map(OpenBundle::of_files);
        }
        let mut search = BundleSearch::new(self.package, self.bundle);
        for file in &files {
            let mut to = search.file(&file.path);
            to.push(&file.bytes);
            to.finish();
        }
        let found = self.found(search)?;
        if let Some(files) = self.carried(&found) {
            return Ok(OpenBundle::of_files(files));
        }
        if found.image.is_empty() {
            return Err(self.only_image(found.image));
        }
        let image = match layout.image(&found.image) {
            Err(StoreError::NoSuchImage { .. }) => return Err(self.only_image(found.image)),
            other => other.map_err(CatalogError::from)?,
        };
        let files = image.files(&BUNDLE_DIRECTORIES, "bundle").map_err(CatalogError::from)?;
        let files = files.into_iter().map(|(path, bytes)| BundleFile { path, bytes }).collect();
        Ok(OpenBundle { files, digest: image.digest })
    }

    fn in_tree(
        &self,
        names: &[&str],
        read: &mut dyn FnMut(usize) -> Result<Vec<u8>, String>,
    ) -> Result<Vec<BundleFile>, ContentError> {
        bundle::find(names, self.package, self.bundle, read)
            .map_err(|problem| self.defective(problem))?
            .ok_or_else(|| self.missing())
    }

    fn found(&self, search: BundleSearch) -> Result<CatalogBundle, ContentError> {
        let found = search.finish().map_err(|problem| self.defective(problem))?;
        found.ok_or_else(|| self.missing())
    }

    fn carried(&self, found: &CatalogBundle) -> Option<Vec<BundleFile>> {
        (!found.objects.is_empty()).then(|| bundle::carried_files(self.package, found))
    }

    fn missing(&self) -> ContentError {
        let (package, bundle) = (self.package.to_owned(), self.bundle.to_owned());
        ContentError::NoBundle { package, bundle }
    }

    fn defective(&self, problem: String) -> ContentError {
        ContentError::Defective { bundle: self.bundle.to_owned(), problem }
    }

    fn only_image(&self, image: String) -> ContentError {
        let bundle = self.bundle.to_owned();
        match image.is_empty() {
            true => ContentError::NoContent { bundle },
            false => ContentError::OnlyImage { bundle, image },
        }
    }
}

/// The files of the catalog in an image, by their paths in the catalog.
fn catalog_files(image: &LayoutImage<'_>) -> Result<Vec<BundleFile>, CatalogError> {
    let label = image.label(CONFIGS_LABEL)?;
    let directory = label.as_deref().unwrap_or(CONFIGS).trim_matches('/').to_owned();
    let files = image.files(&[&directory], "catalog")?;
    let within = |path: &str| path[directory.len()..].trim_start_matches('/').to_owned();
    let mut files: BTreeMap<String, Vec<u8>> =
        files.into_iter().map(|(path, bytes)| (within(&path), bytes)).collect();
    let patterns = ignore_patterns(&files);
    files.retain(|path, _| !is_ignore_file(path) && !patterns.is_left_out(Path::new(path)));
    if files.is_empty() {
        let problem = format!("image {} has no files below /{directory}", image.digest);
        let path = image.path().to_owned();
        return Err(StoreError::Content { path, problem }.into());
    }
    Ok(files.into_iter().map(|(path, bytes)| BundleFile { path, bytes }).collect())
}

/// The patterns that leave files out.
fn ignore_patterns(files: &BTreeMap<String, Vec<u8>>) -> IgnorePatterns {
    let mut patterns = IgnorePatterns::default();
    for (path, bytes) in files.iter().filter(|(path, _)| is_ignore_file(path)) {
        let directory = path.strip_suffix(IGNORE_FILE).unwrap_or_default().trim_end_matches('/');
        // A line that is no pattern leaves nothing out.
        let _ = patterns.add(Path::new(directory), bytes);
    }
    patterns
}

fn is_ignore_file(path: &str) -> bool {
    path.rsplit('/').next() == Some(IGNORE_FILE)
}

/// The index of a catalog in memory.
fn loaded(files: &[BundleFile]) -> LoadedCatalog {
    let mut loader = CatalogLoader::new();
    let names: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
    if bundle::is_bundles(names.iter().copied()) {
        let mut read = |number: usize| Ok(files[number].bytes.clone());
        bundle::convert_tree(&names, BundleObjects::LeftOut, &mut read).load_into(&mut loader);
        return loader.finish();
    }
    for file in files {
        loader.read_file(&file.path, &file.bytes);
    }
    loader.finish()
}

#[cfg(test)]
mod tests;
