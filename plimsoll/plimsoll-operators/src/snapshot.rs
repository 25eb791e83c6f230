//! Snapshots: everything that decisions and resolutions of Operators depend on, as a value that can be
//! written to a file and gives the same answers anywhere (OPR-21, OPR-22).

use std::collections::BTreeMap;

use plimsoll_resolve::{Api, Catalog, CatalogPart, CatalogSource, ClusterFacts, Package, Property};
use serde::{Deserialize, Serialize};

use super::RequestedOperator;
use super::installed::kinds;

/// The version of the file format.
pub const FORMAT: u32 = 1;

/// The Operators of a cluster, the facts about it, and the content of its catalogs.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LoadoutSnapshot {
    format: u32,
    /// The facts about the cluster.
    pub facts: ClusterFacts,
    /// The Operators by name, with the installed bundle of each.
    pub operators: BTreeMap<String, RequestedOperator>,
    /// The catalogs, each with some of its packages.
    pub catalogs: Vec<SnapshotCatalog>,
    /// The catalogs that could not be read, with the reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unavailable: BTreeMap<String, String>,
}

/// A catalog of a snapshot.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SnapshotCatalog {
    /// The digest of the whole catalog.
    pub digest: String,
    /// The images with the content of bundles, by bundle name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub images: BTreeMap<String, String>,
    /// The digests of content that no image names the digest of, by bundle name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub digests: BTreeMap<String, String>,
    /// The packages that the snapshot has of it.
    #[serde(flatten)]
    pub part: CatalogPart,
}

/// The reason that a text is not a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotError(String);

impl std::fmt::Display for SnapshotError {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str(&self.0)
    }
}

impl std::error::Error for SnapshotError {}

impl LoadoutSnapshot {
    /// Creates a snapshot of a cluster.
    pub fn new(
        facts: ClusterFacts,
        operators: BTreeMap<String, RequestedOperator>,
        catalogs: Vec<SnapshotCatalog>,
        unavailable: BTreeMap<String, String>,
    ) -> Self {
        Self { format: FORMAT, facts, operators, catalogs, unavailable }
    }

    /// Reads a snapshot from its text.
    ///
    /// # Errors
    ///
    /// When the text is not JSON of this form, or has another format version.
    pub fn read(text: &str) -> Result<Self, SnapshotError> {
        let mut snapshot: Self = serde_json::from_str(text).map_err(|error| {
            SnapshotError(format!(
                "it is not a snapshot, as `operator snapshot` prints it: {error}"
            ))
        })?;
        if snapshot.format != FORMAT {
            let found = snapshot.format;
            return Err(SnapshotError(format!(
                "its format is {found}, not {FORMAT}: take it again with `operator snapshot`"
            )));
        }
        for operator in snapshot.operators.values_mut() {
            if let Some(installed) = &operator.installed {
                operator.owned = kinds(&installed.bundle);
            }
        }
        Ok(snapshot)
    }

    /// Adds the packages of another snapshot of the same cluster, and returns whether that was possible: both have
    /// to be of the same content of the same catalogs. The Operators stay those of this one.
    #[must_use]
    pub fn join(&mut self, other: Self) -> bool {
        let is_same = |(one, other): (&SnapshotCatalog, &SnapshotCatalog)| {
            let (part, other_part) = (&one.part, &other.part);
            (&part.name, part.weight, &one.digest)
                == (&other_part.name, other_part.weight, &other.digest)
        };
        let are_same = self.catalogs.len() == other.catalogs.len()
            && self.catalogs.iter().zip(&other.catalogs).all(is_same)
            && (&self.facts, &self.unavailable) == (&other.facts, &other.unavailable);
        if are_same {
            for (catalog, more) in self.catalogs.iter_mut().zip(other.catalogs) {
                catalog.add(more);
            }
        }
        are_same
    }

    /// Returns the snapshot as text. Equal content has equal text.
    pub fn text(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("all keys are strings");
        text.push('\n');
        text
    }
}

impl SnapshotCatalog {
    /// Returns the catalog as a source for the resolver.
    pub fn source(&self) -> CatalogSource<'_> {
        let CatalogPart { name, weight, packages: _ } = &self.part;
        CatalogSource {
            name: &name.name,
            namespace: &name.namespace,
            weight: *weight,
            catalog: self,
        }
    }

    /// Adds the packages of another snapshot of the catalog.
    fn add(&mut self, more: Self) {
        let Self { digest: _, images, digests, part } = more;
        self.images.extend(images);
        self.digests.extend(digests);
        let there = std::mem::take(&mut self.part.packages);
        let mut packages: BTreeMap<String, Package> = BTreeMap::new();
        for package in there.into_iter().chain(part.packages) {
            // Bundles have their properties where a rule that looks at them was reached.
            let has_properties = package.bundles.iter().any(|it| !it.properties.is_empty());
            if has_properties || !packages.contains_key(&package.name) {
                packages.insert(package.name.clone(), package);
            }
        }
        self.part.packages = packages.into_values().collect();
    }

    fn having(&self, is_it: impl Fn(&plimsoll_resolve::Bundle) -> bool) -> Vec<&str> {
        let packages = self.part.packages.iter();
        let found = packages.filter(|package| package.bundles.iter().any(&is_it));
        found.map(|package| package.name.as_str()).collect()
    }
}

impl Catalog for SnapshotCatalog {
    fn package(&self, name: &str) -> Option<Package> {
        self.part.package(name).cloned()
    }

    fn providers(&self, api: &Api) -> Vec<&str> {
        self.having(|bundle| bundle.provides.contains(api))
    }

    fn labelled(&self, label: &str) -> Vec<&str> {
        self.having(|bundle| bundle.labels.iter().any(|it| it == label))
    }

    fn packages(&self) -> Vec<&str> {
        self.having(|_| true)
    }

    fn package_with_properties(&self, name: &str) -> Option<Package> {
        self.package(name)
    }

    fn properties(&self, package: &str, bundle: &str) -> Option<Vec<Property>> {
        Some(self.part.bundle(package, bundle)?.properties.clone())
    }
}

#[cfg(test)]
mod tests {
    //! Snapshots give the same answers as the cluster that they were taken of.

    use super::*;
    use crate::tests::{FIXTURE, catalogs, facts, operators};

    #[test]
    fn a_snapshot_is_read_as_it_was_written() {
        let of = catalogs(FIXTURE);
        let operators = operators(
            &of,
            "foo: version ~1.2; at 1.2.3; set both/2
             bar: version 1.2.5; at 1.2.5; dependency
             baz: version 9.9.9",
        );
        let digest = "sha256:abc".to_owned();
        let catalogs = of.into_iter().map(|part| {
            let images = BTreeMap::from([("foo.v1.2.3".to_owned(), "example.com/foo".to_owned())]);
            let digests = BTreeMap::from([("bar.v1.2.5".to_owned(), "sha256:b".to_owned())]);
            SnapshotCatalog { digest: digest.clone(), images, digests, part }
        });
        let unavailable = BTreeMap::from([("other".to_owned(), "it is elsewhere".to_owned())]);
        let taken = LoadoutSnapshot::new(facts(30), operators, catalogs.collect(), unavailable);
        let text = taken.text();
        let read = LoadoutSnapshot::read(&text).unwrap();
        assert_eq!(read.text(), text);
        assert_eq!(read.catalogs[0].digests, taken.catalogs[0].digests);
        assert_eq!(read.operators["foo"].owned, taken.operators["foo"].owned);
        let catalog = &read.catalogs[0];
        assert_eq!(catalog.packages(), ["foo", "bar", "baz"]);
        let api = catalog.package("bar").unwrap().bundles[0].provides[0].clone();
        assert_eq!(catalog.providers(&api), ["bar"]);
        assert_eq!(catalog.package("fiz"), None);
    }

    #[test]
    fn snapshots_of_the_same_catalogs_are_joined() {
        let of = |names: &[&str], digest: &str| {
            let catalogs = catalogs(FIXTURE).into_iter().map(|mut part| {
                part.packages.retain(|it| names.contains(&it.name.as_str()));
                let image = |name: &String| (name.clone(), format!("example.com/{name}"));
                let bundles = part.packages.iter().flat_map(|it| &it.bundles);
                let images = bundles.map(|it| image(&it.name)).collect();
                let (digest, digests) = (digest.to_owned(), BTreeMap::new());
                SnapshotCatalog { digest, images, digests, part }
            });
            LoadoutSnapshot::new(facts(30), BTreeMap::new(), catalogs.collect(), BTreeMap::new())
        };
        let all = of(&["bar", "baz", "foo"], "sha256:a");
        let mut joined = of(&["foo", "bar"], "sha256:a");
        let mut without_properties = of(&["bar", "baz"], "sha256:a");
        for package in &mut without_properties.catalogs[0].part.packages {
            package.bundles.iter_mut().for_each(|it| it.properties.clear());
        }
        let property = Property { kind: "a".to_owned(), value: 1.into() };
        let bundles = joined.catalogs[0].part.packages.iter_mut().flat_map(|it| &mut it.bundles);
        bundles.for_each(|it| it.properties = vec![property.clone()]);
        assert!(joined.join(without_properties));
        let names = |it: &LoadoutSnapshot| -> Vec<String> {
            it.catalogs[0].part.packages.iter().map(|it| it.name.clone()).collect()
        };
        assert_eq!(names(&joined), ["bar", "baz", "foo"]);
        assert_eq!(joined.catalogs[0].images, all.catalogs[0].images);
        let bar = joined.catalogs[0].part.package("bar").unwrap();
        assert_eq!(bar.bundles[0].properties, [property]);

        let before = joined.text();
        assert!(!joined.join(of(&["foo"], "sha256:b")), "the catalog has changed");
        assert!(!joined.join(LoadoutSnapshot::default()), "there are other catalogs");
        assert_eq!(joined.text(), before);
    }

    #[test]
    fn another_text_is_refused() {
        let check = |text: &str, expected: &str| {
            let error = LoadoutSnapshot::read(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        check("{}", "it is not a snapshot, as `operator snapshot` prints it: missing field");
        check("foo", "expected ident");
        let newer = r#"{"format": 9, "facts": {}, "operators": {}, "catalogs": []}"#;
        check(newer, "its format is 9, not 1");
    }
}
