//! The one door to a solver of satisfiability. Which one it is, only this file knows.

use std::cell::Cell;
use std::rc::Rc;

use batsat::{Callbacks, ClauseKind, Lit, Solver, SolverInterface, SolverOpts, Var, lbool};

/// Conflicts that all solvers of a resolution may meet together: far beyond what catalogs that
/// people write lead to (tens), and a few seconds of work.
const WORK_MAX: u64 = 20_000;
/// Assumptions that cost as much as a conflict.
const ASSUMPTIONS_PER_CONFLICT: usize = 1_024;

/// What is left of the work that a resolution may cost, in conflicts: shared by the search, the
/// explanation and the trials of changes.
#[derive(Debug, Clone)]
pub(crate) struct WorkBudget {
    left: Rc<Cell<u64>>,
}

impl WorkBudget {
    pub(crate) fn new() -> Self {
        Self { left: Rc::new(Cell::new(WORK_MAX)) }
    }

    pub(crate) fn is_exhausted(&self) -> bool {
        self.left.get() == 0
    }

    fn spend(&self, conflicts: u64) {
        self.left.set(self.left.get().saturating_sub(conflicts));
    }
}

/// A variable, or its negation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Literal {
    pub(crate) variable: u32,
    pub(crate) positive: bool,
}

impl std::ops::Not for Literal {
    type Output = Self;
    fn not(self) -> Self {
        Self { positive: !self.positive, ..self }
    }
}

/// What a solver finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SatResult {
    Satisfiable,
    Unsatisfiable,
    /// It took too long.
    LimitExceeded,
}

/// What the resolver needs of a solver.
pub(crate) trait Satisfiability {
    /// A new variable.
    fn variable(&mut self) -> Literal;
    /// One of the literals must hold.
    fn clause(&mut self, literals: &[Literal]);
    /// Returns whether all clauses and all assumptions can hold at once.
    fn solve(&mut self, assumptions: &[Literal]) -> SatResult;
    /// Returns whether a literal holds in what was found last.
    fn holds(&self, literal: Literal) -> bool;
    /// Returns whether a literal is known never to hold, whatever is assumed. It may never hold all
    /// the same when that is not known.
    fn is_impossible(&self, literal: Literal) -> bool;
    /// After [`SatResult::Unsatisfiable`]: assumptions that cannot all hold, not necessarily the
    /// fewest.
    fn core(&self) -> Vec<Literal>;
}

/// The solver in use: batsat, a port of MiniSat without randomness, so that the same clauses have
/// the same answers.
pub(crate) struct Batsat {
    solver: Solver<WorkBudget>,
    budget: WorkBudget,
    clause: Vec<Lit>,
    assumptions: Vec<Lit>,
}

impl Callbacks for WorkBudget {
    fn on_new_clause(&mut self, _clause: &[Lit], _kind: ClauseKind) {
        self.spend(1);
    }

    fn stop(&self) -> bool {
        self.is_exhausted()
    }
}

impl Batsat {
    pub(crate) fn new(budget: &WorkBudget) -> Self {
        Self {
            solver: Solver::new(SolverOpts::default(), budget.clone()),
            budget: budget.clone(),
            clause: Vec::new(),
            assumptions: Vec::new(),
        }
    }
}

impl Satisfiability for Batsat {
    fn variable(&mut self) -> Literal {
        let variable = self.solver.new_var_default();
        Literal { variable: variable.idx(), positive: true }
    }

    fn clause(&mut self, literals: &[Literal]) {
        self.clause.clear();
        self.clause.extend(literals.iter().map(|literal| lit(*literal)));
        self.solver.add_clause_reuse(&mut self.clause);
    }

    fn solve(&mut self, assumptions: &[Literal]) -> SatResult {
        self.assumptions.clear();
        self.assumptions.extend(assumptions.iter().map(|literal| lit(*literal)));
        self.budget.spend((assumptions.len() / ASSUMPTIONS_PER_CONFLICT) as u64);
        let found = self.solver.solve_limited(&self.assumptions);
        if found == lbool::TRUE {
            SatResult::Satisfiable
        } else if found == lbool::FALSE {
            SatResult::Unsatisfiable
        } else {
            SatResult::LimitExceeded
        }
    }

    fn holds(&self, literal: Literal) -> bool {
        self.solver.value_lit(lit(literal)) == lbool::TRUE
    }

    fn is_impossible(&self, literal: Literal) -> bool {
        self.solver.value_lvl_0(lit(literal)) == lbool::FALSE
    }

    fn core(&self) -> Vec<Literal> {
        let mut core: Vec<Literal> = self
            .assumptions
            .iter()
            .filter(|assumption| self.solver.unsat_core_contains_var(assumption.var()))
            .map(|lit| Literal { variable: lit.var().idx(), positive: lit.sign() })
            .collect();
        core.sort();
        core
    }
}

fn lit(literal: Literal) -> Lit {
    Lit::new(Var::unsafe_from_idx(literal.variable), literal.positive)
}
