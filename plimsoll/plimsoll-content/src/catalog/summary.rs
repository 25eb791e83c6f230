//! Summaries of packages: what lists show of them, and what searches find them by.

use serde::{Deserialize, Serialize};

use super::model::IndexedPackage;

/// A package in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PackageSummary {
    /// Its name.
    pub name: String,
    /// The name of the catalog that has it; `None` if only one was searched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub catalog: Option<String>,
    /// Its name for people.
    pub display_name: String,
    /// The channel that is taken when none is named; empty if it is not known.
    pub default_channel: String,
    /// The version at the head of the default channel; empty if there is none.
    pub version: String,
    /// What it is, in its author's words.
    pub description: String,
    /// Whether nothing of it can be used.
    pub invalid: bool,
    /// Whether it is deprecated.
    pub deprecated: bool,
    /// The texts that are searched, in lower case; empty if it was read.
    #[serde(skip)]
    searched: Vec<String>,
}

impl PackageSummary {
    /// Returns the summary of a package; `catalog` is the name of its catalog, if it is one of several.
    pub fn of(package: &IndexedPackage<'_>, catalog: Option<&str>) -> Self {
        let bundle = package.default_bundle();
        let details = bundle.and_then(|bundle| package.details(bundle));
        let described = details.map(|it| it.description.to_string());
        let described = described.filter(|text| !text.is_empty());
        Self {
            name: package.name.to_string(),
            catalog: catalog.map(str::to_owned),
            display_name: details.map(|it| it.display_name.to_string()).unwrap_or_default(),
            default_channel: package.default_channel.to_string(),
            version: bundle.map(|it| it.version.to_string()).unwrap_or_default(),
            description: described.unwrap_or_else(|| package.description.to_string()),
            invalid: package.invalid,
            deprecated: package.deprecated.is_some(),
            searched: searched(package),
        }
    }

    /// Returns whether each of some words, in lower case, is in a text of the package: its name, descriptions,
    /// providers and APIs.
    pub fn matches(&self, words: &[String]) -> bool {
        let mut words = words.iter();
        words.all(|word| self.searched.iter().any(|text| text.contains(word.as_str())))
    }
}

fn searched(package: &IndexedPackage<'_>) -> Vec<String> {
    let mut texts = vec![package.name.to_lowercase(), package.description.to_lowercase()];
    for details in &package.details {
        let more = [&details.display_name, &details.description, &details.provider];
        texts.extend(more.map(|it| it.to_lowercase()));
    }
    let apis = package.apis.iter();
    texts.extend(apis.map(|api| format!("{} {}", api.group, api.kind).to_lowercase()));
    texts.sort_unstable();
    texts.dedup();
    texts
}
