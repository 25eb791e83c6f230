//! Installations that are waited for: how far an Operator is on the way to a version, by what it reports.

use plimsoll_api::{ConditionStatus, Reason};

use crate::conditions::INSTALLED;
use crate::observed::ObservedOperator;

/// The reasons that persist until a user changes the Operator itself.
const LASTING: [Reason; 4] =
    [Reason::Paused, Reason::InvalidSpec, Reason::InvalidChangeSet, Reason::InvalidVersionRange];
/// The reasons that pass without a change of a user: a catalog is being read, or is away for a while.
const PASSING: [Reason; 1] = [Reason::CatalogUnavailable];

/// How far an Operator is on the way to a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InstallationState {
    /// The controller has not reported on what is requested.
    Unseen,
    /// Something is in progress, or begins by itself.
    UnderWay {
        /// What is in progress, as a sentence.
        message: String,
    },
    /// The version is installed, and nothing is in progress.
    Installed,
    /// Nothing is in progress, and the version is not installed.
    AtRest {
        /// The reason that nothing is in progress.
        reason: String,
        /// The same as a sentence.
        message: String,
    },
}

impl InstallationState {
    /// Returns how far an Operator is on the way to a version.
    pub fn of(operator: &ObservedOperator, version: &str) -> Self {
        let status = &operator.status;
        let condition = |type_: &str| status.conditions.iter().find(|it| it.type_ == type_);
        let progressing = condition("Progressing");
        let progressing = progressing.filter(|_| status.observed_generation == operator.generation);
        let Some(progressing) = progressing else { return Self::Unseen };
        let is_idle = progressing.status == ConditionStatus::False;
        let is_installed =
            condition(INSTALLED).is_some_and(|it| it.status == ConditionStatus::True);
        let is_there = operator.version() == version && !operator.is_deleting;
        if is_idle && is_installed && is_there {
            return Self::Installed;
        }
        let message = progressing.message.clone();
        match is_idle && !is_one_of(&PASSING, &progressing.reason) {
            true => Self::AtRest { reason: progressing.reason.clone(), message },
            false => Self::UnderWay { message },
        }
    }

    /// Returns whether nothing is in progress until a user changes the Operator itself.
    fn is_lasting(&self) -> bool {
        matches!(self, Self::AtRest { reason, .. } if is_one_of(&LASTING, reason))
    }
}

fn is_one_of(reasons: &[Reason], reason: &str) -> bool {
    reasons.iter().any(|it| it.as_str() == reason)
}

/// What is to be expected of Operators that are installed together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstallationOutlook {
    /// All are installed.
    Complete,
    /// Some are under way.
    UnderWay,
    /// Nothing is in progress. It may begin once the controller has seen what the others brought, or what is new in
    /// a catalog.
    AtRest,
    /// Nothing is in progress, and at least one waits for a change by a user.
    Stopped,
}

impl InstallationOutlook {
    /// Returns what is to be expected of Operators in these states.
    pub fn of(states: &[InstallationState]) -> Self {
        use InstallationState::{AtRest, Installed, UnderWay, Unseen};
        let mut outlook = Self::Complete;
        for state in states {
            match state {
                Unseen | UnderWay { .. } => return Self::UnderWay,
                AtRest { .. } if state.is_lasting() => outlook = Self::Stopped,
                AtRest { .. } if outlook == Self::Complete => outlook = Self::AtRest,
                AtRest { .. } | Installed => {}
            }
        }
        outlook
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Reads an Operator of generation 2: `GENERATION INSTALLED VERSION PROGRESSING REASON`, `-` for no version or
    /// no condition.
    fn operator(text: &str) -> ObservedOperator {
        let words: Vec<&str> = text.split_whitespace().collect();
        let [generation, installed, version, progressing, reason] = words[..] else {
            unreachable!("{text}")
        };
        let condition = |type_: &str, status: &str| {
            json!({ "type": type_, "status": status, "reason": reason, "message": "reported",
                "lastTransitionTime": "2026-01-01T00:00:00Z" })
        };
        let mut conditions = vec![condition("Installed", installed)];
        if progressing != "-" {
            conditions.push(condition("Progressing", progressing));
        }
        let bundle = (version != "-").then(|| json!({ "name": "b", "version": version }));
        let generation: i64 = generation.parse().expect("a number");
        ObservedOperator::read(&json!({
            "metadata": { "uid": "u1", "generation": 2 },
            "status": { "observedGeneration": generation, "bundle": bundle, "conditions": conditions },
        }))
    }

    fn state(text: &str) -> InstallationState {
        InstallationState::of(&operator(text), "1.2.5")
    }

    #[test]
    fn a_version_is_on_its_way_as_long_as_something_is_in_progress() {
        let under_way = InstallationState::UnderWay { message: "reported".to_owned() };
        let at_rest = |reason: &str| InstallationState::AtRest {
            reason: reason.to_owned(),
            message: "reported".to_owned(),
        };
        for (reported, expected) in [
            ("2 True 1.2.5 False AsExpected", InstallationState::Installed),
            ("2 True 1.2.5 False UpgradeBlocked", InstallationState::Installed),
            ("2 True 1.2.5 False CatalogUnavailable", InstallationState::Installed),
            // What is reported is not about what is requested.
            ("1 True 1.2.5 False AsExpected", InstallationState::Unseen),
            ("1 True 1.2.4 False NoMatchingVersion", InstallationState::Unseen),
            ("2 False - - NotInstalled", InstallationState::Unseen),
            ("2 False - True RollingOut", under_way.clone()),
            ("2 True 1.2.5 True RollingOut", under_way.clone()),
            ("2 True 1.2.4 True Deleting", under_way.clone()),
            // A catalog that is being read is read without a change of a user.
            ("2 False - False CatalogUnavailable", under_way.clone()),
            // The range leads elsewhere, or a requirement is not met under Enforce.
            ("2 True 1.2.9 False AsExpected", at_rest("AsExpected")),
            ("2 False - False ConstraintsUnmet", at_rest("ConstraintsUnmet")),
            ("2 True 1.2.4 False UpgradeBlocked", at_rest("UpgradeBlocked")),
            ("2 True 1.2.4 False InstallationFailed", at_rest("InstallationFailed")),
            ("2 True 1.2.4 False Paused", at_rest("Paused")),
            ("2 False 1.2.5 False InstallationFailed", at_rest("InstallationFailed")),
        ] {
            assert_eq!(state(reported), expected, "{reported}");
        }
        let deleted = ObservedOperator {
            is_deleting: true,
            ..operator("2 True 1.2.5 False WorkloadsRunning")
        };
        assert_eq!(InstallationState::of(&deleted, "1.2.5"), at_rest("WorkloadsRunning"));
    }

    #[test]
    fn operators_get_there_as_long_as_one_is_under_way() {
        let installed = "2 True 1.2.5 False AsExpected";
        let moving = "2 False - True RollingOut";
        let unseen = "1 True 1.2.4 False AsExpected";
        let waiting = "2 True 1.2.4 False UpgradeBlocked";
        let elsewhere = "2 True 1.2.9 False AsExpected";
        let paused = "2 True 1.2.4 False Paused";
        use InstallationOutlook::{AtRest, Complete, Stopped, UnderWay};
        for (reported, expected) in [
            (vec![], Complete),
            (vec![installed, installed], Complete),
            (vec![waiting, moving], UnderWay),
            (vec![paused, unseen], UnderWay),
            (vec![installed, waiting], AtRest),
            (vec![elsewhere], AtRest),
            (vec![paused, installed], Stopped),
            (vec![waiting, paused], Stopped),
            (vec![paused, waiting], Stopped),
        ] {
            let states: Vec<InstallationState> = reported.iter().map(|it| state(it)).collect();
            assert_eq!(InstallationOutlook::of(&states), expected, "{reported:?}");
        }
    }
}
