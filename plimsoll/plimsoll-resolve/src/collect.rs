//! From loaded catalogs and a query to a problem: what the query can reach, and no more.
//!
//! The cost depends on what is reached, not on the size of the catalogs; except for constraints
//! that name neither a package, an API nor a label, for which every bundle has to be looked at. What
//! that may cost is bounded; beyond it every package counts as reached.

use std::collections::{BTreeMap, BTreeSet};

use crate::bundle::{Api, Bundle, Constraint, Property, Requirement};
use crate::catalog::{Catalog, CatalogSource, Expressions, RULES_COST_MAX};
use crate::matching::{ConstraintMatcher, rules_of};
use crate::package::Package;
use crate::problem::{CatalogName, CatalogPart, FORMAT, Problem, Query};

/// Collects what a query can reach of catalogs.
///
/// The order of the catalogs means nothing.
pub fn collect_problem(
    sources: &[CatalogSource<'_>],
    query: Query,
    expressions: &dyn Expressions,
) -> Problem {
    let mut collector = Collector {
        sources,
        expressions,
        names: BTreeSet::new(),
        queue: Vec::new(),
        seen: BTreeSet::new(),
        rules: false,
        cost_left: RULES_COST_MAX,
    };
    for request in &query.requests {
        collector.package(&request.package);
    }
    for choice in &query.overrides.providers {
        collector.package(&choice.package);
    }
    for item in &query.installed {
        if let Some(package) = &item.package {
            collector.package(package);
        }
        if !item.ignore_dependencies {
            collector.bundle(&item.bundle);
        }
    }
    let mut parts: Vec<BTreeMap<String, Package>> = vec![BTreeMap::new(); sources.len()];
    while let Some(name) = collector.queue.pop() {
        for (source, part) in sources.iter().zip(&mut parts) {
            let Some(package) = source.catalog.package(&name) else { continue };
            for bundle in &package.bundles {
                collector.bundle(bundle);
            }
            part.insert(name.clone(), package);
        }
    }
    let rules = collector.rules;
    let catalogs = sources.iter().zip(parts);
    let catalogs = catalogs.map(|(source, part)| catalog_part(source, part, rules)).collect();
    let mut problem = Problem { format: FORMAT, query, catalogs };
    problem.canonicalize();
    problem
}

fn catalog_part(
    source: &CatalogSource<'_>,
    packages: BTreeMap<String, Package>,
    with_properties: bool,
) -> CatalogPart {
    let mut packages: Vec<Package> = packages.into_values().collect();
    if with_properties {
        packages.iter_mut().for_each(|package| fill_properties(package, source.catalog));
    }
    let name = CatalogName { namespace: source.namespace.to_owned(), name: source.name.to_owned() };
    CatalogPart { name, weight: source.weight, packages }
}

/// Fills in the properties of the bundles of a package, which expressions see, as a catalog has them.
pub fn fill_properties(package: &mut Package, catalog: &dyn Catalog) {
    let found = catalog.package_with_properties(&package.name);
    let found = found.into_iter().flat_map(|package| package.bundles);
    let mut properties: BTreeMap<String, _> =
        found.map(|bundle| (bundle.name, bundle.properties)).collect();
    for bundle in &mut package.bundles {
        bundle.properties = properties.remove(&bundle.name).unwrap_or_default();
    }
}

struct Collector<'a> {
    sources: &'a [CatalogSource<'a>],
    expressions: &'a dyn Expressions,
    /// The packages that were ever queued.
    names: BTreeSet<String>,
    queue: Vec<String>,
    /// The requirements that were followed.
    seen: BTreeSet<Requirement>,
    /// Some requirement is an expression.
    rules: bool,
    /// What looking at every bundle may still cost.
    cost_left: u64,
}

impl Collector<'_> {
    fn package(&mut self, name: &str) {
        if !self.names.contains(name) {
            self.names.insert(name.to_owned());
            self.queue.push(name.to_owned());
        }
    }

    fn bundle(&mut self, bundle: &Bundle) {
        for requirement in &bundle.requires {
            if self.seen.contains(requirement) {
                continue;
            }
            self.seen.insert(requirement.clone());
            self.rules |= !rules_of(requirement).is_empty();
            match self.named(&requirement.constraint) {
                Some(names) => names.iter().for_each(|name| self.package(name)),
                None => self.everywhere(requirement),
            }
        }
    }

    /// The packages that a constraint names, by themselves, their APIs or labels. None when it
    /// may hold for any package.
    fn named(&self, constraint: &Constraint) -> Option<BTreeSet<String>> {
        match constraint {
            Constraint::Package { name, .. } => Some(BTreeSet::from([name.clone()])),
            Constraint::Api(api) => Some(self.providers(api)),
            Constraint::Label(label) => {
                let sources = self.sources.iter();
                let names = sources.flat_map(|source| source.catalog.labelled(label));
                Some(names.map(str::to_owned).collect())
            }
            // It suffices to look where one of them holds.
            Constraint::All(members) => {
                let named = members.iter().filter_map(|member| self.named(&member.constraint));
                named.min_by_key(BTreeSet::len)
            }
            Constraint::Any(members) => members.iter().try_fold(BTreeSet::new(), |mut all, it| {
                all.extend(self.named(&it.constraint)?);
                Some(all)
            }),
            Constraint::Not(_) | Constraint::Cel { .. } => None,
        }
    }

    fn providers(&self, api: &Api) -> BTreeSet<String> {
        let names = self.sources.iter().flat_map(|source| source.catalog.providers(api));
        names.map(str::to_owned).collect()
    }

    /// Looks at every bundle there is. What holds for nothing but the absence of something
    /// holds for its own bundle too, and needs no other.
    fn everywhere(&mut self, requirement: &Requirement) {
        let rules = rules_of(requirement);
        if rules.is_empty() && vacuous(&requirement.constraint) {
            return;
        }
        let mut found = BTreeSet::new();
        let mut cost_left = self.cost_left;
        for source in self.sources {
            for name in source.catalog.packages() {
                if !self.names.contains(name)
                    && self.may_hold_in(source, name, requirement, &rules, &mut cost_left)
                {
                    found.insert(name.to_owned());
                }
            }
        }
        self.cost_left = cost_left;
        found.iter().for_each(|name| self.package(name));
    }

    /// Returns whether a requirement holds for a bundle of a package, or would cost too much to find out.
    fn may_hold_in(
        &self,
        source: &CatalogSource<'_>,
        name: &str,
        requirement: &Requirement,
        rules: &BTreeSet<&str>,
        cost_left: &mut u64,
    ) -> bool {
        if *cost_left == 0 {
            return true;
        }
        let package = if rules.is_empty() {
            source.catalog.package(name)
        } else {
            source.catalog.package_with_properties(name)
        };
        let Some(package) = package else { return false };
        *cost_left = cost_left.saturating_sub(1 + package.bundles.len() as u64);
        let candidates: Vec<&[Property]> =
            package.bundles.iter().map(|bundle| bundle.properties.as_slice()).collect();
        let mut truths: BTreeMap<&str, Vec<bool>> = BTreeMap::new();
        for rule in rules {
            let found = self.expressions.evaluate(rule, &candidates, cost_left);
            truths.insert(rule, found.unwrap_or_default());
        }
        if *cost_left == 0 {
            return true;
        }
        let matcher = ConstraintMatcher::new(&requirement.constraint);
        package.bundles.iter().enumerate().any(|(index, bundle)| {
            let evaluate = |rule: &str| {
                truths.get(rule).and_then(|truths| truths.get(index)).copied().unwrap_or(false)
            };
            matcher.holds(bundle, Some(name), &evaluate)
        })
    }
}

/// Nothing but negations: upstream lets the requiring bundle satisfy it.
fn vacuous(constraint: &Constraint) -> bool {
    match constraint {
        Constraint::All(members) => members.iter().all(|member| vacuous(&member.constraint)),
        Constraint::Any(members) => members.iter().any(|member| vacuous(&member.constraint)),
        Constraint::Not(_) => true,
        Constraint::Api(_)
        | Constraint::Package { .. }
        | Constraint::Label(_)
        | Constraint::Cel { .. } => false,
    }
}
