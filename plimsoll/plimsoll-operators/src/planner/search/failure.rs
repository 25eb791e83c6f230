//! Reasons that a search has no proposal.

use plimsoll_resolve::{ExplainedConflict, Resolution, SuggestedChange, SuggestedChangeKind};

use super::*;
use crate::selection::candidates;

impl Search<'_> {
    /// Returns the error for a problem without a solution.
    pub(super) fn failure(&self, conflict: Resolution) -> ProposalError {
        let Resolution::Unsatisfiable(mut explanation) = conflict else {
            return ProposalError::LimitExceeded;
        };
        explanation.conflicts.iter_mut().for_each(|it| self.explain_pins(it));
        // The block of a requested bundle is the better explanation.
        let mut named = self.request.wanted.keys();
        let blocked = named.find_map(|name| Some((name, self.way_block(name, None)?)));
        if let Some((name, (_, block))) = blocked {
            return ProposalError::Blocked { name: name.clone(), block };
        }
        let mut named = self.request.wanted.keys();
        let refused = named.find_map(|name| self.refused.get(name)?.first());
        let refused = refused.or_else(|| {
            let new = |it: &&RefusedBundle| !self.inputs.operators.contains_key(&it.name);
            self.refused.values().flatten().find(new)
        });
        // Whatever the versions are, it does not move.
        let refused = refused.or_else(|| {
            let is_stuck = |it: &&RefusedBundle| it.block.reason == Reason::InvalidChangeSet;
            self.refused.values().flatten().find(is_stuck)
        });
        match refused {
            Some(RefusedBundle { name, block, .. }) => {
                ProposalError::Blocked { name: name.clone(), block: block.clone() }
            }
            None => self.blocked().unwrap_or(ProposalError::Unsatisfiable(explanation)),
        }
    }

    /// Says which pinned Operators stay, and that they may be named, too.
    fn explain_pins(&self, conflict: &mut ExplainedConflict) {
        let names = conflict.steps.iter().flat_map(|it| self.pins_of(it));
        let names: BTreeSet<&str> = names.collect();
        let changes = names.into_iter().map(|name| SuggestedChange {
            text: format!("name {name}, too, so that it may move"),
            kind: SuggestedChangeKind::Version,
            installs: Vec::new(),
        });
        let mut changes: Vec<SuggestedChange> = changes.collect();
        changes.append(&mut conflict.changes);
        conflict.changes = changes;
        for step in &mut conflict.steps {
            step.text = self.text_of(step);
        }
    }

    /// Returns the reason that nothing leads a named Operator to what is wanted of it, whatever the others are.
    fn blocked(&self) -> Option<ProposalError> {
        self.request.wanted.iter().find_map(|(name, wanted)| {
            let mut operator = self.inputs.operators.get(name).filter(|it| may_move(it))?.clone();
            operator.installed.as_ref()?;
            if let Some(range) = &wanted.range {
                operator.spec.version.clone_from(range);
            }
            let block = candidates(self.inputs, self.catalogs, name, &operator).err()?;
            Some(ProposalError::Blocked { name: name.clone(), block })
        })
    }
}
