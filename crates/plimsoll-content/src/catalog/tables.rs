//! What the bundles of a package share, each thing once.

use std::collections::BTreeMap;

use super::model::{Api, Bundle, Details, Package, Property, Requirement};
use super::pending::PendingBundle;

/// The tables of a package while they are built.
#[derive(Default)]
pub(super) struct Tables<'a> {
    apis: Table<Api<'a>>,
    requirements: Table<Requirement<'a>>,
    properties: Table<Property<'a>>,
    details: Table<Details<'a>>,
}

impl<'a> Tables<'a> {
    /// Moves what a bundle says into the tables.
    pub(super) fn add(&mut self, pending: PendingBundle<'a>) -> Bundle<'a> {
        let PendingBundle { mut bundle, provided, required, properties, details, .. } = pending;
        bundle.provided = provided.into_iter().map(|it| self.apis.number(it)).collect();
        bundle.required = required.into_iter().map(|it| self.requirements.number(it)).collect();
        bundle.properties = properties.into_iter().map(|it| self.properties.number(it)).collect();
        bundle.details = self.details.number(details);
        bundle
    }

    /// Gives the tables to their package.
    pub(super) fn give_to(self, package: &mut Package<'a>) {
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
