//! The catalogs that packages are looked up in: those of the command line, or else those of the
//! cluster.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Args;
use jiff::Timestamp;
use plimsoll_api::Catalog;
use plimsoll_api::olm::{CatalogAvailability, CatalogSource, CatalogSourceType};
use plimsoll_content::catalog::{CatalogIndex, IndexedPackage};
use plimsoll_operators::query::unknown_package;
use plimsoll_source::catalog::{Bytes, Cache, OpenCatalog, open_source_with};

use crate::arguments::catalog::{CatalogPath, INDICES, cache_directory, shown};

/// The number of characters of a digest that are shown: the algorithm and twelve digits.
const DIGEST_SHOWN: usize = "sha256:".len() + 12;

/// The choice of catalogs to look up packages in.
#[derive(Debug, Clone, Default, Args)]
pub struct CatalogChoice {
    /// File or directory of a catalog, or NAME=PATH; the cluster's Catalogs without it
    ///
    /// A NAME that a Catalog of the cluster has stands for that one: a copy of what the controller
    /// reads. Without this option, Catalogs are used whose directory can be read from here; if some cannot,
    /// the cluster's resolver is asked in place of all.
    #[arg(long, value_name = "FILE", value_parser = CatalogPath::without_namespace)]
    pub(crate) catalog: Vec<CatalogPath>,
    /// Ignore the cached indices
    #[arg(long)]
    pub no_cache: bool,
}

/// A catalog that was opened.
pub(crate) struct OpenedCatalog {
    /// Name of the catalog.
    pub(crate) name: String,
    /// Weight of the catalog; lower values are preferred.
    pub(crate) weight: i64,
    /// Digest of its content.
    pub(crate) digest: String,
    /// The digest that the Catalog of this name in the cluster reports; `None` if it is the same or
    /// not known.
    pub(crate) differs_from: Option<String>,
    /// The time at which the controller read this content, or else at which the file was last
    /// written; `None` if neither is known.
    pub(crate) since: Option<Timestamp>,
    /// Whether it is a Catalog of the cluster, or a copy of one.
    pub(crate) is_in_cluster: bool,
    /// The source that it was read from.
    pub(crate) source: CatalogSource,
    pub(crate) index: CatalogIndex<Bytes>,
}

impl OpenedCatalog {
    fn new(
        name: String,
        weight: i64,
        in_cluster: Option<&Catalog>,
        source: CatalogSource,
        content: OpenCatalog,
    ) -> Self {
        let OpenCatalog { index, digest } = content;
        let status = in_cluster.and_then(|it| it.status.as_ref());
        let served = status.filter(|it| it.digest == digest).and_then(|it| it.last_read_time);
        let since = served.or_else(|| {
            let written = Path::new(&source.path).metadata().and_then(|it| it.modified()).ok()?;
            Timestamp::try_from(written).ok()
        });
        let reported = status.map(|it| it.digest.clone());
        let differs_from = reported.filter(|it| !it.is_empty() && *it != digest);
        let is_in_cluster = in_cluster.is_some();
        Self { name, weight, digest, differs_from, since, is_in_cluster, source, index }
    }
}

/// The catalogs of a command, in the order of preference.
#[derive(Default)]
pub(crate) struct OpenedCatalogs {
    /// The catalogs that were opened.
    pub(crate) opened: Vec<OpenedCatalog>,
    /// The Catalogs of the cluster that cannot be read on this machine, with their paths.
    pub(crate) elsewhere: Vec<(String, PathBuf)>,
    /// What the cluster's resolver says of the packages that no catalog has, by name, if it was asked.
    pub(crate) unknown: BTreeMap<String, String>,
}

impl CatalogChoice {
    /// Returns whether the command line names a catalog.
    pub(crate) fn is_named(&self) -> bool {
        !self.catalog.is_empty()
    }

    /// Opens the catalogs of the command line, or else those of the cluster that can be read on
    /// this machine.
    ///
    /// # Errors
    ///
    /// When a catalog of the command line cannot be read.
    pub(crate) fn open(
        &self,
        in_cluster: &BTreeMap<String, Catalog>,
    ) -> Result<OpenedCatalogs, anyhow::Error> {
        let cache = if self.no_cache { None } else { cache_directory(INDICES) };
        let cache = cache.as_deref().map(Cache::new);
        let mut catalogs = OpenedCatalogs::default();
        for (catalog, position) in self.catalog.iter().zip(0..) {
            let CatalogPath { namespace: _, name, path } = catalog.clone();
            if catalogs.opened.iter().any(|other| other.name == name) {
                bail!(
                    "two catalogs are named `{name}`: name one of them, as in `--catalog other={}`",
                    path.display()
                );
            }
            let source = directory(&path);
            let content = shown(&path, |show| open_source_with(&source, cache.as_ref(), show))
                .with_context(|| format!("failed to open catalog `{}`", path.display()))?;
            if content.index.package_names().next().is_none() {
                bail!(
                    "catalog `{}` has no package; `plimsoll catalog lint` says why",
                    path.display()
                );
            }
            let known = in_cluster.get(&name);
            let weight = known.map_or(position, |it| it.spec.weight);
            let opened = OpenedCatalog::new(name, weight, known, source, content);
            catalogs.opened.push(opened);
        }
        if self.catalog.is_empty() {
            let available = |it: &&Catalog| it.spec.availability == CatalogAvailability::Available;
            for catalog in in_cluster.values().filter(available) {
                catalogs.add(catalog, cache.as_ref());
            }
        }
        catalogs.opened.sort_by_key(|it| it.weight);
        Ok(catalogs)
    }
}

impl OpenedCatalogs {
    /// Opens a Catalog of the cluster, if it can be read on this machine.
    fn add(&mut self, catalog: &Catalog, cache: Option<&Cache>) {
        let name = catalog.metadata.name.clone().unwrap_or_default();
        let source = &catalog.spec.source;
        match shown(Path::new(&source.path), |show| open_source_with(source, cache, show)) {
            Ok(content) => {
                let weight = catalog.spec.weight;
                let source = catalog.spec.source.clone();
                let opened = OpenedCatalog::new(name, weight, Some(catalog), source, content);
                self.opened.push(opened);
            }
            Err(_) => self.elsewhere.push((name, PathBuf::from(&catalog.spec.source.path))),
        }
    }

    /// Returns notes for the user about the catalogs, one sentence each.
    pub(crate) fn notes(&self) -> Vec<String> {
        let differs = |it: &OpenedCatalog| {
            let served = it.differs_from.as_ref()?;
            let (here, served) = (short_digest(&it.digest), short_digest(served));
            Some(format!(
                "catalog `{}` has digest {here} here, and {served} in the cluster",
                it.name
            ))
        };
        let elsewhere = self.elsewhere.iter().map(|(name, path)| {
            let path = path.display();
            format!("Catalog `{name}` is left out: `{path}` cannot be read from here")
        });
        self.opened.iter().filter_map(differs).chain(elsewhere).collect()
    }

    /// Fails if no catalog was opened.
    ///
    /// # Errors
    ///
    /// When no catalog was opened; the error says which option to use.
    pub(crate) fn require(&self) -> Result<(), anyhow::Error> {
        if !self.opened.is_empty() {
            return Ok(());
        }
        match self.elsewhere.as_slice() {
            [] => {
                bail!("there is no catalog: create a Catalog, or name a file with `--catalog FILE`")
            }
            [(name, path), ..] => bail!(
                "Catalog `{name}` is at `{}` of the controller, which cannot be read from here: name a \
                 copy with `--catalog {name}=FILE`",
                path.display()
            ),
        }
    }

    /// Fails if no catalog was opened of those that the command line names, where no cluster is read.
    ///
    /// # Errors
    ///
    /// When no catalog was opened.
    pub(crate) fn require_named(&self) -> Result<(), anyhow::Error> {
        if self.opened.is_empty() {
            bail!("there is no catalog, and no cluster is read: name a file with `--catalog FILE`");
        }
        Ok(())
    }

    /// Calls a function with a package from the most preferred catalog that has it.
    ///
    /// # Errors
    ///
    /// When no catalog has it (the error names similar packages), or one is damaged.
    pub(crate) fn with_package<T>(
        &self,
        name: &str,
        act: impl FnOnce(&OpenedCatalog, IndexedPackage<'_>) -> Result<T, anyhow::Error>,
    ) -> Result<T, anyhow::Error> {
        self.require()?;
        for catalog in &self.opened {
            if let Some(block) = catalog.index.package(name)? {
                return act(catalog, block.read()?);
            }
        }
        let offered = self.opened.iter().flat_map(|it| it.index.package_names());
        let elsewhere = self.elsewhere.iter().map(|(name, path)| {
            format!("; Catalog `{name}` at `{}` cannot be read from here", path.display())
        });
        bail!("{}{}", unknown_package(name, offered), elsewhere.collect::<String>())
    }
}

/// Names the way to do without a cluster in the error of one that cannot be read, if it was not asked for and
/// the command line names catalogs.
///
/// # Errors
///
/// When there was an error.
pub(crate) fn or_without_cluster<T>(
    result: Result<T, anyhow::Error>,
    catalogs: Option<&CatalogChoice>,
) -> Result<T, anyhow::Error> {
    match catalogs.is_some_and(CatalogChoice::is_named) {
        true => result.context("failed to read the cluster, which `--state files` does without"),
        false => result,
    }
}

/// Shortens a digest for display.
pub(crate) fn short_digest(digest: &str) -> &str {
    digest.get(..DIGEST_SHOWN).unwrap_or(digest)
}

fn directory(path: &Path) -> CatalogSource {
    CatalogSource {
        type_: CatalogSourceType::Directory,
        path: path.to_string_lossy().into_owned(),
        reference: String::new(),
    }
}
