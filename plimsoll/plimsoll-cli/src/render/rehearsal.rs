//! Rehearsals as people and programs read them: a plan with times, and how it ended.

mod markdown;
pub mod operators;
mod text;

use std::io::Write;
use std::time::Duration;

use plimsoll_plan::forecast::{Forecast, StepChange, StepChangeKind};
use serde::Serialize;

use super::forecast::{self, ForecastReport, WaitReport};
use super::format::Format;
use plimsoll_simulation::rehearsal::{RehearsalEnd, RehearsalResult, StepWait};

/// What introduces the kinds of which a copy has nothing, since they could not be listed.
const UNREAD: &str =
    "Not read, so that the copy has none of them: you may not list them, or what serves them fails";

/// Waits shorter than this are not reported, unless they failed.
const WAIT_MIN: Duration = Duration::from_secs(1);

/// A rehearsal in words. Times are whole seconds since the update began.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RehearsalReport {
    /// What it was rehearsed on.
    pub on: String,
    /// Whether the update would begin, and came to its end without a failing condition.
    pub succeeds: bool,
    /// Whether it came to its end without a failing condition, begun by force or not.
    #[serde(skip)]
    ends_well: bool,
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
    /// The plan and what became of it: its blockers are the preconditions because of which the
    /// update would not even begin, unless it is forced; its levels are in the order in which they
    /// began.
    #[serde(flatten)]
    pub plan: ForecastReport,
    /// The changes of the ClusterVersion's conditions.
    pub conditions: Vec<ConditionReport>,
    /// Where it went otherwise than the dry run on the copy had said.
    pub deviations: Vec<Deviation>,
    /// Errors that `release lint` reports of documents that the cluster does not include.
    pub warnings: Vec<String>,
    /// Resources of the cluster that could not be copied.
    pub not_copied: Vec<String>,
    /// Resources of the cluster that could not be listed.
    pub unread_kinds: Vec<String>,
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
    /// What it waits for, as a sentence.
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
        let failing_conditions = failing_conditions(result);
        let ends_well = failing_conditions.is_empty() && timeline.end == RehearsalEnd::Complete;
        let mut plan = ForecastReport::of(&actual);
        plan.blockers.retain(|it| it.forcible);
        add_times(&mut plan, &actual, result);
        let unmanaged = result.unmanaged.iter().map(|object| UnmanagedReport {
            object: object.key.reference(),
            because: object.message.clone(),
        });
        Self {
            on,
            succeeds: plan.blockers.is_empty() && ends_well,
            ends_well,
            failing_conditions,
            seconds: seconds(timeline.took),
            done: timeline.done.0,
            total: timeline.done.1,
            writes: result.writes,
            plan,
            conditions: transitions(result),
            deviations: deviations(result),
            warnings: Vec::new(),
            not_copied: result.not_copied.clone(),
            unread_kinds: result.unread_kinds.clone(),
            unmanaged: unmanaged.collect(),
        }
    }

    /// Writes the report; `details` shows every object and field in a text.
    ///
    /// # Errors
    ///
    /// When the output cannot be written.
    pub fn write(
        &self,
        format: &Format,
        details: bool,
        out: &mut dyn Write,
    ) -> Result<(), anyhow::Error> {
        match format {
            Format::Text | Format::Wide => text::write(self, out, details || format.is_wide())?,
            Format::Markdown => markdown::write(self, out)?,
            Format::Diff | Format::Picture(_) | Format::Name => {
                self.plan.write(format, details, out)?;
            }
            Format::Json
            | Format::PlanJson
            | Format::Yaml
            | Format::JsonPath(_)
            | Format::Sarif
            | Format::Junit => {
                format.write(self, out)?;
            }
        }
        Ok(())
    }

    /// The run levels that were not completed, but for those that were begun.
    fn not_reached(&self) -> Vec<String> {
        let levels = self.plan.levels.iter();
        let levels = levels.filter(|level| level.began.is_none() && level.completed.is_none());
        levels.map(|level| forecast::level_name(level.level)).collect()
    }
}

/// Adds to a plan when its levels began and were done, when its objects were written, and what was
/// waited for; and puts the levels into the order in which they began.
fn add_times(plan: &mut ForecastReport, actual: &Forecast, result: &RehearsalResult) {
    let timeline = &result.timeline;
    let waits: Vec<&StepWait> = timeline.waits.iter().filter(|wait| is_shown(wait)).collect();
    let components = actual.levels().into_iter().flat_map(|level| level.components);
    let mut steps = components.flat_map(|component| component.steps);
    for level in &mut plan.levels {
        for component in &mut level.components {
            for (step, index) in component.steps.iter_mut().zip(steps.by_ref()) {
                step.at = result.written[index].map(seconds);
            }
            let of_component =
                |wait: &&&StepWait| component.steps.iter().any(|it| it.object == wait.object);
            component.waits =
                waits.iter().filter(of_component).map(|wait| self::wait(wait)).collect();
        }
        let written = level.components.iter().flat_map(|component| &component.steps);
        level.began = written.filter_map(|step| step.at).min();
        let completed = timeline.levels.iter().find(|(number, _)| *number == level.level);
        level.completed = completed.and_then(|(_, at)| at.map(seconds));
    }
    plan.levels.sort_by_key(|level| level.began.unwrap_or(u64::MAX));
}

fn wait(wait: &StepWait) -> WaitReport {
    WaitReport {
        object: wait.object.clone(),
        reason: wait.reason.as_str(),
        message: wait.message.clone(),
        from: seconds(wait.from),
        until: wait.until.map(seconds),
        failed: wait.failed,
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
    let mut reported: Vec<ConditionReport> = failing_conditions
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
        .collect();
    reported.sort_by_key(|condition| condition.at);
    reported
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
/// what a simulated operator adds to an object is no deviation.
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
                object: step.manifest.key.reference(),
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
