//! Step by step: solving again with what the last step installed, until nothing is left to do.

use std::collections::BTreeSet;

use super::{Resolution, solve};
use crate::bundle::Bundle;
use crate::catalog::Expressions;
use crate::explain::Explanation;
use crate::problem::{FollowedChannel, InstalledBundle, Problem};
use crate::solution::{KeptBundle, PlannedBundle, Solution};

/// Most steps that are followed. Channels are rarely longer, and each step is a resolution.
const STEPS_MAX: usize = 1_000;

/// The steps from a problem to where nothing is left to do, and how they end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpdatePath {
    /// The steps, each as if the one before were carried out: several updates of a channel are
    /// several steps. The last one installs nothing when it says why something is kept, or when
    /// there is nothing to do at all.
    pub steps: Vec<Solution>,
    /// How they end.
    pub end: PathEnd,
}

/// How an update path ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathEnd {
    /// Every request is satisfied, and nothing is left to do.
    Complete,
    /// The requests cannot be satisfied from there: why.
    Blocked(Explanation),
    /// The work that one resolution may cost did not suffice, or there are too many steps.
    LimitExceeded,
    /// The last step leads back to what was installed before: the entries of a channel update each
    /// other.
    Circular,
}

/// Solves again and again, each time with what the last step installed.
pub fn solve_path(problem: &Problem, expressions: &dyn Expressions) -> UpdatePath {
    let mut problem = problem.clone();
    let mut steps: Vec<Solution> = Vec::new();
    let mut seen = BTreeSet::from([installed(&problem)]);
    let end = loop {
        if steps.len() == STEPS_MAX {
            break PathEnd::LimitExceeded;
        }
        let solution = match solve(&problem, expressions) {
            Resolution::Solved(solution) => solution,
            Resolution::Unsatisfiable(explanation) => break PathEnd::Blocked(explanation),
            Resolution::LimitExceeded => break PathEnd::LimitExceeded,
        };
        let done = solution.install.is_empty();
        for item in &solution.install {
            carry_out(&mut problem, item);
        }
        problem.canonicalize();
        if !done || steps.is_empty() || solution.stays.iter().any(KeptBundle::is_explained) {
            steps.push(solution);
        }
        if done {
            break PathEnd::Complete;
        }
        if !seen.insert(installed(&problem)) {
            break PathEnd::Circular;
        }
    };
    UpdatePath { steps, end }
}

/// Namespace and name of everything that is installed.
fn installed(problem: &Problem) -> Vec<(String, String)> {
    let names = |item: &InstalledBundle| (item.namespace.clone(), item.bundle.name.clone());
    problem.query.installed.iter().map(names).collect()
}

fn carry_out(problem: &mut Problem, item: &PlannedBundle) {
    let Some(bundle) = bundle(problem, item) else { return };
    let query = &mut problem.query;
    if let Some(old) = &item.updates {
        query.installed.retain(|it| it.namespace != item.namespace || it.bundle.name != *old);
    }
    for request in &mut query.requests {
        let same = request.namespace == item.namespace && request.package == item.package;
        if same {
            request.installed = Some(item.bundle.clone());
        }
    }
    let ignore_dependencies = query.requests.iter().any(|request| {
        request.ignore_dependencies
            && request.namespace == item.namespace
            && request.package == item.package
    });
    query.installed.push(InstalledBundle {
        namespace: item.namespace.clone(),
        package: Some(item.package.clone()),
        follows: Some(FollowedChannel {
            channel: item.channel.clone(),
            catalog: Some(item.catalog.clone()),
        }),
        catalog: Some(item.catalog.clone()),
        ignore_dependencies,
        bundle,
    });
}

fn bundle(problem: &Problem, item: &PlannedBundle) -> Option<Bundle> {
    let catalog = problem.catalogs.iter().find(|catalog| catalog.name == item.catalog)?;
    catalog.bundle(&item.package, &item.bundle).cloned()
}
