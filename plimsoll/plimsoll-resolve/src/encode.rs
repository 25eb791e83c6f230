//! A model as clauses.
//!
//! In terms of satisfiability, with a variable for each node:
//! - a choice without owner: `one of its candidates`;
//! - a choice of a node: `not node, or one of its candidates`;
//! - what excludes each other: `not left, or not right`, for every pair, in linear size;
//! - a node that is unfit: `not node`.
//!
//! For explanations each of these is only in force while its *reason*, a variable of its own, is
//! assumed: then the assumptions that cannot hold together are the explanation.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::model::{ChoiceId, Model, NodeId};
use crate::sat::{Literal, Satisfiability, Verdict};

/// Why a clause is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reason {
    /// A choice must be made.
    Choice(ChoiceId),
    /// Nodes exclude each other: the numbered set.
    Exclusion(usize),
    /// A node is unfit.
    Unfit(NodeId),
}

/// Largest set of which every pair gets a clause of its own.
const PAIRS_MAX: usize = 5;

/// A model in a solver.
pub(crate) struct Encoding<S> {
    pub(crate) solver: S,
    nodes: Vec<Literal>,
    /// Empty when reasons are of no interest.
    pub(crate) reasons: BTreeMap<Reason, Literal>,
    explaining: bool,
}

impl<S: Satisfiability> Encoding<S> {
    /// Encodes a model; with `explaining` each clause has a reason.
    pub(crate) fn new(model: &Model<'_>, mut solver: S, explaining: bool) -> Self {
        let nodes = model.nodes.iter().map(|_| solver.variable()).collect();
        let mut encoding = Self { solver, nodes, reasons: BTreeMap::new(), explaining };
        encoding.choices(model);
        for (at, exclusion) in model.exclusions.iter().enumerate() {
            let literals: Vec<Literal> =
                exclusion.nodes.iter().map(|node| encoding.nodes[*node]).collect();
            encoding.at_most_one(Reason::Exclusion(at), &literals);
        }
        for (id, node) in model.nodes.iter().enumerate() {
            if node.unfit.is_some() {
                let not = !encoding.nodes[id];
                encoding.clause(Reason::Unfit(id), &mut vec![not]);
            }
        }
        encoding
    }

    pub(crate) fn node(&self, node: NodeId) -> Literal {
        self.nodes[node]
    }

    /// Whether the solver knows that a node is part of no solution.
    pub(crate) fn is_impossible(&self, node: NodeId) -> bool {
        self.solver.is_impossible(self.nodes[node])
    }

    /// Whether a node is part of what was found last.
    pub(crate) fn solver_holds(&self, node: NodeId) -> bool {
        self.solver.holds(self.nodes[node])
    }

    pub(crate) fn solve(&mut self, assumptions: &[Literal]) -> Verdict {
        self.solver.solve(assumptions)
    }

    /// Lists of candidates are shared by many owners: each list gets a variable, and is there
    /// once.
    fn choices(&mut self, model: &Model<'_>) {
        let mut lists: BTreeMap<*const NodeId, Literal> = BTreeMap::new();
        let mut owners: BTreeMap<NodeId, Vec<ChoiceId>> = BTreeMap::new();
        for (id, needs) in model.needs.iter().enumerate() {
            owners.insert(id, needs.clone());
        }
        let owned = owners
            .iter()
            .flat_map(|(owner, needs)| needs.iter().map(|choice| (Some(*owner), *choice)));
        for (owner, choice) in (0..model.roots).map(|choice| (None, choice)).chain(owned) {
            let list = self.list(&mut lists, &model.choices[choice].candidates);
            let mut clause: Vec<Literal> =
                owner.map(|node| !self.nodes[node]).into_iter().collect();
            clause.extend(list);
            self.clause(Reason::Choice(choice), &mut clause);
        }
    }

    /// The variable that says that one of a list is part of the solution; none for an empty list.
    fn list(
        &mut self,
        lists: &mut BTreeMap<*const NodeId, Literal>,
        candidates: &Rc<[NodeId]>,
    ) -> Option<Literal> {
        match **candidates {
            [] => return None,
            [only] => return Some(self.nodes[only]),
            _ => {}
        }
        if let Some(known) = lists.get(&candidates.as_ptr()) {
            return Some(*known);
        }
        let literal = self.solver.variable();
        let mut clause = vec![!literal];
        clause.extend(candidates.iter().map(|node| self.nodes[*node]));
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
