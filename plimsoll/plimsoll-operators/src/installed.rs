//! What is installed, and who depends on whom.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_api::GroupKind;
use plimsoll_api::olm::Dependant;
use plimsoll_resolve::requirement::{
    CheckedRequirement, InstalledIndex, InstalledPackages, Provider,
};
use plimsoll_resolve::{Api, Bundle, NameIndex};

use super::{OperatorInputs, RequestedOperator};

/// Who provides, requires and owns what: kept up to date, or made of all Operators.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct OperatorIndex {
    packages: InstalledIndex,
    /// The Operators that own a kind.
    owners: NameIndex<GroupKind>,
}

impl OperatorIndex {
    /// The index of all Operators.
    pub(super) fn of(operators: &BTreeMap<String, RequestedOperator>) -> Self {
        let mut index = Self::default();
        for (name, operator) in operators {
            index.insert(name, operator);
        }
        index
    }

    /// Takes note of an Operator that is not known.
    pub(super) fn insert(&mut self, name: &str, operator: &RequestedOperator) {
        operator.owned.iter().for_each(|kind| self.owners.insert(kind, name));
        if let Some(installed) = &operator.installed {
            self.packages.insert(name, &installed.bundle);
        }
    }

    /// Forgets an Operator, which is as it was inserted.
    pub(super) fn remove(&mut self, name: &str, operator: &RequestedOperator) {
        operator.owned.iter().for_each(|kind| self.owners.remove(kind, name));
        if let Some(installed) = &operator.installed {
            self.packages.remove(name, &installed.bundle);
        }
    }
}

/// The bundles that are installed, or that would be after changes.
#[derive(Clone)]
pub(super) struct InstalledBundles<'a> {
    inputs: OperatorInputs<'a>,
    packages: InstalledPackages<'a>,
    index: &'a OperatorIndex,
}

impl<'a> InstalledBundles<'a> {
    /// Those that are installed now.
    pub(super) fn new(inputs: OperatorInputs<'a>, index: &'a OperatorIndex) -> Self {
        let installed = inputs.operators.iter().filter_map(|(name, operator)| {
            Some((name.as_str(), &operator.installed.as_ref()?.bundle))
        });
        let packages = InstalledPackages::indexed(installed.collect(), &index.packages);
        Self { inputs, packages, index }
    }

    /// Returns what they were made from.
    pub(super) fn inputs(&self) -> OperatorInputs<'a> {
        self.inputs
    }

    /// The same after an Operator was installed or upgraded.
    pub(super) fn with(&self, name: &'a str, bundle: &'a Bundle) -> Self {
        Self { packages: self.packages.with(name, bundle), ..self.clone() }
    }

    /// The same after several were.
    pub(super) fn with_all(&self, moves: impl Iterator<Item = (&'a str, &'a Bundle)>) -> Self {
        moves.fold(self.clone(), |it, (name, bundle)| it.with(name, bundle))
    }

    /// Holds the requirements of a bundle of an Operator against what is installed.
    pub(super) fn check(&self, name: &str, bundle: &Bundle) -> Vec<CheckedRequirement> {
        let OperatorInputs { facts, expressions, .. } = self.inputs;
        self.packages.check(name, bundle, facts, expressions)
    }

    /// The Operators whose requirements one satisfies, by name.
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

    /// The requirements that hold now and would not after changes, as sentences.
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

    /// The other Operators that have something installed whose requirements what is installed of one
    /// may satisfy.
    fn concerned_by(&self, name: &str) -> BTreeMap<&'a str, &'a Bundle> {
        let provides = self.packages.bundle(name).map(|it| it.provides.as_slice());
        let concerned = self.packages.concerned_by(name, provides.unwrap_or_default());
        let others = concerned.into_iter().filter(|other| *other != name);
        others.filter_map(|other| Some((other, self.packages.bundle(other)?))).collect()
    }

    /// The first other Operator, by name, that owns one of some kinds, and that kind.
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

/// A requirement that is not satisfied, as a sentence.
pub(super) fn unmet(operator: &str, requirement: &CheckedRequirement) -> String {
    format!("{operator} depends on {} but {}", requirement.text, requirement.missing)
}

/// The requirements that are not satisfied, as sentences.
pub(super) fn all_unmet(operator: &str, requirements: &[CheckedRequirement]) -> Vec<String> {
    let missing = requirements.iter().filter(|requirement| requirement.provider.is_none());
    missing.map(|requirement| unmet(operator, requirement)).collect()
}

/// The kinds that a bundle provides.
pub(super) fn kinds(bundle: &Bundle) -> BTreeSet<GroupKind> {
    let kind = |api: &Api| GroupKind::new(&api.group, &api.kind);
    bundle.provides.iter().map(kind).collect()
}
