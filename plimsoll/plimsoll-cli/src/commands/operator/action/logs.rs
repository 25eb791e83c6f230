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
use plimsoll_api::olm::action::{ACTION_SUCCEEDED, ActionRequester, ActionState, ChangeState};
use plimsoll_api::{ACTION, whole_seconds};
use plimsoll_operators::actions::report::ActionObject;
use plimsoll_resolve::printable::on_one_line;

use super::follow::{exit_code, versions};
use super::retries::{RetryObject, read_retry};
use super::show::{attempts_of, change_state};
use super::{LogsArguments, actions, is_forbidden, parts, read, state_in_words};
use crate::commands::operator::events::EVENT;
use crate::exit;

/// What is printed instead of events that the user may not read.
const NO_EVENTS: &str = "You may not read events of this namespace: this is what the status has.";

/// Something that happened. The order is that of the fields: of one second, the request comes
/// first, and the end last.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct LogLine {
    time: Timestamp,
    rank: LogRank,
    text: String,
}

impl LogLine {
    fn new(time: Timestamp, rank: LogRank, text: impl Into<String>) -> Self {
        Self { time: whole_seconds(time), rank, text: text.into() }
    }
}

/// The order of what happened in one second.
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
    lines: BTreeSet<LogLine>,
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
        if printed.insert(LogLine { time, ..line.clone() }) {
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
    let (uid, state, mut lines) = if arguments.name.kind == ACTION {
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
    let events: Vec<LogLine> = events.filter_map(event_line).collect();
    if !events.is_empty() {
        // They say the same, with times. Of what ended long ago there are none.
        lines.retain(|it| it.rank != LogRank::Change);
    }
    lines.extend(events);
    Ok(Log { state, lines, has_events })
}

/// Returns the line of an event; `None` if it has no time.
fn event_line(event: &DynamicObject) -> Option<LogLine> {
    let text = |field: &str| event.data[field].as_str().unwrap_or_default();
    let created = || event.metadata.creation_timestamp.as_ref().map(|it| it.0);
    let time = text("eventTime").parse().ok().or_else(created)?;
    let count = event.data["series"]["count"].as_i64().filter(|it| *it > 1);
    let count = count.map(|it| format!(" ({it} times)")).unwrap_or_default();
    let line = format!("{}: {}{count}", text("reason"), text("note"));
    Some(LogLine::new(time, LogRank::Event, line))
}

/// Returns what the status of an Action says.
fn action_lines(action: &ActionObject) -> BTreeSet<LogLine> {
    let ActionObject { spec, status, .. } = action;
    let requested = requested(spec.requester.as_ref(), &spec.action_class);
    let mut lines = BTreeSet::from([LogLine::new(action.created, LogRank::Request, requested)]);
    if let Some(time) = status.start_time {
        let plan = match status.plan_summary.as_str() {
            "" => String::new(),
            summary => format!(": {summary}"),
        };
        lines.insert(LogLine::new(time, LogRank::Start, format!("started{plan}")));
        // Changes have no times of their own.
        let time = status.completion_time.unwrap_or(time);
        let begun = status.plan.iter().filter(|it| it.state != ChangeState::Planned);
        lines.extend(begun.map(|it| {
            let text = format!("{}: {} {}", it.subject(), change_state(it.state), it.message);
            LogLine::new(time, LogRank::Change, text.trim_end())
        }));
    }
    let succeeded = status.conditions.iter().find(|it| it.type_ == ACTION_SUCCEEDED);
    if let Some(time) = status.completion_time {
        let message = succeeded.map(|it| it.message.as_str());
        lines.insert(LogLine::new(time, LogRank::End, ended(status.state, message)));
    }
    lines
}

/// Returns what the status of a RetryAction and those of its attempts say.
fn retry_lines(retry: &RetryObject, attempts: &[ActionObject]) -> BTreeSet<LogLine> {
    let spec = &retry.spec;
    let requested = requested(spec.requester.as_ref(), &spec.template.action_class);
    let mut lines = BTreeSet::from([LogLine::new(retry.created, LogRank::Request, requested)]);
    for attempt in attempts {
        let ActionObject { name, created, status, .. } = attempt;
        lines.insert(LogLine::new(*created, LogRank::Start, format!("attempt {name} began")));
        if let Some(time) = status.completion_time {
            let succeeded = status.conditions.iter().find(|it| it.type_ == ACTION_SUCCEEDED);
            let message = succeeded.map(|it| it.message.as_str());
            let text = format!("attempt {name} {}", ended(status.state, message));
            lines.insert(LogLine::new(time, LogRank::Event, text));
        }
    }
    let succeeded = retry.succeeded();
    let ended_at = retry.status.completion_time;
    let ended_at = ended_at.or_else(|| {
        succeeded.filter(|_| retry.state().is_final()).map(|it| it.last_transition_time)
    });
    if let Some(time) = ended_at {
        let message = succeeded.map(|it| it.message.as_str());
        lines.insert(LogLine::new(time, LogRank::End, ended(retry.state(), message)));
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
    use plimsoll_api::olm::action::{ActionSpec, ActionStatus, PlannedChange};

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
        let lines = action_lines(&action);
        let texts: Vec<String> =
            lines.iter().map(|it| format!("{} {}", it.time.as_second(), it.text)).collect();
        assert_eq!(
            texts,
            [
                "10 requested by alice: operator-install",
                "10 started: 2 to create",
                "12 foo: done foo is installed",
                "12 ended: it has succeeded",
            ]
        );
    }
}
