//! Whether the API server has a change that may have been sent, and whether it still has one that was written.
//!
//! A created Operator has the uid of its Action. Whatever updates an Operator or the ClusterVersion leaves a mark
//! in the same write, so that an update that another client has reverted differs from one that never came.
//! A deletion names the uid of the object.
//!
//! One case cannot be recognized: a created Operator that is deleted completely before the creation is recorded, while
//! the program that requested it ends. The API server keeps nothing of a deleted object that names it for certain: the
//! versions of a watch may be compacted, and events are dropped. The Operator is created again then, since that is
//! what the Action still asks for, and there is never more than one of its name.

use plimsoll_api::Reason;
use plimsoll_api::olm::action::{
    CHANGED_BY_ANNOTATION, ChangeOperation, ChangeState, PlannedChange,
};
use serde_json::Value;

use crate::actions::release::ObservedRelease;
use crate::observed::ObservedOperator;

/// An object that a change is about, as the API server has it now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoundObject {
    /// The uid of the object.
    pub uid: String,
    /// Whether it is being deleted.
    pub is_deleting: bool,
    /// The uid of the Action that created it; empty if none did.
    pub created_by: String,
    /// The mark of the change that was written to it last; empty if there is none.
    pub mark: String,
    /// The requested version or release; empty for any.
    pub requested: String,
    /// The capabilities that are requested; empty for an Operator.
    pub capabilities: Vec<String>,
}

impl FoundObject {
    /// Returns an Operator that was read.
    pub fn operator(object: &Value, observed: &ObservedOperator) -> Self {
        Self {
            uid: observed.uid.clone(),
            is_deleting: observed.is_deleting,
            created_by: observed.created_by.clone().unwrap_or_default(),
            mark: mark_in(object),
            requested: observed.spec.version.clone(),
            capabilities: Vec::new(),
        }
    }

    /// Returns a ClusterVersion that was read.
    pub fn release(object: &Value, observed: &ObservedRelease) -> Self {
        Self {
            uid: observed.uid.clone(),
            mark: mark_in(object),
            requested: observed.requested().to_owned(),
            capabilities: observed.requested_capabilities().to_vec(),
            ..Self::default()
        }
    }

    /// Returns whether a change of an Action was written to it, or a later one of the same Action.
    pub fn is_marked(&self, action: &str, position: usize) -> bool {
        let written = self.mark.strip_prefix(action).and_then(|it| it.strip_prefix('/'));
        written.and_then(|it| it.parse::<usize>().ok()).is_some_and(|it| it >= position)
    }
}

fn mark_in(object: &Value) -> String {
    let mark = object["metadata"]["annotations"][CHANGED_BY_ANNOTATION].as_str();
    mark.unwrap_or_default().to_owned()
}

/// Returns the mark that a change leaves, by the uid of its Action and its position in the plan.
pub fn mark(action: &str, position: usize) -> String {
    format!("{action}/{position}")
}

/// Whether the API server has a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Arrival {
    /// It has it, or had it: it must not be written again.
    Arrived,
    /// It does not have it, and the object is as it was planned for.
    Absent,
    /// It does not have it, and the object is not as it was planned for; the text says how it differs.
    Superseded(String),
    /// That cannot be found out any more; the text says why.
    Unknown(String),
}

/// Returns whether the API server has the change at a position of the plan of an Action. `found` is the object
/// now, `None` if there is none.
pub fn arrival(
    action: &str,
    position: usize,
    change: &PlannedChange,
    found: Option<&FoundObject>,
) -> Arrival {
    let subject = change.subject();
    match change.operation {
        ChangeOperation::Await => Arrival::Arrived,
        ChangeOperation::Create => match found {
            None => Arrival::Absent,
            Some(found) if found.created_by == action => Arrival::Arrived,
            Some(_) => Arrival::Superseded(format!("another client created {subject}")),
        },
        ChangeOperation::Delete => {
            match found.is_some_and(|it| it.uid == change.uid && !it.is_deleting) {
                true => Arrival::Absent,
                false => Arrival::Arrived,
            }
        }
        ChangeOperation::Update
        | ChangeOperation::UpdateRelease
        | ChangeOperation::EnableCapability => {
            let Some(found) = found.filter(|it| it.uid == change.uid) else {
                let what = if change.is_release() { "the ClusterVersion" } else { subject };
                return match change.state {
                    ChangeState::Writing => Arrival::Unknown(format!(
                        "{what} was deleted, and whether it had been changed before is not known"
                    )),
                    _ => Arrival::Superseded(format!("{what} was deleted")),
                };
            };
            match found.is_marked(action, position) {
                true => Arrival::Arrived,
                false => requested(change, found),
            }
        }
    }
}

/// Returns whether an object without the mark of a change has it.
fn requested(change: &PlannedChange, found: &FoundObject) -> Arrival {
    if change.operation == ChangeOperation::EnableCapability {
        return match found.capabilities.contains(&change.capability) {
            true => Arrival::Arrived,
            false => Arrival::Absent,
        };
    }
    let now = &found.requested;
    if *now == change.requested_before {
        return Arrival::Absent;
    }
    if *now == change.requested {
        return Arrival::Arrived;
    }
    Arrival::Superseded(match change.is_release() {
        true => format!("release {now:?} was requested"),
        false => format!("{now:?} was requested of {}", change.subject()),
    })
}

/// Records in a change that was being written what became of it.
pub fn record(change: &mut PlannedChange, arrival: Arrival) {
    match arrival {
        Arrival::Arrived => change.state = ChangeState::Written,
        Arrival::Absent | Arrival::Superseded(_) => change.state = ChangeState::Planned,
        Arrival::Unknown(message) => {
            change.state = ChangeState::Writing;
            change.reason = Reason::OutcomeUnknown.to_string();
            change.message = message;
        }
    }
}

/// Returns whether an object can contradict a change. One that is completed is not observed any more, and a user may
/// change or delete what it wrote; but what it deleted is there again only in a cluster that was restored.
pub fn is_comparable(change: &PlannedChange) -> bool {
    match change.state {
        ChangeState::Written => true,
        ChangeState::Completed => change.operation == ChangeOperation::Delete,
        ChangeState::Planned | ChangeState::Writing | ChangeState::Failed => false,
    }
}

/// Returns how an object contradicts a change that was recorded as written: the object is from an earlier time, or
/// another client has removed all traces of the change. `None` if it does not.
pub fn contradiction(
    action: &str,
    position: usize,
    change: &PlannedChange,
    found: Option<&FoundObject>,
) -> Option<String> {
    if !is_comparable(change) {
        return None;
    }
    let subject = change.subject();
    let how = match (change.operation, arrival(action, position, change, found)) {
        (ChangeOperation::Create, Arrival::Absent) => format!("{subject} is not there any more"),
        (ChangeOperation::Delete, Arrival::Absent) => format!("{subject} is there again"),
        (ChangeOperation::Update | ChangeOperation::UpdateRelease, Arrival::Absent)
            if change.requested != change.requested_before =>
        {
            format!("{subject} requests {:?} again", change.requested_before)
        }
        (ChangeOperation::EnableCapability, Arrival::Absent) => {
            format!("{subject} is not requested any more")
        }
        // Whatever else happened to it since is what it reports.
        _ => return None,
    };
    Some(format!("{how}: another client undid it, or the cluster was restored to an earlier state"))
}

#[cfg(test)]
mod tests;
