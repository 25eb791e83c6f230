//! Order of Actions: which one must end before another one starts.
//!
//! An Action that is executed goes before all that wait, and those go in the order of their creation, then of
//! namespace and name. The order is total, so that Actions never wait for each other in a circle. An Action waits for
//! those before it that write what it writes or relies on, or that rely on what it writes.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use plimsoll_api::olm::action::{ActionState, ChangeOperation, ChangeState, PlannedChange};

use super::attributes::NamedClass;
use super::classes::is_served;
use super::execution::allowed_time;
use super::report::ActionObject;
use crate::observed::ObservedOperator;

/// What a plan writes and relies on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Footprint {
    /// The Operators that it writes.
    pub operators: BTreeSet<String>,
    /// The Operators that it only relies on: it waits for them, or those that it writes depend on them.
    pub relied_on: BTreeSet<String>,
    /// Whether it writes the ClusterVersion.
    pub release: bool,
    /// Whether it only waits for what the ClusterVersion requests.
    pub release_relied_on: bool,
}

impl Footprint {
    /// Returns the footprint of a plan.
    pub fn of(plan: &[PlannedChange]) -> Self {
        let mut footprint = Self::default();
        for change in plan {
            let is_written = change.operation != ChangeOperation::Await;
            match (change.is_release(), is_written) {
                (true, true) => footprint.release = true,
                (true, false) => footprint.release_relied_on = true,
                (false, true) => drop(footprint.operators.insert(change.operator.clone())),
                (false, false) => drop(footprint.relied_on.insert(change.operator.clone())),
            }
            footprint.relied_on.extend(change.relies_on.iter().cloned());
        }
        footprint
    }

    /// Returns what a plan has in common with this footprint, unless both only rely on it; `None` if there is
    /// nothing.
    fn shared<'a>(&self, plan: &'a [PlannedChange]) -> Option<SharedItem<'a>> {
        plan.iter().find_map(|change| {
            let is_written = change.operation != ChangeOperation::Await;
            let is_shared = match change.is_release() {
                true => self.release || (is_written && self.release_relied_on),
                false => {
                    self.operators.contains(&change.operator)
                        || (is_written && self.relied_on.contains(&change.operator))
                }
            };
            if is_shared {
                return Some(SharedItem { subject: change.subject(), is_written });
            }
            let relied_on = change.relies_on.iter().find(|it| self.operators.contains(*it))?;
            Some(SharedItem { subject: relied_on, is_written: false })
        })
    }
}

/// An Operator, or part of the ClusterVersion, for which one Action waits for another.
struct SharedItem<'a> {
    subject: &'a str,
    /// Whether the other Action writes it.
    is_written: bool,
}

/// The Actions that hold what they write and rely on, in their order: those that are executed, and those that were
/// planned and wait.
#[derive(Debug, Clone)]
pub struct Locks<'a> {
    holders: Vec<&'a ActionObject>,
    /// The uids of those whose plan cannot be read.
    unread: BTreeSet<&'a str>,
}

impl<'a> Locks<'a> {
    /// Returns the locks of all Actions, in any order.
    pub fn of(actions: impl IntoIterator<Item = &'a ActionObject>) -> Self {
        let mut holders: Vec<&ActionObject> = actions.into_iter().filter(|it| holds(it)).collect();
        holders.sort_by_key(|it| rank(it));
        Self { holders, unread: BTreeSet::new() }
    }

    /// Returns the locks of the same Actions, some of which, by uid, have a plan that cannot be
    /// read: while such an Action is executed, it holds everything.
    pub fn with_unread(self, unread: BTreeSet<&'a str>) -> Self {
        Self { unread, ..self }
    }

    /// Returns whether an Action holds what its plan writes and relies on.
    pub fn holds(&self, uid: &str) -> bool {
        self.holders.iter().any(|it| it.uid == uid)
    }

    /// Returns the Action that must end before another one starts, as text: of several, the last one. `None` if the
    /// other one can start.
    pub fn waits_for(&self, action: &ActionObject, footprint: &Footprint) -> Option<String> {
        let mut before = self.before(action).rev();
        before.find_map(|it| {
            let ActionObject { namespace, name, .. } = it;
            if self.holds_everything(it) {
                return Some(format!("Action {namespace}/{name}, whose plan cannot be read"));
            }
            let shared = footprint.shared(&it.status.plan)?;
            let what = if shared.is_written { "changes" } else { "relies on" };
            Some(format!("Action {namespace}/{name}, which {what} {}", shared.subject))
        })
    }

    /// Returns whether an Action is executed whose plan cannot be read.
    fn holds_everything(&self, action: &ActionObject) -> bool {
        action.status.state == ActionState::Running && self.unread.contains(action.uid.as_str())
    }

    /// Returns the Actions that may start, or whose message is not true any more, since `left` has ended, was deleted
    /// or has another plan. All others that it has held up wait for another Action still.
    pub fn waiting_for(&self, left: &ActionObject) -> Vec<&'a ActionObject> {
        let footprint = Footprint::of(&left.status.plan);
        let is_due = |it: &&&ActionObject| {
            if it.uid == left.uid || it.status.state != ActionState::Pending {
                return false;
            }
            let is_held = || {
                let own = Footprint::of(&it.status.plan);
                self.before(it).any(|other| {
                    self.holds_everything(other) || own.shared(&other.status.plan).is_some()
                })
            };
            // One whose plan could not be read is named by others that share nothing with it.
            names(it, left) || (footprint.shared(&it.status.plan).is_some() && !is_held())
        };
        self.holders.iter().filter(is_due).copied().collect()
    }

    /// Returns the holders that go before an Action that waits, first those that go first.
    fn before(&self, action: &ActionObject) -> impl DoubleEndedIterator<Item = &'a ActionObject> {
        let end = self.holders.partition_point(|it| rank(it) < (true, action.order()));
        let uid = action.uid.clone();
        self.holders[..end].iter().copied().filter(move |it| it.uid != uid)
    }
}

/// Returns whether others wait for what the plan of an Action says. Of one that another controller executes they do
/// while its class is there and its time is not over: whoever may write the statuses of such Actions writes its plan.
pub fn is_waited_for(action: &ActionObject, classes: &[NamedClass], now: Timestamp) -> bool {
    let class = &action.spec.action_class;
    is_served(classes, class)
        || action.status.state == ActionState::Running
            && NamedClass::find(classes, class).is_some()
            && ends_by(action, now).is_none_or(|it| it > now)
}

/// Returns the next time at which others cease to wait for an Action that another controller executes; `None` if they
/// wait for none, or for as long as it takes.
pub fn next_end<'a>(
    actions: impl IntoIterator<Item = &'a ActionObject>,
    classes: &[NamedClass],
    now: Timestamp,
) -> Option<Timestamp> {
    let foreign = actions.into_iter().filter(|it| !is_served(classes, &it.spec.action_class));
    let foreign = foreign.filter(|it| is_waited_for(it, classes, now));
    foreign.filter_map(|it| ends_by(it, now)).min()
}

/// Returns the time at which an Action has to have ended; `None` for never. A start in the future is due to a wrong
/// clock and is ignored.
fn ends_by(action: &ActionObject, now: Timestamp) -> Option<Timestamp> {
    let ActionObject { spec, status, created, .. } = action;
    let began = status.start_time.filter(|it| *it <= now).unwrap_or(*created);
    began.checked_add(allowed_time(spec, status)).ok()
}

/// Returns whether the status of an Action says that it waits for another one.
pub fn names(action: &ActionObject, other: &ActionObject) -> bool {
    let text = format!("Action {}/{},", other.namespace, other.name);
    let mut conditions = action.status.conditions.iter();
    action.status.state == ActionState::Pending && conditions.any(|it| it.message.contains(&text))
}

/// Returns whether an Action holds what its plan writes and relies on.
fn holds(action: &ActionObject) -> bool {
    match action.status.state {
        ActionState::Running => true,
        ActionState::Pending => !action.is_stopped() && !action.status.plan.is_empty(),
        ActionState::WaitingForApproval => false,
        ActionState::Succeeded | ActionState::Failed | ActionState::Cancelled => false,
    }
}

/// Returns the sort key of holders: those that are executed come first.
fn rank(action: &ActionObject) -> (bool, (Timestamp, &str, &str)) {
    (action.status.state != ActionState::Running, action.order())
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

/// Returns the Operators that Actions of a namespace have created, or that those which are executed are about to.
pub fn created<'a>(
    namespace: &str,
    operators: &BTreeMap<String, ObservedOperator>,
    actions: impl IntoIterator<Item = &'a ActionObject>,
) -> BTreeSet<String> {
    let is_of_it = |it: &ObservedOperator| it.created_in.as_deref() == Some(namespace);
    let there = operators.iter().filter(|(_, it)| is_of_it(it)).map(|(name, _)| name);
    let is_running =
        |it: &&ActionObject| it.namespace == namespace && it.status.state == ActionState::Running;
    let running = actions.into_iter().filter(is_running).flat_map(|it| &it.status.plan);
    let is_created = |it: &&PlannedChange| {
        it.operation == ChangeOperation::Create
            && matches!(
                it.state,
                ChangeState::Planned | ChangeState::Writing | ChangeState::Written
            )
    };
    there.chain(running.filter(is_created).map(|it| &it.operator)).cloned().collect()
}

#[cfg(test)]
mod tests;
