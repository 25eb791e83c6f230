//! `plimsoll operator action logs`: what happened to an Action or a RetryAction, in order.

use std::collections::BTreeSet;
use std::io::Write;
use std::pin::pin;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use futures::StreamExt as _;
use jiff::Timestamp;
use kube::Client;
use kube::api::{DynamicObject, ListParams};
use plimsoll_api::olm::action::{
    ACTION_SUCCEEDED, ActionRequester, ActionState, ApprovalDecision, ChangeState,
};
use plimsoll_api::{ACTION, whole_seconds};
use plimsoll_operators::actions::report::ActionObject;
use plimsoll_resolve::printable::on_one_line;

use super::follow::{exit_code, versions};
use super::retries::{RetryObject, read_retry};
use super::show::{approval_text, attempts_of, progress_text};
use super::{LogsArguments, actions, is_forbidden, parts, read, state_in_words};
use crate::commands::operator::events::EVENT;
use crate::exit;

/// What is printed instead of events that the user may not read.
const NO_EVENTS: &str = "You may not read events of this namespace: this is what the status has.";

/// What the text of an event has if the plan of its Action is executed.
const RUNNING: &str = ": Running: ";

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct LogLine {
    /// The second, which is printed.
    time: Timestamp,
    /// The time as exactly as it is known.
    exact: Timestamp,
    /// The resourceVersion of an event; zero for what the status says.
    revision: u64,
    rank: LogRank,
    text: String,
}

impl LogLine {
    fn new(time: Timestamp, rank: LogRank, text: impl Into<String>) -> Self {
        Self { time: whole_seconds(time), exact: time, revision: 0, rank, text: text.into() }
    }

    /// Returns the sort key. The status has whole seconds: of one, the end comes last.
    fn order(&self) -> (Timestamp, bool, Timestamp, LogRank, u64) {
        (self.time, self.rank == LogRank::End, self.exact, self.rank, self.revision)
    }
}

/// The order of what happened at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum LogRank {
    Request,
    Start,
    Event,
    Change,
    End,
}

/// What is known of an object at one time.
struct Log {
    state: ActionState,
    /// What happened, in order.
    lines: Vec<LogLine>,
    /// Whether the user may read events.
    has_events: bool,
}

/// Runs `plimsoll operator action logs`.
pub(super) async fn logs(
    client: &Client,
    arguments: &LogsArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let namespace = arguments.namespace.of(client);
    let log = log_of(client, arguments, &namespace).await?;
    if !log.has_events {
        writeln!(out, "{NO_EVENTS}")?;
    }
    let mut printed = BTreeSet::new();
    print_new(&log, &mut printed, out)?;
    if !arguments.follow {
        return Ok(exit::SUCCESS.into());
    }
    if log.state.is_final() {
        return Ok(exit_code(log.state));
    }
    let (kind, name) = (arguments.name.kind, &arguments.name.name);
    let mut changes = pin!(versions(client, kind, &namespace, name));
    while let Some(change) = changes.next().await {
        change?;
        let log = log_of(client, arguments, &namespace).await?;
        print_new(&log, &mut printed, out)?;
        if log.state.is_final() {
            return Ok(exit_code(log.state));
        }
    }
    bail!("the watch of {} `{name}` ended", kind.kind)
}

/// Prints the lines that were not printed before.
fn print_new(
    log: &Log,
    printed: &mut BTreeSet<LogLine>,
    out: &mut dyn Write,
) -> Result<(), anyhow::Error> {
    for line in &log.lines {
        // The time of a change is that of the start until the end is known.
        let time = if line.rank == LogRank::Change { Timestamp::UNIX_EPOCH } else { line.time };
        let exact = Timestamp::UNIX_EPOCH;
        if printed.insert(LogLine { time, exact, revision: 0, ..line.clone() }) {
            writeln!(out, "{} {}", line.time, on_one_line(&line.text))?;
        }
    }
    Ok(out.flush()?)
}

/// Reads the object with its events.
async fn log_of(
    client: &Client,
    arguments: &LogsArguments,
    namespace: &str,
) -> Result<Log, anyhow::Error> {
    let name = &arguments.name.name;
    let (uid, state, lines) = if arguments.name.kind == ACTION {
        let mut action = read(client, namespace, name).await?;
        // Changes of a plan in parts are left out for whoever may not read these.
        parts::complete(client, &mut action).await?;
        (action.uid.clone(), action.status.state, action_lines(&action))
    } else {
        let retry = read_retry(client, namespace, name).await?;
        let attempts = attempts_of(client, &retry).await?;
        (retry.uid.clone(), retry.state(), retry_lines(&retry, &attempts))
    };
    let events = match actions(client, namespace, EVENT).list(&ListParams::default()).await {
        Ok(events) => Some(events.items),
        Err(error) if is_forbidden(&error) => None,
        Err(error) => return Err(error).context("failed to list events"),
    };
    let has_events = events.is_some();
    let of_object = |it: &&DynamicObject| it.data["regarding"]["uid"] == *uid;
    let events = events.iter().flatten().filter(of_object);
    let events = events.filter_map(event_line).collect();
    Ok(Log { state, lines: in_order(lines, events), has_events })
}

/// Returns what a status and events say, in the order in which it happened.
fn in_order(mut lines: Vec<LogLine>, events: Vec<LogLine>) -> Vec<LogLine> {
    if !events.is_empty() {
        // They say the same, with times. Of what ended long ago there are none.
        lines.retain(|it| it.rank != LogRank::Change);
    }
    for start in lines.iter_mut().filter(|it| it.rank == LogRank::Start) {
        // What it waited for in the same second comes before it.
        let of_start = |it: &&LogLine| it.time == start.time && it.text.contains(RUNNING);
        let begun = events.iter().filter(of_start).map(|it| it.exact).min();
        start.exact = begun.unwrap_or(start.exact);
    }
    lines.extend(events);
    lines.sort_by_key(LogLine::order);
    lines
}

/// Returns the line of an event; `None` if it has no time.
fn event_line(event: &DynamicObject) -> Option<LogLine> {
    let text = |field: &str| event.data[field].as_str().unwrap_or_default();
    let created = || event.metadata.creation_timestamp.as_ref().map(|it| it.0);
    let time = text("eventTime").parse().ok().or_else(created)?;
    let count = event.data["series"]["count"].as_i64().filter(|it| *it > 1);
    let count = count.map(|it| format!(" ({it} times)")).unwrap_or_default();
    let line = format!("{}: {}{count}", text("reason"), text("note"));
    let revision = event.metadata.resource_version.as_deref();
    let revision = revision.and_then(|it| it.parse().ok()).unwrap_or_default();
    Some(LogLine { revision, ..LogLine::new(time, LogRank::Event, line) })
}

/// Returns what the status of an Action says.
fn action_lines(action: &ActionObject) -> Vec<LogLine> {
    let ActionObject { spec, status, .. } = action;
    let requested = requested(spec.requester.as_ref(), &spec.action_class);
    let mut lines = vec![LogLine::new(action.created, LogRank::Request, requested)];
    // Approvals have no times of their own: they are named where the plan begins. Those of another one do not count.
    let approved: Vec<String> = spec
        .approvals
        .iter()
        .filter(|it| it.decision == ApprovalDecision::Approved)
        .map(|it| approval_text(it, &status.plan_digest))
        .collect();
    if let Some(time) = status.start_time {
        let plan = match status.plan_summary.as_str() {
            "" => String::new(),
            summary => format!(": {summary}"),
        };
        let approval = match approved.as_slice() {
            [] => String::new(),
            approved => format!(" (plan approved {})", approved.join(" and ")),
        };
        lines.push(LogLine::new(time, LogRank::Start, format!("started{plan}{approval}")));
        // Changes have no times of their own.
        let time = status.completion_time.unwrap_or(time);
        let begun = status.plan.iter().filter(|it| it.state != ChangeState::Planned);
        lines.extend(begun.map(|it| {
            let text = format!("{}: {}", it.subject(), progress_text(it));
            LogLine::new(time, LogRank::Change, text)
        }));
    }
    let succeeded = status.conditions.iter().find(|it| it.type_ == ACTION_SUCCEEDED);
    if let Some(time) = status.completion_time {
        let ended = ended(status.state, succeeded.map(|it| it.message.as_str()));
        lines.push(LogLine::new(time, LogRank::End, ended));
    }
    lines
}

/// Returns what the status of a RetryAction and those of its attempts say.
fn retry_lines(retry: &RetryObject, attempts: &[ActionObject]) -> Vec<LogLine> {
    let spec = &retry.spec;
    let requested = requested(spec.requester.as_ref(), &spec.template.action_class);
    let mut lines = vec![LogLine::new(retry.created, LogRank::Request, requested)];
    for attempt in attempts {
        let ActionObject { name, created, status, .. } = attempt;
        lines.push(LogLine::new(*created, LogRank::Start, format!("attempt {name} began")));
        if let Some(time) = status.completion_time {
            let succeeded = status.conditions.iter().find(|it| it.type_ == ACTION_SUCCEEDED);
            let message = succeeded.map(|it| it.message.as_str());
            let text = format!("attempt {name} {}", ended(status.state, message));
            lines.push(LogLine::new(time, LogRank::Event, text));
        }
    }
    let succeeded = retry.succeeded();
    let ended_at = retry.status.completion_time;
    let ended_at = ended_at.or_else(|| {
        succeeded.filter(|_| retry.state().is_final()).map(|it| it.last_transition_time)
    });
    if let Some(time) = ended_at {
        let message = succeeded.map(|it| it.message.as_str());
        lines.push(LogLine::new(time, LogRank::End, ended(retry.state(), message)));
    }
    lines
}

/// Returns the line about a request.
fn requested(requester: Option<&ActionRequester>, class: &str) -> String {
    let requester = requester.map_or(String::new(), |it| format!(" by {}", it.username));
    format!("requested{requester}: {class}")
}

/// Returns the line about an end.
fn ended(state: ActionState, message: Option<&str>) -> String {
    let state = state_in_words(state);
    match message.filter(|it| !it.is_empty()) {
        Some(message) => format!("ended: it {state}: {message}"),
        None => format!("ended: it {state}"),
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_api::olm::action::{ActionApproval, ActionSpec, ActionStatus, PlannedChange};
    use serde_json::json;

    use super::*;

    fn time(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).expect("a time")
    }

    #[test]
    fn what_happened_is_in_order() {
        let change = PlannedChange {
            operator: "foo".to_owned(),
            state: ChangeState::Completed,
            message: "foo is installed".to_owned(),
            ..PlannedChange::default()
        };
        let action = ActionObject {
            created: time(10),
            spec: ActionSpec {
                action_class: "operator-install".to_owned(),
                requester: Some(ActionRequester {
                    username: "alice".to_owned(),
                    groups: Vec::new(),
                }),
                approvals: vec![ActionApproval {
                    approver: "bob".to_owned(),
                    ..ActionApproval::default()
                }],
                ..ActionSpec::default()
            },
            status: ActionStatus {
                state: ActionState::Succeeded,
                plan: vec![change, PlannedChange::default()],
                plan_summary: "2 to create".to_owned(),
                start_time: Some(time(10)),
                completion_time: Some(time(12)),
                ..ActionStatus::default()
            },
            ..ActionObject::default()
        };
        let lines = in_order(action_lines(&action), Vec::new());
        let texts: Vec<String> =
            lines.iter().map(|it| format!("{} {}", it.time.as_second(), it.text)).collect();
        assert_eq!(
            texts,
            [
                "10 requested by alice: operator-install",
                "10 started: 2 to create (plan approved by bob)",
                "12 foo: done (foo is installed)",
                "12 ended: it has succeeded",
            ]
        );
    }

    #[test]
    fn what_happened_in_one_second_is_in_order() {
        let event = |time: &str, revision: &str, note: &str| {
            let event = json!({
                "metadata": { "name": revision, "resourceVersion": revision },
                "eventTime": format!("1970-01-01T00:00:{time}Z"),
                "reason": "A", "note": note,
            });
            let event: DynamicObject = serde_json::from_value(event).expect("an event");
            event_line(&event).expect("it has a time")
        };
        let status = vec![
            LogLine::new(time(10), LogRank::Request, "requested"),
            LogLine::new(time(10), LogRank::Start, "started"),
            LogLine::new(time(12), LogRank::Change, "foo: done"),
            LogLine::new(time(12), LogRank::End, "ended"),
        ];
        let events = vec![
            event("10.300000", "9", "Running: creates Operator foo"),
            event("10.300000", "10", "Running: creates Operator bar"),
            event("10.200000", "8", "Running: the plan is executed"),
            event("10.100000", "7", "Pending: waits for another Action"),
            event("12.900000", "12", "Succeeded: both are installed"),
        ];
        let lines = in_order(status, events);
        let texts: Vec<&str> = lines.iter().map(|it| it.text.as_str()).collect();
        assert_eq!(
            texts,
            [
                "requested",
                "A: Pending: waits for another Action",
                "started",
                "A: Running: the plan is executed",
                "A: Running: creates Operator foo",
                "A: Running: creates Operator bar",
                "A: Succeeded: both are installed",
                "ended",
            ]
        );
    }
}
