//! What is installed, and who depends on whom.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use plimsoll_api::GroupKind;
use plimsoll_api::olm::Dependant;
use plimsoll_resolve::requirement::{CheckedRequirement, InstalledPackages, Provider};
use plimsoll_resolve::{Api, Bundle};

use super::OperatorInputs;

/// The bundles that are installed, or that would be after changes.
#[derive(Clone)]
pub(super) struct InstalledBundles<'a> {
    inputs: OperatorInputs<'a>,
    packages: InstalledPackages<'a>,
    /// The Operators that own a kind.
    owners: Arc<BTreeMap<&'a GroupKind, BTreeSet<&'a str>>>,
}

impl<'a> InstalledBundles<'a> {
    /// Those that are installed now.
    pub(super) fn new(inputs: OperatorInputs<'a>) -> Self {
        let installed = inputs.operators.iter().filter_map(|(name, operator)| {
            Some((name.as_str(), &operator.installed.as_ref()?.bundle))
        });
        let mut owners: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for (name, operator) in inputs.operators {
            for kind in &operator.owned {
                owners.entry(kind).or_default().insert(name.as_str());
            }
        }
        let packages = InstalledPackages::new(installed.collect());
        Self { inputs, packages, owners: Arc::new(owners) }
    }

    /// The same after an Operator was installed or upgraded.
    pub(super) fn with(&self, name: &'a str, bundle: &'a Bundle) -> Self {
        Self { packages: self.packages.with(name, bundle), ..self.clone() }
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
            let owners = self.owners.get(kind).into_iter().flatten();
            owners.map(move |owner| (*owner, kind))
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
