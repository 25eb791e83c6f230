//! Which kinds to watch, how much of their objects, and from when on.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_api::{GroupKind, NamespacedName, ObjectKey};

use crate::plan::{GroupVersionKind, becomes_ready};
use crate::progress::{Scope, World};

const DEFINITION: &str = "CustomResourceDefinition";

/// How much of a kind's objects is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchScope {
    /// Metadata of the objects of the plan: enough to see drift.
    Metadata,
    /// Metadata of all definitions, in the plan or not.
    Definitions,
    /// All namespaces, in the plan or not, whole: they report why their deletion takes time.
    Namespaces,
    /// Whole workloads of the plan, and what else is awaited or gated by condition, for their health.
    Workloads,
    /// All ClusterOperators, whole, for their gates.
    Operators,
}

impl WatchScope {
    /// The scope for a kind.
    pub fn of(kind: &GroupKind) -> Self {
        match (kind.group.as_str(), kind.kind.as_str()) {
            ("", "Namespace") => Self::Namespaces,
            ("apps", "Deployment" | "DaemonSet" | "StatefulSet") | ("batch", "Job") => {
                Self::Workloads
            }
            ("apiextensions.k8s.io", DEFINITION) => Self::Definitions,
            ("config.openshift.io", "ClusterOperator") => Self::Operators,
            _ => Self::Metadata,
        }
    }

    /// The scope for a kind of objects of Operators, more of which are awaited.
    pub fn of_operators(kind: &GroupKind) -> Self {
        if becomes_ready(kind) { Self::Workloads } else { Self::of(kind) }
    }
}

/// The objects of one kind that a plan mentions, by namespace and name as the server has them.
pub type WatchedObjects = BTreeMap<NamespacedName, ObjectKey>;

/// A watch to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watch {
    /// The kind, in a version that is served.
    pub kind: GroupVersionKind,
    /// How much of its objects is watched.
    pub scope: WatchScope,
    /// The objects whose changes matter; all that the scope names matter besides.
    pub objects: WatchedObjects,
}

/// The watches of a plan.
#[derive(Debug, Clone, Default)]
pub struct WatchPlan {
    started: BTreeSet<GroupKind>,
    /// The kinds of which objects have gates by condition.
    gated: BTreeSet<GroupKind>,
    is_complete: bool,
}

impl WatchPlan {
    /// Watches objects of some kinds whole, since objects of them have gates by condition.
    pub fn gate(&mut self, kinds: impl IntoIterator<Item = GroupKind>) {
        self.gated.extend(kinds);
    }

    fn scope(&self, kind: &GroupKind) -> WatchScope {
        match WatchScope::of(kind) {
            WatchScope::Metadata if self.gated.contains(kind) => WatchScope::Workloads,
            scope => scope,
        }
    }

    /// Whether every kind of the plan was served and watched when watches were last started.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// The watches to start now: of every kind among `objects` that is served and not watched yet,
    /// of all namespaces and of all definitions. `planned` are the kinds of the plan.
    ///
    /// Kinds that are only watched for drift wait until the plan `is_quiet`: until then their
    /// watches would load a server that is busy serving new kinds. No change is missed, since a
    /// watch starts with a list of what exists.
    pub fn start<'a>(
        &mut self,
        objects: impl Iterator<Item = (GroupVersionKind, &'a ObjectKey)>,
        planned: impl Iterator<Item = GroupKind>,
        world: &World,
        is_quiet: bool,
    ) -> Vec<Watch> {
        let mut due: BTreeMap<GroupKind, Watch> = BTreeMap::new();
        // Steps may wait for namespaces and kinds that are not of the plan.
        for (group, kind) in [("", "Namespace"), ("apiextensions.k8s.io", DEFINITION)] {
            let version = GroupVersionKind {
                group: group.to_owned(),
                version: "v1".to_owned(),
                kind: kind.to_owned(),
            };
            if world.scope(&version).is_some() {
                due.insert(GroupKind::new(group, kind), watch(version));
            }
        }
        for (version, key) in objects {
            let kind = key.group_kind();
            let needed = self.scope(&kind);
            let is_early = needed != WatchScope::Metadata;
            if self.started.contains(&kind) || !(is_quiet || is_early) {
                continue;
            }
            let Some(scope) = world.scope(&version) else { continue };
            let namespace = match scope {
                Scope::Namespaced => key.namespace.clone(),
                Scope::Cluster => String::new(),
            };
            let watch =
                due.entry(kind).or_insert_with(|| Watch { scope: needed, ..watch(version) });
            let name = NamespacedName { namespace, name: key.name.clone() };
            watch.objects.insert(name, key.clone());
        }
        due.retain(|kind, _| !self.started.contains(kind));
        self.started.extend(due.keys().cloned());
        let mut planned = planned;
        self.is_complete = planned.all(|kind| self.started.contains(&kind));
        due.into_values().collect()
    }
}

fn watch(kind: GroupVersionKind) -> Watch {
    let scope = WatchScope::of(&GroupKind::new(&kind.group, &kind.kind));
    Watch { kind, scope, objects: WatchedObjects::new() }
}

#[cfg(test)]
mod tests;
