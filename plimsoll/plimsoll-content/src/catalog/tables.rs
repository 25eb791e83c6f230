//! What the bundles of a package share, each thing once.

use std::collections::BTreeMap;

use super::model::{
    BundleDetails, IndexedApi, IndexedBundle, IndexedPackage, IndexedProperty, IndexedRequirement,
};
use super::pending::{PendingBundle, PendingFacts};

/// The tables of a package while they are built.
pub(super) struct Tables<'a> {
    kept: &'a [u8],
    apis: Table<IndexedApi<'a>>,
    requirements: Table<IndexedRequirement<'a>>,
    properties: Table<IndexedProperty<'a>>,
    details: Table<BundleDetails<'a>>,
    /// What facts at a place became.
    known: BTreeMap<usize, Numbers>,
}

/// What the facts of a bundle are in the tables.
#[derive(Clone)]
struct Numbers {
    provided: Vec<u32>,
    required: Vec<u32>,
    properties: Vec<u32>,
    details: u32,
}

impl<'a> Tables<'a> {
    /// Empty tables for bundles whose facts lie in `kept`.
    pub(super) fn new(kept: &'a [u8]) -> Self {
        Self {
            kept,
            apis: Table::default(),
            requirements: Table::default(),
            properties: Table::default(),
            details: Table::default(),
            known: BTreeMap::new(),
        }
    }

    /// Moves what a bundle says into the tables.
    pub(super) fn add(&mut self, pending: PendingBundle<'a>) -> IndexedBundle<'a> {
        let PendingBundle { mut bundle, facts: (from, to), .. } = pending;
        let numbers = match self.known.get(&from) {
            Some(numbers) => numbers.clone(),
            None => {
                let facts = postcard::from_bytes(&self.kept[from..to])
                    .expect("what was written can be read back");
                let numbers = self.numbers(facts);
                self.known.insert(from, numbers.clone());
                numbers
            }
        };
        Numbers {
            provided: bundle.provided,
            required: bundle.required,
            properties: bundle.properties,
            details: bundle.details,
        } = numbers;
        bundle
    }

    fn numbers(&mut self, facts: PendingFacts<'a>) -> Numbers {
        let PendingFacts { provided, required, properties, details } = facts;
        Numbers {
            provided: provided.into_iter().map(|it| self.apis.number(it)).collect(),
            required: required.into_iter().map(|it| self.requirements.number(it)).collect(),
            properties: properties.into_iter().map(|it| self.properties.number(it)).collect(),
            details: self.details.number(details),
        }
    }

    /// Gives the tables to their package.
    pub(super) fn give_to(self, package: &mut IndexedPackage<'a>) {
        package.apis = self.apis.finish();
        package.requirements = self.requirements.finish();
        package.properties = self.properties.finish();
        package.details = self.details.finish();
    }
}

/// Distinct things in the order in which they came.
struct Table<T>(BTreeMap<T, u32>);

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T: Ord> Table<T> {
    fn number(&mut self, item: T) -> u32 {
        let next = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        *self.0.entry(item).or_insert(next)
    }

    fn finish(self) -> Vec<T> {
        let mut items: Vec<(T, u32)> = self.0.into_iter().collect();
        items.sort_by_key(|(_, number)| *number);
        items.into_iter().map(|(item, _)| item).collect()
    }
}
