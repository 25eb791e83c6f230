//! CronActions: the Action that is due, and the times of the schedule for which none is made.

use jiff::{SignedDuration, Timestamp};
use plimsoll_api::Reason;
use plimsoll_api::olm::action::{
    ActionState, ConcurrencyPolicy, CronActionSpec, CronActionStatus, MissedTimes,
};

use super::{MadeAction, outdated};
use crate::actions::{NAME_LENGTH_MAX, cut, derived_name, name_after_collisions};
use plimsoll_plan::windows::schedule::Schedule;
use plimsoll_plan::windows::{ClosedWindow, MaintenanceWindows};

/// The maximum number of missed times that are counted, as for CronJobs.
const COUNTED_MAX: usize = 100;
/// By how much the clocks of two controllers, or of one and an API server, may differ.
const CLOCK_DIFFERENCE_MAX: SignedDuration = SignedDuration::from_mins(5);
/// The maximum length of the message about missed times, in bytes.
const MESSAGE_LENGTH_MAX: usize = 1024;

/// A CronAction to decide on.
#[derive(Debug, Clone, Copy)]
pub struct CronObject<'a> {
    /// The name of the CronAction.
    pub name: &'a str,
    /// The uid of the CronAction.
    pub uid: &'a str,
    /// The creation time.
    pub created: Timestamp,
    /// The spec of the CronAction.
    pub spec: &'a CronActionSpec,
    /// The status that was written last.
    pub status: &'a CronActionStatus,
}

/// A decision on a CronAction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CronDecision {
    /// The name of the Action to create; `None` for none.
    pub make: Option<String>,
    /// The names of the Actions to cancel.
    pub cancel: Vec<String>,
    /// The names of the Actions to delete, oldest first.
    pub delete: Vec<String>,
    /// The status to write after these changes; until it is written, the decision is the same.
    pub status: CronActionStatus,
    /// The time of the next decision; `None` if only an event causes one.
    pub wake_at: Option<Timestamp>,
}

/// Decides on a CronAction, as Kubernetes does on a CronJob: of the times since the last one that was acted on,
/// the latest one counts. `status.missed` says for which ones no Action was made, and why.
pub fn cron(
    object: &CronObject<'_>,
    made: &[MadeAction],
    windows: &MaintenanceWindows,
    now: Timestamp,
) -> CronDecision {
    let CronObject { name, uid, created, spec, status } = *object;
    let active = || made.iter().filter(|it| !it.state.is_final());
    let succeeded = made.iter().filter(|it| it.state == ActionState::Succeeded);
    let mut decision = CronDecision {
        delete: outdated(
            made,
            spec.successful_actions_history_limit,
            spec.failed_actions_history_limit,
        ),
        status: CronActionStatus {
            last_successful_time: succeeded
                .filter_map(|it| it.ended)
                .max()
                .max(status.last_successful_time),
            active: active().map(|it| it.name.clone()).collect(),
            message: String::new(),
            ..status.clone()
        },
        ..CronDecision::default()
    };
    let schedule = match Schedule::parse(&spec.schedule, &spec.time_zone) {
        Ok(schedule) => schedule,
        Err(message) => {
            decision.status.message = message;
            return decision;
        }
    };
    if spec.suspend {
        return decision;
    }
    decision.wake_at = schedule.after(now);
    let since = status.last_schedule_time.unwrap_or(created);
    if since > now {
        let is_set_back = now.duration_since(since) < -CLOCK_DIFFERENCE_MAX;
        if is_set_back && decision.wake_at.is_some_and(|next| next < since) {
            decision.status.last_schedule_time = Some(now);
            let note = format!("the clock was set back from {since}");
            decision.status.missed = Some(missed(Reason::ClockSetBack, 0, now, since, &note));
        }
        return decision;
    }
    let Some(due) = schedule.latest(since, now) else { return decision };
    decision.status.last_schedule_time = Some(due);
    let collisions = status.collision_count.unwrap_or_default();
    let name_at = |time| name_after_collisions(&scheduled_name(name, time), uid, collisions);
    let is_made = |time| made.iter().any(|it| it.name == name_at(time));
    // It may have been made before although that was not recorded.
    let own = name_at(due);
    let others: Vec<&MadeAction> = active().filter(|it| it.name != own).collect();
    let left_out = closed(spec, windows, due, now).or_else(|| left_out(spec, &others, due, now));
    let left_out = left_out.filter(|_| !is_made(due));
    if left_out.is_none() {
        decision.make = Some(scheduled_name(name, due));
        if spec.concurrency_policy == ConcurrencyPolicy::Replace {
            decision.cancel = others.iter().map(|it| it.name.clone()).collect();
        }
    }
    if let Some(times) = times(&schedule, since, due, left_out, &is_made) {
        decision.status.missed = Some(continued(status, times, since));
    }
    decision
}

/// Returns why no Action is made at a time that is due if its MaintenanceWindow was closed then or is now; `None` if
/// it is open.
fn closed(
    spec: &CronActionSpec,
    windows: &MaintenanceWindows,
    due: Timestamp,
    now: Timestamp,
) -> Option<(Reason, String)> {
    let name = Some(spec.maintenance_window.as_str()).filter(|it| !it.is_empty())?;
    if let Some(ClosedWindow { reason, message }) = windows.closed(name, now) {
        return Some((reason, message));
    }
    let closed = windows.closed(name, due)?;
    Some((closed.reason, format!("MaintenanceWindow {name} was not open at {due}")))
}

/// Returns why no Action is made at a time that is due, and a message; `None` if one is made.
fn left_out(
    spec: &CronActionSpec,
    active: &[&MadeAction],
    due: Timestamp,
    now: Timestamp,
) -> Option<(Reason, String)> {
    let late = now.duration_since(due).as_secs();
    if let Some(most) = spec.starting_deadline_seconds.filter(|most| late > *most) {
        let note = format!("no Action could be made within {most}s of it");
        return Some((Reason::StartingDeadlineExceeded, note));
    }
    let active = active.first().filter(|_| spec.concurrency_policy == ConcurrencyPolicy::Forbid)?;
    let note = format!("{} had not ended, and concurrencyPolicy is Forbid", active.name);
    Some((Reason::ActionAlreadyActive, note))
}

/// Returns the times after a moment for which no Action is made when the last one of them is `due`; `None` if
/// there is none. `left_out` is why none is made for that one; `is_made` tells whether there is an Action of a time.
fn times(
    schedule: &Schedule,
    since: Timestamp,
    due: Timestamp,
    left_out: Option<(Reason, String)>,
    is_made: &dyn Fn(Timestamp) -> bool,
) -> Option<MissedTimes> {
    let is_left_out = left_out.is_some();
    let times = std::iter::successors(schedule.after(since), |it| schedule.after(*it));
    let missed_ones = times
        .take_while(|it| *it < due || is_left_out && *it == due)
        .filter(|it| !is_made(*it))
        .take(COUNTED_MAX);
    let missed_ones: Vec<Timestamp> = missed_ones.collect();
    let (first, mut last) = (*missed_ones.first()?, *missed_ones.last()?);
    if missed_ones.len() == COUNTED_MAX {
        let before = due.checked_sub(SignedDuration::from_secs(1)).ok()?;
        last = if is_left_out { due } else { schedule.latest(since, before)? };
    }
    let (reason, note) = left_out.unwrap_or_else(|| {
        let note = "no Action was made in time; one was made for all of them";
        (Reason::ScheduleMissed, note.to_owned())
    });
    Some(missed(reason, missed_ones.len(), first, last, &note))
}

fn missed(
    reason: Reason,
    count: usize,
    first_time: Timestamp,
    last_time: Timestamp,
    note: &str,
) -> MissedTimes {
    MissedTimes {
        reason: reason.as_str().to_owned(),
        count: u32::try_from(count).unwrap_or(u32::MAX),
        first_time,
        last_time,
        message: cut(note, MESSAGE_LENGTH_MAX),
    }
}

/// Returns the times that were missed, with those right before them that were missed for the same reason.
fn continued(status: &CronActionStatus, times: MissedTimes, since: Timestamp) -> MissedTimes {
    let counted_max = u32::try_from(COUNTED_MAX).unwrap_or(u32::MAX);
    match &status.missed {
        Some(before) if before.reason == times.reason && before.last_time == since => MissedTimes {
            count: before.count.saturating_add(times.count).min(counted_max),
            first_time: before.first_time,
            ..times
        },
        _ => times,
    }
}

/// Returns the name of the Action of a CronAction that is due at a time. Long names that are cut would be those
/// of other CronActions, too.
fn scheduled_name(name: &str, due: Timestamp) -> String {
    let minutes = (due.as_second() / 60).to_string();
    let whole = format!("{name}-{minutes}");
    match whole.len() <= NAME_LENGTH_MAX {
        true => whole,
        false => derived_name(name, &[name, &minutes]),
    }
}
