//! CronActions and EventActions: which Actions they make, and which of their history stay.

use std::collections::BTreeMap;

use jiff::Timestamp;
use plimsoll_api::olm::action::{
    ActionState, ConcurrencyPolicy, CronActionSpec, CronActionStatus, EventActionSpec,
    EventActionStatus, ObservedContent,
};

use super::schedule::Schedule;
use super::{derived_name, with_room};

/// How many Actions that succeeded are kept if it is not said.
const SUCCESSFUL_KEPT: u32 = 3;
/// How many Actions that failed are kept if it is not said.
const FAILED_KEPT: u32 = 1;
/// How many objects one EventAction looks at: its status lists them all.
const OBSERVED_MAX: usize = 500;

/// An Action that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MadeAction {
    /// Its name.
    pub name: String,
    /// How far it is.
    pub state: ActionState,
    /// When it was created.
    pub created: Timestamp,
    /// When it ended; `None` before.
    pub ended: Option<Timestamp>,
}

/// What is done for a CronAction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CronDecision {
    /// Name of the Action to make; `None` for none.
    pub make: Option<String>,
    /// Names of Actions to cancel.
    pub cancel: Vec<String>,
    /// Names of Actions to delete, oldest first.
    pub delete: Vec<String>,
    /// What is reported once that is done: until then, the same is decided again.
    pub status: CronActionStatus,
    /// When to decide again; `None` when something changes.
    pub wake_at: Option<Timestamp>,
}

/// Decides on a CronAction.
pub fn cron(
    name: &str,
    created: Timestamp,
    spec: &CronActionSpec,
    status: &CronActionStatus,
    made: &[MadeAction],
    now: Timestamp,
) -> CronDecision {
    let active: Vec<&MadeAction> = made.iter().filter(|it| !it.state.is_final()).collect();
    let succeeded = made.iter().filter(|it| it.state == ActionState::Succeeded);
    let mut decision = CronDecision {
        delete: outdated(
            made,
            spec.successful_actions_history_limit,
            spec.failed_actions_history_limit,
        ),
        status: CronActionStatus {
            last_schedule_time: status.last_schedule_time,
            last_successful_time: succeeded
                .filter_map(|it| it.ended)
                .max()
                .max(status.last_successful_time),
            active: active.iter().map(|it| it.name.clone()).collect(),
            message: String::new(),
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
    // A time ahead is one of a clock that was wrong: nobody waits for it.
    let since = status.last_schedule_time.map_or(created, |it| it.max(created)).min(now);
    let Some(due) = schedule.latest(since, now) else { return decision };
    let late = now.duration_since(due).as_secs();
    decision.status.last_schedule_time = Some(due);
    if spec.starting_deadline_seconds.is_some_and(|most| late > most) {
        return decision;
    }
    match spec.concurrency_policy {
        ConcurrencyPolicy::Forbid if !active.is_empty() => return decision,
        ConcurrencyPolicy::Replace => {
            decision.cancel = active.iter().map(|it| it.name.clone()).collect();
        }
        ConcurrencyPolicy::Allow | ConcurrencyPolicy::Forbid => {}
    }
    let minutes = (due.as_second() / 60).to_string();
    decision.make = Some(format!("{}-{minutes}", with_room(name, minutes.len() + 1)));
    decision
}

/// What is done for an EventAction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventDecision {
    /// Name of the Action to make; `None` for none. It is recorded as pending already.
    pub make: Option<String>,
    /// Names of Actions to delete, oldest first.
    pub delete: Vec<String>,
    /// What is reported once that is done: until then, the same is decided again.
    pub status: EventActionStatus,
}

/// Decides on an EventAction. `content` is what there is of its objects, by name: digests, versions or
/// generations; or why they cannot be looked at.
///
/// A change is recorded, together with the name of the Action that it makes, before that is created. The
/// record replaces a certain revision of the status, so one change has one Action, whoever decides from
/// an old status.
pub fn event(
    name: &str,
    uid: &str,
    spec: &EventActionSpec,
    status: &EventActionStatus,
    content: Result<&BTreeMap<String, String>, String>,
    made: &[MadeAction],
    now: Timestamp,
) -> EventDecision {
    let delete =
        outdated(made, spec.successful_actions_history_limit, spec.failed_actions_history_limit);
    if !status.pending.is_empty() {
        let make = Some(status.pending.clone());
        let status = EventActionStatus { pending: String::new(), ..status.clone() };
        return EventDecision { make, delete, status };
    }
    let is_meant = |name: &String| spec.on.names.is_empty() || spec.on.names.contains(name);
    let content = content.and_then(|content| {
        let count = content.keys().filter(|it| is_meant(it)).count();
        let message = || {
            format!("{count} objects are selected, of at most {OBSERVED_MAX}: select fewer of them")
        };
        (count <= OBSERVED_MAX).then_some(content).ok_or_else(message)
    });
    let content = match content {
        Ok(content) => content,
        Err(message) => {
            let status = EventActionStatus { message, ..status.clone() };
            return EventDecision { make: None, delete, status };
        }
    };
    let is_first = status.on.as_ref() != Some(&spec.on);
    let before = status.observed.iter().filter(|_| !is_first);
    let mut observed: BTreeMap<String, String> =
        before.map(|it| (it.name.clone(), it.content.clone())).collect();
    let changed: Vec<&String> = content
        .keys()
        .filter(|it| is_meant(it))
        .filter(|name| observed.get(*name) != content.get(*name))
        .collect();
    // Another one when the same content comes again.
    let since = status.last_event_time.map(|it| it.to_string()).unwrap_or_default();
    let mut parts = vec![uid.to_owned(), since];
    for name in &changed {
        parts.extend([(*name).clone(), content[*name].clone()]);
    }
    let makes = !is_first && !spec.suspend && !changed.is_empty();
    for name in changed {
        observed.insert(name.clone(), content[name].clone());
    }
    // What is gone and comes back is seen anew.
    observed.retain(|name, _| content.contains_key(name));
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    EventDecision {
        make: None,
        delete,
        status: EventActionStatus {
            on: Some(spec.on.clone()),
            observed: observed
                .into_iter()
                .map(|(name, content)| ObservedContent { name, content })
                .collect(),
            last_event_time: if makes { Some(now) } else { status.last_event_time },
            pending: if makes { derived_name(name, &parts) } else { String::new() },
            message: String::new(),
        },
    }
}

/// The Actions that ended and are more than are kept, oldest first.
fn outdated(made: &[MadeAction], successful: Option<u32>, failed: Option<u32>) -> Vec<String> {
    let mut found: Vec<(Option<Timestamp>, String)> = Vec::new();
    for (is_success, kept) in
        [(true, successful.unwrap_or(SUCCESSFUL_KEPT)), (false, failed.unwrap_or(FAILED_KEPT))]
    {
        let ended = made.iter().filter(|it| it.state.is_final());
        let mut ended: Vec<&MadeAction> =
            ended.filter(|it| (it.state == ActionState::Succeeded) == is_success).collect();
        ended.sort_by(|a, b| (b.ended, b.created, &b.name).cmp(&(a.ended, a.created, &a.name)));
        let kept = usize::try_from(kept).unwrap_or(usize::MAX);
        found.extend(ended.into_iter().skip(kept).map(|it| (it.ended, it.name.clone())));
    }
    found.sort();
    found.into_iter().map(|(_, name)| name).collect()
}
