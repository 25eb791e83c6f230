//! From a problem to its solution, or to an explanation of why there is none.

mod path;
mod solution;

use std::collections::BTreeSet;

use crate::catalog::Expressions;
use crate::conflict::{Conflict, Conflicts};
use crate::encode::Reason;
use crate::explain::{ExplainedConflict, Explanation, explanation_steps, suggestions};
use crate::model::{Model, Owner};
use crate::problem::Problem;
use crate::sat::WorkBudget;
use crate::search::{SearchResult, search};
use crate::solution::Solution;

pub use path::{PathEnd, UpdatePath, solve_path};

/// The result of solving a problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resolution {
    /// The preferred bundles that satisfy every request and requirement.
    Solved(Solution),
    /// No set of bundles does: minimal conflicts, and changes that would help.
    Unsatisfiable(Explanation),
    /// The work that one resolution may cost did not suffice. Only catalogs made to this end lead
    /// here.
    LimitExceeded,
}

/// Solves a problem that is in canonical order ([`Problem::canonicalize`]), as those are that
/// come from [`crate::collect_problem`] or [`Problem::read`].
pub fn solve(problem: &Problem, expressions: &dyn Expressions) -> Resolution {
    solve_explained(problem, expressions, true)
}

/// Solves a problem as [`solve`] does, with an empty explanation if there is no solution: to explain takes many
/// times as long.
pub fn solve_unexplained(problem: &Problem, expressions: &dyn Expressions) -> Resolution {
    solve_explained(problem, expressions, false)
}

fn solve_explained(
    problem: &Problem,
    expressions: &dyn Expressions,
    is_explained: bool,
) -> Resolution {
    let budget = WorkBudget::new();
    let model = Model::new(problem, expressions);
    match search(&model, &budget) {
        SearchResult::Selection(selection) => {
            Resolution::Solved(solution::solution(&model, &selection, &budget))
        }
        SearchResult::Unsatisfiable if !is_explained => {
            let (conflicts, warnings) = (Vec::new(), Vec::new());
            Resolution::Unsatisfiable(Explanation { conflicts, warnings })
        }
        SearchResult::Unsatisfiable => {
            let mut warnings = solution::warnings(&model);
            let conflicts = conflicts(problem, expressions, &budget, &mut warnings);
            Resolution::Unsatisfiable(Explanation { conflicts, warnings })
        }
        SearchResult::LimitExceeded => Resolution::LimitExceeded,
    }
}

/// Most conflicts that are explained.
const CONFLICTS_MAX: usize = 4;

/// The requests and the installed bundles that a conflict is between, by their numbers.
#[derive(Debug, Default)]
struct Parties {
    requests: BTreeSet<usize>,
    installed: BTreeSet<usize>,
}

/// Conflicts that have no request or installed bundle in common, each explained as if the parties of
/// the others were not there.
fn conflicts(
    problem: &Problem,
    expressions: &dyn Expressions,
    budget: &WorkBudget,
    warnings: &mut Vec<String>,
) -> Vec<ExplainedConflict> {
    let mut found: Vec<Parties> = Vec::new();
    while found.len() < CONFLICTS_MAX {
        let (rest, numbers) = without(problem, &found.iter().collect::<Vec<_>>());
        let model = Model::new(&rest, expressions);
        let Some(conflict) = Conflicts::new(&model, budget).between(&[]) else { break };
        let parties = parties(&model, &conflict, &numbers);
        if (parties.requests.is_empty() && parties.installed.is_empty())
            || (conflict.is_coarse && !found.is_empty())
        {
            break;
        }
        found.push(parties);
        if conflict.is_coarse {
            warnings.push(
                "the conflict may be larger than necessary: the limit of work was reached"
                    .to_owned(),
            );
            break;
        }
    }
    let explained = (0..found.len()).map(|at| {
        let others = found.iter().enumerate().filter(|(other, _)| *other != at);
        let others: Vec<&Parties> = others.map(|(_, parties)| parties).collect();
        let (rest, _) = without(problem, &others);
        let model = Model::new(&rest, expressions);
        let conflict = Conflicts::new(&model, budget).between(&[]).unwrap_or_default();
        ExplainedConflict {
            steps: explanation_steps(&model, &conflict, None),
            changes: suggestions(&model, &conflict, expressions, budget),
        }
    });
    explained.collect()
}

/// A problem without the parties of conflicts, and the numbers that its requests and installed
/// bundles had.
fn without(problem: &Problem, found: &[&Parties]) -> (Problem, (Vec<usize>, Vec<usize>)) {
    let left = |count: usize, is_party: &dyn Fn(&Parties, usize) -> bool| -> Vec<usize> {
        (0..count).filter(|at| !found.iter().any(|it| is_party(it, *at))).collect()
    };
    let query = &problem.query;
    let requests = left(query.requests.len(), &|it, at| it.requests.contains(&at));
    let installed = left(query.installed.len(), &|it, at| it.installed.contains(&at));
    let mut rest = problem.clone();
    rest.query.requests = requests.iter().map(|at| query.requests[*at].clone()).collect();
    rest.query.installed = installed.iter().map(|at| query.installed[*at].clone()).collect();
    (rest, (requests, installed))
}

fn parties(model: &Model<'_>, conflict: &Conflict, numbers: &(Vec<usize>, Vec<usize>)) -> Parties {
    let mut parties = Parties::default();
    for reason in &conflict.reasons {
        let Reason::Choice(choice) = *reason else { continue };
        match model.choices[choice].owner {
            Owner::Request(at) => {
                parties.requests.insert(numbers.0[at]);
            }
            Owner::Stays(at) | Owner::Follows(at) => {
                parties.installed.insert(numbers.1[at]);
            }
            Owner::Solvable(..) => {}
        }
    }
    parties
}
