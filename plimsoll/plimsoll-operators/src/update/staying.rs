//! Reasons that Operators do not get what an update requests of them, whatever the others get.

use std::collections::BTreeMap;

use plimsoll_resolve::CatalogPart;

use super::{UpdateRequest, unoffered};
use crate::planner::{hold, is_pinned, may_move};
use crate::{OperatorInputs, RequestedOperator};

impl UpdateRequest {
    /// Returns whether an Operator is to have a higher version, if there is one.
    fn is_for(&self, name: &str, operator: &RequestedOperator) -> bool {
        let follows = !is_pinned(&operator.spec.version) && !operator.is_dependency;
        let is_latest = self.latest && self.named().next().is_none();
        self.names.contains(name) || (may_move(operator) && (follows || is_latest))
    }
}

/// Returns the reasons that requested Operators stay as they are, by name. `present` are the Operators without what is
/// only expected of them.
pub(super) fn reasons(
    inputs: OperatorInputs<'_>,
    present: &BTreeMap<String, RequestedOperator>,
    catalogs: &[CatalogPart],
    request: &UpdateRequest,
) -> BTreeMap<String, String> {
    let requested = present.iter().filter(|(name, it)| request.is_for(name, it));
    let reasons = requested.filter_map(|(name, operator)| {
        let block = hold(name, operator).or_else(|| unoffered(inputs, catalogs, name))?;
        Some((name.clone(), block.message))
    });
    reasons.collect()
}
