//! The events to emit when conditions of the ClusterVersion change.
//!
//! Only a change of status is reported, not one of the message. What has events of its own is left
//! out: updates, releases that are accepted or not, and `Upgradeable` for no other reason than an
//! update under way.

use plimsoll_api::{Condition, ConditionStatus, Reason};

/// A condition that came to hold, or does not any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transition {
    /// Whether an administrator may have to intervene.
    pub is_warning: bool,
    /// The reason of the event.
    pub reason: Reason,
    /// What happened, as a sentence.
    pub message: String,
}

/// A condition whose changes are events: the reason of the event when it begins to deviate, and reason
/// and message of the one when it is as expected again.
struct ConditionEvents {
    type_: &'static str,
    begins: Reason,
    ends: Reason,
    ended: &'static str,
}

const REPORTED: [ConditionEvents; 5] = [
    ConditionEvents {
        type_: "Failing",
        begins: Reason::MultipleErrors,
        ends: Reason::FailureResolved,
        ended: "Nothing fails any more",
    },
    ConditionEvents {
        type_: "Invalid",
        begins: Reason::InvalidClusterVersion,
        ends: Reason::ClusterVersionValid,
        ended: "The ClusterVersion is in order again",
    },
    ConditionEvents {
        type_: "Upgradeable",
        begins: Reason::MinorUpdatesBlocked,
        ends: Reason::MinorUpdatesAllowed,
        ended: "Nothing objects to another minor version any more",
    },
    ConditionEvents {
        type_: "RetrievedUpdates",
        begins: Reason::RemoteFailed,
        ends: Reason::UpdatesRetrieved,
        ended: "Available updates are known again",
    },
    ConditionEvents {
        type_: "ImplicitlyEnabledCapabilities",
        begins: Reason::CapabilitiesImplicitlyEnabled,
        ends: Reason::AsExpected,
        ended: "Capabilities match the configured spec again",
    },
];

/// The events to emit when conditions `after` follow those `before`.
pub fn transitions(before: &[Condition], after: &[Condition]) -> Vec<Transition> {
    REPORTED.iter().filter_map(|reported| reported.transition(before, after)).collect()
}

impl ConditionEvents {
    fn transition(&self, before: &[Condition], after: &[Condition]) -> Option<Transition> {
        let (was, is) = (self.deviation(before), self.deviation(after));
        match (was, is) {
            (None, Some(condition)) => Some(self.begun(condition)),
            (Some(old), Some(condition)) if old.status != condition.status => {
                Some(self.begun(condition))
            }
            (Some(_), None) => Some(Transition {
                is_warning: false,
                reason: self.ends,
                message: self.ended.to_owned(),
            }),
            (None, None) | (Some(_), Some(_)) => None,
        }
    }

    /// The condition, if it deviates from what is expected.
    fn deviation<'a>(&self, conditions: &'a [Condition]) -> Option<&'a Condition> {
        let found = conditions.iter().find(|condition| condition.type_ == self.type_)?;
        let is_well = match self.type_ {
            "Upgradeable" => {
                found.status != ConditionStatus::False
                    || found.reason == Reason::UpdateInProgress.as_str()
            }
            "RetrievedUpdates" => {
                found.status != ConditionStatus::False || found.reason == Reason::NoChannel.as_str()
            }
            _ => found.status == ConditionStatus::False,
        };
        (!is_well).then_some(found)
    }

    fn begun(&self, condition: &Condition) -> Transition {
        // An operator's own reason is not on the list.
        let listed = Reason::ALL.iter().find(|reason| reason.as_str() == condition.reason);
        let own = self.begins == Reason::MinorUpdatesBlocked;
        let reason = listed.copied().filter(|_| !own).unwrap_or(self.begins);
        let message = format!("{} is {}", self.type_, condition.status.as_str());
        let message = match condition.message.as_str() {
            "" => message,
            text => format!("{message}: {text}"),
        };
        Transition { is_warning: true, reason, message }
    }
}

#[cfg(test)]
mod tests {
    //! What is reported of which change.

    use jiff::Timestamp;

    use super::*;

    /// A condition, written `Type=Status Reason`.
    fn condition(text: &str) -> Condition {
        let (type_, rest) = text.split_once('=').unwrap();
        let (status, reason) = rest.split_once(' ').unwrap_or((rest, ""));
        Condition {
            type_: type_.to_owned(),
            status: match status {
                "True" => ConditionStatus::True,
                "False" => ConditionStatus::False,
                _ => ConditionStatus::Unknown,
            },
            last_transition_time: Timestamp::UNIX_EPOCH,
            reason: reason.to_owned(),
            message: String::new(),
        }
    }

    fn check(before: &[&str], after: &[&str], expected: &[&str]) {
        let [old, new] = [before, after]
            .map(|list| list.iter().map(|text| condition(text)).collect::<Vec<Condition>>());
        let reported: Vec<String> = transitions(&old, &new)
            .into_iter()
            .map(|it| format!("{}{}", if it.is_warning { "!" } else { "" }, it.reason))
            .collect();
        assert_eq!(reported, expected, "{before:?} then {after:?}");
    }

    #[test]
    fn what_begins_and_ends_is_reported_once() {
        let failing = "Failing=True ClusterOperatorDegraded";
        let slow = "Failing=Unknown SlowClusterOperator";
        check(&[], &["Failing=False"], &[]);
        check(&["Failing=False"], &[slow], &["!SlowClusterOperator"]);
        check(&[slow], &[failing], &["!ClusterOperatorDegraded"]);
        check(&[failing], &["Failing=True MultipleErrors"], &[]);
        check(&[failing], &["Failing=False"], &["FailureResolved"]);
        check(&[], &["Invalid=True InvalidClusterVersion"], &["!InvalidClusterVersion"]);
        check(&["Invalid=True InvalidClusterVersion"], &[], &["ClusterVersionValid"]);
    }

    #[test]
    fn an_operators_own_reason_is_in_the_text_and_an_update_under_way_is_no_news() {
        let (objects, updating) = ("Upgradeable=False Rusty", "Upgradeable=False UpdateInProgress");
        check(&[], &[objects], &["!MinorUpdatesBlocked"]);
        check(&[], &[updating], &[]);
        check(&[updating], &[objects], &["!MinorUpdatesBlocked"]);
        check(&[objects], &[], &["MinorUpdatesAllowed"]);
        check(&[updating], &[], &[]);
    }

    #[test]
    fn updates_that_were_not_requested_are_not_missed() {
        let failed = "RetrievedUpdates=False VersionNotFound";
        check(&[], &["RetrievedUpdates=False NoChannel"], &[]);
        check(&["RetrievedUpdates=False NoChannel"], &[failed], &["!VersionNotFound"]);
        check(&[failed], &["RetrievedUpdates=True"], &["UpdatesRetrieved"]);
    }
}
