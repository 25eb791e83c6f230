//! The smallest reason why something cannot be: clauses of which none can be missing.

use std::collections::{BTreeMap, BTreeSet};

use crate::encode::{Encoding, Reason};
use crate::model::{Ineligible, Model, Owner, SolvableId};
use crate::sat::{Batsat, Literal, SatResult, Satisfiability as _, WorkBudget};

/// Largest conflict whose reasons are tried out one by one. In a larger one, reasons that people
/// read as one, such as the same requirement of many versions, are tried out together.
const SINGLE_TRIALS_MAX: usize = 512;

/// Why solvables cannot be part of a solution together: a minimal conflict.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Conflict {
    /// The reasons; without any of them there would be no conflict, unless it is coarse.
    pub(crate) reasons: Vec<Reason>,
    /// Those of the solvables that matter.
    pub(crate) solvables: Vec<SolvableId>,
    /// The budget of work was exhausted before it was minimal.
    pub(crate) is_coarse: bool,
}

/// Finds minimal conflicts in one model.
pub(crate) struct Conflicts<'a, 'p> {
    model: &'a Model<'p>,
    encoding: Encoding<Batsat>,
    by_literal: BTreeMap<Literal, Element>,
    /// The first choice that has a list of candidates, by the address of the list.
    first_choices: BTreeMap<usize, usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Element {
    Solvable(SolvableId),
    Reason(Reason),
}

/// What people read as one reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ReasonGroup<'a> {
    Single(Element),
    /// The bundles of a package that have the same candidates for a requirement: the first choice
    /// that has their list.
    Requirement(Option<&'a str>, usize),
    /// The bundles of a package that are ineligible for the same reason.
    Ineligible(Option<&'a str>, Option<&'a Ineligible>),
}

impl<'a, 'p> Conflicts<'a, 'p> {
    pub(crate) fn new(model: &'a Model<'p>, budget: &WorkBudget) -> Self {
        let encoding = Encoding::new(model, Batsat::new(budget), true);
        let solvables =
            (0..model.solvables.len()).map(|id| (encoding.solvable(id), Element::Solvable(id)));
        let reasons =
            encoding.reasons.iter().map(|(reason, literal)| (*literal, Element::Reason(*reason)));
        let by_literal = solvables.chain(reasons).collect();
        let mut first_choices = BTreeMap::new();
        for (choice, it) in model.choices.iter().enumerate() {
            first_choices.entry(it.candidates.as_ptr().addr()).or_insert(choice);
        }
        Self { model, encoding, by_literal, first_choices }
    }

    /// A minimal conflict between solvables, given everything that must hold. None when there is no
    /// conflict. What is known not to hold is a conflict even if finding a smaller one takes too
    /// long: of all choices that have no owner then.
    pub(crate) fn between(&mut self, solvables: &[SolvableId]) -> Option<Conflict> {
        let mut assumptions: Vec<Literal> =
            solvables.iter().map(|solvable| self.encoding.solvable(*solvable)).collect();
        assumptions.extend(self.encoding.reasons.values());
        match self.encoding.solve(&assumptions) {
            SatResult::Satisfiable => return None,
            SatResult::LimitExceeded => {
                return Some(Conflict {
                    reasons: (0..self.model.roots).map(Reason::Choice).collect(),
                    solvables: solvables.to_vec(),
                    is_coarse: true,
                });
            }
            SatResult::Unsatisfiable => {}
        }
        let (core, is_coarse) = self.minimal(self.encoding.solver.core());
        let mut conflict = Conflict { is_coarse, ..Conflict::default() };
        for literal in core {
            match self.by_literal.get(&literal) {
                Some(Element::Solvable(solvable)) => conflict.solvables.push(*solvable),
                Some(Element::Reason(reason)) => conflict.reasons.push(*reason),
                None => {}
            }
        }
        conflict.reasons.sort();
        conflict.solvables.sort_unstable();
        Some(conflict)
    }

    /// Returns the assumptions that cannot hold together, without those that are not needed, and
    /// whether the budget of work was exhausted before that was known.
    fn minimal(&mut self, core: Vec<Literal>) -> (Vec<Literal>, bool) {
        let mut groups: BTreeMap<ReasonGroup<'_>, BTreeSet<Literal>> = BTreeMap::new();
        for literal in &core {
            if let Some(element) = self.by_literal.get(literal) {
                groups.entry(self.group(*element)).or_default().insert(*literal);
            }
        }
        let mut core = core;
        if groups.len() < core.len() && !self.without_needless(&mut core, groups.into_values()) {
            return (core, true);
        }
        if core.len() > SINGLE_TRIALS_MAX {
            return (core, false);
        }
        let singles = core.clone().into_iter().map(|literal| BTreeSet::from([literal]));
        let is_minimal = self.without_needless(&mut core, singles);
        (core, !is_minimal)
    }

    /// Returns the group of an element.
    fn group(&self, element: Element) -> ReasonGroup<'a> {
        let model = self.model;
        match element {
            Element::Reason(Reason::Choice(choice)) => match model.choices[choice].owner {
                Owner::Solvable(owner, _) => ReasonGroup::Requirement(
                    model.solvables[owner].package(),
                    self.first_choices[&model.choices[choice].candidates.as_ptr().addr()],
                ),
                Owner::Stays(_) | Owner::Request(_) | Owner::Follows(_) => {
                    ReasonGroup::Single(element)
                }
            },
            Element::Reason(Reason::Ineligible(id)) => {
                let solvable = &model.solvables[id];
                ReasonGroup::Ineligible(solvable.package(), solvable.ineligible.as_ref())
            }
            Element::Reason(Reason::Exclusion(_)) | Element::Solvable(_) => {
                ReasonGroup::Single(element)
            }
        }
    }

    /// Removes each part that is not needed, one after the other; false when the budget of work is
    /// exhausted.
    fn without_needless(
        &mut self,
        core: &mut Vec<Literal>,
        parts: impl Iterator<Item = BTreeSet<Literal>>,
    ) -> bool {
        for part in parts {
            let mut rest = core.clone();
            rest.retain(|literal| !part.contains(literal));
            if rest.len() == core.len() {
                continue;
            }
            match self.encoding.solve(&rest) {
                SatResult::Unsatisfiable => {
                    // The solver may have found that even less is enough.
                    let smaller: BTreeSet<Literal> =
                        self.encoding.solver.core().into_iter().collect();
                    rest.retain(|literal| smaller.contains(literal));
                    *core = rest;
                }
                SatResult::Satisfiable => {}
                SatResult::LimitExceeded => return false,
            }
        }
        true
    }
}

#[cfg(test)]
mod tests;
