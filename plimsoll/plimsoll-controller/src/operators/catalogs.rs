//! The indexes of the catalogs that were read, and the parts of them that decisions need.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use plimsoll_api::olm::{CatalogDefect, CatalogDefects, CatalogSource};
use plimsoll_content::catalog::{CatalogIndex, IndexedCatalog};
use plimsoll_content::diagnostic::Severity;
use plimsoll_operators::reconciler::CatalogContent;
use plimsoll_resolve::{Catalog as _, CatalogName, CatalogPart, Package};
use plimsoll_source::catalog::{Bytes, Cache, open_source, version_of};

use crate::write::chain;

/// The number of defects that a status names.
const DEFECTS_NAMED: usize = 10;

/// A catalog as it was last read.
#[derive(Debug, Clone)]
pub(super) struct ReadCatalog {
    /// The version of the source. As long as it is the same, the source has not changed.
    version: String,
    digest: String,
    index: Arc<CatalogIndex<Bytes>>,
}

impl ReadCatalog {
    /// Returns the index of the catalog.
    pub(super) fn index(&self) -> Arc<CatalogIndex<Bytes>> {
        Arc::clone(&self.index)
    }

    /// Returns the digest of the content.
    pub(super) fn digest(&self) -> &str {
        &self.digest
    }

    /// Returns a package; `None` if the catalog has none of that name.
    fn package(&self, name: &str) -> Option<Package> {
        IndexedCatalog::new(&self.index).package(name)
    }
}

/// The result of refreshing a catalog.
pub(super) struct RefreshedCatalog {
    /// The catalog that was read; `None` if its source is unchanged.
    pub(super) read: Option<ReadCatalog>,
    /// The content to report; `None` if it is unchanged.
    pub(super) content: Option<CatalogContent>,
}

/// Reads a catalog if its source has changed. `names` are the names of the Operators. Blocks the
/// thread.
///
/// # Errors
///
/// When the catalog cannot be read; the text says why.
pub(super) fn refresh(
    source: &CatalogSource,
    before: Option<&ReadCatalog>,
    names: &BTreeSet<String>,
    cache: Option<&Cache>,
) -> Result<RefreshedCatalog, String> {
    let version = version_of(source).map_err(|error| chain(&error))?;
    if before.is_some_and(|it| it.version == version) {
        return Ok(RefreshedCatalog { read: None, content: None });
    }
    let opened = open_source(source, cache).map_err(|error| chain(&error))?;
    let index = Arc::new(opened.index);
    let read = ReadCatalog { version, digest: opened.digest, index };
    if before.is_some_and(|it| it.digest == read.digest) {
        // The source has changed, but not its content.
        return Ok(RefreshedCatalog { read: Some(read), content: None });
    }
    let package = |catalog: &ReadCatalog, name: &String| catalog.package(name);
    let is_unchanged =
        |name: &&String| before.is_some_and(|before| package(before, name) == package(&read, name));
    let unchanged = names.iter().filter(is_unchanged).cloned().collect();
    let counts = read.index.counts();
    let defects = read.index.defects().map_err(|error| chain(&error))?;
    let content = CatalogContent {
        digest: read.digest.clone(),
        packages: counts.packages,
        bundles: counts.bundles,
        defects: summary(&defects),
        unchanged,
    };
    Ok(RefreshedCatalog { read: Some(read), content: Some(content) })
}

fn summary(defects: &[plimsoll_content::diagnostic::Diagnostic]) -> Option<CatalogDefects> {
    let errors = defects.iter().filter(|it| it.severity == Severity::Error).count();
    let named = defects.iter().take(DEFECTS_NAMED).map(|it| CatalogDefect {
        file: it.file.clone(),
        line: it.line.map_or(0, |line| u32::try_from(line).unwrap_or(u32::MAX)),
        package: it.package.clone(),
        message: it.message.clone(),
    });
    (!defects.is_empty()).then(|| CatalogDefects {
        errors,
        warnings: defects.len() - errors,
        first: named.collect(),
    })
}

/// Returns the parts of catalogs that have the named packages.
pub(super) fn parts<'a>(
    served: impl Iterator<Item = (&'a str, i64)>,
    read: &BTreeMap<String, ReadCatalog>,
    names: &BTreeSet<String>,
) -> Vec<CatalogPart> {
    let part = |(name, weight): (&str, i64)| {
        let catalog = read.get(name)?;
        let name = CatalogName { namespace: String::new(), name: name.to_owned() };
        let packages = names.iter().filter_map(|it| catalog.package(it)).collect();
        Some(CatalogPart { name, weight, packages })
    };
    served.filter_map(part).collect()
}

/// Returns the properties that a catalog has for a bundle; `None` if the catalog has no such
/// bundle.
pub(super) fn properties(
    read: Option<&ReadCatalog>,
    package: &str,
    bundle: &str,
) -> Option<Vec<plimsoll_resolve::Property>> {
    IndexedCatalog::new(&read?.index).properties(package, bundle)
}
