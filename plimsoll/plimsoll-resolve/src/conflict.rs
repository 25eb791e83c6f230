//! The smallest reason why something cannot be: clauses of which none can be missing.

use crate::encode::{Encoding, Reason};
use crate::model::{Model, SolvableId};
use crate::sat::{Batsat, Literal, SatResult, Satisfiability as _};

/// Why solvables cannot be part of a solution together: a minimal conflict.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Conflict {
    /// The reasons; without any of them there would be no conflict.
    pub(crate) reasons: Vec<Reason>,
    /// Those of the solvables that matter.
    pub(crate) solvables: Vec<SolvableId>,
}

/// Finds minimal conflicts in one model.
pub(crate) struct Conflicts {
    encoding: Encoding<Batsat>,
    by_literal: Vec<(Literal, Element)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Element {
    Solvable(SolvableId),
    Reason(Reason),
}

impl Conflicts {
    pub(crate) fn new(model: &Model<'_>) -> Self {
        let encoding = Encoding::new(model, Batsat::new(), true);
        let solvables =
            (0..model.solvables.len()).map(|id| (encoding.solvable(id), Element::Solvable(id)));
        let reasons =
            encoding.reasons.iter().map(|(reason, literal)| (*literal, Element::Reason(*reason)));
        let mut by_literal: Vec<_> = solvables.chain(reasons).collect();
        by_literal.sort();
        Self { encoding, by_literal }
    }

    /// A minimal conflict between solvables, given everything that must hold. None when there is no
    /// conflict, or when finding it takes too long.
    pub(crate) fn between(&mut self, solvables: &[SolvableId]) -> Option<Conflict> {
        let mut assumptions: Vec<Literal> =
            solvables.iter().map(|solvable| self.encoding.solvable(*solvable)).collect();
        assumptions.extend(self.encoding.reasons.values());
        if self.encoding.solve(&assumptions) != SatResult::Unsatisfiable {
            return None;
        }
        let mut core = self.encoding.solver.core();
        let mut at = 0;
        while at < core.len() {
            let mut rest = core.clone();
            rest.remove(at);
            match self.encoding.solve(&rest) {
                SatResult::Unsatisfiable => {
                    // The solver may have found that even less is enough; what was found to be
                    // needed stays in front, in the same order.
                    let smaller = self.encoding.solver.core();
                    rest.retain(|literal| smaller.contains(literal));
                    core = rest;
                }
                SatResult::Satisfiable => at += 1,
                SatResult::LimitExceeded => return None,
            }
        }
        let mut conflict = Conflict::default();
        for literal in core {
            match self.element(literal) {
                Some(Element::Solvable(solvable)) => conflict.solvables.push(solvable),
                Some(Element::Reason(reason)) => conflict.reasons.push(reason),
                None => {}
            }
        }
        conflict.reasons.sort();
        conflict.solvables.sort_unstable();
        Some(conflict)
    }

    fn element(&self, literal: Literal) -> Option<Element> {
        let at = self.by_literal.binary_search_by(|(known, _)| known.cmp(&literal)).ok()?;
        Some(self.by_literal[at].1)
    }
}

#[cfg(test)]
mod tests;
