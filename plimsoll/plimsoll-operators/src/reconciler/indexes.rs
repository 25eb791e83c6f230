//! Indexes of Operators by what events concern. A search among all Operators for each event would make the
//! total cost quadratic.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_api::ObjectKey;
use plimsoll_plan::reconciler::Uptime;
use plimsoll_resolve::NameIndex;

use super::OperatorReconciler;
use super::events::Moment;
use super::track::{OperatorRollout, TrackedOperator};

/// The times at which Operators have something to do.
#[derive(Debug, Clone, Default)]
pub(super) struct WakeTimes {
    times: BTreeMap<String, Uptime>,
    order: BTreeSet<(Uptime, String)>,
}

impl WakeTimes {
    /// Sets the time of an Operator; `None` removes it.
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

    /// Returns the first time.
    pub(super) fn first(&self) -> Option<Uptime> {
        self.order.first().map(|(at, _)| *at)
    }

    /// Returns the Operators whose time has come, in the order of their times.
    pub(super) fn due(&self, now: Uptime) -> Vec<String> {
        let due = self.order.iter().take_while(|(at, _)| *at <= now);
        due.map(|(_, name)| name.clone()).collect()
    }
}

/// The index entries of an Operator: the API groups of its rollout, the namespaces of its objects, and the
/// places of the objects that it holds.
#[derive(Debug, Clone, Default, PartialEq)]
struct IndexEntries {
    groups: BTreeSet<String>,
    namespaces: BTreeSet<String>,
    places: BTreeSet<String>,
}

impl IndexEntries {
    fn of(operator: &TrackedOperator) -> Self {
        let held = operator.held().flat_map(|(_, it)| it.manifests());
        // The server may have an object without the namespace that its manifest names.
        let places = held.flat_map(|it| [place(&it.key), place(&it.key.without_namespace())]);
        let places = places.collect();
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

/// Returns the place of an object, which is its namespace and name, whatever its kind: as an index key, it is
/// as good as the object's key, and shorter.
fn place(key: &ObjectKey) -> String {
    format!("{}/{}", key.namespace, key.name)
}

/// The inputs of [`IndexEntries`]: the run of the rollout, and the held revisions, each with the number of its
/// manifests.
type IndexInputs = (Option<u64>, Vec<(u32, usize)>);

/// Indexes of Operators by what events concern.
#[derive(Debug, Clone, Default)]
pub(super) struct Indexes {
    /// The times at which [`OperatorReconciler::handle_timeout`] has something to do.
    pub(super) wakes: WakeTimes,
    /// The times at which [`OperatorReconciler::next_discovery`] has a group version.
    pub(super) discoveries: WakeTimes,
    /// The Operators whose rollouts use an API group.
    groups: NameIndex<String>,
    /// The Operators whose rollouts have objects in a namespace.
    namespaces: NameIndex<String>,
    /// The Operators that hold an object, by [`place`].
    objects: NameIndex<String>,
    reached: BTreeMap<String, (IndexInputs, IndexEntries)>,
}

impl Indexes {
    /// Replaces the index entries of an Operator; `None` if it was deleted.
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
            let after = IndexEntries::of(operator);
            after.groups.iter().for_each(|it| self.groups.insert(it, name));
            after.namespaces.iter().for_each(|it| self.namespaces.insert(it, name));
            after.places.iter().for_each(|it| self.objects.insert(it, name));
            self.reached.insert(name.to_owned(), (basis, after));
        }
    }
}

impl Indexes {
    /// Returns the Operators that hold an object, or one of another kind in the same place.
    pub(super) fn holding(&self, object: &ObjectKey) -> impl Iterator<Item = &str> {
        self.objects.names(&place(object))
    }
}

impl OperatorReconciler {
    /// Updates the times and index entries of an Operator.
    pub(super) fn reindex(&mut self, name: &str, moment: Moment) {
        let operator = self.operators.get(name);
        self.indexes.wakes.set(name, operator.and_then(|it| it.wake_at(moment)));
        let rollout = operator.and_then(|it| it.rollout.as_ref());
        let discover_at = rollout.and_then(|it| it.execution.discover_at());
        self.indexes.discoveries.set(name, discover_at);
        self.indexes.set_reach(name, operator);
    }

    /// Returns the Operators whose rollout uses an API group and satisfies a condition.
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

    /// Returns the Operators whose rollout has objects in a namespace.
    pub(super) fn rolling_out_in(&self, namespace: &str) -> Vec<String> {
        self.indexes.namespaces.names(namespace).map(str::to_owned).collect()
    }

    /// Returns whether the indexes agree with the state of all Operators.
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
                && reached.get(name).is_some_and(|(_, reach)| *reach == IndexEntries::of(it))
        }) && names(wakes).union(&names(discoveries)).all(|it| self.operators.contains_key(it))
            && reached.keys().all(|name| self.operators.contains_key(name))
    }
}
