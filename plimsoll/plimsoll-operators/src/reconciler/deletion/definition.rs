//! The definition of Operators, which is read before anything of an Operator is deleted.

use plimsoll_api::Reason;
use plimsoll_plan::reconciler::events::{EventDraft, Severity};

use crate::deletion::definition::{DefinitionTimes, takes_along};
use crate::reconciler::events::OperatorEffect;
use crate::reconciler::handler::OperatorHandler;
use crate::reconciler::removal::Search;

impl OperatorHandler<'_> {
    /// Returns whether the Operator goes because its definition was deleted; `None` until the definition was
    /// read. It is read once for a deletion, since the order of the two does not change.
    pub(super) fn loses_definition(&mut self) -> Option<bool> {
        let removal = self.operator.removal.as_mut()?;
        if removal.loses_definition.begins(self.moment.uptime) {
            let operator = self.name.to_owned();
            self.output.effects.push(OperatorEffect::ReadDefinition { operator });
        }
        match &removal.loses_definition {
            Search::Found(is_lost) => Some(*is_lost),
            Search::Due | Search::Running | Search::Failed { .. } => None,
        }
    }

    /// Handles the definition of Operators that was read; `None` if there is none.
    pub(in crate::reconciler) fn definition_read(
        &mut self,
        definition: Result<Option<DefinitionTimes>, String>,
    ) {
        let Some(removal) = &mut self.operator.removal else { return };
        let Some(deleted) = removal.started else { return };
        let is_lost = definition.map(|it| takes_along(it.as_ref(), deleted));
        let is_let_go = is_lost == Ok(true);
        removal.loses_definition = Search::ended(is_lost, self.moment.uptime);
        if is_let_go {
            self.emit(EventDraft {
                severity: Severity::Warning,
                reason: Reason::DefinitionDeleted,
                action: "Delete",
                note: "The definition of Operators was deleted, and the Operator with it: nothing that was \
                       applied for it is deleted; create the Operator again to manage it"
                    .to_owned(),
                related: None,
            });
        }
        self.mark_pending();
    }

    /// Removes the finalizer without deleting anything.
    pub(super) fn let_go(&mut self) {
        self.operator.rollout = None;
        self.finish_removal();
    }
}
