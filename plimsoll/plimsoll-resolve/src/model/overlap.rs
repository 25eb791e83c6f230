//! Which providers of an API get in each other's way.

use std::collections::BTreeMap;

use super::{Model, NodeId};
use crate::problem::OperatorGroup;

/// Of nodes that provide one API, the sets of which only one may be installed: those of one
/// namespace, and those of two namespaces whose operators watch a common one. Sets that are of
/// one package in one namespace are left out: they exclude each other anyway.
pub(super) fn groups(model: &Model<'_>, nodes: &[NodeId]) -> Vec<Vec<NodeId>> {
    let mut places: BTreeMap<&str, Vec<NodeId>> = BTreeMap::new();
    for id in nodes {
        places.entry(model.nodes[*id].namespace).or_default().push(*id);
    }
    let places: Vec<(&str, Vec<NodeId>)> = places.into_iter().collect();
    let one_package = |nodes: &[NodeId]| {
        let mut packages = nodes.iter().map(|id| model.nodes[*id].package());
        let first = packages.next().flatten();
        first.is_some() && packages.all(|package| package == first)
    };
    let mut groups: Vec<Vec<NodeId>> = places
        .iter()
        .filter(|(_, nodes)| nodes.len() > 1 && !one_package(nodes))
        .map(|(_, nodes)| nodes.clone())
        .collect();
    for (at, (left, left_nodes)) in places.iter().enumerate() {
        for (right, right_nodes) in &places[at + 1..] {
            if overlap(&model.problem().query.operator_groups, left, right) {
                groups.push(left_nodes.iter().chain(right_nodes).copied().collect());
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
