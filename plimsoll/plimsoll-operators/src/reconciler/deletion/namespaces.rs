//! Namespaces of an Operator that is being deleted: they go if nothing of other owners is in them.

use std::collections::BTreeSet;

use crate::deletion::{self, DeletionInputs, DeletionPhase, LiveObject, NextDeletion};
use crate::reconciler::events::{ContainedObject, OperatorEffect};
use crate::reconciler::handler::OperatorHandler;
use crate::reconciler::observed::ObservedObject;

impl OperatorHandler<'_> {
    /// Returns the namespaces of the Operator that contain objects of other owners; `None` until that is
    /// known. They are only read when nothing else is left to delete.
    pub(super) fn occupied(&mut self, inputs: &DeletionInputs<'_>) -> Option<BTreeSet<String>> {
        let next = deletion::next(inputs);
        let NextDeletion::Phase { phase: DeletionPhase::Namespaces, .. } = next else {
            return Some(BTreeSet::new());
        };
        let is_namespace = |it: &&LiveObject| {
            it.key.group.is_empty()
                && it.key.kind == "Namespace"
                && !inputs.shared.contains(&it.key)
        };
        let namespaces: Vec<&LiveObject> = inputs.objects.iter().filter(is_namespace).collect();
        let removal = self.operator.removal.as_mut()?;
        let mut occupied = BTreeSet::new();
        let mut is_known = true;
        for namespace in namespaces.into_iter().filter(|it| it.terminating.is_none()) {
            let namespace = &namespace.key.name;
            let read = || {
                let (operator, namespace) = (self.name.to_owned(), namespace.clone());
                let effect = OperatorEffect::ReadNamespace { operator, namespace };
                self.output.effects.push(effect);
            };
            let is_occupied = match self.peers.use_namespace(namespace) {
                true => Some(true),
                false => removal.is_occupied(namespace, self.moment.uptime, read),
            };
            is_known &= is_occupied.is_some();
            if is_occupied == Some(true) {
                occupied.insert(namespace.clone());
            }
        }
        is_known.then_some(occupied)
    }

    /// Handles the content of a namespace.
    pub(in crate::reconciler) fn namespace_read(
        &mut self,
        namespace: &str,
        objects: Result<Vec<ContainedObject>, String>,
    ) {
        let Some(removal) = &mut self.operator.removal else { return };
        let content = removal.namespaces.entry(namespace.to_owned()).or_default();
        content.read(objects, self.moment.uptime);
        self.mark_pending();
    }

    /// Returns the namespaces of the Operator that were created for another one which was deleted or is being
    /// deleted.
    pub(super) fn abandoned_namespaces(&self) -> Vec<LiveObject> {
        let names: BTreeSet<&String> =
            self.operator.revisions.values().map(|revision| &revision.namespace).collect();
        let observed = &self.cluster.objects;
        let namespaces = names.into_iter().filter_map(|it| observed.namespace(it));
        let abandoned = namespaces.filter(|it| {
            it.is_ours()
                && it.operator != self.name
                && !it.operator.is_empty()
                && self.peers.is_gone(&it.operator)
        });
        abandoned.map(ObservedObject::live).collect()
    }
}
