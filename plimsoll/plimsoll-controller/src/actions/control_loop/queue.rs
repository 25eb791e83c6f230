//! The queue of work: what is due now, at a time of the system clock, or after a delay.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use plimsoll_operators::actions::report::ActionObject;
use tokio::time::Instant;

use crate::clock::{CLOCK_INTERVAL, Stopwatch};
use plimsoll_api::NamespacedName;

/// The smallest step back of the system clock that makes all timers due. Smaller steps are ignored:
/// time synchronization corrects the clock all the time.
const SET_BACK_MIN: SignedDuration = SignedDuration::from_secs(1);

/// How many items are taken until one comes first that is neither a status nor an Action, so that a
/// flood of Actions does not hold up the others. They take turns.
const FAIR_INTERVAL: usize = 16;

/// A generator before all others, and after all Actions.
const FIRST_GENERATOR: WorkItem =
    WorkItem::Generator("", NamespacedName { namespace: String::new(), name: String::new() });

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

/// Items that become due at a time: each at the earliest one that it was added for, since it is
/// added again for a later one once it is done.
struct Timers<T> {
    times: BTreeSet<(T, WorkItem)>,
    items: BTreeMap<WorkItem, T>,
}

impl<T: Ord + Copy> Timers<T> {
    fn new() -> Self {
        Self { times: BTreeSet::new(), items: BTreeMap::new() }
    }

    /// Adds an item, unless it becomes due sooner.
    fn add(&mut self, item: WorkItem, at: T) {
        if self.items.get(&item).is_some_and(|before| *before <= at) {
            return;
        }
        self.remove(&item);
        self.times.insert((at, item.clone()));
        self.items.insert(item, at);
    }

    fn remove(&mut self, item: &WorkItem) {
        if let Some((item, at)) = self.items.remove_entry(item) {
            self.times.remove(&(at, item));
        }
    }

    /// Returns the time at which the next item becomes due; `None` if none does.
    fn next_at(&self) -> Option<T> {
        self.times.first().map(|(at, _)| *at)
    }

    /// Takes the items that are due at a time.
    fn take(&mut self, now: T) -> Vec<WorkItem> {
        let mut due = Vec::new();
        while self.next_at().is_some_and(|at| at <= now) {
            due.extend(self.times.pop_first().map(|(_, item)| item));
        }
        for item in &due {
            self.items.remove(item);
        }
        due
    }

    /// Takes all items.
    fn take_all(&mut self) -> impl Iterator<Item = WorkItem> {
        self.times.clear();
        std::mem::take(&mut self.items).into_keys()
    }
}

/// The items of work, and when they are due.
pub(super) struct WorkQueue {
    /// Items that are due now.
    due: BTreeSet<WorkItem>,
    /// Items that become due at a time of the system clock.
    timers: Timers<Timestamp>,
    /// Items that are tried again. Changes of the system clock do not affect them.
    retries: Timers<Instant>,
    stopwatch: Stopwatch,
    /// By how much the clock was ahead of the stopwatch when it was last checked.
    clock_ahead: SignedDuration,
    /// How many items were taken since one was taken out of order.
    taken: usize,
    /// The item that was taken out of order last.
    out_of_order: WorkItem,
}

impl WorkQueue {
    /// Creates an empty queue at a time of the system clock.
    pub(super) fn new(now: Timestamp) -> Self {
        Self {
            due: BTreeSet::new(),
            timers: Timers::new(),
            retries: Timers::new(),
            stopwatch: Stopwatch::start(now),
            clock_ahead: SignedDuration::ZERO,
            taken: 0,
            out_of_order: FIRST_GENERATOR,
        }
    }

    /// Takes the next item that is due.
    pub(super) fn pop(&mut self) -> Option<WorkItem> {
        self.taken += 1;
        if self.taken >= FAIR_INTERVAL {
            self.taken = 0;
            if let Some(item) = self.pop_out_of_order() {
                return Some(item);
            }
        }
        self.due.pop_first()
    }

    /// Takes the item after the one that was taken out of order last, of those that come after all
    /// Actions.
    fn pop_out_of_order(&mut self) -> Option<WorkItem> {
        let after_last = (Bound::Excluded(&self.out_of_order), Bound::Unbounded);
        let next = self.due.range::<WorkItem, _>(after_last).next();
        let first = || self.due.range::<WorkItem, _>(FIRST_GENERATOR..).next();
        let item = next.or_else(first)?.clone();
        self.due.remove(&item);
        self.out_of_order = item.clone();
        Some(item)
    }

    /// Adds items that are due now.
    pub(super) fn add(&mut self, items: impl IntoIterator<Item = WorkItem>) {
        self.due.extend(items);
    }

    /// Adds an item that becomes due at a time of the system clock, unless it does sooner.
    pub(super) fn add_at(&mut self, item: WorkItem, at: Timestamp) {
        self.timers.add(item, at);
    }

    /// Removes the time of the system clock at which an item becomes due: its object is gone, or
    /// nothing is done about it any more.
    pub(super) fn forget(&mut self, item: &WorkItem) {
        self.timers.remove(item);
    }

    /// Adds an item that becomes due after a delay, unless it does sooner.
    pub(super) fn retry(&mut self, item: WorkItem, after: Duration) {
        self.retries.add(item, Instant::now() + after);
    }

    /// Returns the time to wake up at the latest; `None` if nothing waits for a time.
    pub(super) fn wake_at(&self, now: Timestamp) -> Option<Instant> {
        let timer = self.timers.next_at().map(|at| {
            let wait = at.duration_since(now).try_into().unwrap_or(Duration::ZERO);
            // The system clock may be changed in the meantime.
            Instant::now() + CLOCK_INTERVAL.min(wait)
        });
        self.retries.next_at().into_iter().chain(timer).min()
    }

    /// Makes the items due whose time has come. If the system clock was set back, that is all of
    /// them, since their times may have been computed from the earlier clock.
    pub(super) fn wake(&mut self, now: Timestamp) {
        let ahead = now.duration_since(self.stopwatch.steady_time());
        if ahead < self.clock_ahead - SET_BACK_MIN {
            self.due.extend(self.timers.take_all());
        }
        self.clock_ahead = ahead;
        self.due.extend(self.timers.take(now));
        self.due.extend(self.retries.take(Instant::now()));
    }
}

/// Returns the namespace and name of an Action.
pub(super) fn id_of(action: &ActionObject) -> NamespacedName {
    NamespacedName { namespace: action.namespace.clone(), name: action.name.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> NamespacedName {
        NamespacedName { namespace: "a".to_owned(), name: name.to_owned() }
    }

    fn action(second: i64, name: &str) -> WorkItem {
        WorkItem::Action(Timestamp::from_second(second).unwrap(), id(name))
    }

    #[tokio::test]
    async fn actions_come_in_the_order_of_creation_and_do_not_hold_up_the_rest() {
        let mut queue = WorkQueue::new(Timestamp::UNIX_EPOCH);
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

    #[tokio::test]
    async fn what_comes_after_actions_takes_turns() {
        let mut queue = WorkQueue::new(Timestamp::UNIX_EPOCH);
        let generators = ["a", "b"].map(|it| WorkItem::Generator("CronAction", id(it)));
        let mut others = Vec::new();
        for _ in 0..FAIR_INTERVAL * 4 {
            // All of them are due all the time.
            queue.add(generators.clone());
            queue.add([action(1, "c"), WorkItem::Outdated]);
            others.extend(queue.pop().filter(|it| *it != action(1, "c")));
        }
        let [a, b] = generators;
        assert_eq!(others, [a.clone(), b, WorkItem::Outdated, a]);
    }

    #[tokio::test]
    async fn an_item_is_due_at_its_earliest_time_and_not_once_it_is_forgotten() {
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let mut queue = WorkQueue::new(at(0));
        for (name, second) in [("late", 300), ("late", 200), ("late", 400), ("gone", 100)] {
            queue.add_at(action(0, name), at(second));
        }
        assert_eq!(queue.timers.next_at(), Some(at(100)));
        queue.forget(&action(0, "gone"));
        queue.forget(&action(0, "other"));
        assert_eq!(queue.timers.next_at(), Some(at(200)));
        queue.wake(at(199));
        assert_eq!(queue.pop(), None);
        queue.wake(at(200));
        assert_eq!((queue.pop(), queue.pop()), (Some(action(0, "late")), None));
        assert!(queue.timers.times.is_empty() && queue.timers.items.is_empty());
    }

    #[tokio::test]
    async fn all_timers_are_due_once_the_clock_is_set_back() {
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let mut queue = WorkQueue::new(at(1000));
        queue.wake(at(1000));
        queue.add_at(action(0, "a"), at(2000));
        queue.wake(at(900));
        assert_eq!((queue.pop(), queue.pop()), (Some(action(0, "a")), None));
        assert_eq!(queue.wake_at(at(900)), None);
    }
}
