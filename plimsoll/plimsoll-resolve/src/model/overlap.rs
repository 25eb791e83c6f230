//! Which providers of an API get in each other's way.

use std::collections::BTreeMap;

use super::{Model, SolvableId};
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

/// Whether the operators of two namespaces watch a common one. Of a namespace without a group
/// nothing is known.
fn overlap(groups: &[OperatorGroup], left: &str, right: &str) -> bool {
    let group = |namespace| groups.iter().find(|group| group.namespace == namespace);
    let (Some(left), Some(right)) = (group(left), group(right)) else { return false };
    left.targets.is_empty()
        || right.targets.is_empty()
        || left.targets.iter().any(|target| right.targets.contains(target))
}
