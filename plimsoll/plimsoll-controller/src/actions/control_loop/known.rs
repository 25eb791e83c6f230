//! What the control loop knows of Actions beside those that have not ended: a record of each other
//! one, and how many there are.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use plimsoll_api::config::MetaCondition;
use plimsoll_api::olm::action::{ACTION_SUCCEEDED, ActionSpec, ActionState, ActionStatus};
use plimsoll_api::{CompactName, ConditionStatus, NamespacedName, Reason};
use plimsoll_operators::actions::attributes::NamedClass;
use plimsoll_operators::actions::history::{EndedAction, History, Outdated, Second};
use plimsoll_operators::actions::report::ActionObject;
use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::actions::parts::beginning;
use crate::view::WaitingActions;

/// The maximum length of the message that is kept of an ended attempt, in bytes.
const MESSAGE_LENGTH_MAX: usize = 512;

/// The Actions that have ended.
#[derive(Debug, Default)]
pub(super) struct EndedActions {
    /// Those that no object has generated, in the order in which they are deleted.
    history: History,
    /// Those that are kept as the objects say that generated them.
    attempts: BTreeMap<CompactName, Box<EndedAttempt>>,
}

/// What is kept of an Action that an object generated and that has ended.
#[derive(Debug, PartialEq)]
struct EndedAttempt {
    uid: Box<str>,
    created: Second,
    ended: Option<Second>,
    state: ActionState,
    /// Whether its cancellation was requested.
    is_cancelled: bool,
    /// Whether its plan was rejected.
    is_rejected: bool,
    /// The uid of the object that generated it.
    owner: Box<str>,
    /// Why it ended so.
    message: Box<str>,
}

/// A record that was replaced.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Replaced {
    /// The state that the Action ended in, as it was known.
    pub(super) state: ActionState,
    /// The uid of the object that generated it; empty if none did.
    pub(super) owner: String,
}

impl EndedAttempt {
    fn of(action: &ActionObject) -> Self {
        let ActionObject { uid, created, owner, spec, status, .. } = action;
        let condition = action.condition();
        let message = condition.map_or("", |it| &it.message);
        Self {
            uid: uid.as_str().into(),
            created: (*created).into(),
            ended: status.completion_time.map(Second::from),
            state: status.state,
            is_cancelled: spec.cancelled,
            is_rejected: condition.is_some_and(|it| it.reason == Reason::PlanRejected.as_str()),
            owner: owner.as_str().into(),
            message: beginning(message, MESSAGE_LENGTH_MAX).into(),
        }
    }
}

impl EndedActions {
    /// Returns whether an Action has ended that is known as such.
    pub(super) fn has(&self, id: &NamespacedName, uid: &str) -> bool {
        let attempt = self.attempts.get(&id.into()).map(|it| &it.uid);
        attempt.or_else(|| self.history.get(id).map(|it| &it.uid)).is_some_and(|it| **it == *uid)
    }

    /// Adds an Action that has ended.
    pub(super) fn insert(
        &mut self,
        id: &NamespacedName,
        action: &ActionObject,
        is_generated: bool,
        classes: &[NamedClass],
    ) {
        if is_generated {
            self.attempts.insert(id.into(), Box::new(EndedAttempt::of(action)));
        } else if let Some(ended) = EndedAction::of(action, classes) {
            self.history.insert(ended);
        }
    }

    /// Replaces the record of an Action if a later state says otherwise how it ended, as that of a
    /// controller that writes its status in several steps. Returns the record before; `None` if it
    /// stays.
    pub(super) fn update(
        &mut self,
        id: &NamespacedName,
        action: &ActionObject,
        classes: &[NamedClass],
    ) -> Option<Replaced> {
        let ended = EndedAction::of(action, classes)?;
        if let Some(before) = self.attempts.get_mut(&id.into()) {
            // What was requested after the end did not end it, and its owner stays.
            let (is_cancelled, owner) = (before.is_cancelled, before.owner.clone());
            let after = EndedAttempt { is_cancelled, owner, ..EndedAttempt::of(action) };
            if after == **before {
                return None;
            }
            let before = std::mem::replace(&mut **before, after);
            return Some(Replaced { state: before.state, owner: before.owner.to_string() });
        }
        let state = self.history.get(id).filter(|it| **it != ended)?.state;
        self.history.insert(ended);
        Some(Replaced { state, owner: String::new() })
    }

    /// Files an attempt that is not the one of an object any longer with those that no object has
    /// generated. Returns the uid of that object; `None` if the Action was no attempt, or another
    /// state of it than its last one is shown.
    pub(super) fn orphan(
        &mut self,
        id: &NamespacedName,
        action: &ActionObject,
        classes: &[NamedClass],
    ) -> Option<String> {
        let ended = EndedAction::of(action, classes)?;
        let attempt = self.attempts.remove(&id.into())?;
        self.history.insert(ended);
        Some(attempt.owner.to_string())
    }

    /// Removes an Action; returns the state that it ended in, and the uid of the object that
    /// generated it, which is empty if none did. `None` if the Action is not known.
    pub(super) fn remove(&mut self, id: &NamespacedName) -> Option<(ActionState, String)> {
        let attempt = self.attempts.remove(&id.into()).map(|it| (it.state, it.owner.to_string()));
        attempt.or_else(|| self.history.remove(id).map(|it| (it.state, String::new())))
    }

    /// Returns an Action that an object generated as that object needs it; `None` if it is not
    /// known.
    pub(super) fn attempt(&self, id: &NamespacedName) -> Option<ActionObject> {
        let EndedAttempt { uid, created, ended, state, is_cancelled, is_rejected, owner, message } =
            &**self.attempts.get(&id.into())?;
        let reason = if *is_rejected { Reason::PlanRejected.as_str() } else { "" };
        let (created, ended) = (Timestamp::from(*created), ended.map(Timestamp::from));
        let status = match state {
            ActionState::Succeeded => ConditionStatus::True,
            _ => ConditionStatus::False,
        };
        let condition = MetaCondition {
            type_: ACTION_SUCCEEDED.to_owned(),
            status,
            observed_generation: None,
            last_transition_time: ended.unwrap_or(created),
            reason: reason.to_owned(),
            message: message.to_string(),
        };
        Some(ActionObject {
            namespace: id.namespace.clone(),
            name: id.name.clone(),
            uid: uid.to_string(),
            created,
            owner: owner.to_string(),
            spec: ActionSpec { cancelled: *is_cancelled, ..ActionSpec::default() },
            status: ActionStatus {
                state: *state,
                conditions: vec![condition],
                completion_time: ended,
                ..ActionStatus::default()
            },
            ..ActionObject::default()
        })
    }

    /// Returns the Actions that are not kept any longer.
    pub(super) fn outdated(&self, classes: &[NamedClass], now: Timestamp) -> Outdated {
        self.history.outdated(classes, now)
    }

    /// Files the Actions under the names of their classes again, after classes have changed.
    pub(super) fn classes_changed(&mut self, classes: &[NamedClass]) {
        let moved = self.history.iter().filter_map(|it| {
            let class = NamedClass::find(classes, &it.class)?;
            let class = Box::from(class.name.as_str());
            (class != it.class).then(|| EndedAction { class, ..it.clone() })
        });
        let moved: Vec<EndedAction> = moved.collect();
        for action in moved {
            self.history.insert(action);
        }
    }
}

/// The number of Actions by state, by namespace and by what they wait for.
#[derive(Debug, Default)]
pub(super) struct ActionCounts {
    states: BTreeMap<&'static str, usize>,
    active: BTreeMap<String, usize>,
    /// The creation times of those that wait, by reason.
    waiting: BTreeMap<&'static str, BTreeMap<Timestamp, usize>>,
    /// The namespaces of which `active` has changed since they were last taken.
    changed: BTreeSet<String>,
}

impl ActionCounts {
    /// Counts an Action of which more than a record is kept.
    pub(super) fn add(&mut self, action: &ActionObject) {
        *self.states.entry(action.status.state.as_str()).or_default() += 1;
        if action.status.state.is_final() {
            return;
        }
        *self.active.entry(action.namespace.clone()).or_default() += 1;
        self.changed.insert(action.namespace.clone());
        if let Some(reason) = waits(action) {
            *self.waiting.entry(reason).or_default().entry(action.created).or_default() += 1;
        }
    }

    /// Ceases to count such an Action.
    pub(super) fn remove(&mut self, action: &ActionObject) {
        decrement(&mut self.states, action.status.state.as_str());
        if action.status.state.is_final() {
            return;
        }
        decrement(&mut self.active, action.namespace.as_str());
        self.changed.insert(action.namespace.clone());
        if let Some(reason) = waits(action)
            && let Some(times) = self.waiting.get_mut(reason)
        {
            decrement(times, &action.created);
            if times.is_empty() {
                self.waiting.remove(reason);
            }
        }
    }

    /// Counts an Action of which a record is kept.
    pub(super) fn add_ended(&mut self, state: ActionState) {
        *self.states.entry(state.as_str()).or_default() += 1;
    }

    /// Ceases to count an Action of which a record was kept.
    pub(super) fn remove_ended(&mut self, state: ActionState) {
        decrement(&mut self.states, state.as_str());
    }

    /// Returns whether any Action is in a state.
    pub(super) fn is_any(&self, state: ActionState) -> bool {
        self.states.contains_key(state.as_str())
    }

    /// Returns the number of Actions by state.
    pub(super) fn states(&self) -> &BTreeMap<&'static str, usize> {
        &self.states
    }

    /// Returns the Actions that wait, by reason.
    pub(super) fn waiting(&self) -> BTreeMap<&'static str, WaitingActions> {
        let waiting = self.waiting.iter().filter_map(|(reason, times)| {
            let since = *times.first_key_value()?.0;
            Some((*reason, WaitingActions { count: times.values().sum(), since }))
        });
        waiting.collect()
    }

    /// Returns the namespaces whose number of Actions that have not ended has changed since the last
    /// call, each with the number.
    pub(super) fn changed_active(&mut self) -> BTreeMap<String, usize> {
        let changed = std::mem::take(&mut self.changed).into_iter();
        changed
            .map(|namespace| {
                let count = self.active.get(&namespace).copied().unwrap_or_default();
                (namespace, count)
            })
            .collect()
    }
}

/// Returns the reason for which an Action waits; `None` if it does not wait.
fn waits(action: &ActionObject) -> Option<&'static str> {
    let state = action.status.state;
    let waits = matches!(state, ActionState::Pending | ActionState::WaitingForApproval);
    waits.then(|| reason_of(action).map_or("", Reason::as_str))
}

/// Returns the reason of the condition of success; `None` if there is none, or one of another
/// program.
pub(super) fn reason_of(action: &ActionObject) -> Option<Reason> {
    known_reason(&action.condition()?.reason)
}

/// Returns the reason with a name; `None` if this program does not know it.
pub(super) fn known_reason(name: &str) -> Option<Reason> {
    Reason::ALL.iter().copied().find(|it| it.as_str() == name)
}

fn decrement<K, Q>(counts: &mut BTreeMap<K, usize>, key: &Q)
where
    K: Ord + std::borrow::Borrow<Q>,
    Q: Ord + ?Sized,
{
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

/// Reads an Action, and as much as possible of one that has another form; then the error is
/// returned as well.
pub(super) fn read(object: &Value) -> (ActionObject, Option<String>) {
    let error = match ActionObject::read(object) {
        Ok(action) => return (action, None),
        Err(error) => error,
    };
    let mut object = object.clone();
    if ActionStatus::deserialize(&object["status"]).is_err() {
        object["status"] = Value::Null;
    }
    if ActionSpec::deserialize(&object["spec"]).is_err() {
        object["spec"] = json!({ "actionClass": object["spec"]["actionClass"].as_str() });
        if object["spec"]["actionClass"].is_null() {
            object["spec"] = json!({});
        }
    }
    (ActionObject::read(&object).unwrap_or_default(), Some(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn action(state: &str, reason: &str, created: &str) -> ActionObject {
        let object = json!({
            "metadata": {
                "namespace": "team-a", "name": "one", "uid": "1", "resourceVersion": "7",
                "creationTimestamp": created,
                "ownerReferences": [{ "controller": true, "uid": "owner" }],
            },
            "spec": { "actionClass": "resolution" },
            "status": { "state": state, "completionTime": created, "conditions": [{
                "type": ACTION_SUCCEEDED, "status": "False", "reason": reason, "message": "no",
                "lastTransitionTime": created,
            }] },
        });
        ActionObject::read(&object).expect("it can be read")
    }

    #[test]
    fn counts_return_to_nothing_once_all_actions_are_gone() {
        let mut counts = ActionCounts::default();
        let early = action("Pending", "WaitingForAction", "2026-01-01T00:00:00Z");
        let late = action("Pending", "WaitingForAction", "2026-01-02T00:00:00Z");
        let running = action("Running", "ActionRunning", "2026-01-01T00:00:00Z");
        for it in [&early, &late, &running] {
            counts.add(it);
        }
        counts.add_ended(ActionState::Failed);
        assert_eq!(counts.states()["Pending"], 2);
        assert_eq!(counts.states()["Failed"], 1);
        assert!(counts.is_any(ActionState::Pending));
        assert!(!counts.is_any(ActionState::WaitingForApproval));
        assert_eq!(counts.changed_active(), [("team-a".to_owned(), 3)].into());
        assert_eq!(counts.changed_active(), BTreeMap::new());
        let waiting = |counts: &ActionCounts| counts.waiting().get("WaitingForAction").copied();
        assert_eq!(waiting(&counts), Some(WaitingActions { count: 2, since: early.created }));
        counts.remove(&early);
        assert_eq!(waiting(&counts), Some(WaitingActions { count: 1, since: late.created }));
        counts.remove(&late);
        counts.remove(&running);
        counts.remove_ended(ActionState::Failed);
        assert_eq!(waiting(&counts), None);
        assert!(!counts.is_any(ActionState::Pending));
        assert!(counts.states().is_empty(), "{counts:?}");
        assert_eq!(counts.changed_active(), [("team-a".to_owned(), 0)].into());
    }

    #[test]
    fn a_record_says_of_an_attempt_what_the_action_said() {
        let mut action = action("Failed", "PolicyDenied", "2026-01-01T00:00:00Z");
        action.spec.cancelled = true;
        let id = NamespacedName { namespace: "team-a".to_owned(), name: "one".to_owned() };
        let mut ended = EndedActions::default();
        ended.insert(&id, &action, true, &[]);
        let attempt = ended.attempt(&id).expect("it is known");
        assert_eq!(attempt.order(), action.order());
        assert_eq!(attempt.uid, action.uid);
        assert_eq!(attempt.owner, action.owner);
        assert_eq!(attempt.status.state, action.status.state);
        assert!(attempt.spec.cancelled);
        assert_eq!(attempt.status.completion_time, action.status.completion_time);
        assert_eq!(attempt.status.conditions[0].message, "no");
        assert!(ended.outdated(&[], Timestamp::MAX).delete.is_empty(), "its owner keeps it");
    }

    #[test]
    fn a_record_follows_what_a_controller_writes_after_the_end() {
        let first = action("Failed", "PolicyDenied", "2026-01-01T00:00:00Z");
        let id = NamespacedName { namespace: "team-a".to_owned(), name: "one".to_owned() };
        let changed = |change: fn(&mut ActionObject)| {
            let mut action = first.clone();
            change(&mut action);
            action
        };
        let later =
            changed(|it| it.status.completion_time = Some("2026-01-02T00:00:00Z".parse().unwrap()));
        let explained = changed(|it| it.status.conditions[0].message = "no space".to_owned());
        let other = changed(|it| it.status.state = ActionState::Succeeded);
        let running = changed(|it| it.status.state = ActionState::Running);
        let cancelled = changed(|it| it.spec.cancelled = true);
        for (is_generated, owner) in [(false, ""), (true, "owner")] {
            for (after, is_replaced) in [
                (&first, false),
                (&later, true),
                (&explained, is_generated),
                (&other, true),
                (&running, false),
                (&cancelled, false),
            ] {
                let mut ended = EndedActions::default();
                ended.insert(&id, &first, is_generated, &[]);
                let (state, owner) = (ActionState::Failed, owner.to_owned());
                let expected = is_replaced.then_some(Replaced { state, owner });
                assert_eq!(ended.update(&id, after, &[]), expected, "{is_generated} {after:?}");
                assert_eq!(ended.update(&id, after, &[]), None, "it is known now");
                let kept = if is_replaced { after } else { &first };
                if let Some(attempt) = ended.attempt(&id) {
                    assert_eq!(attempt.status.completion_time, kept.status.completion_time);
                    assert_eq!(
                        attempt.condition().map(|it| &it.message),
                        kept.condition().map(|it| &it.message)
                    );
                    assert!(!attempt.spec.cancelled);
                }
                assert_eq!(ended.remove(&id).map(|(state, _)| state), Some(kept.status.state));
            }
        }
    }

    #[test]
    fn an_attempt_that_its_owner_left_is_kept_as_its_class_says() {
        let mut action = action("Failed", "PolicyDenied", "2026-01-01T00:00:00Z");
        action.spec.ttl_after_finished = "1h".to_owned();
        let id = NamespacedName { namespace: "team-a".to_owned(), name: "one".to_owned() };
        let mut ended = EndedActions::default();
        ended.insert(&id, &action, true, &[]);
        let early = ActionObject { status: ActionStatus::default(), ..action.clone() };
        assert_eq!(ended.orphan(&id, &early, &[]), None, "the watch is behind");
        assert!(ended.outdated(&[], Timestamp::MAX).delete.is_empty());
        assert_eq!(ended.orphan(&id, &action, &[]), Some("owner".to_owned()));
        assert!(ended.has(&id, "1") && ended.attempt(&id).is_none());
        assert_eq!(ended.outdated(&[], Timestamp::MAX).delete.len(), 1);
        assert_eq!(ended.orphan(&id, &action, &[]), None);
        assert_eq!(ended.remove(&id), Some((ActionState::Failed, String::new())));
        assert_eq!(ended.remove(&id), None, "it is filed once");
    }

    #[test]
    fn an_ended_action_takes_less_than_200_bytes_beside_its_texts() {
        // The nodes of trees may be half empty.
        let entry = |size: usize| 2 * size;
        let of_watch = entry(size_of::<(CompactName, u64)>());
        let counts_of_references = 2 * size_of::<usize>();
        let in_history = entry(2 * size_of::<usize>()) + counts_of_references;
        let size = size_of::<EndedAction>() + in_history + of_watch;
        assert!(size < 200, "{size}");
        let in_map = entry(size_of::<(CompactName, Box<EndedAttempt>)>());
        let size = size_of::<EndedAttempt>() + in_map + of_watch;
        assert!(size < 200, "{size}");
    }

    #[test]
    fn an_ended_action_is_known_until_it_is_removed() {
        let action = action("Failed", "PolicyDenied", "2026-01-01T00:00:00Z");
        let id = NamespacedName { namespace: "team-a".to_owned(), name: "one".to_owned() };
        for is_generated in [false, true] {
            let mut ended = EndedActions::default();
            assert!(!ended.has(&id, "1"));
            ended.insert(&id, &action, is_generated, &[]);
            assert!(ended.has(&id, "1") && !ended.has(&id, "2"), "{is_generated}");
            assert_eq!(ended.attempt(&id).is_some(), is_generated);
            let owner = if is_generated { "owner" } else { "" };
            assert_eq!(ended.remove(&id), Some((ActionState::Failed, owner.to_owned())));
            assert_eq!(ended.remove(&id), None, "{is_generated}");
            assert!(!ended.has(&id, "1"));
        }
    }

    #[test]
    fn actions_follow_the_class_that_they_name_by_an_alias() {
        let action = action("Failed", "PolicyDenied", "2026-01-01T00:00:00Z");
        let id = NamespacedName { namespace: "team-a".to_owned(), name: "one".to_owned() };
        let mut ended = EndedActions::default();
        ended.insert(&id, &action, false, &[]);
        let spec = json!({ "controller": "a", "aliases": ["resolution"], "historyLimit": 0 });
        let class = NamedClass::new("resolve", serde_json::from_value(spec).expect("a class"));
        let now = action.created;
        assert!(ended.outdated(&[], now).delete.is_empty());
        ended.classes_changed(std::slice::from_ref(&class));
        let outdated = ended.outdated(&[class], now).delete;
        assert_eq!(outdated.len(), 1);
        assert_eq!(*outdated[0].class, *"resolve");
    }

    #[test]
    fn what_can_be_read_of_an_unreadable_action_is_read() {
        let metadata = json!({ "namespace": "team-a", "name": "one", "uid": "1" });
        for (spec, status, class, state, part) in [
            (json!({ "actionClass": "a", "requester": 1 }), Value::Null, "a", "Pending", "spec"),
            (json!("no"), json!({ "state": "Failed" }), "", "Failed", "spec"),
            (json!({ "actionClass": "a" }), json!({ "plan": 1 }), "a", "Pending", "status"),
        ] {
            let object = json!({ "metadata": metadata, "spec": spec, "status": status });
            let (action, error) = read(&object);
            let error = error.unwrap_or_default();
            assert!(error.starts_with(part), "{object}: {error}");
            assert_eq!(action.uid, "1", "{object}");
            assert_eq!(action.spec.action_class, class, "{object}");
            assert_eq!(action.status.state.as_str(), state, "{object}");
        }
        let (action, error) = read(&json!({ "metadata": metadata, "spec": {} }));
        assert_eq!((action.uid.as_str(), error), ("1", None));
    }
}
