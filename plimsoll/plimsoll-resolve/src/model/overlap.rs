//! Conflicts of providers of the same API.

use std::collections::{BTreeMap, BTreeSet};

use super::{Index, Model, SolvableId};
use crate::problem::OperatorGroup;

/// Of solvables that provide one API, the sets of which only one may be installed: those of one
/// namespace, and those of two namespaces whose operators watch a common one. Sets that are of
/// one package in one namespace are left out: they exclude each other anyway.
pub(super) fn groups(model: &Model<'_>, solvables: &[SolvableId]) -> Vec<Vec<SolvableId>> {
    let mut places: BTreeMap<&str, Vec<SolvableId>> = BTreeMap::new();
    for id in solvables {
        places.entry(model.solvables[*id].namespace).or_default().push(*id);
    }
    let places: Vec<(&str, Vec<SolvableId>)> = places.into_iter().collect();
    let one_package = |solvables: &[SolvableId]| {
        let mut packages = solvables.iter().map(|id| model.solvables[*id].package());
        let first = packages.next().flatten();
        first.is_some() && packages.all(|package| package == first)
    };
    let mut groups: Vec<Vec<SolvableId>> = places
        .iter()
        .filter(|(_, solvables)| solvables.len() > 1 && !one_package(solvables))
        .map(|(_, solvables)| solvables.clone())
        .collect();
    for (at, (left, left_solvables)) in places.iter().enumerate() {
        for (right, right_solvables) in &places[at + 1..] {
            if overlap(&model.problem().query.operator_groups, left, right) {
                groups.push(left_solvables.iter().chain(right_solvables).copied().collect());
            }
        }
    }
    groups
}

/// Returns whether operators of one namespace serve another: it is their own, or they watch
/// everything that the operators of the other watch.
pub(super) fn covers(index: &Index<'_>, operators: &str, namespace: &str) -> bool {
    let groups = &index.problem.query.operator_groups;
    let group = |name: &str| groups.iter().find(|group| group.namespace == name);
    let Some(theirs) = group(operators).filter(|_| operators != namespace) else {
        return operators == namespace;
    };
    let all_of = |others: &OperatorGroup| {
        !others.targets.is_empty() && others.targets.iter().all(|it| theirs.targets.contains(it))
    };
    theirs.targets.is_empty() || group(namespace).is_some_and(all_of)
}

/// The namespaces whose operators serve another, that one first: those that something is requested
/// for or installed in.
pub(super) fn covering<'p>(index: &Index<'p>, namespace: &'p str) -> Vec<&'p str> {
    let query = &index.problem.query;
    let requested = query.requests.iter().map(|request| request.namespace.as_str());
    let installed = query.installed.iter().map(|item| item.namespace.as_str());
    let others: BTreeSet<&'p str> = requested
        .chain(installed)
        .filter(|other| *other != namespace && covers(index, other, namespace))
        .collect();
    std::iter::once(namespace).chain(others).collect()
}

/// Returns whether the operators of two namespaces watch a common one. Of a namespace without a
/// group nothing is known.
fn overlap(groups: &[OperatorGroup], left: &str, right: &str) -> bool {
    let group = |namespace| groups.iter().find(|group| group.namespace == namespace);
    let (Some(left), Some(right)) = (group(left), group(right)) else { return false };
    left.targets.is_empty()
        || right.targets.is_empty()
        || left.targets.iter().any(|target| right.targets.contains(target))
}
