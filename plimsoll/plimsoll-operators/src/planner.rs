//! Planner of changes of Operators: what `install`, `resolve`, `update`, Actions and `lint` have in common.
//!
//! A command decides what to request. The problem for the resolver, the bundles of its solution, and what is
//! written in `spec.version` are the same for all of them.

mod destinations;
mod held;
mod help;
mod range;
mod related;
mod repair;
mod search;

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_resolve::requirement::{CheckedRequirement, InstalledPackages, Provider};
use plimsoll_resolve::{
    Bundle, BundleExclusion, CatalogName, CatalogPart, FORMAT, FollowedChannel, InstalledBundle,
    PackageRequest, Problem, Query, ResolutionOverrides, Solution,
};

use super::{OperatorInputs, RequestedOperator, change_set};

use self::destinations::{CHANNEL, Destinations};
pub(crate) use self::held::{held, hold};
pub(crate) use self::help::for_commands;
pub(crate) use self::range::{is_in_range, is_pinned, takes_back};
pub(crate) use self::repair::has_unmet;
pub(crate) use self::search::{ChangeRequest, Proposal, ProposalError, Wanted, propose};

/// The beginning of the ids of change sets that plans make.
pub(crate) const CHANGE_SET_PREFIX: &str = "update-";

/// The part of a problem that a command decides.
pub(crate) struct ProblemRequest<'a> {
    /// The catalogs to choose from.
    pub(crate) catalogs: Vec<CatalogPart>,
    /// The requests.
    pub(crate) requests: Vec<PackageRequest>,
    /// The decisions that the resolver has to respect.
    pub(crate) overrides: ResolutionOverrides,
    /// Returns the channel that an installed Operator follows; `None` if it is not to be changed.
    pub(crate) follows: &'a dyn Fn(&str, &RequestedOperator) -> Option<FollowedChannel>,
    /// The Operators whose requirements, as they are installed, do not have to be satisfied.
    pub(crate) ignored: &'a BTreeSet<String>,
}

/// Returns the problem of changing Operators, beside all of those that are installed.
pub(crate) fn problem(inputs: OperatorInputs<'_>, request: ProblemRequest<'_>) -> Problem {
    let ProblemRequest { catalogs, requests, overrides, follows, ignored } = request;
    let installed = inputs.operators.iter().filter_map(|(name, operator)| {
        let there = operator.installed.as_ref()?;
        let catalog = Some(there.reference.catalog.as_str()).filter(|it| !it.is_empty());
        Some(InstalledBundle {
            namespace: String::new(),
            package: Some(name.clone()),
            follows: follows(name, operator),
            catalog: catalog.map(catalog_name),
            ignore_dependencies: ignored.contains(name),
            bundle: there.bundle.clone(),
        })
    });
    let (facts, installed) = (inputs.facts.clone(), installed.collect());
    let query = Query { facts, installed, requests, overrides, ..Query::default() };
    let mut problem = Problem { format: FORMAT, query, catalogs };
    problem.canonicalize();
    problem
}

/// Returns the name of a catalog as the resolver knows it.
pub(crate) fn catalog_name(name: &str) -> CatalogName {
    CatalogName { namespace: String::new(), name: name.to_owned() }
}

/// A bundle that the resolver chose.
#[derive(Clone, Copy)]
pub(crate) struct ChosenBundle<'a> {
    /// The bundle.
    pub(crate) bundle: &'a Bundle,
    /// The name of the catalog that has it.
    pub(crate) catalog: &'a str,
}

/// The bundles that a solution installs, by package.
pub(crate) type ChosenBundles<'a> = BTreeMap<&'a str, ChosenBundle<'a>>;

/// Returns the bundles that a solution installs.
pub(crate) fn chosen<'a>(catalogs: &'a [CatalogPart], solution: &'a Solution) -> ChosenBundles<'a> {
    let chosen = solution.install.iter().filter_map(|it| {
        let catalog = catalogs.iter().find(|part| part.name == it.catalog)?;
        let bundle = catalog.bundle(&it.package, &it.bundle)?;
        Some((it.package.as_str(), ChosenBundle { bundle, catalog: &catalog.name.name }))
    });
    chosen.collect()
}

/// Returns the installed bundles, by package.
pub(crate) fn installed(
    operators: &BTreeMap<String, RequestedOperator>,
) -> BTreeMap<&str, &Bundle> {
    let operators = operators.iter();
    operators
        .filter_map(|(name, it)| Some((name.as_str(), &it.installed.as_ref()?.bundle)))
        .collect()
}

/// Returns Operators without the bundles that are not really installed of some.
pub(crate) fn without_installed(
    operators: &BTreeMap<String, RequestedOperator>,
    names: &BTreeSet<String>,
) -> BTreeMap<String, RequestedOperator> {
    let mut operators = operators.clone();
    for (_, operator) in operators.iter_mut().filter(|(name, _)| names.contains(*name)) {
        operator.installed = None;
        operator.owned.clear();
    }
    operators
}

/// Returns whether a plan may change an Operator.
pub(crate) fn may_move(operator: &RequestedOperator) -> bool {
    !is_kept(operator) && change_set::invalid(operator).is_none()
}

/// Returns whether an Operator keeps what is installed, whatever else is requested of it, or is not a plan's to change.
pub(crate) fn is_kept(operator: &RequestedOperator) -> bool {
    operator.is_deleting
        || operator.spec.paused
        || operator.spec.revision.is_some()
        || operator.is_undeclared
}

impl RequestedOperator {
    /// Returns whether it is an orphan if no Operator depends on it; `was_used` is whether one did.
    pub(crate) fn may_be_orphaned(&self, was_used: bool) -> bool {
        self.is_dependency || (was_used && !self.is_of_user && !self.is_undeclared)
    }
}

/// The installed bundles after a plan is carried out.
pub(crate) struct Outcome<'a> {
    /// The Operators before the plan.
    pub(crate) inputs: OperatorInputs<'a>,
    catalogs: &'a [CatalogPart],
    /// The bundles, by package.
    pub(crate) bundles: BTreeMap<&'a str, &'a Bundle>,
    packages: InstalledPackages<'a>,
    /// The bundles that no written range may have.
    excluded: &'a [BundleExclusion],
}

impl<'a> Outcome<'a> {
    /// Returns the outcome of installing bundles beside the Operators of `inputs`.
    pub(crate) fn new(
        inputs: OperatorInputs<'a>,
        catalogs: &'a [CatalogPart],
        chosen: &ChosenBundles<'a>,
    ) -> Self {
        let mut bundles = installed(inputs.operators);
        bundles.extend(chosen.iter().map(|(name, it)| (*name, it.bundle)));
        let packages = InstalledPackages::new(bundles.clone());
        Self { inputs, catalogs, bundles, packages, excluded: &[] }
    }

    /// Returns the outcome in which no written range has the excluded bundles.
    pub(crate) fn without(self, excluded: &'a [BundleExclusion]) -> Self {
        Self { excluded, ..self }
    }

    /// Returns the requirements of the bundle of a package; none if it is not installed.
    pub(crate) fn requirements(&self, name: &str) -> Vec<CheckedRequirement> {
        let bundle = self.bundles.get(name);
        bundle.map(|it| self.check(name, it)).unwrap_or_default()
    }

    /// Checks the requirements of another bundle of a package.
    pub(crate) fn check(&self, name: &str, bundle: &Bundle) -> Vec<CheckedRequirement> {
        check(self.inputs, &self.packages, name, bundle)
    }

    /// Returns the package that satisfies a requirement; `None` if no other package does.
    pub(crate) fn provider(&self, requirement: &CheckedRequirement) -> Option<&'a str> {
        let Some(Provider::Installed(package)) = &requirement.provider else { return None };
        self.bundles.get_key_value(package.as_str()).map(|(name, _)| *name)
    }

    /// Returns the packages that are no orphans: those that some package depends on or requires by name, and all while
    /// an Operator is requested of which nothing is installed, since what that requires is not known.
    pub(crate) fn needed(&self) -> BTreeSet<&'a str> {
        let mut requested = self.inputs.operators.iter().filter(|(_, it)| !it.is_deleting);
        if requested.any(|(name, _)| !self.bundles.contains_key(name.as_str())) {
            return self.bundles.keys().copied().collect();
        }
        let requirements = self.bundles.keys().flat_map(|name| self.requirements(name));
        requirements.filter_map(|it| self.provider(&it).or_else(|| self.named(&it))).collect()
    }

    /// Returns the package that a requirement names which nothing satisfies; `None` if it names none that is
    /// installed.
    pub(crate) fn named(&self, requirement: &CheckedRequirement) -> Option<&'a str> {
        let package = requirement.package.as_ref().filter(|_| requirement.provider.is_none())?;
        self.bundles.get_key_value(package.as_str()).map(|(name, _)| *name)
    }

    /// Returns the packages that some packages depend on.
    pub(crate) fn used_by<'n>(
        &self,
        names: impl IntoIterator<Item = &'n str>,
    ) -> BTreeSet<&'a str> {
        let requirements = names.into_iter().flat_map(|name| self.requirements(name));
        requirements.filter_map(|it| self.provider(&it)).collect()
    }
}

/// Checks the requirements of a bundle of a package.
fn check(
    inputs: OperatorInputs<'_>,
    packages: &InstalledPackages<'_>,
    name: &str,
    bundle: &Bundle,
) -> Vec<CheckedRequirement> {
    let OperatorInputs { facts, expressions, .. } = inputs;
    packages.check(name, bundle, facts, expressions)
}

#[cfg(test)]
pub(crate) mod tests;
