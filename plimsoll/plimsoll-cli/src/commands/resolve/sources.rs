//! The catalogs and bundles of a command line, opened and in order of preference.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};
use plimsoll_content::catalog::{CatalogIndex, IndexedCatalog};
use plimsoll_content::diagnostic::Severity;
use plimsoll_resolve::CatalogSource;
use plimsoll_resolve::printable::on_one_line;
use plimsoll_source::catalog::{Bytes, Cache, open, rebuild};

use super::ResolveArguments;
use crate::arguments::catalog::{CatalogPath, INDICES, cache_directory, shown};

/// The weight of bundles that are in no catalog yet: they are what is requested.
const BUNDLE_WEIGHT: i64 = -1;

/// A catalog or bundle of the command line.
pub(super) struct Named<'a> {
    pub(super) source: CatalogSource<'a>,
    /// It is the directory of a bundle.
    pub(super) is_bundle: bool,
}

struct Opened {
    namespace: String,
    name: String,
    path: PathBuf,
    weight: i64,
    is_bundle: bool,
    index: CatalogIndex<Bytes>,
}

/// Opens all catalogs and bundles and does something with them; once more with fresh indices when
/// a cached one turns out to be damaged.
pub(super) fn with_sources<T>(
    arguments: &ResolveArguments,
    act: impl Fn(&[Named<'_>]) -> Result<T, anyhow::Error>,
) -> Result<T, anyhow::Error> {
    let cache = if arguments.no_cache { None } else { cache_directory(INDICES) };
    let cache = cache.as_deref().map(Cache::new);
    let mut opened = open_all(arguments, cache.as_ref())?;
    for attempt in 0.. {
        let offers: Vec<IndexedCatalog<'_, Bytes>> =
            opened.iter().map(|opened| IndexedCatalog::new(&opened.index)).collect();
        let sources: Vec<Named<'_>> = opened
            .iter()
            .zip(&offers)
            .map(|(opened, offer)| Named {
                source: CatalogSource {
                    name: &opened.name,
                    namespace: &opened.namespace,
                    weight: opened.weight,
                    catalog: offer,
                },
                is_bundle: opened.is_bundle,
            })
            .collect();
        let result = act(&sources);
        let damaged = offers.iter().position(|offer| offer.failure().is_some());
        let Some(at) = damaged else { return result };
        let path = opened[at].path.clone();
        if attempt > 0 {
            bail!("the index of `{}` is damaged", path.display());
        }
        drop(sources);
        drop(offers);
        opened[at].index = shown(&path, |show| rebuild(&path, cache.as_ref(), show))
            .with_context(|| format!("failed to open catalog `{}`", path.display()))?;
    }
    bail!("the catalogs cannot be read")
}

fn open_all(
    arguments: &ResolveArguments,
    cache: Option<&Cache>,
) -> Result<Vec<Opened>, anyhow::Error> {
    let catalogs = arguments.catalog.iter().zip(0i64..).map(|(catalog, weight)| {
        let CatalogPath { namespace, name, path } = catalog.clone();
        (namespace, name, path, weight, false)
    });
    let bundles = arguments.bundle.iter().map(|path| {
        let (namespace, name) = (arguments.namespace.clone(), path.display().to_string());
        (namespace, name, path.clone(), BUNDLE_WEIGHT, true)
    });
    let mut opened: Vec<Opened> = Vec::new();
    for (namespace, name, path, weight, is_bundle) in bundles.chain(catalogs) {
        if opened.iter().any(|other| (&other.namespace, &other.name) == (&namespace, &name)) {
            bail!(
                "two catalogs are named `{name}`: name one of them, as in `--catalog other={}`",
                path.display()
            );
        }
        let index = shown(&path, |show| open(&path, cache, show))
            .with_context(|| format!("failed to open catalog `{}`", path.display()))?;
        if is_bundle && index.package_names().next().is_none() {
            return Err(no_bundle(&path, &index));
        }
        opened.push(Opened { namespace, name, path, weight, is_bundle, index });
    }
    Ok(opened)
}

/// Most problems of a bundle that an error names.
const PROBLEMS_MAX: usize = 5;

/// Why a directory gives no bundle to resolve.
fn no_bundle(path: &Path, index: &CatalogIndex<Bytes>) -> anyhow::Error {
    let path = path.display();
    let problems = match index.defects() {
        Ok(problems) => problems,
        Err(error) => return error.into(),
    };
    let errors: Vec<String> = problems
        .iter()
        .filter(|problem| problem.severity == Severity::Error)
        .map(|problem| format!("\n  {}", on_one_line(&problem.to_string())))
        .collect();
    if errors.is_empty() {
        return anyhow!(
            "`{path}` is no bundle: it needs the directories `manifests` and `metadata`"
        );
    }
    let more = match errors.len().saturating_sub(PROBLEMS_MAX) {
        0 => String::new(),
        more => format!("\n  and {more} more; `plimsoll bundle validate {path}` lists them"),
    };
    let shown = errors[..errors.len().min(PROBLEMS_MAX)].concat();
    anyhow!("bundle `{path}` cannot be used:{shown}{more}")
}
