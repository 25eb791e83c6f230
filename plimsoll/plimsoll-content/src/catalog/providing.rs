//! Providers of an API: the packages of catalogs that have a bundle which provides it.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use plimsoll_resolve::Api;
use plimsoll_resolve::version::parse_tolerant;
use serde::{Deserialize, Serialize};

use super::index::{CatalogIndex, IndexError, IndexStorage};
use super::model::{IndexedApi, IndexedPackage};
use crate::capability::hint;

/// An API as a person names it: GROUP/VERSION/KIND, KIND.GROUP or KIND. An empty field stands for any value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedApi {
    group: String,
    version: String,
    kind: String,
}

impl FromStr for WantedApi {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wanted = |group: &str, version: &str, kind: &str| Self {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
        };
        let parts: Vec<&str> = text.split('/').collect();
        let found = match parts.as_slice() {
            [group, version, kind] => wanted(group, version, kind),
            [name] => match name.split_once('.') {
                Some((kind, group)) => wanted(group, "", kind),
                None => wanted("", "", name),
            },
            _ => wanted("", "", ""),
        };
        if found.kind.is_empty() || parts.iter().any(|it| it.is_empty()) {
            return Err("write GROUP/VERSION/KIND, KIND.GROUP or KIND".to_owned());
        }
        Ok(found)
    }
}

impl fmt::Display for WantedApi {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { group, version, kind } = self;
        match (group.as_str(), version.as_str()) {
            ("", "") => to.write_str(kind),
            (group, "") => write!(to, "{kind}.{group}"),
            (group, version) => write!(to, "{group}/{version}/{kind}"),
        }
    }
}

impl WantedApi {
    fn is(&self, api: &IndexedApi<'_>) -> bool {
        let is = |wanted: &str, found: &str| wanted.is_empty() || wanted == found;
        is(&self.group, &api.group)
            && is(&self.version, &api.version)
            && self.kind.eq_ignore_ascii_case(&api.kind)
    }

    /// Returns the sentence about an API that nothing provides; `known` are the APIs that something does.
    fn unprovided(&self, known: &BTreeSet<Api>) -> String {
        let of_kind = known.iter().filter(|it| self.kind.eq_ignore_ascii_case(&it.kind));
        let text = |it: &Api| format!("{}/{}/{}", it.group, it.version, it.kind);
        let of_kind: BTreeSet<String> = of_kind.map(text).collect();
        let hint = if of_kind.is_empty() && self.version.is_empty() {
            let kinds: BTreeSet<&str> = known.iter().map(|it| it.kind.as_str()).collect();
            hint(&self.kind, kinds.iter().copied())
        } else {
            let apis = if of_kind.is_empty() { known.iter().map(text).collect() } else { of_kind };
            hint(&self.to_string(), apis.iter().map(String::as_str))
        };
        format!("no package provides `{self}`{hint}")
    }
}

/// A package that provides an API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProvidingPackage {
    /// Its name.
    pub name: String,
    /// The name of the catalog that has it.
    pub catalog: String,
    /// The API, with its group and version.
    pub api: String,
    /// The versions that provide it, in ascending order.
    pub versions: Vec<String>,
    /// The installed version; `None` if none is installed, or it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub installed: Option<String>,
}

/// The packages that provide an API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiProviders {
    /// The packages, in the order of the catalogs.
    pub packages: Vec<ProvidingPackage>,
    /// The sentence that says which API may be meant; `None` if a package provides the wanted one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl ApiProviders {
    /// Returns the sentence about an API that no package of a resolution provides or requires.
    pub fn unneeded(&self, wanted: &WantedApi) -> String {
        match (&self.note, self.packages.first()) {
            (Some(note), _) => note.clone(),
            (None, Some(ProvidingPackage { name, .. })) => {
                format!("nothing that is resolved requires `{wanted}`, which {name} provides")
            }
            (None, None) => format!("no package provides `{wanted}`"),
        }
    }
}

/// A catalog with its name.
#[derive(Debug)]
pub struct NamedIndex<'i, S> {
    /// Its name.
    pub name: &'i str,
    /// Its content.
    pub index: &'i CatalogIndex<S>,
}

/// Returns the packages of catalogs that provide an API.
///
/// # Errors
///
/// When an index is damaged.
pub fn api_providers<S: IndexStorage>(
    wanted: &WantedApi,
    catalogs: &[NamedIndex<'_, S>],
) -> Result<ApiProviders, IndexError> {
    let mut packages = Vec::new();
    for NamedIndex { name: catalog, index } in catalogs {
        for name in index.package_names() {
            let Some(block) = index.package(name)? else { continue };
            packages.extend(provided_by(&block.read()?, catalog, wanted));
        }
    }
    let note = match packages.as_slice() {
        [] => Some(wanted.unprovided(&provided_apis(catalogs)?)),
        _ => None,
    };
    Ok(ApiProviders { packages, note })
}

/// Returns the APIs that the packages of catalogs provide.
fn provided_apis<S: IndexStorage>(
    catalogs: &[NamedIndex<'_, S>],
) -> Result<BTreeSet<Api>, IndexError> {
    let mut apis = BTreeSet::new();
    for NamedIndex { index, .. } in catalogs {
        for name in index.package_names() {
            let Some(block) = index.package(name)? else { continue };
            let package = block.read()?;
            for bundle in package.bundles.iter().filter(|it| it.invalid.is_none()) {
                apis.extend(package.provided(bundle).map(|it| Api {
                    group: it.group.to_string(),
                    version: it.version.to_string(),
                    kind: it.kind.to_string(),
                }));
            }
        }
    }
    Ok(apis)
}

/// Returns the versions of a package that provide an API, by group and version of the API.
fn provided_by(
    package: &IndexedPackage<'_>,
    catalog: &str,
    wanted: &WantedApi,
) -> Vec<ProvidingPackage> {
    let mut found: Vec<ProvidingPackage> = Vec::new();
    for bundle in package.bundles.iter().filter(|it| it.invalid.is_none()) {
        for api in package.provided(bundle).filter(|it| wanted.is(it)) {
            let api = api.to_string();
            let version = format!("v{}", bundle.version);
            match found.iter_mut().find(|it| it.api == api) {
                Some(known) => known.versions.push(version),
                None => found.push(ProvidingPackage {
                    name: package.name.to_string(),
                    catalog: catalog.to_owned(),
                    api,
                    versions: vec![version],
                    installed: None,
                }),
            }
        }
    }
    for it in &mut found {
        it.versions.sort_by_cached_key(|version| parse_tolerant(version).ok());
    }
    found
}

#[cfg(test)]
mod tests {
    //! Forms of APIs, and what is said of one that nothing provides.

    use super::*;

    fn wanted(text: &str) -> WantedApi {
        text.parse().expect("an API")
    }

    fn api(text: &str) -> Api {
        let parts: Vec<String> = text.split('/').map(str::to_owned).collect();
        let [group, version, kind] = <[String; 3]>::try_from(parts).expect("three parts");
        Api { group, version, kind }
    }

    #[test]
    fn apis_are_written_in_three_forms() {
        for (text, found, expected) in [
            ("a.example.com/v1/Lamp", "a.example.com/v1/Lamp", true),
            ("a.example.com/v2/Lamp", "a.example.com/v1/Lamp", false),
            ("lamp.a.example.com", "a.example.com/v1/Lamp", true),
            ("Lamp", "a.example.com/v1/Lamp", true),
            ("Lamps", "a.example.com/v1/Lamp", false),
        ] {
            let Api { group, version, kind } = api(found);
            let found =
                IndexedApi { group: group.into(), version: version.into(), kind: kind.into() };
            assert_eq!(wanted(text).is(&found), expected, "{text}");
            assert_eq!(wanted(text).to_string(), text);
        }
        for text in ["", "a/b", "a//Lamp", "/v1/Lamp", "a/b/c/d"] {
            assert!(text.parse::<WantedApi>().is_err(), "{text}");
        }
    }

    #[test]
    fn an_api_that_nothing_provides_has_a_hint() {
        let known = ["a.example.com/v1/Lamp", "a.example.com/v1/Anchor"].map(api);
        let known = BTreeSet::from(known);
        for (text, expected) in [
            ("Lmap", "no package provides `Lmap`, did you mean `Lamp`?"),
            ("Nope", "no package provides `Nope`; there are Anchor, Lamp"),
            (
                "a.example.com/v1/Lmap",
                "no package provides `a.example.com/v1/Lmap`, did you mean `a.example.com/v1/Lamp`?",
            ),
            (
                "a.example.com/v2/Lamp",
                "no package provides `a.example.com/v2/Lamp`, did you mean `a.example.com/v1/Lamp`?",
            ),
        ] {
            assert_eq!(wanted(text).unprovided(&known), expected);
        }
        let nothing = wanted("Lamp").unprovided(&BTreeSet::new());
        assert_eq!(nothing, "no package provides `Lamp`; there are none");
    }
}
