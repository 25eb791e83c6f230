//! Convergence of Operators: the result of carrying out all decisions about them.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_resolve::{Bundle, CatalogPart, Package};

use crate::installed::kinds;
use crate::{
    InstalledOperator, OperatorAction, OperatorDecision, OperatorInputs, RequestedOperator,
    SelectedBundle, decide,
};

/// The maximum number of rounds before Operators count as unable to converge. Each round takes one step of a
/// channel.
const ROUNDS_MAX: usize = 200;

/// Operators after all of their decisions are carried out.
#[derive(Debug, Clone, Default)]
pub struct ConvergedOperators {
    /// The Operators, with their installed bundles.
    pub operators: BTreeMap<String, RequestedOperator>,
    /// The last decision on each of them: none is installed or updated any more.
    pub decisions: BTreeMap<String, OperatorDecision>,
}

/// Converges Operators: decides as the controller does, takes each decision as carried out, and repeats that
/// until no Operator is installed or updated any more.
pub fn converge(inputs: OperatorInputs<'_>, catalogs: &[CatalogPart]) -> ConvergedOperators {
    let mut operators = inputs.operators.clone();
    let catalogs = &IndexedParts::of(catalogs);
    let names: BTreeSet<String> = operators.keys().cloned().collect();
    let mut decisions = BTreeMap::new();
    for _ in 0..ROUNDS_MAX {
        let inputs = OperatorInputs { operators: &operators, ..inputs };
        decisions = decide(inputs, &names, &|names| catalogs.part(names));
        let mut moved = false;
        for (name, decision) in &decisions {
            if let OperatorAction::Install(selected) | OperatorAction::Upgrade(selected) =
                &decision.action
                && let Some(operator) = operators.get_mut(name)
                && let Some(bundle) = catalogs.bundle(name, selected)
            {
                operator.owned.extend(kinds(bundle));
                let revision = operator.installed.as_ref().map_or(0, |it| it.revision) + 1;
                let upgrade_block = operator.installed.take().and_then(|it| it.upgrade_block);
                operator.installed = Some(InstalledOperator {
                    reference: selected.reference.clone(),
                    bundle: bundle.clone(),
                    revision,
                    upgrade_block,
                });
                moved = true;
            }
        }
        if !moved {
            break;
        }
    }
    ConvergedOperators { operators, decisions }
}

/// Catalogs with their packages, by name.
struct IndexedParts<'a>(Vec<(&'a CatalogPart, BTreeMap<&'a str, &'a Package>)>);

impl<'a> IndexedParts<'a> {
    fn of(catalogs: &'a [CatalogPart]) -> Self {
        let packages = |catalog: &'a CatalogPart| {
            catalog.packages.iter().map(|it| (it.name.as_str(), it)).collect()
        };
        Self(catalogs.iter().map(|catalog| (catalog, packages(catalog))).collect())
    }

    /// Returns the catalogs, each with those of the given packages that it has.
    fn part(&self, names: &BTreeSet<String>) -> Vec<CatalogPart> {
        let part = |(catalog, packages): &(&CatalogPart, BTreeMap<&str, &Package>)| {
            let packages = names.iter().filter_map(|name| packages.get(name.as_str()));
            let packages: Vec<Package> = packages.map(|it| (*it).clone()).collect();
            CatalogPart { name: catalog.name.clone(), weight: catalog.weight, packages }
        };
        self.0.iter().map(part).collect()
    }

    fn bundle(&self, package: &str, selected: &SelectedBundle) -> Option<&'a Bundle> {
        let reference = &selected.reference;
        let (_, packages) = self.0.iter().find(|(it, _)| it.name.name == reference.catalog)?;
        packages.get(package)?.bundles.iter().find(|it| it.name == reference.name)
    }
}
