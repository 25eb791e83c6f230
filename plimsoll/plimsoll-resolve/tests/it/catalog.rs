//! A catalog in memory: what tests make, and file-based catalogs of one JSON document a line.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_resolve::{
    Api, Catalog, Channel, ChannelEntry, Package, Property, bundle_from_properties,
};
use serde::Deserialize;
use serde_json::Value;

#[derive(Default)]
pub(crate) struct InMemoryCatalog {
    packages: BTreeMap<String, Package>,
    properties: BTreeMap<(String, String), Vec<Property>>,
    providers: BTreeMap<Api, BTreeSet<String>>,
    labelled: BTreeMap<String, BTreeSet<String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    schema: String,
    name: String,
    #[serde(default)]
    package: String,
    default_channel: Option<String>,
    #[serde(default)]
    entries: Vec<ChannelEntry>,
    #[serde(default)]
    properties: Vec<Value>,
}

impl InMemoryCatalog {
    pub(crate) fn read(text: &str) -> Self {
        let mut catalog = Self::default();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let document: Document = serde_json::from_str(line).expect("a document of a catalog");
            match document.schema.as_str() {
                "olm.package" => {
                    catalog.package_mut(&document.name).default_channel = document.default_channel;
                }
                "olm.channel" => {
                    let channel = Channel {
                        name: document.name,
                        entries: document.entries,
                        ..Channel::default()
                    };
                    catalog.package_mut(&document.package).channels.push(channel);
                }
                "olm.bundle" => {
                    let properties = document.properties.into_iter().map(serde_json::from_value);
                    let properties: Vec<Property> = properties.map(Result::unwrap).collect();
                    catalog.add_bundle(&document.package, &document.name, properties);
                }
                _ => {}
            }
        }
        catalog
    }

    pub(crate) fn deprecate(&mut self, package: &str, bundle: &str, message: &str) {
        for found in &mut self.package_mut(package).bundles {
            if found.name == bundle {
                found.deprecation = Some(message.to_owned());
            }
        }
    }

    fn package_mut(&mut self, package: &str) -> &mut Package {
        let found = self.packages.entry(package.to_owned()).or_default();
        package.clone_into(&mut found.name);
        found
    }

    fn add_bundle(&mut self, package: &str, name: &str, properties: Vec<Property>) {
        let bundle = bundle_from_properties(name, package, &properties);
        for api in &bundle.provides {
            self.providers.entry(api.clone()).or_default().insert(package.to_owned());
        }
        for label in &bundle.labels {
            self.labelled.entry(label.clone()).or_default().insert(package.to_owned());
        }
        self.package_mut(package).bundles.push(bundle);
        self.properties.insert((package.to_owned(), name.to_owned()), properties);
    }
}

impl Catalog for InMemoryCatalog {
    fn package(&self, name: &str) -> Option<Package> {
        self.packages.get(name).cloned()
    }

    fn providers(&self, api: &Api) -> Vec<&str> {
        self.providers.get(api).into_iter().flatten().map(String::as_str).collect()
    }

    fn labelled(&self, label: &str) -> Vec<&str> {
        self.labelled.get(label).into_iter().flatten().map(String::as_str).collect()
    }

    fn packages(&self) -> Vec<&str> {
        self.packages.keys().map(String::as_str).collect()
    }

    fn package_with_properties(&self, name: &str) -> Option<Package> {
        let mut package = self.package(name)?;
        for bundle in &mut package.bundles {
            bundle.properties = self.properties(name, &bundle.name).unwrap_or_default();
        }
        Some(package)
    }

    fn properties(&self, package: &str, bundle: &str) -> Option<Vec<Property>> {
        self.properties.get(&(package.to_owned(), bundle.to_owned())).cloned()
    }
}
