//! How an update gets on: the answers of `oc adm upgrade status` (CV-31.3), from the
//! server's status alone.

use std::io::{self, Write};

use jiff::Timestamp;
use plimsoll_api::config::UpdateState;
use plimsoll_api::progress::{OperatorsProgress, StepProgress, UpdateProgress};
use plimsoll_api::{Condition, ConditionStatus};
use plimsoll_plan::progress::timeline::{Estimate, estimate};
use serde::Serialize;

use super::{condition, duration};
use crate::render::table;
use plimsoll_simulation::cluster_state::ClusterState;

/// Seconds below which a remaining time is not shown to the minute.
const SOON: u64 = 600;
/// Problems shown; a cluster in trouble has many alike.
const PROBLEMS_SHOWN: usize = 20;

/// How an update is getting on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Assessment {
    /// There is none.
    Idle,
    /// As usual.
    Progressing,
    /// Something takes much longer than it used to, or than it should.
    Slow,
    /// Held before a run level, as requested.
    Paused,
    /// It cannot go on by itself.
    Stalled,
}

impl Assessment {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "Idle",
            Self::Progressing => "Progressing",
            Self::Slow => "Progressing - Slow",
            Self::Paused => "Paused",
            Self::Stalled => "Stalled",
        }
    }
}

/// How bad it is for the update that something waits or failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum TroubleLevel {
    /// It waits as usual.
    Info,
    /// It takes longer than it should.
    Warning,
    /// It failed, or is why the update is stalled.
    Error,
}

impl TroubleLevel {
    /// The level of a step, beside what the ClusterVersion says of failing.
    fn of(step: &StepProgress, failing: Option<&Condition>) -> Self {
        // The condition has the reason of the one step that it is about, or quotes several.
        let is_cause = |failing: &&Condition| {
            failing.reason == step.reason || failing.message.contains(&step.message)
        };
        match failing.filter(is_cause).map(|failing| failing.status) {
            _ if step.state == "Failed" => Self::Error,
            Some(ConditionStatus::True) => Self::Error,
            Some(ConditionStatus::Unknown) => Self::Warning,
            Some(ConditionStatus::False) | None => Self::Info,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Info => "Info",
            Self::Warning => "Warning",
            Self::Error => "Error",
        }
    }
}

/// Why a requested release was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rejection {
    /// Reason of the condition `ReleaseAccepted`.
    pub reason: String,
    /// Its message.
    pub message: String,
}

/// What waits or failed.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Trouble {
    /// Seconds since when.
    pub since_seconds: u64,
    /// `Waiting` or `Failed`.
    pub state: String,
    /// How bad it is for the update.
    pub level: TroubleLevel,
    /// The reason of the condition or step.
    pub reason: String,
    /// The object.
    pub object: String,
    /// What is wrong, as a sentence.
    pub message: String,
}

/// How an update gets on.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UpdateStatus {
    /// In a word.
    pub assessment: Assessment,
    /// What `Progressing` says.
    pub message: String,
    /// Where it comes from; empty for a new installation.
    pub from: String,
    /// Whether that version was never completed.
    pub from_incomplete: bool,
    /// Where it goes.
    pub to: String,
    /// Steps done, those that were done before the update began among them.
    pub done: usize,
    /// Steps.
    pub total: usize,
    /// Steps that were done before the update began: their manifests are those of the release
    /// before.
    pub unchanged: usize,
    /// Run levels that are complete.
    pub levels_done: usize,
    /// Run levels.
    pub levels: usize,
    /// The run level under way.
    pub level: Option<u32>,
    /// The run level that it is paused before.
    pub paused_before: Option<u32>,
    /// The ClusterOperators of the release.
    pub operators: OperatorsProgress,
    /// Seconds since it began.
    pub elapsed_seconds: u64,
    /// Seconds that are left; none if this cluster has no update to learn from.
    pub remaining_seconds: Option<u64>,
    /// What waits or failed.
    pub troubles: Vec<Trouble>,
    /// Why the release that is requested was not accepted; none if it was, or none is requested.
    pub rejection: Option<Rejection>,
}

impl UpdateStatus {
    /// Gathers it from what the server tells.
    pub fn of(cluster: &ClusterState, now: Timestamp) -> Self {
        let (status, progress) = (&cluster.status, &cluster.progress);
        let update = progress.update.clone().unwrap_or_default();
        let mut times = estimate(&update, &progress.completed_updates, now);
        let newest = status.history.first();
        let under_way = newest.is_some_and(|entry| entry.state == UpdateState::Partial);
        let current = update.levels.iter().find(|level| level.completion_time.is_none());
        if update.paused_before.is_some() {
            times.slow = false;
        }
        let left = status.history.get(1);
        let from_incomplete = left.is_some_and(|entry| entry.state == UpdateState::Partial);
        let from = match left {
            Some(entry) if from_incomplete => entry.version.clone(),
            _ => update.from.clone(),
        };
        let failing = condition(status, "Failing");
        let troubles = progress.steps.iter().map(|step| Trouble {
            level: TroubleLevel::of(step, failing),
            since_seconds: u64::try_from(now.duration_since(step.since).as_secs()).unwrap_or(0),
            state: step.state.clone(),
            reason: step.reason.clone(),
            object: step.object.clone(),
            message: step.message.clone(),
        });
        Self {
            assessment: if under_way { assess(cluster, &update, times) } else { Assessment::Idle },
            message: condition(status, "Progressing")
                .map(|it| it.message.clone())
                .unwrap_or_default(),
            from,
            from_incomplete,
            to: status.desired.version.clone(),
            done: progress.done,
            total: progress.total,
            unchanged: update.unchanged.min(progress.done),
            levels_done: update.levels.iter().filter(|it| it.completion_time.is_some()).count(),
            levels: update.levels.len(),
            level: current.and_then(|level| level.level),
            paused_before: update.paused_before,
            operators: progress.operators.clone().unwrap_or_default(),
            elapsed_seconds: times.elapsed,
            remaining_seconds: times.remaining,
            troubles: troubles.collect(),
            rejection: condition(status, "ReleaseAccepted")
                .filter(|it| it.status == ConditionStatus::False)
                .map(|it| Rejection { reason: it.reason.clone(), message: it.message.clone() }),
        }
    }

    /// Whether an administrator has to intervene.
    pub fn is_stuck(&self) -> bool {
        self.assessment == Assessment::Stalled
    }

    /// Prints it for people.
    ///
    /// # Errors
    ///
    /// When the output cannot be written.
    pub fn print(&self, is_wide: bool, out: &mut dyn Write) -> io::Result<()> {
        let shown = if is_wide { usize::MAX } else { PROBLEMS_SHOWN };
        if self.assessment == Assessment::Idle {
            writeln!(out, "The cluster is not updating.")?;
            return self.print_rejection(out);
        }
        writeln!(out, "= Update =")?;
        let mut line = |name: &str, text: String| writeln!(out, "{:<17}{text}", format!("{name}:"));
        line("Assessment", self.assessment.as_str().to_owned())?;
        line("Target Version", self.target())?;
        if !self.operators.updating.is_empty() {
            line("Updating", self.operators.updating.join(", "))?;
        }
        line("Completion", self.completion())?;
        line("Run Levels", self.run_levels())?;
        line("Duration", self.duration())?;
        line("Operator Health", self.health())?;
        writeln!(out, "\n= Update Health =")?;
        let rows: Vec<Vec<String>> = self
            .troubles
            .iter()
            .take(shown)
            .map(|it| {
                let (since, level) = (duration(it.since_seconds), it.level.as_str().to_owned());
                vec![since, level, it.reason.clone(), it.message.replace('\n', " ")]
            })
            .collect();
        if rows.is_empty() {
            writeln!(out, "{}", self.message)?;
        } else {
            table::print_whole(out, &["SINCE", "LEVEL", "REASON", "MESSAGE"], &rows)?;
        }
        if let Some(more) = self.troubles.len().checked_sub(shown).filter(|it| *it > 0) {
            writeln!(out, "and {more} more; list all with -o wide")?;
        }
        self.print_rejection(out)
    }

    fn print_rejection(&self, out: &mut dyn Write) -> io::Result<()> {
        let Some(Rejection { reason, message }) = &self.rejection else { return Ok(()) };
        let message = message.replace('\n', "\n  ");
        writeln!(out, "\nThe requested release is not accepted:\n")?;
        writeln!(out, "  Reason: {reason}\n  Message: {message}")
    }

    fn target(&self) -> String {
        let Self { to, from, .. } = self;
        if from.is_empty() {
            format!("{to} (a new install)")
        } else if self.from_incomplete {
            format!("{to} (from incomplete {from})")
        } else {
            format!("{to} (from {from})")
        }
    }

    pub(super) fn completion(&self) -> String {
        let (done, total) = (self.done - self.unchanged, self.total - self.unchanged);
        let percent = (done * 100).checked_div(total).unwrap_or(100);
        let unchanged = match self.unchanged {
            0 => String::new(),
            unchanged => format!(", {unchanged} unchanged"),
        };
        let OperatorsProgress { total: operators, updated, updating, .. } = &self.operators;
        let waiting = operators.saturating_sub(*updated + updating.len());
        format!(
            "{percent}% ({done} of {total} done{unchanged}; {updated} operators updated, {} updating, \
             {waiting} waiting)",
            updating.len()
        )
    }

    fn run_levels(&self) -> String {
        let mut text = format!("{} of {} complete", self.levels_done, self.levels);
        match (self.paused_before, self.level) {
            (Some(level), _) => text.push_str(&format!(", paused before level {level}")),
            (None, Some(level)) => text.push_str(&format!(", level {level} under way")),
            (None, None) => {}
        }
        text
    }

    fn duration(&self) -> String {
        let rest = match self.remaining_seconds {
            None => "unknown: the cluster has not completed an update before".to_owned(),
            Some(seconds) if seconds < SOON => "<10m".to_owned(),
            Some(seconds) => duration(seconds),
        };
        format!("{} (Est. Time Remaining: {rest})", duration(self.elapsed_seconds))
    }

    fn health(&self) -> String {
        let OperatorsProgress { total, missing, unavailable, degraded, .. } = &self.operators;
        let healthy = total.saturating_sub(missing.len() + unavailable.len() + degraded.len());
        let mut text = format!("{healthy} Healthy");
        for (names, what) in [
            (unavailable, "Unavailable"),
            (degraded, "Available but degraded"),
            (missing, "Missing"),
        ] {
            if !names.is_empty() {
                text.push_str(&format!(", {} {what} ({})", names.len(), names.join(", ")));
            }
        }
        text
    }
}

fn assess(cluster: &ClusterState, update: &UpdateProgress, times: Estimate) -> Assessment {
    let failing = condition(&cluster.status, "Failing").map(|it| it.status);
    match failing {
        Some(ConditionStatus::True) => Assessment::Stalled,
        _ if update.paused_before.is_some() => Assessment::Paused,
        Some(ConditionStatus::Unknown) => Assessment::Slow,
        _ if times.slow => Assessment::Slow,
        _ => Assessment::Progressing,
    }
}
