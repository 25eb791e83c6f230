//! Step by step: solving again with what the last step installed, until nothing is left to do.

use super::{Resolution, solve};
use crate::bundle::Bundle;
use crate::catalog::Expressions;
use crate::problem::{FollowedChannel, InstalledBundle, Problem};
use crate::solution::{PlannedBundle, Solution};

/// Most steps that are followed. Channels are rarely longer, and each step is a resolution.
const STEPS_MAX: usize = 1_000;

/// The steps from a problem to where nothing is left to do, each as if the one before were
/// carried out: several updates of a channel are several steps.
///
/// There is always a first step; it installs nothing when there is nothing to do.
///
/// # Errors
/// [`Resolution::Unsatisfiable`] or [`Resolution::LimitExceeded`] of the first step.
pub fn solve_path(
    problem: &Problem,
    expressions: &dyn Expressions,
) -> Result<Vec<Solution>, Resolution> {
    let mut problem = problem.clone();
    let mut steps: Vec<Solution> = Vec::new();
    while steps.len() < STEPS_MAX {
        let solution = match solve(&problem, expressions) {
            Resolution::Solved(solution) => solution,
            // Where the first step leads, there is at least the way to stay.
            other if steps.is_empty() => return Err(other),
            Resolution::Unsatisfiable(_) | Resolution::LimitExceeded => return Ok(steps),
        };
        let done = solution.install.is_empty();
        if done && !steps.is_empty() {
            return Ok(steps);
        }
        for item in &solution.install {
            carry_out(&mut problem, item);
        }
        problem.canonicalize();
        steps.push(solution);
        if done {
            return Ok(steps);
        }
    }
    Ok(steps)
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
        ignore_dependencies,
        bundle,
    });
}

fn bundle(problem: &Problem, item: &PlannedBundle) -> Option<Bundle> {
    let catalog = problem.catalogs.iter().find(|catalog| catalog.name == item.catalog)?;
    let package = catalog.packages.iter().find(|package| package.name == item.package)?;
    package.bundles.iter().find(|bundle| bundle.name == item.bundle).cloned()
}
