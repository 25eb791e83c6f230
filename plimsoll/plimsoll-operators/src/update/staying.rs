//! Reasons that Operators do not get what an update requests of them.

use std::collections::BTreeMap;

use plimsoll_resolve::CatalogPart;

use super::{UpdateRequest, unoffered};
use crate::loadout::converge;
use crate::planner::{Proposal, hold, is_kept, is_pinned};
use crate::{OperatorInputs, RequestedOperator};

impl UpdateRequest {
    /// Returns whether an Operator is to have a higher version, if there is one.
    fn is_for(&self, name: &str, operator: &RequestedOperator) -> bool {
        let spec = &operator.spec;
        let is_pinned = is_pinned(&spec.version);
        let follows = !is_pinned && !operator.is_dependency && !is_kept(operator);
        // What is held is named where nothing else is.
        let is_general = self.named().next().is_none() && !operator.is_undeclared;
        let is_asked = self.latest || spec.revision.is_some() || !is_pinned;
        // What is there already is named, too, since it does not follow what is requested of it.
        let is_kept_at = spec.revision.is_some() && self.ranges.contains_key(name);
        self.names.contains(name) || is_kept_at || follows || (is_general && is_asked)
    }
}

/// Returns the reasons that requested Operators stay as they are, whatever the others get, or that they come to no
/// bundle although a proposal is carried out. `present` are the Operators without what is only expected of them.
pub(super) fn reasons(
    inputs: OperatorInputs<'_>,
    present: &BTreeMap<String, RequestedOperator>,
    catalogs: &[CatalogPart],
    request: &UpdateRequest,
    proposal: &Proposal,
) -> BTreeMap<String, String> {
    let requested = present.iter().filter(|(name, it)| request.is_for(name, it));
    let requested: BTreeMap<&str, &RequestedOperator> =
        requested.map(|(name, it)| (name.as_str(), it)).collect();
    let mut reasons = BTreeMap::new();
    let has_none =
        |name: &str| proposal.converged.get(name).is_some_and(|it| it.installed.is_none());
    if requested.keys().any(|it| has_none(it)) {
        let after = OperatorInputs { operators: &proposal.operators, ..inputs };
        for (name, block) in converge(after, catalogs).refused() {
            if requested.contains_key(name) {
                reasons.insert(name.to_owned(), block.message.clone());
            }
        }
    }
    let staying = requested.into_iter().filter_map(|(name, operator)| {
        let block = hold(name, operator).or_else(|| unoffered(inputs, catalogs, request, name))?;
        Some((name.to_owned(), block.message))
    });
    reasons.extend(staying);
    reasons
}
