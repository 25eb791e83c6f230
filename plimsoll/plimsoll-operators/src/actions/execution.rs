//! Execution of a plan, as a function of what its status records and what Operators report.
//!
//! A change is recorded as `Writing` before its request is sent, and as `Written` afterwards. Whether the API
//! server has a change that was being written when the program ended is decided by [`arrival`].

pub mod arrival;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use plimsoll_api::olm::action::{
    ActionSpec, ActionState, ActionStatus, ChangeOperation, ChangeState, PlannedChange,
};
use plimsoll_api::{Reason, duration};

use super::release::{self, ObservedRelease};
use super::report::{ActionObject, Report, limited};
use super::{ActionFailure, TEXT_LENGTH_MAX, enumerated};
use crate::deletion_plan::recreated;
use crate::installation::InstallationState;
use crate::observed::ObservedOperator;
use crate::update::is_set_of_update;

/// The deadline of an Action that does not specify one.
const DEADLINE: Duration = Duration::from_secs(60 * 60);
/// The deadline of an Action that changes the release and does not specify one.
const RELEASE_DEADLINE: Duration = Duration::from_secs(6 * 60 * 60);
/// The reasons of an Operator that persist until a user intervenes.
const LASTING: [Reason; 7] = [
    Reason::UnpackFailed,
    Reason::InstallationFailed,
    Reason::Conflict,
    Reason::InvalidVersionRange,
    Reason::NoMatchingVersion,
    Reason::VersionSkipped,
    Reason::ClusterIncompatible,
];

/// The reasons for which an Operator is not deleted until a user does something else.
const REFUSALS: [Reason; 3] = [Reason::DependedUpon, Reason::WorkloadsRunning, Reason::InvalidSpec];

/// Returns the position of the next change to write; `None` if none is left, one failed, it is not known whether one
/// was made, or an Operator has to be gone first: deletions come one after another, as by hand, so that those after a
/// refused one are left.
pub fn next_write(status: &ActionStatus) -> Option<usize> {
    let ends = |it: &PlannedChange| it.state == ChangeState::Failed || is_unknown(it);
    if status.plan.iter().any(ends) {
        return None;
    }
    let is_due = |it: &PlannedChange| {
        matches!(it.state, ChangeState::Planned | ChangeState::Writing)
            && it.operation != ChangeOperation::Await
    };
    let next = status.plan.iter().position(is_due)?;
    let is_deletion = |it: &PlannedChange| it.operation == ChangeOperation::Delete;
    let is_going = |it: &PlannedChange| is_deletion(it) && it.state != ChangeState::Completed;
    let (before, change) = (&status.plan[..next], &status.plan[next]);
    (!is_deletion(change) || !before.iter().any(is_going)).then_some(next)
}

/// Returns whether it is not known, and cannot be found out, whether a change was made.
pub fn is_unknown(change: &PlannedChange) -> bool {
    change.state == ChangeState::Writing && change.reason == Reason::OutcomeUnknown.as_str()
}

/// Returns whether a plan has a request for a release that is not followed yet and stays when the Action ends.
fn awaits_release(change: &PlannedChange) -> bool {
    change.operation == ChangeOperation::UpdateRelease && change.state == ChangeState::Written
}

/// Returns whether the API server has a change, had it or may have it.
fn may_be_written(change: &PlannedChange) -> bool {
    match change.state {
        ChangeState::Planned => false,
        ChangeState::Writing | ChangeState::Written | ChangeState::Completed => true,
        ChangeState::Failed => !change.unwritten,
    }
}

/// Returns the change sets that end with an Action: those that its Operators may be in, and what is
/// left of those that they were in before.
pub fn ending_sets(plan: &[PlannedChange]) -> BTreeSet<&str> {
    let joined = plan.iter().filter(|it| may_be_in_set(it)).map(|it| it.change_set.as_str());
    joined.chain(plan.iter().filter_map(left_set)).collect()
}

/// Returns whether an Operator may be in the change set of a change when the Action ends, and leaves it then. One that
/// an earlier update has put there leaves it once it has arrived.
fn may_be_in_set(change: &PlannedChange) -> bool {
    let may_be = match change.operation {
        ChangeOperation::Await => change.state == ChangeState::Completed,
        _ => may_be_written(change),
    };
    may_be && !change.change_set.is_empty()
}

/// Returns the change set of an earlier update that an Operator has left for a change, or may have; `None` if there is
/// none. What is left of it ends with the Action.
fn left_set(change: &PlannedChange) -> Option<&str> {
    let set = Some(change.leaves_change_set.as_str());
    set.filter(|it| is_set_of_update(it) && may_be_written(change))
}

/// Returns whether no change was written yet.
pub fn is_untouched(status: &ActionStatus) -> bool {
    let is_untouched = |it: &PlannedChange| {
        it.operation == ChangeOperation::Await || it.state == ChangeState::Planned
    };
    status.plan.iter().all(is_untouched)
}

/// Records what Operators and the ClusterVersion report.
pub fn observe(
    plan: &mut [PlannedChange],
    operators: &BTreeMap<String, ObservedOperator>,
    release: Option<&ObservedRelease>,
) {
    for change in plan {
        let is_open = match change.operation {
            ChangeOperation::Await => {
                matches!(change.state, ChangeState::Planned | ChangeState::Written)
            }
            _ => change.state == ChangeState::Written,
        };
        if !is_open {
            continue;
        }
        let observed = operators.get(&change.operator);
        let (state, reason, message) = match change.operation {
            _ if change.is_release() => release::observed(change, release),
            ChangeOperation::Delete => deleted(change, observed),
            _ => installed(change, observed),
        };
        change.state = if state == ChangeState::Planned { change.state } else { state };
        change.reason = reason;
        change.message = limited(&message, TEXT_LENGTH_MAX);
    }
}

type Observation = (ChangeState, String, String);

fn deleted(change: &PlannedChange, observed: Option<&ObservedOperator>) -> Observation {
    let name = &change.operator;
    match observed {
        Some(there) if there.uid == change.uid => {
            // A watch may show the deletion later than the response to the request.
            let deleting = there.status.conditions.iter().find(|it| it.type_ == "Progressing");
            let deleting = deleting.filter(|_| there.is_deleting);
            if let Some(it) =
                deleting.filter(|it| REFUSALS.iter().any(|reason| it.reason == reason.as_str()))
            {
                return (ChangeState::Failed, it.reason.clone(), format!("{name}: {}", it.message));
            }
            let message = deleting.map(|it| it.message.clone()).unwrap_or_default();
            (ChangeState::Written, Reason::Deleting.to_string(), message)
        }
        Some(_) => (ChangeState::Completed, Reason::OperatorDeleted.to_string(), recreated(name)),
        None => {
            let message = format!("{name} was deleted");
            (ChangeState::Completed, Reason::OperatorDeleted.to_string(), message)
        }
    }
}

fn installed(change: &PlannedChange, observed: Option<&ObservedOperator>) -> Observation {
    let name = &change.operator;
    let Some(there) = observed.filter(|it| change.uid.is_empty() || it.uid == change.uid) else {
        // A watch may show the new object later than the response to its creation.
        if change.operation == ChangeOperation::Create && change.reason.is_empty() {
            return (ChangeState::Written, String::new(), String::new());
        }
        let message = format!("{name} was deleted before it was installed");
        return (ChangeState::Failed, Reason::Deleting.to_string(), message);
    };
    if there.is_deleting {
        let message = format!("{name} is being deleted");
        return (ChangeState::Failed, Reason::Deleting.to_string(), message);
    }
    let rolling = Reason::RollingOut.to_string();
    match InstallationState::of(there, &change.version) {
        InstallationState::Unseen => return (ChangeState::Written, rolling, String::new()),
        InstallationState::Installed => {
            let reason = match change.dependency && change.operation == ChangeOperation::Create {
                true => Reason::DependencyCreated,
                false => Reason::InstallationSucceeded,
            };
            let message = format!("{name}@{} was successfully installed", change.version);
            return (ChangeState::Completed, reason.to_string(), message);
        }
        InstallationState::UnderWay { .. } | InstallationState::AtRest { .. } => {}
    }
    let progressing = there.status.conditions.iter().find(|it| it.type_ == "Progressing");
    let mut conditions = there.status.conditions.iter();
    let lasting = conditions.find(|it| LASTING.iter().any(|reason| it.reason == reason.as_str()));
    match (lasting, progressing) {
        (Some(it), _) => {
            (ChangeState::Failed, it.reason.clone(), format!("{name}: {}", it.message))
        }
        (None, Some(it)) => (ChangeState::Written, it.reason.clone(), it.message.clone()),
        (None, None) => (ChangeState::Written, rolling, String::new()),
    }
}

/// Returns the result of the execution of a plan; `None` while it is in progress. A failure is returned once
/// every written change has ended, or the deadline has passed.
pub fn outcome(
    spec: &ActionSpec,
    status: &ActionStatus,
    now: Timestamp,
) -> Option<Result<(), ActionFailure>> {
    let is_over = deadline(spec, status).is_some_and(|at| at <= now);
    let is_open =
        |it: &&PlannedChange| !matches!(it.state, ChangeState::Completed | ChangeState::Failed);
    let failed = status.plan.iter().find(|it| it.state == ChangeState::Failed || is_unknown(it));
    let mut open = status.plan.iter().filter(is_open);
    if let Some(change) = failed {
        let reason = Reason::ALL.iter().find(|it| it.as_str() == change.reason);
        let reason = reason.copied().unwrap_or(Reason::InstallationFailed);
        let is_under_way = open.any(|it| it.state == ChangeState::Written);
        let failure = ActionFailure::new(reason, change.message.clone()).on(change.subject());
        return (!is_under_way || is_over).then_some(Err(failure));
    }
    match open.next() {
        None => Some(Ok(())),
        Some(change) if is_over => Some(Err(late(change, &status.plan))),
        Some(_) => None,
    }
}

/// Returns the failure of an Action whose deadline has passed while a change was open.
fn late(change: &PlannedChange, plan: &[PlannedChange]) -> ActionFailure {
    let what = match change.message.as_str() {
        "" => String::new(),
        message => format!(": {message}"),
    };
    let mut message = format!("{} is not there in time{what}", change.subject());
    let left = subjects(plan, |it| it.state == ChangeState::Planned);
    if !left.is_empty() {
        message += &format!("; left as they were: {}", enumerated(&left));
    }
    ActionFailure::new(Reason::DeadlineExceeded, message).on(change.subject())
}

/// Returns what the written changes of a plan are about that `which` selects.
fn subjects(plan: &[PlannedChange], which: impl Fn(&PlannedChange) -> bool) -> Vec<String> {
    let selected = plan.iter().filter(|it| it.operation != ChangeOperation::Await && which(it));
    selected.map(|it| it.subject().to_owned()).collect()
}

/// Returns the report of a plan that was executed, with its outcome.
pub fn ended(status: ActionStatus, outcome: Result<(), ActionFailure>) -> Report {
    match outcome {
        Ok(()) => Report {
            status,
            state: ActionState::Succeeded,
            reason: Reason::ActionSucceeded,
            message: "all changes were made".to_owned(),
        },
        Err(failure) => Report::failed(status, failure),
    }
}

/// Returns the report of an Action that ends before all of its plan was done, because it was cancelled or deleted.
/// No change of it is being written.
pub fn stopped(action: &ActionObject, now: Timestamp) -> Report {
    let ActionObject { spec, status, .. } = action;
    if let Some(outcome) = outcome(spec, status, now) {
        return ended(status.clone(), outcome);
    }
    let is_written =
        |it: &PlannedChange| matches!(it.state, ChangeState::Written | ChangeState::Completed);
    let all = subjects(&status.plan, |_| true).len();
    let written = subjects(&status.plan, is_written);
    let progress = match written.len() {
        0 => "before a change was written".to_owned(),
        1 => format!("after 1 of {all} changes was written"),
        count => format!("after {count} of {all} changes were written"),
    };
    let (reason, what) = match action.is_deleting {
        true => (Reason::ActionDeleted, "deleted"),
        false => (Reason::ActionCancelled, "cancelled"),
    };
    let mut message = format!("it was {what} {progress}");
    let left = subjects(&status.plan, |it| it.state == ChangeState::Planned);
    for (text, subjects) in [("written", &written), ("left as they were", &left)] {
        if action.is_deleting && !subjects.is_empty() {
            message += &format!("; {text}: {}", enumerated(subjects));
        }
    }
    if let Some(change) = status.plan.iter().find(|it| awaits_release(it)) {
        message += &format!("; the request for release {} is not taken back", change.requested);
    }
    Report { status: status.clone(), state: ActionState::Cancelled, reason, message }
}

/// Returns the deadline of an Action; `None` before it starts.
pub fn deadline(spec: &ActionSpec, status: &ActionStatus) -> Option<Timestamp> {
    status.start_time?.checked_add(allowed_time(spec, status)).ok()
}

/// Returns how long an Action may take from its start.
pub(super) fn allowed_time(spec: &ActionSpec, status: &ActionStatus) -> Duration {
    duration::parse(&spec.deadline).ok().filter(|it| !it.is_zero()).unwrap_or_else(|| {
        let is_of_release = status.plan.iter().any(PlannedChange::is_release);
        if is_of_release { RELEASE_DEADLINE } else { DEADLINE }
    })
}

#[cfg(test)]
mod tests;
