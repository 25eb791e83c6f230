//! A model as clauses.
//!
//! In terms of satisfiability, with a variable for each solvable:
//! - a choice without owner: `one of its candidates`;
//! - a choice of a solvable: `not solvable, or one of its candidates`;
//! - what excludes each other: `not left, or not right`, for every pair, in linear size;
//! - a solvable that is ineligible: `not solvable`.
//!
//! For explanations each of these is only in force while its *reason*, a variable of its own, is
//! assumed: then the assumptions that cannot hold together are the explanation.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::model::{ChoiceId, Model, SolvableId};
use crate::sat::{Literal, SatResult, Satisfiability};

/// Why a clause is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reason {
    /// A choice must be made.
    Choice(ChoiceId),
    /// Nodes exclude each other: the numbered set.
    Exclusion(usize),
    /// A solvable is ineligible.
    Ineligible(SolvableId),
}

/// Largest set of which every pair gets a clause of its own.
const PAIRS_MAX: usize = 5;

/// A model in a solver.
pub(crate) struct Encoding<S> {
    pub(crate) solver: S,
    solvables: Vec<Literal>,
    /// Empty when reasons are of no interest.
    pub(crate) reasons: BTreeMap<Reason, Literal>,
    explaining: bool,
}

impl<S: Satisfiability> Encoding<S> {
    /// Encodes a model; with `explaining` each clause has a reason.
    pub(crate) fn new(model: &Model<'_>, mut solver: S, explaining: bool) -> Self {
        let solvables = model.solvables.iter().map(|_| solver.variable()).collect();
        let mut encoding = Self { solver, solvables, reasons: BTreeMap::new(), explaining };
        encoding.choices(model);
        for (at, exclusion) in model.exclusions.iter().enumerate() {
            let literals: Vec<Literal> =
                exclusion.solvables.iter().map(|solvable| encoding.solvables[*solvable]).collect();
            encoding.at_most_one(Reason::Exclusion(at), &literals);
        }
        for (id, solvable) in model.solvables.iter().enumerate() {
            if solvable.ineligible.is_some() {
                let not = !encoding.solvables[id];
                encoding.clause(Reason::Ineligible(id), &mut vec![not]);
            }
        }
        encoding
    }

    pub(crate) fn solvable(&self, solvable: SolvableId) -> Literal {
        self.solvables[solvable]
    }

    /// Returns whether the solver knows that a solvable is part of no solution.
    pub(crate) fn is_impossible(&self, solvable: SolvableId) -> bool {
        self.solver.is_impossible(self.solvables[solvable])
    }

    /// Returns whether a solvable is part of what was found last.
    pub(crate) fn solver_holds(&self, solvable: SolvableId) -> bool {
        self.solver.holds(self.solvables[solvable])
    }

    pub(crate) fn solve(&mut self, assumptions: &[Literal]) -> SatResult {
        self.solver.solve(assumptions)
    }

    /// Lists of candidates are shared by many owners: each list gets a variable, and is there
    /// once.
    fn choices(&mut self, model: &Model<'_>) {
        let mut lists: BTreeMap<*const SolvableId, Literal> = BTreeMap::new();
        let mut owners: BTreeMap<SolvableId, Vec<ChoiceId>> = BTreeMap::new();
        for (id, needs) in model.needs.iter().enumerate() {
            owners.insert(id, needs.clone());
        }
        let owned = owners
            .iter()
            .flat_map(|(owner, needs)| needs.iter().map(|choice| (Some(*owner), *choice)));
        for (owner, choice) in (0..model.roots).map(|choice| (None, choice)).chain(owned) {
            let list = self.list(&mut lists, &model.choices[choice].candidates);
            let mut clause: Vec<Literal> =
                owner.map(|solvable| !self.solvables[solvable]).into_iter().collect();
            clause.extend(list);
            self.clause(Reason::Choice(choice), &mut clause);
        }
    }

    /// The variable that says that one of a list is part of the solution; none for an empty list.
    fn list(
        &mut self,
        lists: &mut BTreeMap<*const SolvableId, Literal>,
        candidates: &Rc<[SolvableId]>,
    ) -> Option<Literal> {
        match **candidates {
            [] => return None,
            [only] => return Some(self.solvables[only]),
            _ => {}
        }
        if let Some(known) = lists.get(&candidates.as_ptr()) {
            return Some(*known);
        }
        let literal = self.solver.variable();
        let mut clause = vec![!literal];
        clause.extend(candidates.iter().map(|solvable| self.solvables[*solvable]));
        self.solver.clause(&clause);
        lists.insert(candidates.as_ptr(), literal);
        Some(literal)
    }

    fn at_most_one(&mut self, reason: Reason, literals: &[Literal]) {
        if literals.len() <= PAIRS_MAX {
            for (at, left) in literals.iter().enumerate() {
                for right in &literals[at + 1..] {
                    self.clause(reason, &mut vec![!*left, !*right]);
                }
            }
            return;
        }
        // `any` says that one of those so far is part of the solution.
        let mut any = literals[0];
        for literal in &literals[1..] {
            self.clause(reason, &mut vec![!*literal, !any]);
            let next = self.solver.variable();
            self.solver.clause(&[!any, next]);
            self.solver.clause(&[!*literal, next]);
            any = next;
        }
    }

    fn clause(&mut self, reason: Reason, literals: &mut Vec<Literal>) {
        if self.explaining {
            let solver = &mut self.solver;
            let assumed = *self.reasons.entry(reason).or_insert_with(|| solver.variable());
            literals.push(!assumed);
        }
        self.solver.clause(literals);
    }
}
