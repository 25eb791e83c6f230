//! Changes of bundles that applying a loadout leads to.

use std::collections::BTreeMap;

use plimsoll_api::olm::{BundleReference, OperatorSpec};

use super::LintInputs;
use crate::RequestedOperator;
use crate::loadout::converge;

/// A change of an Operator's bundle.
#[derive(Debug, Clone, PartialEq)]
pub struct BundleMove {
    /// The name of the Operator.
    pub operator: String,
    /// The spec that is applied.
    pub spec: OperatorSpec,
    /// The bundle that is installed before.
    pub from: BundleReference,
    /// The bundle that is installed in the end.
    pub to: BundleReference,
}

/// Returns the changes of bundles that applying a loadout leads to. New installations are none.
pub fn moves(inputs: LintInputs<'_>) -> Vec<BundleMove> {
    if inputs.base.is_none() && inputs.current.is_empty() {
        return Vec::new();
    }
    let base = inputs.converged_base();
    let operators = inputs.applied(base.as_ref());
    let converged = converge(inputs.deciding(&operators), inputs.catalogs);
    let moved = inputs.loadout.operators.iter().filter_map(|declared| {
        let installed = |of: &BTreeMap<String, RequestedOperator>| {
            Some(of.get(&declared.name)?.installed.as_ref()?.reference.clone())
        };
        let (from, to) = (installed(&operators)?, installed(&converged.operators)?);
        (from.name != to.name || from.catalog != to.catalog).then(|| BundleMove {
            operator: declared.name.clone(),
            spec: declared.spec.clone(),
            from,
            to,
        })
    });
    moved.collect()
}
