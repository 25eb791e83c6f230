//! Opening catalogs: the cache directory, progress in a terminal, damaged indices.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use plimsoll_content::catalog::{CatalogIndex, IndexError};
use plimsoll_source::catalog::{Bytes, Cache, Progress, open, rebuild};

use crate::progress::ProgressLine;

/// Where the catalogs lie in a pod, and where a controller looks for them unless it is named other
/// directories.
pub(crate) const CATALOGS_PATH: &str = "/catalogs";
/// Directory of the indices in the cache directory.
pub(crate) const INDICES: &str = "catalogs";

/// A catalog.
#[derive(Debug, Args)]
pub struct CatalogArguments {
    /// File or directory of the catalog; also a tree of bundle directories
    catalog: PathBuf,
    /// Ignore the cached index
    #[arg(long)]
    no_cache: bool,
}

impl CatalogArguments {
    /// The file or directory.
    pub(crate) fn path(&self) -> &Path {
        &self.catalog
    }
}

/// Opens a catalog and does something with it; when its cached index turns out to be damaged, it
/// is built anew and the same is done once more.
pub(crate) fn with_catalog<T>(
    arguments: &CatalogArguments,
    mut act: impl FnMut(&CatalogIndex<Bytes>) -> Result<T, anyhow::Error>,
) -> Result<T, anyhow::Error> {
    let path = &arguments.catalog;
    let cache = if arguments.no_cache { None } else { cache_directory(INDICES) };
    let cache = cache.as_deref().map(Cache::new);
    let context = || format!("failed to open catalog `{}`", path.display());
    let index = shown(path, |show| open(path, cache.as_ref(), show)).with_context(context)?;
    let result = act(&index);
    if let Err(error) = &result
        && let Some(IndexError::Damaged(_) | IndexError::Io(_)) = error.downcast_ref()
    {
        let index =
            shown(path, |show| rebuild(path, cache.as_ref(), show)).with_context(context)?;
        return act(&index);
    }
    result
}

/// A catalog of a command line: `PATH` or `[NAMESPACE/]NAME=PATH`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CatalogPath {
    /// Its namespace; empty if it was given none.
    pub(crate) namespace: String,
    /// Its name: the one it was given, else that of the file up to the first dot.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
}

impl CatalogPath {
    /// Reads it.
    ///
    /// # Errors
    ///
    /// When the path is empty, or a name that is given.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let Some((given, path)) = text.split_once('=') else {
            if text.is_empty() {
                return Err("it names no file: write PATH or NAME=PATH".to_owned());
            }
            let path = PathBuf::from(text);
            return Ok(Self { namespace: String::new(), name: name_of(&path), path });
        };
        let (namespace, name) = match given.split_once('/') {
            Some((namespace, name)) => (Some(namespace), name),
            None => (None, given),
        };
        if name.is_empty() || namespace == Some("") {
            return Err("a name before `=` is empty: write PATH or NAME=PATH".to_owned());
        }
        if path.is_empty() {
            return Err(format!("it names no file: write {given}=PATH"));
        }
        let namespace = namespace.unwrap_or_default().to_owned();
        Ok(Self { namespace, name: name.to_owned(), path: PathBuf::from(path) })
    }

    /// Reads one of a cluster, whose Catalogs are in no namespace.
    ///
    /// # Errors
    ///
    /// As [`Self::parse`], and when a namespace is given.
    pub(crate) fn without_namespace(text: &str) -> Result<Self, String> {
        let found = Self::parse(text)?;
        match found.namespace.is_empty() {
            true => Ok(found),
            false => Err("a Catalog is in no namespace: write PATH or NAME=PATH".to_owned()),
        }
    }
}

/// The name of a catalog that was given none: that of its file, up to the first dot.
fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    match name.split_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem.to_owned(),
        _ => name.into_owned(),
    }
}

/// Where the program keeps things of a sort: below `$XDG_CACHE_HOME`, or `.cache` in the home
/// directory.
pub(crate) fn cache_directory(sort: &str) -> Option<PathBuf> {
    let given = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    // The specification says that relative paths are to be ignored.
    let given = given.filter(|path| path.is_absolute());
    let base = given.or_else(|| std::env::home_dir().map(|home| home.join(".cache")))?;
    Some(base.join("plimsoll").join(sort))
}

/// Loads, and shows the progress on the terminal if it takes long.
pub(crate) fn shown<T>(path: &Path, load: impl FnOnce(&mut dyn FnMut(Progress)) -> T) -> T {
    let line = ProgressLine::begin(format!("reading {}", path.display()));
    let mut shown = None;
    load(&mut |progress| {
        let percent = progress.done.saturating_mul(100).checked_div(progress.all).unwrap_or(100);
        if shown != Some(percent) {
            shown = Some(percent);
            line.show(&format!("{percent}%"));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_catalog_is_a_path_with_or_without_a_name() {
        for (text, namespace, name, path) in [
            ("there/main.v1.json", "", "main", "there/main.v1.json"),
            (".hidden", "", ".hidden", ".hidden"),
            ("main=there", "", "main", "there"),
            ("team/main=there=here", "team", "main", "there=here"),
        ] {
            let (namespace, name) = (namespace.to_owned(), name.to_owned());
            let expected = CatalogPath { namespace, name, path: PathBuf::from(path) };
            assert_eq!(CatalogPath::parse(text), Ok(expected), "{text}");
        }
        for text in ["", "=", "=there", "main=", "/main=there", "team/=there"] {
            assert!(CatalogPath::parse(text).is_err(), "{text}");
        }
        assert!(CatalogPath::without_namespace("team/main=there").is_err());
        assert!(CatalogPath::without_namespace("main=there").is_ok());
    }
}
