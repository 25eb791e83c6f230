//! Reasons that a search has no proposal.

use plimsoll_resolve::{ExplainedConflict, Resolution, SuggestedChange, SuggestedChangeKind};

use super::*;
use crate::change_set;
use crate::planner::CHANGE_SET_PREFIX;
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
            None => {
                let blocked = self.incomplete(&explanation).or_else(|| self.blocked());
                blocked.unwrap_or(ProposalError::Unsatisfiable(explanation))
            }
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

    /// Returns the reason that an Operator which has a part in a conflict is not installed, whatever the versions are:
    /// its change set lacks members, and no plan made it.
    fn incomplete(&self, explanation: &Explanation) -> Option<ProposalError> {
        let operators = self.inputs.operators;
        let is_named = |name: &String| self.request.wanted.contains_key(name);
        let is_part = |name: &String| {
            let mut steps = explanation.conflicts.iter().flat_map(|it| &it.steps);
            steps.any(|it| it.text.split([' ', '`', ',', ';']).any(|word| word == name.as_str()))
        };
        let missing = || operators.iter().filter(|(_, it)| it.installed.is_none());
        let named = missing().filter(|it| is_named(it.0));
        let mut all = named.chain(missing().filter(|it| is_part(it.0)));
        all.find_map(|(name, operator)| {
            let set = change_set::of(operator)?.ok()?;
            let is_of_plan = set.id.starts_with(CHANGE_SET_PREFIX);
            let block = change_set::incomplete(operators, &set).filter(|_| !is_of_plan)?;
            Some(ProposalError::Blocked { name: name.clone(), block })
        })
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
