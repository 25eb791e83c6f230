//! Order of Actions: which one must end before another one starts.

use plimsoll_api::olm::action::{ActionState, PlannedChange};

use super::plan::ActionPlan;
use super::report::ActionObject;

/// Returns the Action that must end before another one starts, because both write the same Operator or the
/// ClusterVersion: one that is running, or that is pending and was created before. `None` if there is none.
pub fn waits_for<'a>(
    action: &ActionObject,
    plan: &ActionPlan,
    others: impl IntoIterator<Item = &'a ActionObject>,
) -> Option<String> {
    others.into_iter().find_map(|other| {
        let goes_before = match other.status.state {
            ActionState::Running => true,
            ActionState::Pending => other.order() < action.order() && !other.spec.cancelled,
            ActionState::WaitingForApproval => false,
            ActionState::Succeeded | ActionState::Failed | ActionState::Cancelled => false,
        };
        if other.uid == action.uid || !goes_before {
            return None;
        }
        let is_changed =
            |it: &&PlannedChange| plan.changes.iter().any(|own| own.operator == it.operator);
        let ActionObject { namespace, name, .. } = other;
        let shared = other.status.plan.iter().find(is_changed)?;
        Some(format!("Action {namespace}/{name}, which changes {}", shared.subject()))
    })
}

/// Returns the number of other Actions in the namespace that come before an Action and have not ended.
pub fn active<'a>(
    action: &ActionObject,
    others: impl IntoIterator<Item = &'a ActionObject>,
) -> usize {
    let goes_before = |other: &&ActionObject| {
        other.namespace == action.namespace
            && other.uid != action.uid
            && match other.status.state {
                ActionState::Running | ActionState::WaitingForApproval => true,
                ActionState::Pending => other.order() < action.order(),
                ActionState::Succeeded | ActionState::Failed | ActionState::Cancelled => false,
            }
    };
    others.into_iter().filter(goes_before).count()
}
