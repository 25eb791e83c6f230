//! Ways to bundles: what steps on the way to a proposed bundle require, and the other proposed bundles do not satisfy.
//!
//! The resolver sees the bundles that updates lead to, and not the steps to them. If a step cannot be made, a bundle
//! that it leads to counts as if it had the requirements of the step: the other Operators get versions with which the
//! step can be made, or else, the resolver gives that bundle up.

use plimsoll_api::olm::UpgradeConstraints;
use plimsoll_resolve::offer::{ChannelIndex, Offer};
use plimsoll_resolve::requirement::CheckedRequirement;
use plimsoll_resolve::{Bundle, Requirement};

use super::*;
use crate::OperatorAction;
use crate::decide::moved;
use crate::selection::{candidates_indexed, named};

/// What steps on the way to a bundle require.
#[derive(Clone)]
pub(super) struct BundleWay {
    /// The name of the Operator.
    name: String,
    /// The name of the bundle.
    bundle: String,
    version: Version,
    /// The requirements that the bundle itself does not have.
    requires: Vec<Requirement>,
    /// The requirements with the steps that have them, a clause each.
    clauses: Vec<String>,
}

impl BundleWay {
    fn new(name: &str, bundle: &Bundle) -> Self {
        Self {
            name: name.to_owned(),
            bundle: bundle.name.clone(),
            version: bundle.version.clone(),
            requires: Vec::new(),
            clauses: Vec::new(),
        }
    }

    /// Adds a requirement; `clause` says which step has it. Returns whether it was not there before.
    fn add(&mut self, requirement: Requirement, clause: String) -> bool {
        let is_new = self.requires.iter().all(|it| it.constraint != requirement.constraint);
        if is_new {
            self.requires.push(requirement);
            self.clauses.push(clause);
        }
        is_new
    }

    /// Returns the block of the bundle if no versions of the other Operators satisfy the requirements.
    fn block(&self) -> OperatorBlock {
        let message = format!(
            "on the way to {}, {}: no single plan satisfies that",
            version_text(&self.version.to_string()),
            self.clauses.join("; ")
        );
        OperatorBlock::new(Reason::UpgradeBlocked, message)
    }
}

impl<'a> Search<'a> {
    /// Returns what steps to proposed bundles require, where the controller does not get to these: not one by one, as
    /// in `alone`, and not as in `converged`. `missed` is the first difference; there are none unless that is a
    /// refused bundle.
    pub(super) fn missed_ways(
        &self,
        missed: Option<&Missed>,
        proposed: &ChosenBundles<'_>,
        alone: &ConvergedOperators,
        converged: &ConvergedOperators,
    ) -> Vec<BundleWay> {
        if !matches!(missed, Some(Missed::Refused(_))) {
            return Vec::new();
        }
        let is_missed = |name: &str, of: &ConvergedOperators| {
            let (Some(to), Some(operator)) = (proposed.get(name), of.operators.get(name)) else {
                return false;
            };
            let there = operator.installed.as_ref();
            there.is_none_or(|it| it.bundle.version < to.bundle.version)
        };
        let inputs = OperatorInputs { operators: &alone.operators, ..self.inputs };
        let there = Outcome::new(inputs, self.catalogs, &ChosenBundles::new());
        let planned = Outcome::new(self.inputs, self.catalogs, proposed);
        let index = ChannelIndex::default();
        let mut ways = Vec::new();
        // What only waits for other members of its change set is not kept by its own steps.
        let only_waits = |name: &str| {
            converged.decisions.get(name).is_some_and(|it| {
                matches!(&it.action, OperatorAction::Blocked(block) if block.reason == Reason::ChangeSetBlocked)
            })
        };
        for (&name, chosen) in proposed {
            let operator = alone.operators.get(name).filter(|it| {
                is_missed(name, alone)
                    && is_missed(name, converged)
                    && !only_waits(name)
                    && it.installed.is_some()
                    && it.change_set.is_none()
                    && it.spec.constraint_policy.upgrade == UpgradeConstraints::Enforce
            });
            let Some(operator) = operator else { continue };
            let mut way = BundleWay::new(name, chosen.bundle);
            let mut is_waiting = false;
            for step in self.steps(&index, name, operator, chosen.bundle) {
                let checked = there.check(name, step).into_iter().zip(planned.check(name, step));
                for (requirement, (now, then)) in step.requires.iter().zip(checked) {
                    let mut own = chosen.bundle.requires.iter();
                    if now.provider.is_some()
                        || own.any(|it| it.constraint == requirement.constraint)
                    {
                        continue;
                    }
                    let other = now.package.as_deref().or_else(|| planned.provider(&then));
                    // What does not move either may move only together with this one.
                    is_waiting |= other.is_some_and(|it| is_missed(it, alone));
                    way.add(on_the_way(name, step, requirement), clause(name, step, &now));
                }
            }
            if !is_waiting && !way.requires.is_empty() {
                ways.push(way);
            }
        }
        ways
    }

    /// Returns the steps of an Operator to a bundle, whether or not they can be made; none if one update leads there.
    fn steps(
        &self,
        index: &ChannelIndex,
        name: &str,
        operator: &RequestedOperator,
        target: &Bundle,
    ) -> Vec<&'a Bundle> {
        let next = |operator: &RequestedOperator| -> Vec<Offer<'a>> {
            let found = candidates_indexed(self.inputs, self.catalogs, index, name, operator);
            found.map(|it| it.offers).unwrap_or_default()
        };
        let mut passed: BTreeSet<(&str, &str)> = BTreeSet::new();
        // Each bundle that is passed, with the place of the one before it.
        let mut trail: Vec<(&'a Bundle, Option<usize>)> = Vec::new();
        let mut left: Vec<(Offer<'a>, Option<usize>)> =
            next(operator).into_iter().rev().map(|it| (it, None)).collect();
        while let Some((offer, before)) = left.pop() {
            if offer.bundle.name == target.name {
                let mut steps = Vec::new();
                let mut at = before;
                while let Some((step, earlier)) = at.map(|at| trail[at]) {
                    steps.push(step);
                    at = earlier;
                }
                steps.reverse();
                return steps;
            }
            if !passed.insert((offer.catalog.name.name.as_str(), offer.bundle.name.as_str())) {
                continue;
            }
            trail.push((offer.bundle, before));
            let here = Some(trail.len() - 1);
            left.extend(next(&moved(operator, &offer)).into_iter().rev().map(|it| (it, here)));
        }
        Vec::new()
    }

    /// Learns what steps require. Returns whether anything of that was not known.
    pub(super) fn learn_ways(&mut self, found: &[BundleWay]) -> bool {
        let mut is_new = false;
        for way in found {
            let known = self.ways.entry(way.name.clone()).or_default();
            match known.iter_mut().find(|it| it.bundle == way.bundle) {
                Some(known) => {
                    for (requirement, clause) in way.requires.iter().zip(&way.clauses) {
                        is_new |= known.add(requirement.clone(), clause.clone());
                    }
                }
                None => {
                    known.push(way.clone());
                    is_new = true;
                }
            }
        }
        is_new
    }

    /// Learns what the search of a group has learned. Returns whether anything of that was not known.
    pub(super) fn learn_ways_of(&mut self, group: &Search<'_>) -> bool {
        let mut is_new = false;
        for ways in group.ways.values() {
            is_new |= self.learn_ways(ways);
        }
        is_new
    }

    /// Returns the number of requirements of steps that are known.
    pub(super) fn count_required(&self) -> usize {
        self.ways.values().flatten().map(|it| it.requires.len()).sum()
    }

    /// Returns catalogs in which the bundles have what steps on the way to them require.
    pub(super) fn with_ways(&self, mut catalogs: Vec<CatalogPart>) -> Vec<CatalogPart> {
        for way in self.ways.values().flatten() {
            for part in &mut catalogs {
                let packages = part.packages.iter_mut().filter(|it| it.name == way.name);
                let bundles = packages.flat_map(|it| &mut it.bundles);
                for bundle in bundles.filter(|it| it.name == way.bundle) {
                    bundle.requires.extend(way.requires.iter().cloned());
                }
            }
        }
        catalogs
    }

    /// Returns the chosen bundles that have to be reached by steps with requirements of their own, with these.
    pub(super) fn reached_by_steps(&self, chosen: &ChosenBundles<'_>) -> BTreeMap<String, Bundle> {
        let reached = self.ways.values().flatten().filter_map(|way| {
            let chosen = chosen.get(way.name.as_str())?.bundle;
            let mut bundle = (chosen.name == way.bundle).then(|| chosen.clone())?;
            bundle.requires.extend(way.requires.iter().cloned());
            Some((way.name.clone(), bundle))
        });
        reached.collect()
    }

    /// Returns the block of the highest version that steps on the way keep an Operator from; `None` if there is none,
    /// or if a higher one was refused for another reason. `reached` is the version that it gets; `None` if it gets
    /// none.
    pub(super) fn way_block(
        &self,
        name: &str,
        reached: Option<&Version>,
    ) -> Option<(Version, OperatorBlock)> {
        let way = self.ways.get(name)?.first()?;
        let refused = self.refused.get(name).and_then(|it| it.first());
        let is_first = refused.is_none_or(|it| it.version <= way.version)
            && reached.is_none_or(|it| *it < way.version);
        is_first.then(|| (way.version.clone(), way.block()))
    }
}

/// Returns chosen bundles, some of them in place of what was chosen.
pub(super) fn replaced<'b>(
    mut chosen: ChosenBundles<'b>,
    bundles: &'b BTreeMap<String, Bundle>,
) -> ChosenBundles<'b> {
    for (name, bundle) in bundles {
        if let Some(it) = chosen.get_mut(name.as_str()) {
            it.bundle = bundle;
        }
    }
    chosen
}

/// Returns a requirement of a step, as one of the bundle that it leads to.
fn on_the_way(name: &str, step: &Bundle, requirement: &Requirement) -> Requirement {
    let message = format!("{} does, on the way to it", named(name, step));
    Requirement { message: Some(message), constraint: requirement.constraint.clone() }
}

/// Returns the clause that says what a step requires.
fn clause(name: &str, step: &Bundle, requirement: &CheckedRequirement) -> String {
    format!("{} depends on {}", named(name, step), requirement.text)
}
