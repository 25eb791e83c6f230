//! Changes of bundles that applying a loadout leads to, step by step.

use std::collections::BTreeMap;
use std::iter;

use plimsoll_api::olm::{BundleReference, OperatorSpec};
use plimsoll_resolve::CatalogPart;

use super::LintInputs;
use crate::loadout::{ConvergedOperators, DeclaredOperator, converge_watched};
use crate::{OperatorInputs, SelectedBundle, version_text};

/// A change of an Operator's bundle, made in one step.
#[derive(Debug, Clone, PartialEq)]
pub struct BundleMove {
    /// The name of the Operator.
    pub operator: String,
    /// The spec that is applied.
    pub spec: OperatorSpec,
    /// The bundle that is installed before.
    pub from: BundleReference,
    /// The bundle that is installed afterwards.
    pub to: BundleReference,
    /// The bundle that is installed in the end, after the further steps.
    pub end: BundleReference,
    /// The unmet constraints that the policy overrides, as sentences.
    pub(super) risks: Vec<String>,
}

impl BundleMove {
    /// Returns what it is, as the subject of a sentence.
    pub fn text(&self) -> String {
        let [from, to, end] = [&self.from, &self.to, &self.end].map(|it| version_text(&it.version));
        match self.to == self.end {
            true => format!("the update from {from} to {to}"),
            false => format!("the update from {from} to {to} on the way to {end}"),
        }
    }
}

/// Converged Operators, with the way of each.
pub(super) struct ConvergedWays {
    /// The converged Operators.
    pub(super) converged: ConvergedOperators,
    /// The bundle that each Operator has before, if one is installed.
    before: BTreeMap<String, BundleReference>,
    /// The bundles that each Operator moves to, in order.
    ways: BTreeMap<String, Vec<SelectedBundle>>,
}

impl ConvergedWays {
    /// Converges Operators.
    pub(super) fn new(inputs: OperatorInputs<'_>, catalogs: &[CatalogPart]) -> Self {
        let mut ways: BTreeMap<String, Vec<SelectedBundle>> = BTreeMap::new();
        let converged = converge_watched(inputs, catalogs, &mut |moved| {
            for (name, selected) in moved {
                ways.entry(name.clone()).or_default().push(selected.clone());
            }
        });
        let before = inputs.operators.iter().filter_map(|(name, operator)| {
            Some((name.clone(), operator.installed.as_ref()?.reference.clone()))
        });
        Self { converged, before: before.collect(), ways }
    }

    /// Returns the changes of an Operator's bundle, in order. A new installation is none.
    pub(super) fn moves(&self, declared: &DeclaredOperator) -> Vec<BundleMove> {
        let (before, way) = (self.before.get(&declared.name), self.ways.get(&declared.name));
        let (Some(before), Some(way)) = (before, way) else { return Vec::new() };
        let end = way.last().map_or(before, |it| &it.reference);
        let from = iter::once(before).chain(way.iter().map(|it| &it.reference));
        let moves = from.zip(way).map(|(from, to)| BundleMove {
            operator: declared.name.clone(),
            spec: declared.spec.clone(),
            from: from.clone(),
            to: to.reference.clone(),
            end: end.clone(),
            risks: to.accepted_risks.clone(),
        });
        moves.collect()
    }
}

/// Returns the changes of bundles that applying a loadout leads to, those of each Operator in order. New
/// installations are none.
pub fn moves(inputs: LintInputs<'_>) -> Vec<BundleMove> {
    if inputs.base.is_none() && inputs.current.is_empty() {
        return Vec::new();
    }
    let base = inputs.converged_base();
    let operators = inputs.applied(base.as_ref());
    let ways = ConvergedWays::new(inputs.deciding(&operators), inputs.catalogs);
    inputs.loadout.operators.iter().flat_map(|it| ways.moves(it)).collect()
}
