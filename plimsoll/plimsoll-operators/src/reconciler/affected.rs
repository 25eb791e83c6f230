//! The Operators to decide on again when others change.

use std::collections::BTreeSet;

use super::OperatorReconciler;
use crate::dependency_index::Dependencies;
use crate::{CandidateRequirements, RequestedOperator, change_set};

impl OperatorReconciler {
    /// Updates the entry of an Operator. Returns the previous and the current one.
    fn update_dependencies(&mut self, name: &str) -> [Dependencies; 2] {
        let nothing = CandidateRequirements::default();
        let decision = self.operators.get(name).and_then(|it| it.decision.as_ref());
        let judged = decision.map_or(&nothing, |decision| &decision.judged);
        self.dependencies.update(name, self.requested.get(name), judged)
    }

    /// Updates the entry of an Operator after a decision on it. What it may depend on is no orphan meanwhile.
    pub(super) fn decision_changed(&mut self, name: &str) {
        let entries = self.update_dependencies(name);
        let mut concerned = BTreeSet::from([name.to_owned()]);
        for dependencies in &entries {
            concerned.extend(self.dependencies.providers_for(dependencies));
        }
        for name in concerned {
            let is_orphaned = self.is_orphaned(&name);
            let decision = self.operators.get_mut(&name).and_then(|it| it.decision.as_mut());
            if let Some(decision) = decision.filter(|it| it.is_orphaned != is_orphaned) {
                decision.is_orphaned = is_orphaned;
                self.output.pending.insert(name);
            }
        }
    }

    /// Returns whether no Operator depends on one that was installed as a dependency, or waits for it.
    fn is_orphaned(&self, name: &str) -> bool {
        let Some(requested) = self.requested.get(name) else { return false };
        let decision = |name: &str| self.operators.get(name)?.decision.as_ref();
        let is_unused = decision(name).is_some_and(|it| it.dependants.is_empty());
        if !requested.is_dependency || requested.installed.is_none() || !is_unused {
            return false;
        }
        let kinds = requested.provided();
        let others = self.dependencies.requirers_of(name);
        let mut others = others.iter().filter(|other| *other != name);
        !others.any(|other| decision(other).is_some_and(|it| it.awaits(name, &kinds)))
    }

    /// Marks the Operators to decide on again because the installed or requested bundle of one changed: those
    /// that it may satisfy, depend on or conflict with.
    pub(super) fn mark_affected_undecided(&mut self, name: &str) {
        for dependencies in self.update_dependencies(name) {
            self.output.undecided.extend(self.dependencies.affected(&dependencies));
        }
    }

    /// Marks the other members of a change set to decide on again because an Operator joined or left it.
    pub(super) fn undecided_with(&mut self, operator: &RequestedOperator) {
        let Some(Ok(set)) = change_set::of(operator) else { return };
        let is_member = |it: &RequestedOperator| {
            change_set::of(it).and_then(Result::ok).is_some_and(|other| other.id == set.id)
        };
        let members = self.requested.iter().filter(|(_, it)| is_member(it));
        self.output.undecided.extend(members.map(|(name, _)| name.clone()));
    }
}
