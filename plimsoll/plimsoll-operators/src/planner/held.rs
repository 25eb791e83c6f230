//! Operators that no plan may change, although something is wanted of them.

use plimsoll_api::Reason;

use super::{Wanted, is_in_range, takes_back};
use crate::{OperatorBlock, RequestedOperator, change_set};

/// Returns the reason that no plan may change an Operator; `None` if one may.
pub(crate) fn hold(name: &str, operator: &RequestedOperator) -> Option<OperatorBlock> {
    let (reason, message) = if operator.is_deleting {
        (Reason::Deleting, format!("{name} is being deleted: wait until it is gone"))
    } else if operator.spec.paused {
        (Reason::Paused, format!("{name} is paused: `kubectl operator resume {name}` ends that"))
    } else if let Some(revision) = operator.spec.revision {
        let message = format!("{name} is kept at revision {revision}: remove spec.revision first");
        (Reason::UpgradeBlocked, message)
    } else {
        return change_set::invalid(operator);
    };
    Some(OperatorBlock::new(reason, message))
}

/// Returns the reason that an Operator does not get what is wanted of it; `None` if it may be changed, or if it
/// has that.
pub(crate) fn held(
    name: &str,
    operator: &RequestedOperator,
    wanted: &Wanted,
) -> Option<OperatorBlock> {
    hold(name, operator).filter(|block| {
        // What is not installed is not kept, and does not come.
        let is_stuck = block.reason == Reason::InvalidChangeSet && operator.installed.is_none();
        operator.is_deleting || is_stuck || !has(operator, wanted)
    })
}

fn has(operator: &RequestedOperator, wanted: &Wanted) -> bool {
    let is_it = |wanted: &Option<String>, there: &str| wanted.as_ref().is_none_or(|it| it == there);
    let Wanted { range, channel, repository, .. } = wanted;
    let spec = &operator.spec;
    match &operator.installed {
        Some(it) => {
            let (from, version) = (&it.reference, &it.bundle.version);
            range.as_ref().is_none_or(|it| is_in_range(it, version) && !takes_back(it, operator))
                && is_it(channel, &from.channel)
                && is_it(repository, &from.catalog)
        }
        None => {
            is_it(range, &spec.version)
                && is_it(channel, &spec.channel)
                && is_it(repository, &spec.repository)
        }
    }
}
