//! Rehearsals as people and programs read them: text, Markdown, JSON.

mod markdown;
mod text;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;

use clap::ValueEnum;
use plimsoll_plan::forecast::{Forecast, ForecastBlocker, StepChange, StepChangeKind};
use serde::Serialize;

use super::forecast::{self, EnabledCapability, OrphanReport, StepReport};
use plimsoll_simulation::rehearsal::{RehearsalEnd, RehearsalResult, StepWait};

/// What a rehearsal is told as.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people at a terminal
    #[default]
    Text,
    /// For programs
    Json,
    /// For a change request or a ticket
    Markdown,
}

/// Waits shorter than this are not worth telling, unless they failed.
const WAIT_MIN: Duration = Duration::from_secs(1);

/// A rehearsal in words. Times are whole seconds since the update began.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RehearsalReport {
    /// What it was rehearsed on.
    pub on: String,
    /// Version of the release that is left.
    pub from: Option<String>,
    /// Version of the release that is gone to.
    pub to: String,
    /// Hash of the plan; the ReleaseProgress object shows the same while it is carried out.
    pub plan_hash: String,
    /// Whether the update would begin, and came to its end without a failing condition.
    pub succeeds: bool,
    /// Whether it came to its end without a failing condition, begun by force or not.
    #[serde(skip)]
    ends_well: bool,
    /// The preconditions because of which it would not even begin, unless it is forced.
    pub blockers: Vec<ForecastBlocker>,
    /// Preconditions that do not hold and do not hold it up.
    pub accepted_risks: Vec<ForecastBlocker>,
    /// Why not, in the words of the ClusterVersion; empty if it does.
    pub failing_conditions: Vec<ConditionReport>,
    /// How long it took, or how long it got on.
    pub seconds: u64,
    /// Steps done.
    pub done: usize,
    /// Steps of the plan.
    pub total: usize,
    /// Requests that changed something, or tried to.
    pub writes: usize,
    /// What became of the objects: how many of each sort.
    pub counts: BTreeMap<&'static str, usize>,
    /// Capabilities that became enabled, and why.
    pub capabilities: Vec<EnabledCapability>,
    /// The run levels in their order.
    pub levels: Vec<LevelTimeline>,
    /// The changes of the ClusterVersion's conditions.
    pub conditions: Vec<ConditionReport>,
    /// Where it went otherwise than the dry run on the copy had said.
    pub deviations: Vec<Deviation>,
    /// Objects that are left behind.
    pub orphans: Vec<OrphanReport>,
    /// Resources of the cluster that could not be copied.
    pub not_copied: Vec<String>,
    /// Objects of the outgoing release that the rehearsal leaves alone, since the embedded server
    /// refuses them.
    pub unmanaged: Vec<UnmanagedReport>,
}

/// An object that the rehearsal leaves alone.
#[derive(Debug, Serialize)]
pub struct UnmanagedReport {
    /// The object.
    pub object: String,
    /// Why it could not be installed.
    pub because: String,
}

/// A run level.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LevelTimeline {
    /// Its number; none for files that name none.
    pub level: Option<u32>,
    /// When its first object was written; none if it was not reached.
    pub began: Option<u64>,
    /// When all of it was done; none if it was not.
    pub completed: Option<u64>,
    /// Its components, which run in parallel.
    pub components: Vec<ComponentTimeline>,
}

/// Steps that are done one after the other.
#[derive(Debug, Serialize)]
pub struct ComponentTimeline {
    /// The component.
    pub name: Option<String>,
    /// How many steps there are of each sort.
    pub counts: BTreeMap<&'static str, usize>,
    /// Its steps.
    pub steps: Vec<StepResult>,
    /// What it waited for.
    pub waits: Vec<WaitResult>,
}

/// A step and what became of it.
#[derive(Debug, Serialize)]
pub struct StepResult {
    /// When its object was first written; none if it never was.
    pub at: Option<u64>,
    /// What became of it.
    #[serde(flatten)]
    pub step: StepReport,
}

/// Something that was waited for.
#[derive(Debug, Serialize)]
pub struct WaitResult {
    /// The object.
    pub object: String,
    /// Why, from the list of reasons.
    pub reason: &'static str,
    /// The whole story.
    pub message: String,
    /// From when.
    pub from: u64,
    /// Until when; none for what lasts.
    pub until: Option<u64>,
    /// Whether it counts as a failure.
    pub failed: bool,
}

/// A condition of the ClusterVersion, and since when.
#[derive(Debug, Serialize)]
pub struct ConditionReport {
    /// Since when.
    pub at: u64,
    /// Its type.
    #[serde(rename = "type")]
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    pub status: &'static str,
    /// From the list of reasons.
    pub reason: String,
    /// The whole story.
    pub message: String,
}

/// An object that became another than the dry run had said.
#[derive(Debug, Serialize)]
pub struct Deviation {
    /// The object.
    pub object: String,
    /// What the dry run had said.
    pub expected: &'static str,
    /// What actual.
    pub actual: &'static str,
}

impl RehearsalReport {
    /// Puts a rehearsal into words; `on` says what it was rehearsed on.
    pub fn of(result: &RehearsalResult, on: String) -> Self {
        let timeline = &result.timeline;
        let actual = Forecast { changes: result.changes.clone(), ..result.forecast.clone() };
        let reported = forecast::ForecastReport::of(&actual);
        let failing_conditions = failing_conditions(result);
        let ends_well = failing_conditions.is_empty() && timeline.end == RehearsalEnd::Complete;
        let blockers: Vec<ForecastBlocker> =
            reported.blockers.into_iter().filter(|it| it.forcible).collect();
        let waits: Vec<&StepWait> = timeline.waits.iter().filter(|wait| is_shown(wait)).collect();
        let components = actual.levels().into_iter().flat_map(|level| level.components);
        let mut steps = components.flat_map(|component| component.steps);
        let mut levels = Vec::with_capacity(reported.levels.len());
        for level in reported.levels {
            let completed = timeline.levels.iter().find(|(number, _)| *number == level.level);
            let mut components = Vec::with_capacity(level.components.len());
            for component in level.components {
                let of_lane: Vec<WaitResult> = waits
                    .iter()
                    .filter(|wait| component.steps.iter().any(|step| step.object == wait.object))
                    .map(|wait| WaitResult::of(wait))
                    .collect();
                let reported = component.steps.into_iter().zip(steps.by_ref());
                components.push(ComponentTimeline {
                    name: component.name,
                    counts: component.counts,
                    steps: reported
                        .map(|(step, index)| StepResult {
                            at: result.written[index].map(seconds),
                            step,
                        })
                        .collect(),
                    waits: of_lane,
                });
            }
            let written =
                components.iter().flat_map(|component| &component.steps).filter_map(|step| step.at);
            levels.push(LevelTimeline {
                level: level.level,
                began: written.min(),
                completed: completed.and_then(|(_, at)| at.map(seconds)),
                components,
            });
        }
        Self {
            on,
            from: reported.from,
            to: reported.to,
            plan_hash: reported.plan_hash,
            succeeds: blockers.is_empty() && ends_well,
            ends_well,
            blockers,
            accepted_risks: reported.accepted_risks,
            failing_conditions,
            seconds: seconds(timeline.took),
            done: timeline.done.0,
            total: timeline.done.1,
            writes: result.writes,
            counts: reported.counts,
            capabilities: reported.capabilities,
            levels,
            conditions: transitions(result),
            deviations: deviations(result),
            orphans: reported.orphans,
            not_copied: result.not_copied.clone(),
            unmanaged: result
                .unmanaged
                .iter()
                .map(|object| UnmanagedReport {
                    object: object.key.to_string(),
                    because: object.message.clone(),
                })
                .collect(),
        }
    }

    /// Writes the report; `details` shows every object and field in a text.
    ///
    /// # Errors
    ///
    /// When the output cannot be written.
    pub fn write(&self, format: Format, details: bool, out: &mut dyn Write) -> io::Result<()> {
        match format {
            Format::Text => text::write(self, out, details),
            Format::Json => {
                serde_json::to_writer_pretty(&mut *out, self)?;
                writeln!(out)
            }
            Format::Markdown => markdown::write(self, out),
        }
    }

    /// What was rehearsed.
    fn title(&self) -> String {
        match &self.from {
            Some(from) => format!("Update from {from} to {}", self.to),
            None => format!("Installation of {}", self.to),
        }
    }

    /// The run levels that were not completed, but for those that were begun.
    fn not_reached(&self) -> Vec<String> {
        let levels = self.levels.iter();
        let levels = levels.filter(|level| level.began.is_none() && level.completed.is_none());
        levels.map(|level| forecast::level_name(level.level)).collect()
    }
}

impl WaitResult {
    fn of(wait: &StepWait) -> Self {
        Self {
            object: wait.object.clone(),
            reason: wait.reason,
            message: wait.message.clone(),
            from: seconds(wait.from),
            until: wait.until.map(seconds),
            failed: wait.failed,
        }
    }

    /// For how long it was waited; for what lasts, until the end.
    fn lasted(&self) -> Option<u64> {
        self.until.map(|until| until.saturating_sub(self.from))
    }
}

fn is_shown(wait: &StepWait) -> bool {
    wait.until.is_none_or(|until| until >= wait.from + WAIT_MIN)
}

/// The conditions of the ClusterVersion that say that it would not come to its end.
fn failing_conditions(result: &RehearsalResult) -> Vec<ConditionReport> {
    let stopped = result.timeline.end == RehearsalEnd::Stalled;
    let failing_conditions = result.conditions.iter().filter(|condition| {
        let status = condition.status.as_str();
        match condition.type_.as_str() {
            "Failing" => status != "False",
            "ReleaseAccepted" | "Available" => status == "False",
            "Progressing" => stopped,
            _ => false,
        }
    });
    failing_conditions
        .map(|condition| {
            let since = result.timeline.transitions.iter().rev().find(|transition| {
                transition.type_ == condition.type_ && transition.status == condition.status
            });
            ConditionReport {
                at: since.map_or(0, |transition| seconds(transition.at)),
                type_: condition.type_.clone(),
                status: condition.status.as_str(),
                reason: condition.reason.clone(),
                message: condition.message.clone(),
            }
        })
        .collect()
}

fn transitions(result: &RehearsalResult) -> Vec<ConditionReport> {
    let transitions = result.timeline.transitions.iter();
    transitions
        .map(|transition| ConditionReport {
            at: seconds(transition.at),
            type_: transition.type_.clone(),
            status: transition.status.as_str(),
            reason: transition.reason.clone(),
            message: transition.message.clone(),
        })
        .collect()
}

/// Steps that were reached and went otherwise than expected. A field counts by its place alone:
/// what a simulated operator adds to an object is nobody's deviation.
fn deviations(result: &RehearsalResult) -> Vec<Deviation> {
    let forecast = &result.forecast;
    let complete = result.timeline.end == RehearsalEnd::Complete;
    let steps = forecast.plan.steps.iter().zip(&forecast.changes).zip(&result.changes);
    let reached = steps.zip(&result.written).filter(|(_, at)| complete || at.is_some());
    reached
        .filter(|((_, actual), _)| !matches!(actual, StepChange::Kept | StepChange::Absent))
        .filter_map(|(((step, expected), actual), _)| {
            let (expected, actual) = (expected.kind(), actual.kind());
            // Waiting may end by what an operator does.
            let is_expected = expected == actual
                || (expected == StepChangeKind::Waiting && actual == StepChangeKind::Created);
            (!is_expected).then(|| Deviation {
                object: step.manifest.key.to_string(),
                expected: expected.as_str(),
                actual: actual.as_str(),
            })
        })
        .collect()
}

/// Whole seconds; tenths of them depend on how a server batches its answers.
fn seconds(time: Duration) -> u64 {
    (time + Duration::from_millis(500)).as_secs()
}

/// A moment as people read it: `+2:05`.
fn moment(seconds: u64) -> String {
    format!("+{}:{:02}", seconds / 60, seconds % 60)
}

/// A span as people read it: `2m05s`.
fn span(seconds: u64) -> String {
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds}s"),
        (0, minutes, seconds) => format!("{minutes}m{seconds:02}s"),
        (hours, minutes, seconds) => format!("{hours}h{minutes:02}m{seconds:02}s"),
    }
}

/// An object in the fewest words: gates are known by their operator.
fn short(object: &str) -> String {
    match object.strip_prefix("clusteroperator.config.openshift.io ") {
        Some(name) => format!("operator {}", name.trim_matches('"')),
        None => object.to_owned(),
    }
}
