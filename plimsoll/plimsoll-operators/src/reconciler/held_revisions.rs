//! OperatorRevisions that are held by our finalizer: what an Operator has is recorded there until its deletion
//! has ended, whoever deletes the record.

use super::OperatorReconciler;
use super::events::{OperatorEffect, OperatorKind};
use super::handler::{OperatorHandler, Output};
use super::revision::WrittenRevision;

impl OperatorReconciler {
    /// Releases the OperatorRevisions that are being deleted and are held for nothing.
    pub(super) fn release_abandoned(&mut self) {
        let terminating = self.written_revisions.iter().filter(|(_, it)| it.is_terminating);
        let names: Vec<String> = terminating.map(|(name, _)| name.clone()).collect();
        names.iter().for_each(|name| self.release_if_abandoned(name));
    }

    /// Releases an OperatorRevision if it is being deleted and is held for nothing: its Operator is gone, or the
    /// controller did not make it for that.
    pub(super) fn release_if_abandoned(&mut self, name: &str) {
        let Some(written) = self.written_revisions.get(name) else { return };
        if !written.is_held {
            // Another one may get its name.
            self.output.released.remove(name);
        }
        let is_kept = |made_for: &String| {
            let known = self.operators.get(&written.operator);
            known.is_some_and(|it| it.object.uid == written.owner && it.takes(made_for))
        };
        let is_abandoned = match &written.made_for {
            Some(made_for) => self.listed.contains(&OperatorKind::Operator) && !is_kept(made_for),
            None => true,
        };
        if written.is_terminating && written.is_held && is_abandoned {
            self.output.release(name, written);
        }
    }
}

impl Output {
    /// Requests that an OperatorRevision is released. The request is repeated until it succeeds.
    fn release(&mut self, name: &str, written: &WrittenRevision) {
        if self.released.insert(name.to_owned()) {
            let (name, uid) = (name.to_owned(), written.uid.clone());
            self.effects.push(OperatorEffect::ReleaseRevision { name, uid });
        }
    }
}

impl OperatorHandler<'_> {
    /// Releases the OperatorRevisions of the Operator, whose deletion has ended. Returns whether none is held any
    /// more.
    pub(super) fn are_revisions_released(&mut self) -> bool {
        let uid = &self.operator.object.uid;
        let held = self.written_revisions.iter();
        let mut held = held.filter(|(_, it)| it.is_held && it.owner == *uid).peekable();
        let are_released = held.peek().is_none();
        held.for_each(|(name, written)| self.output.release(name, written));
        are_released
    }
}
