//! Which Operators an event concerns: indexes, since a search among all Operators for each event would
//! make the cost of many grow with their square.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_api::ObjectKey;
use plimsoll_plan::reconciler::Uptime;
use plimsoll_resolve::NameIndex;

use super::track::{OperatorRollout, TrackedOperator};
use super::{Moment, OperatorReconciler};

/// Times that are waited for, by the name of the Operator.
#[derive(Debug, Clone, Default)]
pub(super) struct WakeTimes {
    times: BTreeMap<String, Uptime>,
    order: BTreeSet<(Uptime, String)>,
}

impl WakeTimes {
    /// An Operator waits for this time, or for none.
    fn set(&mut self, name: &str, at: Option<Uptime>) {
        let before = match at {
            Some(at) => self.times.insert(name.to_owned(), at),
            None => self.times.remove(name),
        };
        if before == at {
            return;
        }
        if let Some(before) = before {
            self.order.remove(&(before, name.to_owned()));
        }
        if let Some(at) = at {
            self.order.insert((at, name.to_owned()));
        }
    }

    /// The first of the times.
    pub(super) fn first(&self) -> Option<Uptime> {
        self.order.first().map(|(at, _)| *at)
    }

    /// The Operators whose time has come, the one that waits longest first.
    pub(super) fn due(&self, now: Uptime) -> Vec<String> {
        let due = self.order.iter().take_while(|(at, _)| *at <= now);
        due.map(|(_, name)| name.clone()).collect()
    }
}

/// What of an Operator is indexed: the API groups that its rollout has to do with, the namespaces that it
/// has objects in, and where the objects are that it holds.
#[derive(Debug, Clone, Default, PartialEq)]
struct Reach {
    groups: BTreeSet<String>,
    namespaces: BTreeSet<String>,
    places: BTreeSet<String>,
}

impl Reach {
    fn of(operator: &TrackedOperator) -> Self {
        let held = operator.held().flat_map(|(_, it)| it.manifests());
        let places = held.map(|it| place(&it.key)).collect();
        match &operator.rollout {
            None => Self { places, ..Self::default() },
            Some(rollout) => Self {
                groups: rollout.kinds.iter().map(|kind| kind.group.clone()).collect(),
                namespaces: rollout.namespaces.clone(),
                places,
            },
        }
    }
}

/// Where an object is, whatever its kind: as good as its key to find it by, and shorter.
fn place(key: &ObjectKey) -> String {
    format!("{}/{}", key.namespace, key.name)
}

/// What [`Reach`] depends on: the rollout, and the revisions that are held with how much is known of
/// them.
type ReachBasis = (Option<u64>, Vec<(u32, usize)>);

/// Which Operators an event concerns.
#[derive(Debug, Clone, Default)]
pub(super) struct Indexes {
    /// When [`OperatorReconciler::woken`] has something to do.
    pub(super) wakes: WakeTimes,
    /// When [`OperatorReconciler::next_discovery`] has something to answer.
    pub(super) discoveries: WakeTimes,
    /// The Operators whose rollouts have to do with an API group.
    groups: NameIndex<String>,
    /// The Operators whose rollouts have objects in a namespace.
    namespaces: NameIndex<String>,
    /// The Operators that hold an object, by [`place`].
    objects: NameIndex<String>,
    reached: BTreeMap<String, (ReachBasis, Reach)>,
}

impl Indexes {
    /// Replaces what is indexed of an Operator; `None` when it is gone.
    fn set_reach(&mut self, name: &str, operator: Option<&TrackedOperator>) {
        let basis = operator.map(|it| {
            let held = it.held().map(|(number, it)| (number, it.manifests().count()));
            (it.rollout.as_ref().map(|it| it.run), held.collect())
        });
        if self.reached.get(name).map(|(basis, _)| basis) == basis.as_ref() {
            return;
        }
        if let Some((_, before)) = self.reached.remove(name) {
            before.groups.iter().for_each(|it| self.groups.remove(it, name));
            before.namespaces.iter().for_each(|it| self.namespaces.remove(it, name));
            before.places.iter().for_each(|it| self.objects.remove(it, name));
        }
        if let Some((operator, basis)) = operator.zip(basis) {
            let after = Reach::of(operator);
            after.groups.iter().for_each(|it| self.groups.insert(it, name));
            after.namespaces.iter().for_each(|it| self.namespaces.insert(it, name));
            after.places.iter().for_each(|it| self.objects.insert(it, name));
            self.reached.insert(name.to_owned(), (basis, after));
        }
    }
}

impl OperatorReconciler {
    /// Takes note of what an Operator waits for and has to do with, as it is now.
    pub(super) fn reindex(&mut self, name: &str, moment: Moment) {
        let operator = self.operators.get(name);
        self.indexes.wakes.set(name, operator.and_then(|it| it.wake_at(moment)));
        let rollout = operator.and_then(|it| it.rollout.as_ref());
        let discover_at = rollout.and_then(|it| it.execution.discover_at());
        self.indexes.discoveries.set(name, discover_at);
        self.indexes.set_reach(name, operator);
    }

    /// The Operators whose rollout has to do with an API group, and of which something holds.
    pub(super) fn rolling_out_group(
        &self,
        group: &str,
        holds: impl Fn(&OperatorRollout) -> bool,
    ) -> Vec<String> {
        let names = self.indexes.groups.names(group);
        let rollout = |name: &str| self.operators.get(name)?.rollout.as_ref();
        let concerned = names.filter(|name| rollout(name).is_some_and(&holds));
        concerned.map(str::to_owned).collect()
    }

    /// The Operators whose rollout has objects in a namespace.
    pub(super) fn rolling_out_in(&self, namespace: &str) -> Vec<String> {
        self.indexes.namespaces.names(namespace).map(str::to_owned).collect()
    }

    /// The Operators that hold an object, or one of another kind that is named so there.
    pub(super) fn holding<'a>(
        &'a self,
        object: &ObjectKey,
    ) -> impl Iterator<Item = (&'a str, &'a TrackedOperator)> {
        let names = self.indexes.objects.names(&place(object));
        names.filter_map(|name| Some((name, self.operators.get(name)?)))
    }

    /// Whether the indexes have what is so of every Operator.
    #[cfg(test)]
    pub(super) fn is_indexed(&self, moment: Moment) -> bool {
        let Indexes { wakes, discoveries, reached, .. } = &self.indexes;
        let names = |it: &WakeTimes| it.times.keys().cloned().collect::<BTreeSet<String>>();
        self.operators.iter().all(|(name, it)| {
            let at = |times: &WakeTimes| times.times.get(name).map(|at| *at.max(&moment.uptime));
            let later = |at: Option<Uptime>| at.map(|at| at.max(moment.uptime));
            let discover_at = it.rollout.as_ref().and_then(|it| it.execution.discover_at());
            at(wakes) == later(it.wake_at(moment))
                && at(discoveries) == later(discover_at)
                && reached.get(name).is_some_and(|(_, reach)| *reach == Reach::of(it))
        }) && names(wakes).union(&names(discoveries)).all(|it| self.operators.contains_key(it))
            && reached.keys().all(|name| self.operators.contains_key(name))
    }
}
