//! Metrics of the add-on layer.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use plimsoll_api::config::MetaCondition;
use plimsoll_api::olm::OperatorStatus;
use plimsoll_api::olm::action::{ActionState, PolicyDecision};
use serde::Deserialize as _;
use serde_json::Value;

/// The Operators of a cluster, as a controller that leads sees them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OperatorsView {
    /// Whether this process is the leader; what is reported of Operators is of the leader alone.
    pub is_leader: bool,
    /// Kinds that the leader has to list before it can work, or again after their watch was lost,
    /// by their names in the plural.
    pub unlisted: BTreeSet<&'static str>,
    /// By name.
    pub operators: BTreeMap<String, OperatorView>,
    /// Steps of Operators executed while this process was the leader, by action and result.
    pub executions: BTreeMap<(&'static str, &'static str), u64>,
    /// Objects of Operators that were repaired while this process was the leader.
    pub drift_repairs: u64,
    /// Number of Actions by state.
    pub actions: BTreeMap<&'static str, usize>,
    /// The Actions that wait, by reason.
    pub actions_waiting: BTreeMap<&'static str, WaitingActions>,
    /// The Actions that ended while this process was the leader, by class, result and reason.
    pub actions_ended: BTreeMap<(String, &'static str, &'static str), ActionEnds>,
    /// How long they took, by class.
    pub action_durations: BTreeMap<String, Durations>,
    /// How often policies decided while this process was the leader, by policy (empty for the permissions of the
    /// requester), mode, decision and the rule that did not hold.
    pub policy_decisions: BTreeMap<[String; 4], u64>,
}

/// Actions that wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitingActions {
    /// Their number.
    pub count: usize,
    /// When the one was created that was created first.
    pub since: Timestamp,
}

/// The ends of Actions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActionEnds {
    /// Their number.
    pub count: u64,
    /// When the last one was.
    pub last: Timestamp,
}

/// Durations, counted by their length.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Durations {
    /// Number of those that last at most as long as each of [`Durations::BOUNDS`].
    pub counts: [u64; Durations::BOUNDS.len()],
    /// Number of all.
    pub count: u64,
    /// Their sum, in seconds.
    pub sum: f64,
}

impl Durations {
    /// The bounds by which they are counted, in seconds: from a query to an update of the release.
    pub const BOUNDS: [f64; 9] = [1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 10_800.0, 21_600.0];

    /// Adds a duration in seconds. A clock that was set back makes none negative.
    fn add(&mut self, seconds: f64) {
        let seconds = seconds.max(0.0);
        for (count, bound) in self.counts.iter_mut().zip(Self::BOUNDS) {
            *count += u64::from(seconds <= bound);
        }
        self.count += 1;
        self.sum += seconds;
    }
}

/// An Operator, as its status reports it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OperatorView {
    /// Its version; empty before the first installation.
    pub version: String,
    /// Its conditions.
    pub conditions: Vec<MetaCondition>,
    /// Objects that do not go, while it is being deleted.
    pub stuck: usize,
}

impl OperatorsView {
    /// Counts an Action that has ended at a time.
    pub(crate) fn action_ended(
        &mut self,
        class: String,
        state: ActionState,
        reason: &'static str,
        duration: SignedDuration,
        at: Timestamp,
    ) {
        self.action_durations.entry(class.clone()).or_default().add(duration.as_secs_f64());
        let result = match state {
            ActionState::Succeeded => "succeeded",
            ActionState::Cancelled => "cancelled",
            _ => "failed",
        };
        let ends = self.actions_ended.entry((class, result, reason));
        let ends = ends.or_insert(ActionEnds { count: 0, last: at });
        ends.count += 1;
        ends.last = ends.last.max(at);
    }

    /// Counts what a policy decided on an Action.
    pub(crate) fn policy_decided(&mut self, decision: &PolicyDecision) {
        let PolicyDecision { policy, mode, allowed, rule, .. } = decision;
        let decision = if *allowed { "allowed" } else { "denied" };
        let key = [policy.clone(), mode.to_lowercase(), decision.to_owned(), rule.clone()];
        *self.policy_decisions.entry(key).or_default() += 1;
    }

    /// An Operator changed; `None` when it is gone. Returns whether anything that is reported did.
    pub(crate) fn observed(&mut self, name: &str, object: Option<&Value>) -> bool {
        match object {
            Some(object) => {
                let view = OperatorView::of(object);
                let before = self.operators.insert(name.to_owned(), view);
                before.as_ref() != self.operators.get(name)
            }
            None => self.operators.remove(name).is_some(),
        }
    }
}

impl OperatorView {
    fn of(object: &Value) -> Self {
        let status = OperatorStatus::deserialize(&object["status"]).unwrap_or_default();
        Self {
            version: status.bundle.map(|it| it.version).unwrap_or_default(),
            conditions: status.conditions,
            stuck: status.deletion.map_or(0, |it| it.stuck.len()),
        }
    }
}
