//! Statuses of operators, as CO-7 to CO-14 want it from a healthy one, and what a fault changes.

use jiff::Timestamp;
use plimsoll_api::config::ClusterOperatorStatus;
use plimsoll_api::{Condition, ConditionStatus, Reason, merge_conditions};

use super::roles::ReleaseRole;

/// What the status of an operator is derived from.
pub(super) struct ReportInput<'a> {
    /// The role whose versions it reports; `None` before its first release has rolled out.
    pub(super) reported: Option<&'a ReleaseRole>,
    /// Its role in the release that it is at or moves to.
    pub(super) role: &'a ReleaseRole,
    /// Version of the release that it moves to; `None` when it is at one.
    pub(super) moving_to: Option<&'a str>,
    /// The faults in effect.
    pub(super) faults: ActiveFaults,
}

/// The faults of an operator that are in effect.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ActiveFaults {
    /// Not available.
    pub(super) unavailable: bool,
    /// Degraded.
    pub(super) degraded: bool,
    /// Reports Upgradeable=False.
    pub(super) not_upgradeable: bool,
    /// Never reports the next versions.
    pub(super) stuck: bool,
}

/// Reasons of simulated operators; they are not ours, so they are not in our list.
const MOVING: &str = "RollingOut";
const SCRIPTED: &str = "ScriptedFault";

/// The status to report; `None` if it is reported already.
pub(super) fn status(
    input: &ReportInput<'_>,
    live: Option<&ClusterOperatorStatus>,
    time: Timestamp,
) -> Option<ClusterOperatorStatus> {
    let reported = live.map(|live| live.conditions.as_slice()).unwrap_or_default();
    let status = ClusterOperatorStatus {
        conditions: merge_conditions(reported, conditions(input, time)),
        versions: input.reported.map(|part| part.versions.clone()).unwrap_or_default(),
        related_objects: input.role.related_objects.clone(),
        extension: live.and_then(|live| live.extension.clone()),
    };
    (live != Some(&status)).then_some(status)
}

fn conditions(input: &ReportInput<'_>, time: Timestamp) -> Vec<Condition> {
    let ActiveFaults { unavailable, degraded, not_upgradeable, stuck } = input.faults;
    let works = input.reported.is_some() || input.moving_to.is_none() || stuck;
    let moving = input.moving_to.map(|version| format!("Moving to v{version}"));
    let expected = Reason::AsExpected.as_str();
    let available = match (unavailable, works) {
        (true, _) => (ConditionStatus::False, SCRIPTED, "Never available, as scripted".to_owned()),
        (false, true) => (ConditionStatus::True, expected, "All is well".to_owned()),
        (false, false) => (ConditionStatus::False, MOVING, "Nothing has rolled out yet".to_owned()),
    };
    let progressing = match moving {
        Some(message) => (ConditionStatus::True, MOVING, message),
        None => (ConditionStatus::False, expected, "All has rolled out".to_owned()),
    };
    let degraded = if degraded {
        (ConditionStatus::True, SCRIPTED, "Degraded for a while, as scripted".to_owned())
    } else {
        (ConditionStatus::False, expected, "All is well".to_owned())
    };
    let upgradeable = if not_upgradeable {
        let message = "Not ready for another minor version, as scripted".to_owned();
        (ConditionStatus::False, SCRIPTED, message)
    } else {
        (ConditionStatus::True, expected, "Ready for another minor version".to_owned())
    };
    [
        ("Available", available),
        ("Progressing", progressing),
        ("Degraded", degraded),
        ("Upgradeable", upgradeable),
    ]
    .into_iter()
    .map(|(type_, (status, reason, message))| Condition {
        type_: type_.to_owned(),
        status,
        last_transition_time: time,
        reason: reason.to_owned(),
        message,
    })
    .collect()
}
