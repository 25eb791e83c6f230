//! What is installed, and who depends on whom.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_api::GroupKind;
use plimsoll_api::olm::Dependant;
use plimsoll_resolve::requirement::{
    CheckedRequirement, InstalledPackage, Provider, check_requirements,
};
use plimsoll_resolve::{Api, Bundle};

use super::OperatorInputs;

/// The bundles that are installed, or that would be after changes.
#[derive(Clone)]
pub(super) struct InstalledBundles<'a> {
    inputs: OperatorInputs<'a>,
    bundles: BTreeMap<&'a str, &'a Bundle>,
}

impl<'a> InstalledBundles<'a> {
    /// Those that are installed now.
    pub(super) fn new(inputs: OperatorInputs<'a>) -> Self {
        let installed = inputs.operators.iter().filter_map(|(name, operator)| {
            Some((name.as_str(), &operator.installed.as_ref()?.bundle))
        });
        Self { inputs, bundles: installed.collect() }
    }

    /// The same after an Operator was installed or upgraded.
    pub(super) fn with(&self, name: &'a str, bundle: &'a Bundle) -> Self {
        let mut changed = self.clone();
        changed.bundles.insert(name, bundle);
        changed
    }

    /// Holds the requirements of a bundle of an Operator against what is installed.
    pub(super) fn check(&self, name: &str, bundle: &Bundle) -> Vec<CheckedRequirement> {
        let installed = self.packages();
        let OperatorInputs { facts, expressions, .. } = self.inputs;
        check_requirements(name, bundle, &installed, facts, expressions)
    }

    /// The Operators whose requirements one satisfies, by name.
    pub(super) fn dependants(&self, name: &str) -> Vec<Dependant> {
        let installed = self.packages();
        let mut dependants = Vec::new();
        for (other, bundle) in self.bundles.iter().filter(|(other, _)| **other != name) {
            let provided = self.check(other, bundle).into_iter().filter(|requirement| {
                matches!(requirement.provider, Some(Provider::Installed(at))
                    if installed[at].package == name)
            });
            dependants.extend(provided.map(|requirement| Dependant {
                operator: (*other).to_owned(),
                requirement: requirement.text,
            }));
        }
        dependants
    }

    /// The requirements that hold now and would not after changes, as sentences.
    pub(super) fn broken_by(&self, after: &Self, changed: &BTreeSet<&str>) -> Vec<String> {
        let mut broken = Vec::new();
        let others = self.bundles.iter().filter(|(name, _)| !changed.contains(**name));
        for (name, bundle) in others.filter(|(_, bundle)| !bundle.requires.is_empty()) {
            let before = self.check(name, bundle);
            for (before, after) in before.iter().zip(after.check(name, bundle)) {
                if before.provider.is_some() && after.provider.is_none() {
                    broken.push(unmet(name, &after));
                }
            }
        }
        broken
    }

    fn packages(&self) -> Vec<InstalledPackage<'a>> {
        let package =
            |(name, bundle): (&&'a str, &&'a Bundle)| InstalledPackage { package: name, bundle };
        self.bundles.iter().map(package).collect()
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
