//! What becomes of the times of a schedule: an Action each, or a word about it in the status.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{ACTIONS, CLEAN};
use crate::record::Write;

/// How many minutes after each opening the MaintenanceWindow of the CronAction opens again.
pub(super) const WINDOW_PERIOD: i64 = 4;
/// How many minutes it is open.
pub(super) const WINDOW_MINUTES: i64 = 2;

/// The number of missed times from which on they are not counted.
const COUNTED_MAX: i64 = 100;

/// Returns the times of the CronAction that runs every minute for which it made two Actions, one while its window was
/// closed, or none without a word.
pub(super) fn unexplained(done: &[&Write]) -> Vec<String> {
    let made_ones = done.iter().filter_map(|it| made(it));
    let closed = made_ones.filter(|it| is_closed(it));
    let mut found: Vec<String> =
        closed.map(|name| format!("{name} is made while the window is closed")).collect();
    let status = format!("{CLEAN}/status");
    let mut before: Option<&Write> = None;
    let mut is_set_back = false;
    // A status that could not be read is null.
    for write in done.iter().filter(|it| it.path == status) {
        is_set_back |= write.reported["status"]["missed"]["reason"] == "ClockSetBack";
        let earlier = before.filter(|it| it.rollbacks == write.rollbacks);
        let earlier = earlier.map(|it| &it.reported);
        // The first one follows the creation.
        let first = json!({ "metadata": write.reported["metadata"] });
        if let Some(earlier) = earlier.or_else(|| before.is_none().then_some(&first)) {
            found.extend(of_status(earlier, write, done));
        }
        before = Some(write);
    }
    // A server that goes back forgets what was made, and history limits delete what a clock that is ahead has made.
    if !is_set_back && done.last().is_none_or(|it| it.rollbacks == 0) {
        let mut names = BTreeSet::new();
        let in_time = done.iter().filter(|it| !it.is_late);
        let twice = in_time.filter_map(|it| made(it)).filter(|name| !names.insert(*name));
        found.extend(twice.map(|name| format!("{name} is made twice")));
    }
    found
}

/// Returns the name of the Action that a write makes for the CronAction; `None` if it makes none.
fn made(write: &Write) -> Option<&str> {
    let name = write.sent["metadata"]["name"].as_str()?;
    let is_made = write.path == ACTIONS && write.method == "POST" && name.starts_with("clean-");
    is_made.then_some(name)
}

/// Returns whether an Action is one of a minute at which the window is closed.
fn is_closed(name: &str) -> bool {
    let minute = name.strip_prefix("clean-").and_then(|it| it.parse::<i64>().ok());
    minute.is_some_and(|it| it % WINDOW_PERIOD >= WINDOW_MINUTES)
}

/// Returns what a status does not say of the times that passed since the one before; `None` if nothing.
fn of_status(before: &Value, write: &Write, done: &[&Write]) -> Option<String> {
    let (was, is) = (&before["status"], &write.reported["status"]);
    let since = match &was["lastScheduleTime"] {
        Value::Null => &before["metadata"]["creationTimestamp"],
        time => time,
    };
    let last = &is["lastScheduleTime"];
    let passed = minute(last)? - minute(since)?;
    if passed <= 0 {
        return None;
    }
    let (missed_before, missed) = (&was["missed"], &is["missed"]);
    let count = |missed: &Value| missed["count"].as_i64().unwrap_or_default();
    let counted = match missed_before["firstTime"] == missed["firstTime"] {
        true => count(missed) - count(missed_before),
        false => count(missed),
    };
    let is_left_out = missed_before != missed && missed["lastTime"] == *last;
    if count(missed) < COUNTED_MAX && counted + i64::from(!is_left_out) != passed {
        return Some(format!("of {passed} times until {last}, {counted} are missed: {is}"));
    }
    let name = format!("clean-{}", minute(last)?);
    let is_made = done.iter().any(|it| made(it) == Some(&name) && it.rollbacks <= write.rollbacks);
    match (is_left_out, is_made) {
        (false, false) => Some(format!("nothing was made at {last}: {is}")),
        (true, true) if write.rollbacks == 0 => Some(format!("{name} counts as missed: {is}")),
        _ => None,
    }
}

/// Returns the number of the minute of a time.
fn minute(time: &Value) -> Option<i64> {
    Some(time.as_str()?.parse::<Timestamp>().ok()?.as_second() / 60)
}
