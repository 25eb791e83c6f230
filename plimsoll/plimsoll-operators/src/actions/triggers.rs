//! CronActions and EventActions: the Actions that they create, and the history that they keep.

mod chain;
mod content;
mod cron;
mod event;
mod filter;
mod limit;

use jiff::Timestamp;
use plimsoll_api::olm::action::ActionState;

pub use self::content::ObjectContent;
pub use self::cron::{CronDecision, CronObject, cron};
pub use self::event::{EventDecision, EventObject, Observations, selector_problem};
pub use self::filter::filter_problem;

/// The number of successful Actions that are kept without a limit in the spec.
const SUCCESSFUL_KEPT: u32 = 3;
/// The number of failed Actions that are kept without a limit in the spec.
const FAILED_KEPT: u32 = 1;

/// An Action that a CronAction or an EventAction created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MadeAction {
    /// The name of the Action.
    pub name: String,
    /// The state of the Action.
    pub state: ActionState,
    /// The creation time.
    pub created: Timestamp,
    /// The completion time; `None` before.
    pub ended: Option<Timestamp>,
}

/// Returns the ended Actions beyond those that are kept, oldest first.
fn outdated(made: &[MadeAction], successful: Option<u32>, failed: Option<u32>) -> Vec<String> {
    let mut found: Vec<(Option<Timestamp>, String)> = Vec::new();
    for (is_success, kept) in
        [(true, successful.unwrap_or(SUCCESSFUL_KEPT)), (false, failed.unwrap_or(FAILED_KEPT))]
    {
        let ended = made.iter().filter(|it| it.state.is_final());
        let mut ended: Vec<&MadeAction> =
            ended.filter(|it| (it.state == ActionState::Succeeded) == is_success).collect();
        ended.sort_by(|a, b| (b.ended, b.created, &b.name).cmp(&(a.ended, a.created, &a.name)));
        let kept = usize::try_from(kept).unwrap_or(usize::MAX);
        found.extend(ended.into_iter().skip(kept).map(|it| (it.ended, it.name.clone())));
    }
    found.sort();
    found.into_iter().map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests;
