//! Pinned Operators of which a range is requested that they are in.

use std::collections::BTreeMap;

use super::UpdateRequest;
use crate::RequestedOperator;
use crate::planner::{Proposal, hold, is_pinned};

/// Returns a line for each Operator that is named with a range, and that stays pinned to the version that it has.
pub(super) fn notes(
    operators: &BTreeMap<String, RequestedOperator>,
    request: &UpdateRequest,
    proposal: &Proposal,
) -> Vec<String> {
    let ranges = request.ranges.iter().filter(|(_, range)| !is_pinned(range));
    let lines = ranges.filter_map(|(name, range)| {
        let before = operators.get(name).filter(|it| hold(name, it).is_none())?;
        let (after, converged) = (proposal.operators.get(name)?, proposal.converged.get(name)?);
        let version = &before.spec.version;
        let stays = is_pinned(version)
            && after.spec.version == *version
            && before.installed.is_some()
            && before.installed == converged.installed;
        stays.then(|| {
            format!("{name} stays pinned to {version}: `--version-range` has it follow {range}")
        })
    });
    lines.collect()
}
