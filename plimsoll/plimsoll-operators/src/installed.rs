//! Installed bundles, and the dependencies between them.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_api::GroupKind;
use plimsoll_api::olm::{BundleProperty, Dependant};
use plimsoll_resolve::requirement::{
    CheckedRequirement, InstalledIndex, InstalledPackages, Provider,
};
use plimsoll_resolve::{Api, Bundle, NameIndex, Property, bundle_from_properties};

use super::{OperatorInputs, RequestedOperator};

/// An index of the packages and APIs that Operators provide and require, and of the kinds that they own.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct OperatorIndex {
    packages: InstalledIndex,
    /// The names of the Operators that own a kind.
    owners: NameIndex<GroupKind>,
}

impl OperatorIndex {
    /// Indexes all Operators.
    pub(super) fn of(operators: &BTreeMap<String, RequestedOperator>) -> Self {
        let mut index = Self::default();
        for (name, operator) in operators {
            index.insert(name, operator);
        }
        index
    }

    /// Adds an Operator that is not indexed yet.
    pub(super) fn insert(&mut self, name: &str, operator: &RequestedOperator) {
        operator.owned.iter().for_each(|kind| self.owners.insert(kind, name));
        if let Some(installed) = &operator.installed {
            self.packages.insert(name, &installed.bundle);
        }
    }

    /// Returns whether some requirement may be an expression, which sees the properties of bundles.
    pub(super) fn sees_properties(&self) -> bool {
        self.packages.sees_properties()
    }

    /// Removes an Operator, which must be unchanged since it was inserted.
    pub(super) fn remove(&mut self, name: &str, operator: &RequestedOperator) {
        operator.owned.iter().for_each(|kind| self.owners.remove(kind, name));
        if let Some(installed) = &operator.installed {
            self.packages.remove(name, &installed.bundle);
        }
    }
}

/// The bundles that are installed, or that would be after some changes.
#[derive(Clone)]
pub(super) struct InstalledBundles<'a> {
    inputs: OperatorInputs<'a>,
    packages: InstalledPackages<'a>,
    index: &'a OperatorIndex,
}

impl<'a> InstalledBundles<'a> {
    /// Returns the bundles that are installed now.
    pub(super) fn new(inputs: OperatorInputs<'a>, index: &'a OperatorIndex) -> Self {
        let installed = inputs.operators.iter().filter_map(|(name, operator)| {
            Some((name.as_str(), &operator.installed.as_ref()?.bundle))
        });
        let packages = InstalledPackages::indexed(installed.collect(), &index.packages);
        Self { inputs, packages, index }
    }

    /// Returns the inputs.
    pub(super) fn inputs(&self) -> OperatorInputs<'a> {
        self.inputs
    }

    /// Returns the bundles after an Operator was installed or updated.
    pub(super) fn with(&self, name: &'a str, bundle: &'a Bundle) -> Self {
        Self { packages: self.packages.with(name, bundle), ..*self }
    }

    /// Returns the bundles after several Operators were installed or updated.
    pub(super) fn with_all(&self, moves: impl Iterator<Item = (&'a str, &'a Bundle)>) -> Self {
        Self { packages: self.packages.with_all(moves), ..*self }
    }

    /// Checks the requirements of a bundle of an Operator against the installed bundles.
    pub(super) fn check(&self, name: &str, bundle: &Bundle) -> Vec<CheckedRequirement> {
        let OperatorInputs { facts, expressions, .. } = self.inputs;
        self.packages.check(name, bundle, facts, expressions)
    }

    /// Returns the Operators whose requirements the given one satisfies, by name.
    pub(super) fn dependants(&self, name: &str) -> Vec<Dependant> {
        let mut dependants = Vec::new();
        for (other, bundle) in self.concerned_by(name) {
            let provided = self.check(other, bundle).into_iter().filter(
                |it| matches!(&it.provider, Some(Provider::Installed(package)) if package == name),
            );
            dependants.extend(provided.map(|requirement| Dependant {
                operator: other.to_owned(),
                requirement: requirement.text,
            }));
        }
        dependants
    }

    /// Returns the requirements that are satisfied now and would not be after some changes, as sentences.
    pub(super) fn broken_by(&self, after: &Self, changed: &BTreeSet<&str>) -> Vec<String> {
        let concerned: BTreeMap<_, _> =
            changed.iter().flat_map(|name| self.concerned_by(name)).collect();
        let mut broken = Vec::new();
        for (name, bundle) in concerned.into_iter().filter(|(name, _)| !changed.contains(name)) {
            let before = self.check(name, bundle);
            for (before, after) in before.iter().zip(after.check(name, bundle)) {
                if before.provider.is_some() && after.provider.is_none() {
                    broken.push(unmet(name, &after));
                }
            }
        }
        broken
    }

    /// Returns the other Operators with the bundles whose requirements the installed bundle of one may
    /// satisfy.
    fn concerned_by(&self, name: &str) -> BTreeMap<&'a str, &'a Bundle> {
        let provides = self.packages.bundle(name).map(|it| it.provides.as_slice());
        let concerned = self.packages.concerned_by(name, provides.unwrap_or_default());
        let others = concerned.into_iter().filter(|other| *other != name);
        others.filter_map(|other| Some((other, self.packages.bundle(other)?))).collect()
    }

    /// Returns the first other Operator, by name, that owns one of these kinds, and the kind.
    pub(super) fn owner_of(
        &self,
        name: &str,
        kinds: &BTreeSet<GroupKind>,
    ) -> Option<(&'a str, GroupKind)> {
        let owners = kinds.iter().flat_map(|kind| {
            let owners = self.index.owners.names(kind);
            owners.map(move |owner| (owner, kind))
        });
        let first = owners.filter(|(owner, _)| *owner != name).min()?;
        Some((first.0, first.1.clone()))
    }
}

/// Returns an installed bundle as its revision describes it, with the properties that expressions see.
/// `package` is the name of its Operator.
pub fn installed_bundle(name: &str, package: &str, properties: &[BundleProperty]) -> Bundle {
    let property =
        |it: &BundleProperty| Property { kind: it.type_.clone(), value: it.value.clone() };
    let properties: Vec<Property> = properties.iter().map(property).collect();
    let bundle = bundle_from_properties(name, package, &properties);
    Bundle { properties, ..bundle }
}

/// Returns the sentence for a requirement that is not satisfied.
pub(super) fn unmet(operator: &str, requirement: &CheckedRequirement) -> String {
    format!("{}{}", required(operator, requirement), requirement.missing)
}

/// Returns the beginning of that sentence: what is required, without what is missing.
pub(super) fn required(operator: &str, requirement: &CheckedRequirement) -> String {
    format!("{operator} depends on {} but ", requirement.text)
}

/// Returns a sentence for each requirement that is not satisfied.
pub(super) fn all_unmet(operator: &str, requirements: &[CheckedRequirement]) -> Vec<String> {
    let missing = requirements.iter().filter(|requirement| requirement.provider.is_none());
    missing.map(|requirement| unmet(operator, requirement)).collect()
}

/// Returns the kinds that a bundle provides.
pub(super) fn kinds(bundle: &Bundle) -> BTreeSet<GroupKind> {
    let kind = |api: &Api| GroupKind::new(&api.group, &api.kind);
    bundle.provides.iter().map(kind).collect()
}

#[cfg(test)]
mod tests;
