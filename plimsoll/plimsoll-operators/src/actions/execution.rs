//! Execution of a plan, as a function of what its status records and what Operators report.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use plimsoll_api::olm::action::{
    ActionSpec, ActionStatus, ChangeOperation, ChangeState, PlannedChange,
};
use plimsoll_api::{Reason, duration};

use super::ActionFailure;
use super::release::{self, ObservedRelease};
use crate::deletion_plan::recreated;
use crate::installation::InstallationState;
use crate::observed::ObservedOperator;

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

/// Returns the position of the next change to write; `None` if none is left, or one failed.
pub fn next_write(status: &ActionStatus) -> Option<usize> {
    if status.plan.iter().any(|it| it.state == ChangeState::Failed) {
        return None;
    }
    let is_due = |it: &PlannedChange| {
        it.state == ChangeState::Planned && it.operation != ChangeOperation::Await
    };
    status.plan.iter().position(is_due)
}

/// Returns whether no change was written yet.
pub fn is_untouched(status: &ActionStatus) -> bool {
    let is_untouched = |it: &PlannedChange| {
        it.operation == ChangeOperation::Await || it.state == ChangeState::Planned
    };
    status.plan.iter().all(is_untouched)
}

/// Records what Operators and the ClusterVersion report. Returns whether the plan changed.
pub fn observe(
    plan: &mut [PlannedChange],
    operators: &BTreeMap<String, ObservedOperator>,
    release: Option<&ObservedRelease>,
) -> bool {
    let mut is_changed = false;
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
        let before = (change.state, change.reason.clone(), change.message.clone());
        let observed = operators.get(&change.operator);
        let (state, reason, message) = match change.operation {
            _ if change.is_release() => release::observed(change, release),
            ChangeOperation::Delete => deleted(change, observed),
            _ => installed(change, observed),
        };
        change.state = if state == ChangeState::Planned { change.state } else { state };
        change.reason = reason;
        change.message = message;
        is_changed |= before != (change.state, change.reason.clone(), change.message.clone());
    }
    is_changed
}

type Observation = (ChangeState, String, String);

fn deleted(change: &PlannedChange, observed: Option<&ObservedOperator>) -> Observation {
    let name = &change.operator;
    match observed {
        Some(there) if there.uid == change.uid => {
            // A watch may show the deletion later than the response to the request.
            let deleting = there.status.conditions.iter().find(|it| it.type_ == "Progressing");
            let deleting = deleting.filter(|_| there.is_deleting);
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
    let failed = status.plan.iter().find(|it| it.state == ChangeState::Failed);
    let mut open = status.plan.iter().filter(is_open);
    if let Some(change) = failed {
        let reason = Reason::ALL.iter().find(|it| it.as_str() == change.reason);
        let reason = reason.copied().unwrap_or(Reason::InstallationFailed);
        let is_under_way = open.any(|it| it.state == ChangeState::Written);
        return (!is_under_way || is_over)
            .then(|| Err(ActionFailure::new(reason, change.message.clone())));
    }
    match open.next() {
        None => Some(Ok(())),
        Some(change) if is_over => {
            let what = match change.message.as_str() {
                "" => String::new(),
                message => format!(": {message}"),
            };
            let message = format!("{} is not there in time{what}", change.subject());
            Some(Err(ActionFailure::new(Reason::DeadlineExceeded, message)))
        }
        Some(_) => None,
    }
}

/// Returns the deadline of an Action; `None` before it starts.
pub fn deadline(spec: &ActionSpec, status: &ActionStatus) -> Option<Timestamp> {
    let lasts =
        duration::parse(&spec.deadline).ok().filter(|it| !it.is_zero()).unwrap_or_else(|| {
            let is_of_release = status.plan.iter().any(PlannedChange::is_release);
            if is_of_release { RELEASE_DEADLINE } else { DEADLINE }
        });
    status.start_time?.checked_add(lasts).ok()
}

#[cfg(test)]
mod tests;
