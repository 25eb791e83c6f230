//! Conditions of an Operator: whether its requirements hold, its bundle is valid and it is installed (OPR-8
//! to OPR-10), and those that a ClusterOperator has (OPR-30, CO-7 to CO-14).
//!
//! An idle Operator is not progressing, and neither is one whose update is blocked: the installed bundle is
//! unchanged.

use jiff::Timestamp;
use plimsoll_api::config::MetaCondition;
use plimsoll_api::olm::BundleReference;
use plimsoll_api::{ConditionStatus, Reason, limited_message, whole_seconds};

use super::installed::all_unmet;
use super::{InstalledOperator, OperatorAction, OperatorDecision, version_text};

/// The type of the condition that requirements hold.
pub const CONSTRAINTS_SATISFIED: &str = "ConstraintsSatisfied";
/// The type of the condition that the content of the bundle can be installed.
pub const HAS_VALID_BUNDLE: &str = "HasValidBundle";
/// The type of the condition that a bundle is installed.
pub const INSTALLED: &str = "Installed";
/// The type of the condition that the bundle or its package is deprecated; absent if neither is.
pub const DEPRECATED: &str = "Deprecated";

/// The type of the condition that the spec cannot be read; absent if it can.
pub const INVALID: &str = "Invalid";

/// The observed state of an Operator.
#[derive(Debug, Clone, Copy)]
pub struct OperatorObservation<'a> {
    /// The name of the Operator.
    pub name: &'a str,
    /// The generation of the spec that the decision is for.
    pub generation: i64,
    /// The installed bundle; `None` if none is installed.
    pub installed: Option<&'a InstalledOperator>,
    /// The decision to report.
    pub decision: &'a OperatorDecision,
    /// The content of the bundle that is installed or about to be.
    pub bundle: &'a BundleContent,
    /// The progress of the rollout.
    pub rollout: &'a Rollout,
    /// The installed workloads that are not available, as sentences.
    pub unavailable: &'a [String],
}

/// The result of reading the content of a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BundleContent {
    /// It has not been read yet.
    Unread,
    /// It can be installed.
    Valid {
        /// The name of the bundle.
        bundle: String,
    },
    /// It cannot be read or installed.
    Invalid {
        /// The name of the bundle.
        bundle: String,
        /// The reason as a sentence.
        message: String,
    },
}

/// The progress of a rollout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rollout {
    /// No rollout is in progress.
    Idle,
    /// Objects are being applied.
    UnderWay {
        /// The bundle that is rolled out.
        bundle: BundleReference,
        /// The number of objects that are applied and ready.
        done: usize,
        /// The number of objects in total.
        total: usize,
        /// What the rollout waits for, in a few words; empty if nothing in particular.
        waits_for: String,
    },
    /// The rollout failed before all objects were ready.
    Failed {
        /// The bundle that was rolled out.
        bundle: BundleReference,
        /// The reason as a sentence.
        message: String,
    },
}

/// A condition without its generation and transition time.
#[derive(Debug)]
pub struct ConditionDraft {
    /// The type, such as `Available`.
    pub type_: &'static str,
    /// Whether it is true.
    pub status: ConditionStatus,
    /// The reason for the status.
    pub reason: Reason,
    /// The message for users.
    pub message: String,
}

/// Returns the conditions of an Operator. A condition whose status is unchanged keeps its transition time.
pub fn conditions(
    observation: &OperatorObservation<'_>,
    before: &[MetaCondition],
    now: Timestamp,
) -> Vec<MetaCondition> {
    let mut reported = vec![
        constraints_satisfied(observation),
        has_valid_bundle(observation),
        installed(observation),
        progressing(observation),
        available(observation),
        degraded(observation),
        upgradeable(observation),
    ];
    if let Some(message) = &observation.decision.deprecation {
        reported.push(ConditionDraft {
            type_: DEPRECATED,
            status: ConditionStatus::True,
            reason: Reason::Deprecated,
            message: message.clone(),
        });
    }
    let generation = observation.generation;
    reported.into_iter().map(|it| condition(it, before, generation, now)).collect()
}

/// Completes a condition with its generation and transition time, which is kept while the status is
/// unchanged. A message that is too long for API servers is cut.
pub fn condition(
    reported: ConditionDraft,
    before: &[MetaCondition],
    generation: i64,
    now: Timestamp,
) -> MetaCondition {
    let ConditionDraft { type_, status, reason, message } = reported;
    let same = before.iter().find(|it| it.type_ == type_ && it.status == status);
    MetaCondition {
        type_: type_.to_owned(),
        status,
        observed_generation: Some(generation),
        last_transition_time: same.map_or_else(|| whole_seconds(now), |it| it.last_transition_time),
        reason: reason.to_string(),
        message: limited_message(message),
    }
}

/// Returns the requested and the installed version as they are shown: `^1.2 (@v1.2.5)`, `*` for any (OPR-14).
pub fn resolved_version(requested: &str, installed: Option<&BundleReference>) -> String {
    let requested = if requested.is_empty() { "*" } else { requested };
    match installed {
        None => requested.to_owned(),
        Some(bundle) => format!("{requested} (@{})", version_text(&bundle.version)),
    }
}

fn constraints_satisfied(observation: &OperatorObservation<'_>) -> ConditionDraft {
    let OperatorObservation { name, decision, installed, .. } = observation;
    let (status, reason, message) = if let Some(message) = &decision.incompatibility {
        (ConditionStatus::False, Reason::ClusterIncompatible, message.clone())
    } else {
        let unmet = all_unmet(name, &decision.requirements);
        match (&decision.action, unmet.is_empty()) {
            (_, false) => (ConditionStatus::False, Reason::UnmetDependency, unmet.join("; ")),
            (OperatorAction::Blocked(block), true)
                if installed.is_none() && block.reason == Reason::ConstraintsUnmet =>
            {
                (ConditionStatus::False, Reason::UnmetDependency, block.message.clone())
            }
            (OperatorAction::Blocked(block), true) if installed.is_none() => {
                (ConditionStatus::Unknown, block.reason, "no bundle is chosen".to_owned())
            }
            _ => {
                let message = "everything that it requires is there".to_owned();
                (ConditionStatus::True, Reason::AsExpected, message)
            }
        }
    };
    ConditionDraft { type_: CONSTRAINTS_SATISFIED, status, reason, message }
}

fn has_valid_bundle(observation: &OperatorObservation<'_>) -> ConditionDraft {
    let (status, reason, message) = match (observation.bundle, &observation.decision.action) {
        (BundleContent::Valid { bundle }, _) => {
            let message = format!("bundle {bundle} successfully unpacked");
            (ConditionStatus::True, Reason::UnpackSuccessful, message)
        }
        (BundleContent::Invalid { bundle, message }, _) => {
            let message = format!("bundle {bundle}: {message}");
            (ConditionStatus::False, Reason::UnpackFailed, message)
        }
        (BundleContent::Unread, OperatorAction::Blocked(block)) => {
            let message = match block.reason {
                Reason::ConstraintsUnmet => {
                    "no bundle is read before its requirements are satisfied"
                }
                _ => "no bundle is chosen",
            };
            (ConditionStatus::Unknown, block.reason, message.to_owned())
        }
        (BundleContent::Unread, _) => {
            (ConditionStatus::Unknown, Reason::RollingOut, "the bundle is being read".to_owned())
        }
    };
    ConditionDraft { type_: HAS_VALID_BUNDLE, status, reason, message }
}

fn installed(observation: &OperatorObservation<'_>) -> ConditionDraft {
    let (status, reason, message) = match (observation.installed, observation.rollout) {
        (Some(installed), _) => (
            ConditionStatus::True,
            Reason::InstallationSucceeded,
            format!("Instantiated bundle {} successfully", installed.reference.name),
        ),
        (None, Rollout::Failed { bundle, message }) => (
            ConditionStatus::False,
            Reason::InstallationFailed,
            format!("bundle {}: {message}", bundle.name),
        ),
        (None, Rollout::Idle | Rollout::UnderWay { .. }) => match &observation.decision.action {
            OperatorAction::Blocked(block) => {
                (ConditionStatus::False, block.reason, block.message.clone())
            }
            _ => {
                let message = "no bundle is installed yet".to_owned();
                (ConditionStatus::False, Reason::NotInstalled, message)
            }
        },
    };
    ConditionDraft { type_: INSTALLED, status, reason, message }
}

fn progressing(observation: &OperatorObservation<'_>) -> ConditionDraft {
    use ConditionStatus::{False, True};
    let rolling = |text: String| (True, Reason::RollingOut, text);
    let (status, reason, message) = match (&observation.decision.action, observation.rollout) {
        (OperatorAction::Delete, _) => {
            (True, Reason::Deleting, "Its objects are being deleted".to_owned())
        }
        (OperatorAction::Paused, _) => (False, Reason::Paused, "Paused by spec.paused".to_owned()),
        (_, Rollout::UnderWay { bundle, done, total, waits_for }) => {
            let mut text =
                format!("Rolling out {}: {done} of {total} objects", version_text(&bundle.version));
            if !waits_for.is_empty() {
                text.push_str(&format!(", waiting on {waits_for}"));
            }
            rolling(text)
        }
        (_, Rollout::Failed { bundle, message }) => {
            let text = format!("Rollout of {} failed: {message}", version_text(&bundle.version));
            (False, Reason::InstallationFailed, text)
        }
        (OperatorAction::Blocked(block), Rollout::Idle) => {
            (False, block.reason, sentence(observation, &block.message))
        }
        (OperatorAction::Install(chosen) | OperatorAction::Upgrade(chosen), Rollout::Idle) => {
            rolling(format!("Preparing {}", version_text(&chosen.reference.version)))
        }
        (OperatorAction::RollBack { revision, .. }, Rollout::Idle) => {
            rolling(format!("Returning to revision {revision}"))
        }
        (OperatorAction::Keep, Rollout::Idle) => {
            let version = observation.installed.map(|it| version_text(&it.reference.version));
            let text = format!("{} is installed", version.unwrap_or_default());
            (False, Reason::AsExpected, text)
        }
    };
    ConditionDraft { type_: "Progressing", status, reason, message }
}

fn available(observation: &OperatorObservation<'_>) -> ConditionDraft {
    let (status, reason, message) = match (observation.installed, observation.unavailable) {
        (None, _) => {
            (ConditionStatus::False, Reason::NotInstalled, "No bundle is installed".to_owned())
        }
        (Some(_), []) => {
            (ConditionStatus::True, Reason::AsExpected, "All workloads are available".to_owned())
        }
        (Some(_), unavailable) => (
            ConditionStatus::False,
            Reason::WorkloadNotAvailable,
            sentence(observation, &unavailable.join("; ")),
        ),
    };
    ConditionDraft { type_: "Available", status, reason, message }
}

fn degraded(observation: &OperatorObservation<'_>) -> ConditionDraft {
    let (status, reason, message) = match (observation.rollout, observation.unavailable) {
        (Rollout::Failed { bundle, message }, _) => (
            ConditionStatus::True,
            Reason::InstallationFailed,
            format!("Rollout of {} failed: {message}", version_text(&bundle.version)),
        ),
        // Workloads are expected to be unavailable for a while during a rollout, and to go in a deletion.
        (Rollout::Idle, [_, ..])
            if observation.installed.is_some()
                && observation.decision.action != OperatorAction::Delete =>
        {
            (
                ConditionStatus::True,
                Reason::WorkloadNotAvailable,
                sentence(observation, &observation.unavailable.join("; ")),
            )
        }
        (Rollout::Idle | Rollout::UnderWay { .. }, _) => {
            (ConditionStatus::False, Reason::AsExpected, "Nothing is degraded".to_owned())
        }
    };
    ConditionDraft { type_: "Degraded", status, reason, message }
}

fn upgradeable(observation: &OperatorObservation<'_>) -> ConditionDraft {
    let decision = observation.decision;
    let blocked = match &decision.action {
        OperatorAction::Blocked(block) => Some(block),
        _ => decision.held_back.as_ref(),
    };
    let upgrade_block = observation.installed.and_then(|it| it.upgrade_block.as_ref());
    let (status, reason, message) =
        match (blocked.filter(|_| observation.installed.is_some()), upgrade_block) {
            (Some(block), _) => {
                (ConditionStatus::False, block.reason, sentence(observation, &block.message))
            }
            (None, Some(message)) => {
                (ConditionStatus::False, Reason::UpgradeBlocked, sentence(observation, message))
            }
            (None, None) => {
                (ConditionStatus::True, Reason::AsExpected, "Nothing holds up an update".to_owned())
            }
        };
    ConditionDraft { type_: "Upgradeable", status, reason, message }
}

/// Returns a message about an Operator with a capital letter at its beginning, unless that is its name.
fn sentence(observation: &OperatorObservation<'_>, text: &str) -> String {
    let is_name = text.split(' ').next() == Some(observation.name);
    if is_name { text.to_owned() } else { capitalized(text) }
}

/// Returns a message with a capital letter at its beginning (CO-13), unless it begins with a name of an
/// object, which would change.
pub(super) fn capitalized(text: &str) -> String {
    let first_word = text.split(' ').next().unwrap_or_default();
    if first_word.contains(['.', '-', '/']) {
        return text.to_owned();
    }
    let mut letters = text.chars();
    let first = letters.next().map(|it| it.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}", letters.as_str())
}

#[cfg(test)]
mod tests;
