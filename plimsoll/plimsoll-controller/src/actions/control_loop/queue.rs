//! The queue of work: what is due now, at a time of the system clock, or after a delay.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use plimsoll_operators::actions::report::ActionObject;
use tokio::time::Instant;

use crate::clock::{CLOCK_INTERVAL, Stopwatch};
use plimsoll_api::NamespacedName;

/// The smallest step back of the system clock that makes all timers due. Smaller steps are ignored:
/// time synchronization corrects the clock all the time.
const SET_BACK_MIN: SignedDuration = SignedDuration::from_secs(1);

/// How many items are taken before one that is neither a class nor an Action comes first, so that a
/// flood of Actions does not hold up the others.
const FAIR_INTERVAL: usize = 16;

/// An item of work, in the order in which what is due is done.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum WorkItem {
    /// The statuses of the classes.
    Classes,
    /// An Action, in the order of creation.
    Action(Timestamp, NamespacedName),
    /// An object that generates Actions.
    Generator(&'static str, NamespacedName),
    /// The Actions that are not kept any longer.
    Outdated,
}

impl WorkItem {
    /// Returns the item of an Action.
    pub(super) fn of(action: &ActionObject) -> Self {
        Self::Action(action.created, id_of(action))
    }
}

/// The items of work, and when they are due.
pub(super) struct WorkQueue {
    /// Items that are due now.
    due: BTreeSet<WorkItem>,
    /// Items that become due at a time of the system clock.
    timers: BTreeSet<(Timestamp, WorkItem)>,
    /// Items that are tried again. Changes of the system clock do not affect them.
    retries: BTreeMap<WorkItem, Instant>,
    stopwatch: Stopwatch,
    /// By how much the clock was ahead of the stopwatch when it was last checked.
    clock_ahead: SignedDuration,
    /// How many items were taken since one was taken out of order.
    taken: usize,
}

impl WorkQueue {
    /// Creates an empty queue at a time of the system clock.
    pub(super) fn new(now: Timestamp) -> Self {
        Self {
            due: BTreeSet::new(),
            timers: BTreeSet::new(),
            retries: BTreeMap::new(),
            stopwatch: Stopwatch::start(now),
            clock_ahead: SignedDuration::ZERO,
            taken: 0,
        }
    }

    /// Takes the next item that is due.
    pub(super) fn pop(&mut self) -> Option<WorkItem> {
        self.taken += 1;
        if self.taken >= FAIR_INTERVAL {
            self.taken = 0;
            let is_action = |it: &WorkItem| matches!(it, WorkItem::Action(..));
            if self.due.last().is_some_and(|it| !is_action(it)) {
                return self.due.pop_last();
            }
        }
        self.due.pop_first()
    }

    /// Adds items that are due now.
    pub(super) fn add(&mut self, items: impl IntoIterator<Item = WorkItem>) {
        self.due.extend(items);
    }

    /// Adds an item that becomes due at a time of the system clock.
    pub(super) fn add_at(&mut self, item: WorkItem, at: Timestamp) {
        self.timers.insert((at, item));
    }

    /// Adds an item that becomes due after a delay, unless it does sooner.
    pub(super) fn retry(&mut self, item: WorkItem, after: Duration) {
        let at = Instant::now() + after;
        self.retries.entry(item).and_modify(|it| *it = at.min(*it)).or_insert(at);
    }

    /// Returns the time to wake up at the latest; `None` if nothing waits for a time.
    pub(super) fn wake_at(&self, now: Timestamp) -> Option<Instant> {
        let timer = self.timers.first().map(|(at, _)| {
            let wait = at.duration_since(now).try_into().unwrap_or(Duration::ZERO);
            // The system clock may be changed in the meantime.
            Instant::now() + CLOCK_INTERVAL.min(wait)
        });
        self.retries.values().copied().chain(timer).min()
    }

    /// Makes the items due whose time has come. If the system clock was set back, that is all of
    /// them, since their times may have been computed from the earlier clock.
    pub(super) fn wake(&mut self, now: Timestamp) {
        let ahead = now.duration_since(self.stopwatch.steady_time());
        if ahead < self.clock_ahead - SET_BACK_MIN {
            self.due.extend(std::mem::take(&mut self.timers).into_iter().map(|(_, item)| item));
        }
        self.clock_ahead = ahead;
        while let Some((at, item)) = self.timers.pop_first() {
            if at > now {
                self.timers.insert((at, item));
                break;
            }
            self.due.insert(item);
        }
        let now = Instant::now();
        self.due.extend(self.retries.extract_if(.., |_, at| *at <= now).map(|(item, _)| item));
    }
}

/// Returns the namespace and name of an Action.
pub(super) fn id_of(action: &ActionObject) -> NamespacedName {
    NamespacedName { namespace: action.namespace.clone(), name: action.name.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn actions_come_in_the_order_of_creation_and_do_not_hold_up_the_rest() {
        let mut queue = WorkQueue::new(Timestamp::UNIX_EPOCH);
        let action = |second: i64, name: &str| {
            let id = NamespacedName { namespace: "a".to_owned(), name: name.to_owned() };
            WorkItem::Action(Timestamp::from_second(second).unwrap(), id)
        };
        queue.add([WorkItem::Outdated, action(2, "a"), action(1, "b"), WorkItem::Classes]);
        assert_eq!(queue.pop(), Some(WorkItem::Classes));
        assert_eq!(queue.pop(), Some(action(1, "b")));
        let mut taken = 2;
        loop {
            queue.add([action(3, "c")]);
            taken += 1;
            match queue.pop() {
                Some(WorkItem::Outdated) => break,
                item => assert!(matches!(item, Some(WorkItem::Action(..))), "{item:?}"),
            }
        }
        assert_eq!(taken, FAIR_INTERVAL);
        assert_eq!(queue.pop(), Some(action(3, "c")));
        assert_eq!(queue.pop(), None);
    }
}
