//! From a problem to its solution, or to an explanation of why there is none.

mod path;
mod solution;

use crate::catalog::Expressions;
use crate::conflict::{Conflict, Conflicts};
use crate::explain::{Explanation, explanation_steps, suggestions};
use crate::model::Model;
use crate::problem::Problem;
use crate::search::{SearchResult, search};
use crate::solution::Solution;

pub use path::solve_path;

/// The result of solving a problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resolution {
    /// The preferred bundles that satisfy every request and requirement.
    Solved(Solution),
    /// No set of bundles does: a minimal conflict, and changes that would help.
    Unsatisfiable(Explanation),
    /// The solver met more conflicts than its limit allows. Only catalogs made to this end lead
    /// here.
    LimitExceeded,
}

/// Solves a problem that is in canonical order ([`Problem::canonicalize`]), as those are that
/// come from [`crate::collect_problem`] or [`Problem::read`].
pub fn solve(problem: &Problem, expressions: &dyn Expressions) -> Resolution {
    let model = Model::new(problem, expressions);
    match search(&model) {
        SearchResult::Selection(selection) => {
            Resolution::Solved(solution::solution(&model, &selection))
        }
        SearchResult::Unsatisfiable => {
            let conflict = Conflicts::new(&model).between(&[]);
            Resolution::Unsatisfiable(explanation(&model, conflict, expressions))
        }
        SearchResult::LimitExceeded => Resolution::LimitExceeded,
    }
}

fn explanation(
    model: &Model<'_>,
    conflict: Option<Conflict>,
    expressions: &dyn Expressions,
) -> Explanation {
    let conflict = conflict.unwrap_or_default();
    Explanation {
        conflict: explanation_steps(model, &conflict, None),
        changes: suggestions(model, &conflict, expressions),
        warnings: solution::warnings(model),
    }
}
