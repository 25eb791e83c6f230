//! EventActions: which changes of objects make an Action, and which do not.
//!
//! `status.observed` is the memory: a change is what differs from it, so that it makes one Action however often a
//! watch shows it and whichever controller sees it.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use k8s_cel::names;
use plimsoll_api::Reason;
use plimsoll_api::olm::action::{
    EventActionSpec, EventActionStatus, EventSourceKind, EventTrigger, EventType, MissedTimes,
    ObservedContent,
};
use serde_json::Value;

use super::chain;
use super::content::{Change, ObjectContent, is_change, remembered};
use super::filter::{self, Filter};
use super::limit::Limit;
use super::{MadeAction, outdated};
use crate::actions::{cut, derived_name, enumerated};

/// The maximum length of the message about a trigger, in bytes.
const MESSAGE_LENGTH_MAX: usize = 2048;
/// The maximum length of the message about a change that made no Action, in bytes.
const SKIPPED_LENGTH_MAX: usize = 1024;
/// What to do about changes that follow from the Actions of an EventAction itself.
const CIRCLE_ADVICE: &str =
    "choose events, names or a filter that leave out what its own Actions change";
/// What to do about a filter that cannot be evaluated.
const FILTER_ADVICE: &str =
    "correct spec.trigger.filter, which asks for fields that not all objects have with has()";
/// The maximum number of objects that an EventAction observes: its status lists them all.
const OBSERVED_MAX: usize = 500;
/// The maximum number of objects that are read for one decision, each with a request. The changes of others follow
/// after [`EVENT_INTERVAL`].
const READ_MAX: usize = 16;
/// The least time between two changes that an EventAction acts on. If its Actions change what it observes, each
/// of them leads to another one.
const EVENT_INTERVAL: Duration = Duration::from_secs(5);

/// An EventAction as the API server has it.
#[derive(Debug, Clone, Copy)]
pub struct EventObject<'a> {
    /// The namespace of the object.
    pub namespace: &'a str,
    /// The name of the object.
    pub name: &'a str,
    /// The uid of the object.
    pub uid: &'a str,
    /// The requested spec.
    pub spec: &'a EventActionSpec,
    /// The status.
    pub status: &'a EventActionStatus,
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

/// What is known of the objects that an EventAction observes.
#[derive(Debug, Clone)]
pub struct Observations<'a> {
    /// The content of each object by name, or the reason that they cannot be observed.
    pub contents: Result<&'a BTreeMap<String, ObjectContent>, String>,
    /// The objects for which the filter is evaluated, by name: those of [`EventObject::needed`] that exist.
    pub objects: &'a BTreeMap<String, Value>,
}

/// What becomes of changes.
#[derive(Debug, Default)]
struct Judgement<'a> {
    /// Those that make an Action.
    makes: Vec<Change<'a>>,
    /// The EventActions that lead to that Action.
    chain: Vec<String>,
    /// The names of objects that could not be read, so that their changes are judged later.
    unread: BTreeSet<&'a str>,
    skipped: Vec<MissedTimes>,
}

impl<'a> EventObject<'a> {
    /// Decides on an EventAction.
    ///
    /// A change is recorded, with the name of the Action for it, before the Action is created. The status is
    /// written with its resourceVersion as a precondition, so a change results in one Action, even after a
    /// decision that was made from an outdated status.
    pub fn decide(
        &self,
        observations: &Observations<'_>,
        made: &[MadeAction],
        now: Timestamp,
    ) -> EventDecision {
        let Self { spec, status, .. } = *self;
        let delete = outdated(
            made,
            spec.successful_actions_history_limit,
            spec.failed_actions_history_limit,
        );
        if !status.pending.is_empty() {
            let make = Some(status.pending.clone());
            let status = EventActionStatus {
                pending: String::new(),
                pending_chain: Vec::new(),
                message: String::new(),
                ..status.clone()
            };
            return EventDecision { make, delete, status, wake_at: None };
        }
        let contents = observations.contents.clone().and_then(|it| self.bounded(it));
        let checked =
            contents.and_then(|it| Ok((it, self.filter()?, Limit::of(spec, status, now)?)));
        let (contents, filter, limit) = match checked {
            Ok(checked) => checked,
            Err(message) => {
                let status = EventActionStatus { message, ..status.clone() };
                return EventDecision { make: None, delete, status, wake_at: None };
            }
        };
        let changes = self.changes(contents);
        let message = self.absence(contents);
        if let Some(at) = self.acts_at(now).filter(|_| !changes.is_empty()) {
            let status = EventActionStatus { message, ..status.clone() };
            return EventDecision { make: None, delete, status, wake_at: Some(at) };
        }
        let mut judgement = self.judge(&changes, filter, observations.objects, now);
        let recent_times = judgement.limit(limit, now);
        let is_changed = changes.iter().any(|it| !judgement.unread.contains(it.name));
        let makes = !judgement.makes.is_empty();
        let status = EventActionStatus {
            trigger: Some(self.observed_trigger()),
            observed: self.recorded(contents, &judgement.unread),
            last_change_time: if is_changed { Some(now) } else { status.last_change_time },
            last_event_time: if makes { Some(now) } else { status.last_event_time },
            pending: if makes { self.action_name(&judgement.makes) } else { String::new() },
            pending_chain: judgement.chain,
            recent_times,
            skipped: judgement.skipped,
            message,
            collision_count: status.collision_count,
        };
        EventDecision { make: None, delete, status, wake_at: None }
    }

    /// Returns a message about the objects that are to be observed and that are not there; empty if they are.
    fn absence(&self, contents: &BTreeMap<String, ObjectContent>) -> String {
        let trigger = &self.spec.trigger;
        let of_kind = match trigger.kind {
            EventSourceKind::Catalog => "Catalog",
            EventSourceKind::Operator => "Operator",
            EventSourceKind::ClusterVersion => "ClusterVersion",
            EventSourceKind::Object => "object",
        };
        let kind = trigger.object.as_ref().map_or(of_kind, |it| &it.kind);
        let absent = trigger.names.iter().filter(|it| !contents.contains_key(*it));
        let absent: Vec<String> = absent.cloned().collect();
        match (absent.is_empty(), contents.is_empty()) {
            (false, _) => format!("there is no {kind} {}", enumerated(&absent)),
            (true, true) => format!("there is no {kind} to observe"),
            (true, false) => String::new(),
        }
    }

    /// Returns the names of the objects that have to be read before a decision: the filter is evaluated for them.
    pub fn needed(
        &self,
        contents: &Result<&BTreeMap<String, ObjectContent>, String>,
        now: Timestamp,
    ) -> Vec<String> {
        let Self { spec, status, .. } = *self;
        let is_idle = spec.trigger.filter.is_empty() || spec.suspend || !status.pending.is_empty();
        let contents = contents.clone().and_then(|it| self.bounded(it));
        let (false, Ok(contents), None) = (is_idle, contents, self.acts_at(now)) else {
            return Vec::new();
        };
        let names: BTreeSet<&str> = self.changes(contents).iter().map(|it| it.name).collect();
        // Others are the first ones each time, so that all are read though some change again and again.
        let seconds = EVENT_INTERVAL.as_secs().max(1).cast_signed();
        let turn = usize::try_from(now.as_second() / seconds).unwrap_or_default();
        let begin = turn.checked_rem(names.len()).unwrap_or_default();
        let read = names.iter().cycle().skip(begin).take(names.len().min(READ_MAX));
        read.map(|it| (*it).to_owned()).collect()
    }

    /// Returns the filter; `None` if it has none.
    ///
    /// # Errors
    ///
    /// When the filter does not compile, or an event is none of the kind.
    fn filter(&self) -> Result<Option<Filter>, String> {
        let EventTrigger { kind, events, filter, .. } = &self.spec.trigger;
        if let Some(event) = events.iter().find(|it| !kind.events().contains(it)) {
            let of_kind: Vec<&str> = kind.events().iter().map(|it| it.as_str()).collect();
            let (event, of_kind) = (event.as_str(), of_kind.join(", "));
            return Err(format!(
                "spec.trigger.events: {event} is no event of the kind; it has {of_kind}"
            ));
        }
        Filter::compile(filter).map_err(|why| filter::problem(&why))
    }

    /// Returns the events that are looked for.
    fn events(&self) -> &[EventType] {
        let trigger = &self.spec.trigger;
        match trigger.events.as_slice() {
            [] => &trigger.kind.events()[..1],
            events => events,
        }
    }

    /// Returns whether it observes the object with a name.
    fn is_meant(&self, name: &String) -> bool {
        let names = &self.spec.trigger.names;
        names.is_empty() || names.contains(name)
    }

    /// Returns the contents of objects, unless it observes too many of them.
    fn bounded<'b>(
        &self,
        contents: &'b BTreeMap<String, ObjectContent>,
    ) -> Result<&'b BTreeMap<String, ObjectContent>, String> {
        let count = contents.keys().filter(|it| self.is_meant(it)).count();
        let message = || {
            format!("{count} objects are selected, of at most {OBSERVED_MAX}: select fewer of them")
        };
        (count <= OBSERVED_MAX).then_some(contents).ok_or_else(message)
    }

    /// Returns what is looked at, without the filter: another one is no reason to look anew.
    fn observed_trigger(&self) -> EventTrigger {
        EventTrigger { filter: String::new(), ..self.spec.trigger.clone() }
    }

    /// Returns whether it has not looked at these objects before.
    fn is_first(&self) -> bool {
        self.status.trigger.as_ref() != Some(&self.observed_trigger())
    }

    /// Returns what was observed last, by name and event; nothing before the first look.
    fn before(&self) -> BTreeMap<(&'a str, EventType), &'a str> {
        let observed = self.status.observed.iter().filter(|_| !self.is_first());
        observed.map(|it| ((it.name.as_str(), it.event), it.content.as_str())).collect()
    }

    /// Returns the changes since the objects were observed last; none at the first look.
    fn changes<'b>(&self, contents: &'b BTreeMap<String, ObjectContent>) -> Vec<Change<'b>>
    where
        'a: 'b,
    {
        let mut changes = Vec::new();
        if self.is_first() {
            return changes;
        }
        let before = self.before();
        for (name, content) in contents.iter().filter(|(name, _)| self.is_meant(name)) {
            for (event, new) in &content.events {
                let event = *event;
                let old = before.get(&(name.as_str(), event)).copied().unwrap_or_default();
                if self.events().contains(&event) && is_change(event, old, new) {
                    // Updates become available whatever was written before.
                    let is_written = event != EventType::UpdateAvailable;
                    let chain = if is_written { content.chain.as_slice() } else { &[] };
                    let new = remembered(event, old, new);
                    changes.push(Change { name, event, old, new, chain });
                }
            }
        }
        changes
    }

    /// Returns what becomes of changes.
    fn judge<'b>(
        &self,
        changes: &[Change<'b>],
        mut filter: Option<Filter>,
        objects: &BTreeMap<String, Value>,
        now: Timestamp,
    ) -> Judgement<'b> {
        let skipped = if self.is_first() { Vec::new() } else { self.status.skipped.clone() };
        let mut judgement = Judgement { skipped, ..Judgement::default() };
        let own = format!("{}/{}", self.namespace, self.name);
        for change in changes.iter().filter(|_| !self.spec.suspend) {
            let Some(filter) = &mut filter else {
                judgement.admit(change.clone(), &own, now);
                continue;
            };
            let Some(object) = objects.get(change.name) else {
                judgement.unread.insert(change.name);
                continue;
            };
            match filter.holds(change, object) {
                Ok(Some(true)) => judgement.admit(change.clone(), &own, now),
                Ok(Some(false)) => {}
                // It is judged later, when the others have been.
                Ok(None) => drop(judgement.unread.insert(change.name)),
                Err(why) => {
                    let note = change.note(&format!("{why}; {FILTER_ADVICE}"));
                    skip(&mut judgement.skipped, Reason::FilterFailed, &note, now);
                }
            }
        }
        judgement
    }

    /// Returns what is observed of the objects now. What is not known stays as it was; an object that is deleted
    /// and created again counts as changed.
    fn recorded(
        &self,
        contents: &BTreeMap<String, ObjectContent>,
        unread: &BTreeSet<&str>,
    ) -> Vec<ObservedContent> {
        let before = self.before();
        let mut observed = Vec::new();
        for (name, content) in contents.iter().filter(|(name, _)| self.is_meant(name)) {
            for event in self.events() {
                let old = before.get(&(name.as_str(), *event)).copied().unwrap_or_default();
                let content = match content.events.get(event) {
                    Some(new) if !unread.contains(name.as_str()) => remembered(*event, old, new),
                    _ => Cow::Borrowed(old),
                };
                if !content.is_empty() {
                    let (name, content) = (name.clone(), content.into_owned());
                    observed.push(ObservedContent { name, event: *event, content });
                }
            }
        }
        observed
    }

    /// Returns the name of the Action for some changes.
    fn action_name(&self, changes: &[Change<'_>]) -> String {
        // The previous time results in a new name if the same content occurs again.
        let since = self.status.last_event_time.map(|it| it.to_string()).unwrap_or_default();
        let mut parts = vec![self.uid, &since];
        for Change { name, event, new, .. } in changes {
            parts.extend([*name, event.as_str(), &**new]);
        }
        derived_name(self.name, &parts)
    }

    /// Returns when the next change is acted on; `None` if it is now. What changes until then is one change.
    fn acts_at(&self, now: Timestamp) -> Option<Timestamp> {
        // A time in the future is due to a wrong clock and is ignored.
        let last = self.status.last_change_time.filter(|it| *it <= now)?;
        last.checked_add(EVENT_INTERVAL).ok().filter(|it| *it > now)
    }
}

impl<'a> Judgement<'a> {
    /// Has no Action made if that were one too many; returns the times that count for the limit afterwards.
    fn limit(&mut self, limit: Option<Limit>, now: Timestamp) -> Vec<Timestamp> {
        let Some(mut limit) = limit else { return Vec::new() };
        if self.makes.is_empty() {
            return limit.times;
        }
        let Some(why) = limit.exceeded() else {
            limit.times.push(now);
            return limit.times;
        };
        for change in std::mem::take(&mut self.makes) {
            skip(&mut self.skipped, Reason::RateLimited, &change.note(&why), now);
        }
        self.chain.clear();
        limit.times
    }

    /// Has an Action made for a change, unless it follows from an Action of the same EventAction.
    fn admit(&mut self, change: Change<'a>, own: &str, now: Timestamp) {
        let extended = chain::extended(change.chain, own);
        match extended.and_then(|it| chain::join(&mut self.chain, &it)) {
            Ok(()) => self.makes.push(change),
            Err(circle) => {
                let note = change.note(&format!("{circle}; {CIRCLE_ADVICE}"));
                skip(&mut self.skipped, Reason::EventActionCircle, &note, now);
            }
        }
    }
}

/// Returns what is wrong with the labels that an EventAction selects objects by; `None` if nothing is. API servers say
/// less about it, and read some keys as another selector.
pub fn selector_problem(selector: &BTreeMap<String, String>) -> Option<String> {
    let problem = |(key, value): (&String, &String)| {
        let wrong = names::qualified(key).into_iter().next();
        let wrong = wrong.or_else(|| names::label_value(value).into_iter().next())?;
        Some(format!("spec.trigger.object.selector is invalid: `{key}: {value}`: {wrong}"))
    };
    selector.iter().find_map(problem).map(|it| cut(&it, MESSAGE_LENGTH_MAX))
}

/// Counts a change that makes no Action.
fn skip(skipped: &mut Vec<MissedTimes>, reason: Reason, message: &str, now: Timestamp) {
    let at = match skipped.iter().position(|it| it.reason == reason.as_str()) {
        Some(at) => at,
        None => {
            let reason = reason.as_str().to_owned();
            skipped.push(MissedTimes { reason, first_time: now, ..MissedTimes::default() });
            skipped.len() - 1
        }
    };
    let it = &mut skipped[at];
    it.count = it.count.saturating_add(1);
    it.last_time = now;
    it.message = cut(message, SKIPPED_LENGTH_MAX);
}

#[cfg(test)]
mod tests;
