//! The gate of a ClusterOperator manifest: what the live operator must report before a release
//! counts it as done (CO-1, CV-20).
//!
//! # The rule
//!
//! | the operator | Initializing | Updating, Reconciling |
//! |---|---|---|
//! | manifest names no versions | `ClusterOperatorNoVersions`, fails | the same |
//! | does not exist | waits | waits |
//! | has not reported the manifest's versions | not looked at | `ClusterOperatorUpdating`, waits |
//! | Available is not True | `ClusterOperatorNotAvailable`, fails | the same |
//! | Degraded is not False | `ClusterOperatorDegraded`, reported, passes | fails after a while |
//! | otherwise | passes | passes |
//!
//! Rows are tried from the top, so unavailable outranks degraded. `Progressing` and `Upgradeable`
//! are never looked at. A missing `Degraded` condition counts as degraded.
//!
//! # Departure from upstream
//!
//! CO-2 respects the conditions of an operator only once it reports the expected versions;
//! upstream judges them at whatever version they were reported. Here the design rules while
//! updating and reconciling: an operator that is still at the old version *waits*, and neither
//! fails the update for being unavailable nor starts the clock of a degraded one, since its
//! conditions speak of software that is about to be replaced. What it says of itself is not lost:
//! the message adds that it is not available or degraded, and an operator that stays behind is
//! named as slow. While initializing there is no earlier version that conditions could speak of,
//! and the design lets any version pass, so conditions count from the start.

mod style;

use plimsoll_api::{Effect, Reason, Verdict};
use serde_json::Value;

use crate::health::parse::{self, ReportedVersion};
use crate::plan::mode::Mode;

pub use style::{StyleFinding, style};

/// Judges the live ClusterOperator of a manifest.
pub fn cluster_operator(manifest: &Value, live: Option<&Value>, mode: Mode) -> Verdict {
    let name = parse::name(manifest);
    if parse::versions(manifest).next().is_none() {
        return waiting(
            Effect::Fail,
            Reason::ClusterOperatorNoVersions,
            format!("Cluster operator {name} does not declare expected versions"),
        );
    }
    let Some(live) = live else {
        return waiting(
            Effect::None,
            Reason::UpdatePayloadResourceNotFound,
            format!("Cluster operator {name} does not exist"),
        );
    };
    let any_version = mode == Mode::Initializing;
    if !any_version && missing_versions(manifest, live).next().is_some() {
        let aside = trouble(live).map(|text| format!(" and {text}")).unwrap_or_default();
        return waiting(
            Effect::None,
            Reason::ClusterOperatorUpdating,
            format!("Cluster operator {name} is updating versions{aside}"),
        );
    }
    if !parse::has_condition(live, "Available", "True") {
        return waiting(
            Effect::Fail,
            Reason::ClusterOperatorNotAvailable,
            format!("Cluster operator {name} is not available"),
        );
    }
    if parse::has_condition(live, "Degraded", "False") {
        return Verdict::Ready;
    }
    let reason = Reason::ClusterOperatorDegraded;
    let message = format!("Cluster operator {name} is degraded");
    match mode {
        Mode::Initializing => Verdict::ReadyWith { reason, message },
        Mode::Updating | Mode::Reconciling => waiting(Effect::FailAfterInterval, reason, message),
    }
}

/// The versions that a manifest names and the live operator does not report: what an operator
/// that "is updating versions" still owes.
pub fn missing_versions<'a>(
    manifest: &'a Value,
    live: &'a Value,
) -> impl Iterator<Item = ReportedVersion<'a>> {
    parse::versions(manifest)
        .filter(|wanted| !parse::versions(live).any(|reported| reported == *wanted))
}

/// What an operator that is behind says of itself, if it is bad, such as `is not available since
/// 2026-01-01T00:00:00Z (Crashing)`; a new one that has said nothing yet is only new. The time is
/// written out, since what tells an age would change all the time.
pub fn trouble(live: &Value) -> Option<String> {
    let conditions =
        [("Available", "False", "is not available"), ("Degraded", "True", "is degraded")];
    conditions.into_iter().find_map(|(type_, status, words)| {
        let condition = parse::condition(live, type_).filter(|it| it.status == status)?;
        let mut text = words.to_owned();
        if let Some(since) = parse::condition_since(live, type_) {
            text.push_str(&format!(" since {since:.0}"));
        }
        // Whoever wrote the operator may put anything there.
        let is_word = |reason: &str| {
            reason.chars().all(|it| it.is_ascii_alphanumeric() || "_-,:".contains(it))
        };
        if !condition.reason.is_empty() && is_word(condition.reason) {
            text.push_str(&format!(" ({})", condition.reason));
        }
        Some(text)
    })
}

fn waiting(effect: Effect, reason: Reason, message: String) -> Verdict {
    Verdict::Waiting { effect, reason, message }
}

#[cfg(test)]
mod tests;
