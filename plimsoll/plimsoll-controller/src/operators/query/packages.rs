//! Lists of packages. Names and APIs are looked up in the indexes of catalogs; for searches by words, the summaries
//! of a catalog's packages are made once for its content.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use plimsoll_content::catalog::{
    ApiProviders, IndexError, IndexedCatalog, NamedIndex, PackageSummary, WantedApi, api_providers,
};
use plimsoll_operators::query::{check_parameter, set_parameter};
use plimsoll_resolve::Catalog as _;
use plimsoll_source::catalog::Bytes;
use serde_json::{Value, json};

use super::{QueriedCatalog, QueryState};

/// Which packages a list has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PackageFilter {
    /// The name of the package; `None` for any.
    name: Option<String>,
    /// The API that a bundle of it provides: group, version and kind; `None` for any.
    provides: Option<[String; 3]>,
    /// The words that are in its texts, in lower case.
    words: Vec<String>,
}

impl PackageFilter {
    /// Reads a filter from the parameters of a URL.
    ///
    /// # Errors
    ///
    /// When a parameter is unknown, empty, given twice or malformed.
    pub(super) fn from_parameters<'p>(
        parameters: impl IntoIterator<Item = (&'p str, &'p str)>,
    ) -> Result<Self, String> {
        let mut filter = Self::default();
        for (name, value) in parameters {
            check_parameter(name, value, &["name", "provides", "word"])?;
            match name {
                "name" => set_parameter(name, &mut filter.name, value.to_owned())?,
                "provides" => set_parameter(name, &mut filter.provides, api(value)?)?,
                _ => filter.words.push(value.to_lowercase()),
            }
        }
        Ok(filter)
    }
}

fn api(text: &str) -> Result<[String; 3], String> {
    let names: Vec<String> = text.split('/').map(str::to_owned).collect();
    names.try_into().map_err(|_| {
        format!(
            "the parameter `provides` is `{text}`: write GROUP/VERSION/KIND, such as \
                 example.com/v1/Foo"
        )
    })
}

/// The summaries of the packages of catalogs, by the digest of their content.
#[derive(Debug, Default)]
pub(super) struct Summaries {
    made: Mutex<BTreeMap<String, Arc<Vec<PackageSummary>>>>,
}

impl Summaries {
    /// Returns the packages of all catalogs that a filter accepts, those of the most preferred catalog first.
    /// Blocks the thread.
    ///
    /// # Errors
    ///
    /// When an index is damaged.
    pub(super) fn list(
        &self,
        state: &QueryState,
        filter: &PackageFilter,
    ) -> Result<Value, IndexError> {
        let catalogs = state.catalogs();
        let mut found = Vec::new();
        for catalog in &catalogs {
            let looked_up = match (&filter.name, &filter.provides) {
                (Some(name), None) => Some(vec![name.as_str()]),
                (name, Some([group, version, kind])) => {
                    let mut names = catalog.index.providers(group, version, kind);
                    names.retain(|it| name.as_ref().is_none_or(|name| name == it));
                    Some(names)
                }
                (None, None) => None,
            };
            match looked_up {
                Some(names) => {
                    for name in names {
                        found.extend(summary(catalog, name)?);
                    }
                }
                None => found.extend(self.all(catalog)?.iter().cloned()),
            }
        }
        found.retain(|it| it.matches(&filter.words));
        self.forget_others(&catalogs);
        Ok(json!({ "packages": found }))
    }

    /// Returns the summaries of all packages of a catalog.
    fn all(&self, catalog: &QueriedCatalog) -> Result<Arc<Vec<PackageSummary>>, IndexError> {
        // Catalogs with the same content may have different names.
        let key = format!("{} {}", catalog.name, catalog.digest);
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        if let Some(made) = made {
            return Ok(made);
        }
        let mut all = Vec::new();
        for name in catalog.index.package_names() {
            all.extend(summary(catalog, name)?);
        }
        let all = Arc::new(all);
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.insert(key, Arc::clone(&all));
        Ok(all)
    }

    /// Drops what was made for content that is not served any more.
    fn forget_others(&self, catalogs: &[QueriedCatalog]) {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.retain(|key, _| {
            catalogs.iter().any(|it| key.split_once(' ') == Some((&*it.name, &*it.digest)))
        });
    }
}

fn summary(catalog: &QueriedCatalog, name: &str) -> Result<Option<PackageSummary>, IndexError> {
    let Some(block) = catalog.index.package(name)? else { return Ok(None) };
    let package = block.read()?;
    Ok(Some(PackageSummary::of(&package, Some(&catalog.name))))
}

/// Returns the packages that provide an API, those of the most preferred catalog first. Blocks the thread.
///
/// # Errors
///
/// When an index is damaged.
pub(super) fn providers(state: &QueryState, api: &WantedApi) -> Result<ApiProviders, IndexError> {
    let catalogs = state.catalogs();
    let indexes = catalogs.iter().map(|it| NamedIndex { name: &it.name, index: &it.index });
    let indexes: Vec<NamedIndex<'_, Bytes>> = indexes.collect();
    api_providers(api, &indexes)
}

/// Returns a package as each catalog has it: as the resolver sees it, and as its index has it, which also says
/// what people read. `None` if no catalog has it.
///
/// # Errors
///
/// When an index is damaged.
pub(super) fn package(state: &QueryState, name: &str) -> Result<Option<Value>, IndexError> {
    let mut found = Vec::new();
    for it in &state.catalogs() {
        let Some(block) = it.index.package(name)? else { continue };
        let index = block.read()?;
        let package = IndexedCatalog::new(&it.index).package(name);
        found.push(json!({
            "catalog": it.name,
            "weight": it.weight,
            "digest": it.digest,
            "package": package,
            "index": index,
        }));
    }
    Ok((!found.is_empty()).then(|| json!({ "name": name, "catalogs": found })))
}
