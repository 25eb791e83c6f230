//! Operators whose spec cannot be read, such as one with a value that only a later version of the program knows.
//! What such a spec requests is not known: nothing is deleted by it, and nothing is changed unless an earlier one
//! is in force.

use plimsoll_api::Reason;

use super::handler::OperatorHandler;
use super::removal::Removal;
use super::track::TrackedOperator;
use crate::OperatorBlock;

impl TrackedOperator {
    /// Returns the block of an Operator of which no spec could be read; `None` if one could, or if the Operator
    /// is being deleted.
    pub(super) fn spec_block(&self) -> Option<OperatorBlock> {
        let invalid = self.object.invalid.as_ref()?;
        let is_blocked = !self.object.is_spec_known && self.object.deleted.is_none();
        is_blocked.then(|| OperatorBlock::new(Reason::InvalidSpec, invalid.to_string()))
    }

    /// Returns what becomes of the Operator as its spec cannot be read, as a clause; `None` if an earlier spec
    /// stays in force.
    pub(super) fn without_spec(&self) -> Option<&'static str> {
        match (self.object.deleted, self.object.is_spec_known) {
            (Some(_), _) => Some("nothing is deleted until this is corrected"),
            (None, false) => Some("nothing is changed until this is corrected"),
            (None, true) => None,
        }
    }
}

impl OperatorHandler<'_> {
    /// Holds a deletion that is paused, or whose spec, which says what is deleted, cannot be read. In the latter
    /// case, what an earlier spec requested is maintained, unless a part of it was deleted.
    pub(super) fn hold_deletion(&mut self) {
        let operator = &mut *self.operator;
        let is_deleted = |it: &Removal| it.progress.is_some();
        let is_begun = operator.reported.deletion.is_some()
            || operator.removal.as_ref().is_some_and(is_deleted);
        if let Some(removal) = &mut operator.removal {
            removal.hold();
        }
        let object = &operator.object;
        if object.invalid.is_some() && object.is_spec_known && !object.spec.paused && !is_begun {
            self.keep_running();
        }
    }
}
