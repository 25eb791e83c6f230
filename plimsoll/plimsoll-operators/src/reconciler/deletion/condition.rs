//! The condition of an Operator that is being deleted: what its deletion does or waits for.

use plimsoll_api::{ConditionStatus, Reason};

use crate::conditions::ConditionDraft;
use crate::deletion::DeletionPhase;
use crate::reconciler::removal::{DeletionRefusal, KindSearch, ReleaseObjects, Removal, Search};
use crate::reconciler::track::TrackedOperator;

impl TrackedOperator {
    /// Returns whether its deletion waits: it is paused, or what is to be kept cannot be read.
    pub(in crate::reconciler) fn is_deletion_held(&self) -> bool {
        let object = &self.object;
        object.deleted.is_some() && (object.spec.paused || object.invalid.is_some())
    }

    /// Returns whether it goes because the definition of Operators was deleted.
    fn loses_definition(&self) -> bool {
        let removal = self.removal.as_ref();
        removal.is_some_and(|it| matches!(it.loses_definition, Search::Found(true)))
    }

    /// Returns the condition `Progressing` of the deletion; `None` if the Operator is not being deleted, or
    /// there is nothing particular to say.
    pub(in crate::reconciler) fn deletion_condition(&self) -> Option<ConditionDraft> {
        let waiting = |reason, message| Some(draft(ConditionStatus::False, reason, message));
        if self.loses_definition() {
            return Some(draft(
                ConditionStatus::True,
                Reason::DefinitionDeleted,
                "The definition of Operators was deleted: nothing that was applied for it is deleted"
                    .to_owned(),
            ));
        }
        if self.is_deletion_held() {
            return match &self.object.invalid {
                Some(invalid) => {
                    waiting(Reason::InvalidSpec, format!("It is not deleted: {invalid}"))
                }
                None => waiting(
                    Reason::Paused,
                    "It is not deleted: spec.paused is set; remove it to go on".to_owned(),
                ),
            };
        }
        self.object.deleted?;
        let removal = self.removal.as_ref()?;
        if let Some(DeletionRefusal { reason, message }) = &removal.refusal {
            return waiting(*reason, format!("It is not deleted: {message}"));
        }
        if let Search::Failed { message, .. } = &removal.loses_definition {
            let message = format!(
                "Whether the definition of Operators is being deleted is not known, so nothing is deleted: \
                 {message}"
            );
            return waiting(Reason::ContentUnknown, message);
        }
        if let ReleaseObjects::Failed { message, .. } = &removal.release {
            let message = format!(
                "Which of its objects the release contains is not known, so none is deleted: {message}"
            );
            return waiting(Reason::ContentUnknown, message);
        }
        let unknown = match &removal.kinds {
            KindSearch::Failed { message, .. } => Some(format!(
                "Which objects it has is not known, so they are not deleted: {message}"
            )),
            KindSearch::Due | KindSearch::Running | KindSearch::Found(_) => {
                removal.unreadable().map(|(namespace, why)| {
                    format!(
                        "Whether namespace {namespace} is empty is not known, so it is not deleted: \
                         {why}"
                    )
                })
            }
        };
        match unknown {
            Some(message) => waiting(Reason::ContentUnknown, message),
            None => in_progress(removal),
        }
    }
}

/// Returns the condition of a deletion that nothing holds up but the objects; `None` if it has not begun.
fn in_progress(removal: &Removal) -> Option<ConditionDraft> {
    let deleting = |message| Some(draft(ConditionStatus::True, Reason::Deleting, message));
    if let Some((namespace, first, count)) = removal.emptying() {
        let more = match count - 1 {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        return deleting(format!(
            "Namespace {namespace} waits for objects that are being deleted: {first}{more}"
        ));
    }
    if let Some(failure) = removal.conversion_failure() {
        return deleting(format!(
            "A conversion webhook, whose service is to be deleted, cannot be removed: {failure}"
        ));
    }
    if let Some(first) = removal.refusals().next() {
        return deleting(format!("The API server refuses to delete an object: {first}"));
    }
    let progress = removal.progress()?;
    let counts = progress.remaining.iter().map(|it| format!("{} {}", it.count, it.kind));
    let counts: Vec<String> = counts.collect();
    let stuck = match progress.stuck.as_slice() {
        [] => String::new(),
        stuck => format!("; stuck: {}", stuck.join("; ")),
    };
    let is_stuck = progress.phase == DeletionPhase::Operands.as_str() && !progress.stuck.is_empty();
    let reason = if is_stuck { Reason::OperandsStuck } else { Reason::Deleting };
    let message = format!("Deleting {}{stuck}", counts.join(", "));
    Some(draft(ConditionStatus::True, reason, message))
}

fn draft(status: ConditionStatus, reason: Reason, message: String) -> ConditionDraft {
    ConditionDraft { type_: "Progressing", status, reason, message }
}
