//! The indexes of the catalogs that were read, and the parts of them that decisions need.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use plimsoll_api::olm::{CatalogDefect, CatalogDefects, CatalogSource};
use plimsoll_content::catalog::{CatalogCounts, CatalogIndex, DefectCode, IndexedCatalog};
use plimsoll_content::diagnostic::{Diagnostic, Severity};
use plimsoll_operators::reconciler::CatalogContent;
use plimsoll_resolve::requirement::RequiredNames;
use plimsoll_resolve::{Catalog as _, CatalogName, CatalogPart, Package, fill_properties};
use plimsoll_source::catalog::{
    Bytes, Cache, CatalogError, CatalogRoots, open_cached, open_source, version_of,
};

use crate::write::chain;

/// The number of defects that a status names.
const DEFECTS_NAMED: usize = 10;

/// How catalogs are read.
#[derive(Debug, Clone)]
pub(super) struct CatalogReading {
    /// The directories that their sources are in.
    pub(super) roots: CatalogRoots,
    /// The cache for indexes; `None` to keep them in memory.
    pub(super) cache: Option<Cache>,
}

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

    /// Returns a package with all that decisions depend on, what only expressions see included; `None` if
    /// the catalog has none of that name.
    fn whole_package(&self, name: &str) -> Option<Package> {
        IndexedCatalog::new(&self.index).package_with_properties(name)
    }
}

/// The result of refreshing a catalog.
pub(super) struct RefreshedCatalog {
    /// The catalog that was read; `None` if its source is unchanged.
    pub(super) read: Option<ReadCatalog>,
    /// The content to report; `None` if it is unchanged.
    pub(super) content: Option<CatalogContent>,
}

/// A catalog as the process before read it last.
pub(super) struct RestoredCatalog {
    pub(super) read: ReadCatalog,
    /// The content to report.
    pub(super) content: CatalogContent,
}

/// Opens what was read last of a catalog by its digest, if the cache still has it: its source may have lost it
/// since. A source that may not be read any more has nothing to restore. Blocks the thread.
pub(super) fn restore(
    source: &CatalogSource,
    digest: &str,
    reading: &CatalogReading,
) -> Option<RestoredCatalog> {
    if matches!(reading.roots.resolve(source), Err(CatalogError::Outside { .. })) {
        return None;
    }
    let opened = open_cached(digest, reading.cache.as_ref()?)?;
    let index = Arc::new(opened.index);
    // Whatever the source is now, it is to be read.
    let read = ReadCatalog { version: String::new(), digest: opened.digest, index };
    let content = content_of(&read, &read.index.defects().ok()?);
    Some(RestoredCatalog { read, content })
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
    reading: &CatalogReading,
) -> Result<RefreshedCatalog, String> {
    let source = &reading.roots.resolve(source).map_err(|error| chain(&error))?;
    let version = version_of(source).map_err(|error| chain(&error))?;
    if before.is_some_and(|it| it.version == version) {
        return Ok(RefreshedCatalog { read: None, content: None });
    }
    let opened = open_source(source, reading.cache.as_ref()).map_err(|error| chain(&error))?;
    let index = Arc::new(opened.index);
    let read = ReadCatalog { version, digest: opened.digest, index };
    if before.is_some_and(|it| it.digest == read.digest) {
        // The source has changed, but not its content.
        return Ok(RefreshedCatalog { read: Some(read), content: None });
    }
    let counts = read.index.counts();
    let defects = read.index.defects().map_err(|error| chain(&error))?;
    if let Some(problem) = lost(counts, before.map(|it| it.index.counts()), &defects) {
        return Err(problem);
    }
    let is_unchanged = |name: &&String| {
        before.is_some_and(|before| before.whole_package(name) == read.whole_package(name))
    };
    let unchanged = names.iter().filter(is_unchanged).cloned().collect();
    let content = CatalogContent { unchanged, ..content_of(&read, &defects) };
    Ok(RefreshedCatalog { read: Some(read), content: Some(content) })
}

fn content_of(read: &ReadCatalog, defects: &[Diagnostic]) -> CatalogContent {
    let counts = read.index.counts();
    CatalogContent {
        digest: read.digest.clone(),
        packages: counts.packages,
        bundles: counts.bundles,
        defects: summary(defects),
        unchanged: BTreeSet::new(),
    }
}

/// Returns the reason that a source has lost its content; `None` if it has not. It must not take the
/// place of what was read before.
fn lost(
    counts: CatalogCounts,
    before: Option<CatalogCounts>,
    defects: &[Diagnostic],
) -> Option<String> {
    let valid = |counts: CatalogCounts| counts.packages.saturating_sub(counts.invalid);
    let first = defects.iter().find(|it| it.severity == Severity::Error);
    let had = before.map_or(0, valid);
    let is_garbage = counts.packages == 0 && first.is_some();
    if valid(counts) > 0 || (had == 0 && !is_garbage) {
        return None;
    }
    let no_longer = if had > 0 { format!(" any more, and had {had}") } else { String::new() };
    let example = first.map(|it| format!("; {}: {}", it.place(), statement(it)));
    Some(format!("it has no valid package{no_longer}{}", example.unwrap_or_default()))
}

fn summary(defects: &[Diagnostic]) -> Option<CatalogDefects> {
    let (serious, others): (Vec<_>, Vec<_>) =
        defects.iter().partition(|it| it.severity == Severity::Error);
    let errors = serious.len();
    let named = serious.into_iter().chain(others).take(DEFECTS_NAMED).map(|it| CatalogDefect {
        file: it.file.clone(),
        line: it.line.map_or(0, |line| u32::try_from(line).unwrap_or(u32::MAX)),
        package: it.package.clone(),
        message: statement(it),
    });
    (!defects.is_empty()).then(|| CatalogDefects {
        errors,
        warnings: defects.len() - errors,
        first: named.collect(),
    })
}

/// Returns what is wrong, without any content of the file: who may read the status may not read every
/// file that the controller can. `plimsoll catalog lint` quotes the content.
fn statement(defect: &Diagnostic) -> String {
    // The system says why a file cannot be read, and that is about the whole file.
    if defect.code == DefectCode::Syntax && defect.line.is_none() {
        return defect.message.clone();
    }
    let code = DefectCode::ALL.iter().find(|it| defect.code == **it);
    let text = code.map_or("Something that cannot be used", |it| it.description());
    let (first, rest) = text.split_at(1);
    format!("{}{rest}", first.to_ascii_lowercase())
}

/// Returns the parts of catalogs that have the named packages. The bundles have their properties if
/// expressions may see them: those of their own requirements, or others, which `with_properties` says.
pub(super) fn parts<'a>(
    served: impl Iterator<Item = (&'a str, i64)>,
    read: &BTreeMap<String, ReadCatalog>,
    names: &BTreeSet<String>,
    with_properties: bool,
) -> Vec<CatalogPart> {
    let part = |(name, weight): (&str, i64)| {
        let catalog = read.get(name)?;
        let name = CatalogName { namespace: String::new(), name: name.to_owned() };
        let packages = names.iter().filter_map(|it| catalog.package(it)).collect();
        Some(CatalogPart { name, weight, packages })
    };
    let mut parts: Vec<CatalogPart> = served.filter_map(part).collect();
    let packages = parts.iter().flat_map(|it| &it.packages);
    let mut bundles = packages.flat_map(|it| &it.bundles);
    if with_properties || bundles.any(|it| RequiredNames::of(it).is_open) {
        for part in &mut parts {
            let Some(catalog) = read.get(&part.name.name) else { continue };
            let catalog = IndexedCatalog::new(&catalog.index);
            part.packages.iter_mut().for_each(|package| fill_properties(package, &catalog));
        }
    }
    parts
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

#[cfg(test)]
mod tests;
