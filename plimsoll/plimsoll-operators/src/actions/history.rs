//! Ended Actions, and which of them to delete: those whose time is over, and the oldest ones beyond the limit of
//! their class in each namespace.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use plimsoll_api::olm::action::ActionState;
use plimsoll_api::{CompactName, NamespacedName, duration};

use super::attributes::NamedClass;
use super::report::ActionObject;

/// The number of ended Actions of a class that a namespace keeps, if the class has no limit of its own.
pub const HISTORY_LIMIT: u32 = 100;

/// A time in whole seconds, as API servers keep it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Second(i64);

impl From<Timestamp> for Second {
    fn from(time: Timestamp) -> Self {
        Self(time.as_second())
    }
}

impl From<Second> for Timestamp {
    fn from(Second(time): Second) -> Self {
        Self::from_second(time).unwrap_or(Self::MAX)
    }
}

/// An Action that has ended, without what only its object has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EndedAction {
    /// The namespace and the name of the object.
    pub name: CompactName,
    /// The uid of the object.
    pub uid: Box<str>,
    /// The name of its class, which is no alias; the name in its spec if there is no such class.
    pub class: Box<str>,
    /// The state that it ended in.
    pub state: ActionState,
    /// The creation time.
    pub created: Second,
    /// The completion time.
    pub ended: Second,
    /// How many seconds it is kept after its end; `None` for as long as its class says.
    pub ttl: Option<u32>,
}

/// Returns the seconds of a duration, the largest number for a longer one.
fn seconds(duration: Duration) -> u32 {
    u32::try_from(duration.as_secs()).unwrap_or(u32::MAX)
}

impl EndedAction {
    /// Returns what is kept of an Action; `None` if it has not ended.
    pub fn of(action: &ActionObject, classes: &[NamedClass]) -> Option<Self> {
        let ActionObject { namespace, name, uid, created, spec, status, .. } = action;
        if !status.state.is_final() {
            return None;
        }
        let class = NamedClass::find(classes, &spec.action_class);
        Some(Self {
            name: CompactName::new(namespace, name),
            uid: uid.as_str().into(),
            class: class.map_or(spec.action_class.as_str(), |it| &it.name).into(),
            state: status.state,
            created: (*created).into(),
            ended: status.completion_time.unwrap_or(*created).into(),
            ttl: duration::parse(&spec.ttl_after_finished).ok().map(seconds),
        })
    }

    /// Returns the namespace and the class.
    fn group(&self) -> (Box<str>, Box<str>) {
        (self.name.namespace().into(), self.class.clone())
    }

    /// Returns the sort key: the completion time, the creation time, then namespace and name.
    fn order(&self) -> (Second, Second, &CompactName) {
        (self.ended, self.created, &self.name)
    }

    /// Returns the time at which it is to be deleted; `None` for never.
    fn expires(&self, of_class: Option<Duration>) -> Option<Timestamp> {
        let own = self.ttl.map(|it| Duration::from_secs(it.into()));
        Timestamp::from(self.ended).checked_add(own.or(of_class)?).ok()
    }
}

/// The ended Actions that are to be deleted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outdated {
    /// Those that are to be deleted now, the one that ended first in front.
    pub delete: Vec<Arc<EndedAction>>,
    /// The time at which the next one is to be deleted; `None` if none is because of its time.
    pub wake_at: Option<Timestamp>,
}

/// The ended Actions of a cluster that no RetryAction, CronAction or EventAction made, in the order
/// in which they are deleted.
#[derive(Debug, Default)]
pub struct History {
    actions: BTreeSet<Sorted<ById>>,
    /// Those of each namespace and class.
    groups: BTreeMap<(Box<str>, Box<str>), Group>,
}

/// The ended Actions of a class in a namespace.
#[derive(Debug, Default)]
struct Group {
    /// Those that are kept as long as their class says.
    of_class: BTreeSet<Sorted<ByEnd>>,
    /// Those that say how long they are kept.
    expiring: BTreeSet<Sorted<ByExpiry>>,
    /// The same ones by their end.
    expiring_by_end: BTreeSet<Sorted<ByEnd>>,
}

/// What a class says of its ended Actions.
#[derive(Debug, Clone, Copy)]
struct Limits {
    count: usize,
    ttl: Option<Duration>,
}

impl Limits {
    fn of(classes: &[NamedClass], name: &str) -> Self {
        let class = NamedClass::find(classes, name).map(|it| &it.spec);
        let count = class.and_then(|it| it.history_limit).unwrap_or(HISTORY_LIMIT);
        Self {
            count: usize::try_from(count).unwrap_or(usize::MAX),
            ttl: class.and_then(|it| duration::parse(&it.ttl_after_finished).ok()),
        }
    }
}

impl History {
    /// Returns all Actions, by namespace and name.
    pub fn iter(&self) -> impl Iterator<Item = &EndedAction> {
        self.actions.iter().map(|it| &*it.action)
    }

    /// Returns an Action; `None` if there is none of the name.
    pub fn get(&self, id: &NamespacedName) -> Option<&EndedAction> {
        self.actions.get(&Sorted::sought(id)).map(|it| &*it.action)
    }

    /// Adds an Action, in place of the one of its name.
    pub fn insert(&mut self, action: EndedAction) {
        let action = Arc::new(action);
        self.remove_as(&Sorted::new(&action));
        let group = self.groups.entry(action.group()).or_default();
        if action.ttl.is_some() {
            group.expiring.insert(Sorted::new(&action));
            group.expiring_by_end.insert(Sorted::new(&action));
        } else {
            group.of_class.insert(Sorted::new(&action));
        }
        self.actions.insert(Sorted::new(&action));
    }

    /// Removes an Action, and returns it; `None` if there is none of the name.
    pub fn remove(&mut self, id: &NamespacedName) -> Option<Arc<EndedAction>> {
        self.remove_as(&Sorted::sought(id))
    }

    /// Removes the Action of a name.
    fn remove_as(&mut self, named: &Sorted<ById>) -> Option<Arc<EndedAction>> {
        let action = self.actions.take(named)?.action;
        let key = action.group();
        if let Some(group) = self.groups.get_mut(&key) {
            group.of_class.remove(&Sorted::new(&action));
            group.expiring.remove(&Sorted::new(&action));
            group.expiring_by_end.remove(&Sorted::new(&action));
            if group.len() == 0 {
                self.groups.remove(&key);
            }
        }
        Some(action)
    }

    /// Returns which Actions are to be deleted. What remains is not looked at: the effort grows with the number of
    /// namespaces and classes, and of the Actions that are to be deleted.
    pub fn outdated(&self, classes: &[NamedClass], now: Timestamp) -> Outdated {
        let mut limits = BTreeMap::new();
        let mut outdated = Outdated::default();
        for ((_, class), group) in &self.groups {
            let limits = *limits.entry(class).or_insert_with(|| Limits::of(classes, class));
            group.outdated(limits, now, &mut outdated);
        }
        outdated.delete.sort_by(|a, b| a.order().cmp(&b.order()));
        outdated
    }
}

impl Group {
    /// Returns the number of Actions.
    fn len(&self) -> usize {
        self.of_class.len() + self.expiring.len()
    }

    /// Returns all Actions, the one that ended first in front.
    fn by_end(&self) -> impl Iterator<Item = &Arc<EndedAction>> {
        let mut of_class = self.of_class.iter().peekable();
        let mut expiring = self.expiring_by_end.iter().peekable();
        let next = move || match (of_class.peek(), expiring.peek()) {
            (Some(one), Some(other)) if other < one => expiring.next(),
            (None, _) => expiring.next(),
            (Some(_), _) => of_class.next(),
        };
        std::iter::from_fn(next).map(|it| &it.action)
    }

    /// Adds the Actions that are to be deleted, and the time of the next one.
    fn outdated(&self, limits: Limits, now: Timestamp, found: &mut Outdated) {
        let mut expired = 0;
        let of_class = &mut self.of_class.iter().map(|it| &it.action);
        let expiring = &mut self.expiring.iter().map(|it| &it.action);
        let by_expiry: [&mut dyn Iterator<Item = &Arc<EndedAction>>; 2] = [of_class, expiring];
        for actions in by_expiry {
            for action in actions {
                let Some(at) = action.expires(limits.ttl) else { break };
                if at > now {
                    found.wake_at = Some(found.wake_at.map_or(at, |it| it.min(at)));
                    break;
                }
                expired += 1;
                found.delete.push(Arc::clone(action));
            }
        }
        let excess = self.len().saturating_sub(expired).saturating_sub(limits.count);
        let others = self.by_end().filter(|it| it.expires(limits.ttl).is_none_or(|at| at > now));
        found.delete.extend(others.take(excess).map(Arc::clone));
    }
}

/// An order of Actions.
trait SortKey {
    fn compare(a: &EndedAction, b: &EndedAction) -> Ordering;
}

/// The order of namespaces and names.
#[derive(Debug)]
struct ById;

/// The order of ends.
#[derive(Debug)]
struct ByEnd;

/// The order of the times at which Actions that have one say they are to be deleted.
#[derive(Debug)]
struct ByExpiry;

impl SortKey for ById {
    fn compare(a: &EndedAction, b: &EndedAction) -> Ordering {
        a.name.cmp(&b.name)
    }
}

impl SortKey for ByEnd {
    fn compare(a: &EndedAction, b: &EndedAction) -> Ordering {
        a.order().cmp(&b.order())
    }
}

impl SortKey for ByExpiry {
    fn compare(a: &EndedAction, b: &EndedAction) -> Ordering {
        let expires = |it: &EndedAction| it.expires(None).unwrap_or(Timestamp::MAX);
        expires(a).cmp(&expires(b)).then_with(|| a.order().cmp(&b.order()))
    }
}

/// An Action in an order.
#[derive(Debug)]
struct Sorted<K> {
    action: Arc<EndedAction>,
    order: PhantomData<K>,
}

impl<K> Sorted<K> {
    fn new(action: &Arc<EndedAction>) -> Self {
        Self { action: Arc::clone(action), order: PhantomData }
    }
}

impl Sorted<ById> {
    /// Returns what is equal to the Action of a name.
    fn sought(id: &NamespacedName) -> Self {
        Self::new(&Arc::new(EndedAction { name: id.into(), ..EndedAction::default() }))
    }
}

impl<K: SortKey> PartialEq for Sorted<K> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<K: SortKey> Eq for Sorted<K> {}

impl<K: SortKey> PartialOrd for Sorted<K> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<K: SortKey> Ord for Sorted<K> {
    fn cmp(&self, other: &Self) -> Ordering {
        K::compare(&self.action, &other.action)
    }
}

#[cfg(test)]
mod tests;
