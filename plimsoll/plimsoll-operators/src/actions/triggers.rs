//! CronActions and EventActions: the Actions that they create, and the history that they keep.

mod cron;

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_cel::names;
use plimsoll_api::olm::action::{ActionState, EventActionSpec, EventActionStatus, ObservedContent};

use super::{cut, derived_name};

pub use self::cron::{CronDecision, CronObject, cron};

/// The number of successful Actions that are kept without a limit in the spec.
const SUCCESSFUL_KEPT: u32 = 3;
/// The number of failed Actions that are kept without a limit in the spec.
const FAILED_KEPT: u32 = 1;
/// The maximum length of the message about a selector, in bytes.
const MESSAGE_LENGTH_MAX: usize = 2048;
/// The maximum number of objects that an EventAction observes: its status lists them all.
const OBSERVED_MAX: usize = 500;
/// The least time between two changes that an EventAction acts on. If its Actions change what it observes, each
/// of them leads to another one.
const EVENT_INTERVAL: Duration = Duration::from_secs(5);

/// An Action that a CronAction or an EventAction created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MadeAction {
    /// The name of the Action.
    pub name: String,
    /// The state of the Action.
    pub state: ActionState,
    /// The creation time.
    pub created: Timestamp,
    /// The completion time; `None` before.
    pub ended: Option<Timestamp>,
}

/// A decision on an EventAction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventDecision {
    /// The name of the Action to create, which the status already has as pending; `None` for none.
    pub make: Option<String>,
    /// The names of the Actions to delete, oldest first.
    pub delete: Vec<String>,
    /// The status to write after these changes; until it is written, the decision is the same.
    pub status: EventActionStatus,
    /// The time of the next decision; `None` if only an event causes one.
    pub wake_at: Option<Timestamp>,
}

/// Decides on an EventAction. `content` has the content of its objects by name: digests, versions or
/// generations; or the reason that they cannot be observed.
///
/// A change is recorded, with the name of the Action for it, before the Action is created. The status is
/// written with its resourceVersion as a precondition, so a change results in one Action, even after a
/// decision that was made from an outdated status.
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
        let (pending, message) = (String::new(), String::new());
        let status = EventActionStatus { pending, message, ..status.clone() };
        return EventDecision { make, delete, status, wake_at: None };
    }
    let content = match content.and_then(|it| bounded(spec, it)) {
        Ok(content) => content,
        Err(message) => {
            let status = EventActionStatus { message, ..status.clone() };
            return EventDecision { make: None, delete, status, wake_at: None };
        }
    };
    let is_first = status.on.as_ref() != Some(&spec.on);
    let before = status.observed.iter().filter(|_| !is_first);
    let mut observed: BTreeMap<String, String> =
        before.map(|it| (it.name.clone(), it.content.clone())).collect();
    let changed: Vec<&String> = content
        .keys()
        .filter(|it| is_meant(spec, it))
        .filter(|name| observed.get(*name) != content.get(*name))
        .collect();
    // The previous time results in a new name if the same content occurs again.
    let since = status.last_event_time.map(|it| it.to_string()).unwrap_or_default();
    let mut parts = vec![uid.to_owned(), since];
    for name in &changed {
        parts.extend([(*name).clone(), content[*name].clone()]);
    }
    let makes = !is_first && !spec.suspend && !changed.is_empty();
    if let Some(at) = acts_at(status, now).filter(|_| makes) {
        let status = EventActionStatus { message: String::new(), ..status.clone() };
        return EventDecision { make: None, delete, status, wake_at: Some(at) };
    }
    for name in changed {
        observed.insert(name.clone(), content[name].clone());
    }
    // An object that is deleted and created again counts as changed.
    observed.retain(|name, _| content.contains_key(name));
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    EventDecision {
        make: None,
        delete,
        wake_at: None,
        status: EventActionStatus {
            on: Some(spec.on.clone()),
            observed: observed
                .into_iter()
                .map(|(name, content)| ObservedContent { name, content })
                .collect(),
            last_event_time: if makes { Some(now) } else { status.last_event_time },
            pending: if makes { derived_name(name, &parts) } else { String::new() },
            message: String::new(),
            collision_count: status.collision_count,
        },
    }
}

/// Returns what is wrong with the labels that an EventAction selects objects by; `None` if nothing is. API servers say
/// less about it, and read some keys as another selector.
pub fn selector_problem(selector: &BTreeMap<String, String>) -> Option<String> {
    let problem = |(key, value): (&String, &String)| {
        let wrong = names::qualified(key).into_iter().next();
        let wrong = wrong.or_else(|| names::label_value(value).into_iter().next())?;
        Some(format!("spec.on.object.selector is invalid: `{key}: {value}`: {wrong}"))
    };
    selector.iter().find_map(problem).map(|it| cut(&it, MESSAGE_LENGTH_MAX))
}

/// Returns whether an EventAction observes the object with a name.
fn is_meant(spec: &EventActionSpec, name: &String) -> bool {
    spec.on.names.is_empty() || spec.on.names.contains(name)
}

/// Returns the content of objects, unless an EventAction observes too many of them.
fn bounded<'a>(
    spec: &EventActionSpec,
    content: &'a BTreeMap<String, String>,
) -> Result<&'a BTreeMap<String, String>, String> {
    let count = content.keys().filter(|it| is_meant(spec, it)).count();
    let message =
        || format!("{count} objects are selected, of at most {OBSERVED_MAX}: select fewer of them");
    (count <= OBSERVED_MAX).then_some(content).ok_or_else(message)
}

/// Returns when the next change is acted on; `None` if it is now. What changes until then is one change.
fn acts_at(status: &EventActionStatus, now: Timestamp) -> Option<Timestamp> {
    // A time in the future is due to a wrong clock and is ignored.
    let last = status.last_event_time.filter(|it| *it <= now)?;
    last.checked_add(EVENT_INTERVAL).ok().filter(|it| *it > now)
}

/// Returns the ended Actions beyond those that are kept, oldest first.
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

#[cfg(test)]
mod tests;
