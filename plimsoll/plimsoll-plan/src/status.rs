//! The status of the ClusterVersion: what the cluster is brought to, how far it is, and what is in
//! the way (CV-14 to CV-16).
//!
//! Types, reasons and messages are those that `oc`, alerts and CI parse, to the letter; where a
//! happy condition has no reason there, it has none here.
//!
//! # Departures from upstream
//!
//! * Several failures: `Progressing` tells the worst of them and names the objects of the others,
//!   instead of "an unknown error has occurred: MultipleErrors". If none of them is more than
//!   waiting, it says so.
//! * Each ClusterOperator has its own clock of [`Limits::degraded_tolerated`]: a recently degraded one is
//!   not named among those that exceeded it.
//! * Workloads are waited for as well, and become slow as ClusterOperators do: reason
//!   `SlowWorkload` if it is workloads only.

mod assess;
pub mod history;
mod limits;
mod progress;
pub mod transitions;
mod updates;

use jiff::Timestamp;
use plimsoll_api::config::{CapabilitiesStatus, ClusterVersionStatus, Release};
use plimsoll_api::{
    Condition, ConditionStatus, ObjectKey, Reason, merge_conditions, whole_seconds,
};

use crate::capabilities::Capabilities;
use crate::health::failure::Failure;
use crate::plan::mode::Mode;
use crate::update::acceptance::LoadStatus;
use crate::update::upgradeable::{self, NotUpgradeable};

use assess::Outlook;
pub(crate) use assess::{Surface, Surfacing};

pub use limits::{Limits, SLOW_NODES_OPERATOR};
pub use updates::Updates;

/// Everything that the status follows from.
#[derive(Debug, Clone)]
pub struct StatusInput<'a> {
    /// The time.
    pub now: Timestamp,
    /// How long things may take.
    pub limits: &'a Limits,
    /// The status so far.
    pub previous: &'a ClusterVersionStatus,
    /// Generation of the spec that is acted on.
    pub generation: i64,
    /// The release that is being applied.
    pub release: &'a Release,
    /// Hash of its included manifests; empty while it is not known.
    pub manifest_hash: &'a str,
    /// The rules in force.
    pub mode: Mode,
    /// Manifests that are done.
    pub done: usize,
    /// Those of them that were done before the update began, since the release before has them, too.
    pub unchanged: usize,
    /// Manifests in all.
    pub total: usize,
    /// What waits or failed and is to be reported.
    pub failures: &'a [Failure],
    /// Whether the release has been fully applied at least once.
    pub completed: bool,
    /// What is wrong with the spec.
    pub invalid: &'a [String],
    /// How far the release asked for has been accepted; `None` before the first one is looked at.
    pub load: Option<&'a LoadStatus>,
    /// The capabilities in force.
    pub capabilities: &'a Capabilities,
    /// The terms of the overrides in force; `None` if every object is managed.
    pub overrides: Option<&'a str>,
    /// The ClusterOperators that object to another minor version.
    pub not_upgradeable: &'a [NotUpgradeable],
    /// Where updates lead, and what holds them up.
    pub updates: &'a Updates,
    /// The objects that are to be deleted and are still there.
    pub deletions: &'a [ObjectKey],
    /// Whether the payload was verified.
    pub verified: bool,
    /// Risks that were accepted for the release.
    pub accepted_risks: &'a str,
}

/// Computes the status.
pub fn cluster_version_status(input: &StatusInput<'_>) -> ClusterVersionStatus {
    let current = history::Current {
        release: input.release,
        completed: input.completed,
        verified: input.verified,
        accepted_risks: input.accepted_risks,
    };
    let now = whole_seconds(input.now);
    let previous = input.previous;
    let hash = if input.manifest_hash.is_empty() {
        previous.version_hash.clone()
    } else {
        input.manifest_hash.to_owned()
    };
    ClusterVersionStatus {
        desired: input.release.clone(),
        history: history::record(&previous.history, current, now),
        observed_generation: input.generation,
        version_hash: hash,
        capabilities: CapabilitiesStatus {
            enabled_capabilities: input.capabilities.enabled.iter().cloned().collect(),
            known_capabilities: input.capabilities.known.iter().cloned().collect(),
        },
        conditions: merge_conditions(&previous.conditions, conditions(input, now)),
        available_updates: input.updates.available.clone(),
        conditional_update_risks: Vec::new(),
        conditional_updates: Vec::new(),
    }
}

/// All conditions, in the order in which they are shown.
fn conditions(input: &StatusInput<'_>, now: Timestamp) -> Vec<Condition> {
    let build = Builder { now };
    let outlook = assess::outlook(input);
    let progressing = progress::progressing(&build, input, &outlook);
    let in_progress = progressing.status == ConditionStatus::True;
    let mut conditions = vec![
        available(&build, input),
        failing(&build, &outlook),
        progressing,
        updates::retrieved(&build, input.updates),
    ];
    conditions.extend(release_accepted(&build, input));
    conditions.push(implicitly_enabled(&build, input));
    let objections = upgradeable::conditions(
        input.overrides,
        in_progress,
        input.not_upgradeable,
        input.updates.acknowledgement.as_ref(),
        input.deletions,
        &input.updates.incompatible,
    );
    conditions.extend(objections.into_iter().map(|objection| {
        build.plain(objection.type_, objection.status, &objection.reason, &objection.message)
    }));
    conditions.extend(invalid(&build, input.invalid));
    conditions
}

/// True once a release has been fully applied; a later failure does not take it back.
fn available(build: &Builder, input: &StatusInput<'_>) -> Condition {
    if input.completed {
        let message = format!("Done applying {}", version(input.release));
        return build.plain("Available", ConditionStatus::True, "", &message);
    }
    earlier(input, "Available")
        .unwrap_or_else(|| build.plain("Available", ConditionStatus::False, "", ""))
}

fn failing(build: &Builder, outlook: &Outlook) -> Condition {
    match outlook {
        Outlook::Failing { reason, message, .. } => {
            build.with("Failing", ConditionStatus::True, *reason, message)
        }
        Outlook::Slow { slow, text, .. } => {
            build.with("Failing", ConditionStatus::Unknown, *slow, text)
        }
        Outlook::Well | Outlook::Waiting { .. } => {
            build.plain("Failing", ConditionStatus::False, "", "")
        }
    }
}

fn release_accepted(build: &Builder, input: &StatusInput<'_>) -> Option<Condition> {
    let Some(load) = input.load else {
        return earlier(input, "ReleaseAccepted");
    };
    let (status, reason, message) = load.condition();
    Some(build.with("ReleaseAccepted", status, reason, &message))
}

fn implicitly_enabled(build: &Builder, input: &StatusInput<'_>) -> Condition {
    let type_ = "ImplicitlyEnabledCapabilities";
    let implicit: Vec<&str> = input.capabilities.implicit.iter().map(String::as_str).collect();
    if implicit.is_empty() {
        let message = "Capabilities match configured spec";
        return build.with(type_, ConditionStatus::False, Reason::AsExpected, message);
    }
    let message =
        format!("The following capabilities could not be disabled: {}", implicit.join(", "));
    build.with(type_, ConditionStatus::True, Reason::CapabilitiesImplicitlyEnabled, &message)
}

fn invalid(build: &Builder, violations: &[String]) -> Option<Condition> {
    let what = match violations {
        [] => return None,
        [only] => format!(" {only}"),
        several => several.iter().map(|violation| format!("\n* {violation}")).collect(),
    };
    let message = format!("The cluster version is invalid:{what}");
    Some(build.with("Invalid", ConditionStatus::True, Reason::InvalidClusterVersion, &message))
}

fn earlier(input: &StatusInput<'_>, type_: &str) -> Option<Condition> {
    input.previous.conditions.iter().find(|condition| condition.type_ == type_).cloned()
}

/// How messages name a release.
fn version(release: &Release) -> &str {
    match (release.version.as_str(), release.image.as_str()) {
        ("", "") => "<unknown>",
        ("", image) => image,
        (version, _) => version,
    }
}

/// Makes conditions of one moment.
struct Builder {
    now: Timestamp,
}

impl Builder {
    fn with(
        &self,
        type_: &str,
        status: ConditionStatus,
        reason: Reason,
        message: &str,
    ) -> Condition {
        self.plain(type_, status, reason.as_str(), message)
    }

    fn plain(
        &self,
        type_: &str,
        status: ConditionStatus,
        reason: &str,
        message: &str,
    ) -> Condition {
        Condition {
            type_: type_.to_owned(),
            status,
            last_transition_time: self.now,
            reason: reason.to_owned(),
            message: message.to_owned(),
        }
    }
}

#[cfg(test)]
mod snapshot;
#[cfg(test)]
mod tests;
