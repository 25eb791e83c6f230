//! The effects of changes: who depends on whom, and what is not satisfied.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_api::olm::action::PlannedChange;
use plimsoll_resolve::{Bundle, CatalogPart};

use super::{KeptOperator, PlannedDependency, UnsatisfiedRequirement};
use crate::OperatorInputs;
use crate::deletion_plan::DeletionPlan;
use crate::observed::ObservedOperator;
use crate::planner::{ChosenBundle, ChosenBundles, Outcome};

/// The version of an Operator afterwards.
#[derive(Debug, Clone, Copy)]
pub(super) struct BundleVersion<'a> {
    /// The name of the Operator.
    name: &'a str,
    /// The version; empty for none.
    version: &'a str,
    /// The name of the catalog that has it; empty if that is not known.
    catalog: &'a str,
}

impl<'a> BundleVersion<'a> {
    /// Returns the version that a change leads to.
    pub(super) fn of(change: &'a PlannedChange) -> Self {
        let PlannedChange { operator, version, catalog, .. } = change;
        Self { name: operator, version, catalog }
    }

    /// Returns the version that is kept.
    pub(super) fn of_kept(kept: &'a KeptOperator) -> Self {
        Self { name: &kept.operator, version: &kept.version, catalog: "" }
    }

    /// Returns whether it is installed already.
    fn is_installed(&self, inputs: OperatorInputs<'_>) -> bool {
        let operator = inputs.operators.get(self.name);
        let installed = operator.and_then(|it| it.installed.as_ref());
        installed.is_some_and(|it| it.bundle.version.to_string() == self.version)
    }

    /// Returns its bundle, of the first catalog that has it.
    fn find<'c>(&self, catalogs: &'c [CatalogPart]) -> Option<ChosenBundle<'c>> {
        let is_meant = |it: &&CatalogPart| self.catalog.is_empty() || it.name.name == self.catalog;
        catalogs.iter().filter(is_meant).find_map(|part| {
            let bundle = self.offer(part)?;
            Some(ChosenBundle { bundle, catalog: &part.name.name })
        })
    }

    /// Returns its bundle in a catalog.
    fn offer<'c>(&self, part: &'c CatalogPart) -> Option<&'c Bundle> {
        let bundles = &part.package(self.name)?.bundles;
        bundles.iter().find(|it| it.version.to_string() == self.version)
    }
}

/// Completes a change with the name of its bundle, and with that of the catalog if only one has the bundle.
pub(super) fn name_bundle(change: &mut PlannedChange, catalogs: &[CatalogPart]) {
    let version = BundleVersion::of(change);
    let Some(found) = version.find(catalogs) else { return };
    let offers = catalogs.iter().filter(|it| version.offer(it).is_some()).count();
    let is_known = !change.catalog.is_empty() || offers == 1;
    change.bundle.clone_from(&found.bundle.name);
    if is_known {
        change.catalog = found.catalog.to_owned();
    }
}

/// The effects of changes.
#[derive(Debug, Default)]
pub(super) struct Effects {
    /// The dependencies from or to changed Operators.
    pub(super) dependencies: BTreeSet<PlannedDependency>,
    /// The requirements that are not satisfied afterwards.
    pub(super) unsatisfied: BTreeSet<UnsatisfiedRequirement>,
}

impl Effects {
    /// Returns the effects of versions beside the installed Operators of `inputs`; `changed` are the names of the
    /// changed Operators.
    pub(super) fn new(
        inputs: OperatorInputs<'_>,
        catalogs: &[CatalogPart],
        versions: &[BundleVersion<'_>],
        changed: &BTreeSet<&str>,
    ) -> Self {
        let mut chosen = ChosenBundles::new();
        for it in versions.iter().filter(|it| !it.is_installed(inputs)) {
            if let Some(found) = it.find(catalogs) {
                chosen.insert(it.name, found);
            }
        }
        let after = Outcome::new(inputs, catalogs, &chosen);
        let mut effects = Self::default();
        for (&name, bundle) in &after.bundles {
            for requirement in after.check(name, bundle) {
                let Some(provider) = after.provider(&requirement) else {
                    if requirement.provider.is_none() {
                        effects.unsatisfied.insert(UnsatisfiedRequirement {
                            operator: name.to_owned(),
                            requirement: requirement.text,
                            missing: requirement.missing,
                        });
                    }
                    continue;
                };
                if changed.contains(name) || changed.contains(provider) {
                    effects.dependencies.insert(PlannedDependency {
                        operator: name.to_owned(),
                        on: provider.to_owned(),
                        version: bundle.version.to_string(),
                        requirement: requirement.text,
                        broken: false,
                    });
                }
            }
        }
        effects
    }
}

/// Returns the dependencies between deleted Operators, and those for which others are kept.
pub(super) fn of_deletion(
    plan: &DeletionPlan,
    operators: &BTreeMap<String, ObservedOperator>,
) -> BTreeSet<PlannedDependency> {
    let going: BTreeSet<&str> = plan.delete.iter().map(|it| it.name.as_str()).collect();
    let concerned = plan.delete.iter().map(|it| &it.name);
    let concerned = concerned.chain(plan.needed.iter().map(|it| &it.name)).chain(&plan.orphans);
    let mut dependencies = BTreeSet::new();
    for name in concerned {
        let status = operators.get(name).map(|it| &it.status);
        let reported = status.into_iter().flat_map(|it| &it.dependants);
        let reported = reported.map(|it| (it.operator.as_str(), &it.requirement));
        // Either of both may report it before the other.
        let depending = operators.iter().flat_map(|(dependant, it)| {
            let on = it.status.dependencies.iter();
            let on = on.filter(move |it| it.operator == *name);
            on.map(move |it| (dependant.as_str(), &it.requirement))
        });
        for (dependant, requirement) in reported.chain(depending) {
            let Some(there) = operators.get(dependant) else { continue };
            dependencies.insert(PlannedDependency {
                operator: dependant.to_owned(),
                on: name.clone(),
                version: there.version().to_owned(),
                requirement: requirement.clone(),
                broken: going.contains(name.as_str()) && !going.contains(dependant),
            });
        }
    }
    dependencies
}
