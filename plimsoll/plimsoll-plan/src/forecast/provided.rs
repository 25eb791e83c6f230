//! The kinds and namespaces that a plan itself provides, so that their absence is no blocker.

use std::collections::BTreeMap;

use crate::plan::{Action, GroupVersionKind, Plan};
use crate::progress::StepBlocker;

/// The steps of a plan that bring kinds and namespaces.
#[derive(Default)]
pub(super) struct ProvidedKinds<'a> {
    kinds: BTreeMap<&'a GroupVersionKind, usize>,
    namespaces: BTreeMap<&'a str, usize>,
}

impl<'a> ProvidedKinds<'a> {
    pub(super) fn by(plan: &'a Plan) -> Self {
        let mut provided = Self::default();
        for (index, step) in plan.steps.iter().enumerate() {
            for kind in &step.serves {
                provided.kinds.entry(kind).or_insert(index);
            }
            let key = &step.manifest.key;
            let is_namespace = key.group.is_empty() && key.kind == "Namespace";
            if is_namespace && step.action != Action::Delete {
                provided.namespaces.entry(&key.name).or_insert(index);
            }
        }
        provided
    }

    /// The step that takes an blocker away, if any does.
    pub(super) fn remover(&self, blocker: &StepBlocker) -> Option<usize> {
        match blocker {
            StepBlocker::KindNotServed(kind) => self.kinds.get(kind).copied(),
            StepBlocker::NamespaceMissing(name) => self.namespaces.get(name.as_str()).copied(),
            StepBlocker::NamespaceTerminating(_) => None,
        }
    }

    /// The steps that take the blockers away which a step meets where only what `before` provided
    /// is there.
    pub(super) fn removers(&self, plan: &Plan, step: usize, before: &Self) -> Vec<usize> {
        let (kind, key) = (plan.steps[step].kind(), &plan.steps[step].manifest.key);
        let kinds = self.kinds.get(&kind).filter(|_| !before.kinds.contains_key(&kind));
        let namespace = key.namespace.as_str();
        let namespaces =
            self.namespaces.get(namespace).filter(|_| !before.namespaces.contains_key(namespace));
        kinds.into_iter().chain(namespaces).copied().collect()
    }
}

/// Where the steps of a plan stand: run level, chain, and place in the chain.
pub(super) struct Places(BTreeMap<usize, (usize, usize, usize)>);

impl Places {
    pub(super) fn of(plan: &Plan) -> Self {
        let mut places = BTreeMap::new();
        let (mut level, mut before) = (0, None);
        for (chain, node) in plan.graph.nodes.iter().enumerate() {
            if before.is_some_and(|before| before != node.level) {
                level += 1;
            }
            before = Some(node.level);
            for (place, &step) in node.tasks.iter().enumerate() {
                places.insert(step, (level, chain, place));
            }
        }
        Self(places)
    }

    /// Whether a step is over before another one's turn comes.
    pub(super) fn precedes(&self, first: usize, second: usize) -> bool {
        let (Some(first), Some(second)) = (self.0.get(&first), self.0.get(&second)) else {
            return false;
        };
        first.0 < second.0 || (first.0, first.1) == (second.0, second.1) && first.2 < second.2
    }
}
