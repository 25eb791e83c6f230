//! Change sets in preparation: no member is rolled out before all of them are prepared, and one that is refused
//! holds up the others (OPR-26).

use std::collections::BTreeSet;

use plimsoll_api::{ObjectKey, Reason};
use plimsoll_resolve::ClusterFacts;

use super::handler::OperatorHandler;
use super::prepare::{PreparedRevision, is_namespace};
use super::revision::RevisionDraft;
use super::track::{BlockCause, Preparation, TrackedOperator};
use crate::change_set::{self, ChangeSet};
use crate::{OperatorAction, OperatorBlock};

/// How far another member of a change set is.
enum MemberState<'a> {
    /// It is prepared, or does not move now.
    Ready,
    /// It is being prepared.
    Preparing,
    /// It is refused.
    Refused(&'a OperatorBlock),
}

impl TrackedOperator {
    /// Returns what its revision is refused for, also while that is tried again; `None` if it is not.
    pub(super) fn refusal(&self) -> Option<(&OperatorBlock, BlockCause)> {
        let refusal = match &self.preparation {
            Some(Preparation::Failed { block, cause, .. }) => Some((block, *cause)),
            _ => self.last_block.as_ref().map(|(block, cause)| (block, *cause)),
        };
        // The other member moves first, and may not have the object afterwards.
        let is_ahead = self.decision.as_ref().is_some_and(|it| it.ahead.is_some());
        refusal.filter(|(_, cause)| !is_ahead || *cause != BlockCause::Member)
    }

    /// Returns whether it is not known yet what it would apply as a member of a change set.
    fn is_unread(&self, facts: Option<&ClusterFacts>) -> bool {
        let is_read = matches!(
            &self.preparation,
            Some(Preparation::Inspecting { .. } | Preparation::Writing { .. })
        );
        !is_read && matches!(self.member_state(facts), MemberState::Preparing)
    }

    /// Returns how far it is as a member of a change set.
    fn member_state(&self, facts: Option<&ClusterFacts>) -> MemberState<'_> {
        let Some(decision) = &self.decision else { return MemberState::Preparing };
        let bundle = match (&decision.action, &decision.ahead) {
            (OperatorAction::Install(chosen) | OperatorAction::Upgrade(chosen), _) => {
                &chosen.reference
            }
            (OperatorAction::Blocked(_), Some(bundle)) => bundle,
            (OperatorAction::Blocked(block), None) if block.reason != Reason::ChangeSetBlocked => {
                return MemberState::Refused(block);
            }
            (
                OperatorAction::Blocked(_)
                | OperatorAction::Keep
                | OperatorAction::Paused
                | OperatorAction::Delete
                | OperatorAction::RollBack { .. },
                _,
            ) => return MemberState::Ready,
        };
        let begun = self.rollout.as_ref().map(|it| it.number).or_else(|| self.begun());
        let mut numbers = self.installed.into_iter().chain(begun);
        let is_of_bundle = |number: u32| {
            self.revisions.get(&number).is_some_and(|it| it.bundle.name == bundle.name)
        };
        let made = self.made(&self.wanted(bundle, &[]), facts).map(|(number, _)| number);
        if numbers.any(is_of_bundle) || made.is_some_and(|it| self.inspected == Some(it)) {
            return MemberState::Ready;
        }
        let has_failed = self.last_block.is_some()
            || matches!(&self.preparation, Some(Preparation::Failed { .. }));
        match self.refusal() {
            Some((_, BlockCause::Member)) => MemberState::Ready,
            Some((block, BlockCause::Bundle | BlockCause::Cluster)) => MemberState::Refused(block),
            None if has_failed => MemberState::Ready,
            None => MemberState::Preparing,
        }
    }
}

impl OperatorHandler<'_> {
    /// Returns the names of the other members of its change set; none if it moves alone.
    pub(super) fn other_members(&self) -> Vec<String> {
        self.change_set().map(|(_, others)| others).unwrap_or_default()
    }

    /// Returns whether it is not known yet what another member of its change set would apply.
    pub(super) fn awaits_member(&self) -> bool {
        let members = self.other_members();
        let mut members = members.iter().filter_map(|it| self.peers.operators.get(it));
        members.any(|it| it.is_unread(self.facts))
    }

    /// Returns its change set, and the names of the other members; `None` if it moves alone.
    fn change_set(&self) -> Option<(ChangeSet, Vec<String>)> {
        let set = change_set::of(self.requested.get(self.name)?)?.ok()?;
        let members = change_set::members(self.requested, &set).into_iter();
        let others = members.filter(|it| *it != self.name).map(str::to_owned).collect();
        Some((set, others))
    }

    /// Returns a prepared revision once all members of its change set are prepared, and records those that are
    /// refused. Operators that move alone do not wait.
    pub(super) fn with_change_set(
        &mut self,
        prepared: Option<PreparedRevision>,
    ) -> Option<PreparedRevision> {
        let is_move = self.operator.decision.as_ref().is_some_and(|it| {
            matches!(it.action, OperatorAction::Install(_) | OperatorAction::Upgrade(_))
                || it.ahead.is_some()
        });
        let Some((set, others)) = self.change_set().filter(|_| is_move) else { return prepared };
        let (mut is_complete, mut refused) = (true, Vec::new());
        for name in others {
            let Some(member) = self.peers.operators.get(&name) else { continue };
            match member.member_state(self.facts) {
                MemberState::Ready => {}
                MemberState::Preparing => is_complete = false,
                MemberState::Refused(block) => {
                    is_complete = false;
                    refused.push(format!("{name}: {}", block.message));
                }
            }
        }
        if !refused.is_empty() {
            let message = format!("change set {} waits: {}", set.id, refused.join("; "));
            self.operator.set_block = Some(OperatorBlock::new(Reason::ChangeSetBlocked, message));
        }
        if is_complete {
            return prepared;
        }
        self.operator.waiting = prepared.map(|it| it.number);
        None
    }

    /// Prepares the bundle that it moves to after other members of its change set, if there is one. It is rolled
    /// out by a later decision.
    pub(super) fn prepare_ahead(&mut self) {
        let ahead = self.operator.decision.as_ref().and_then(|it| it.ahead.clone());
        let Some(bundle) = ahead else {
            self.operator.forget_preparation();
            return;
        };
        let wanted = self.operator.wanted(&bundle, &[]);
        let prepared = self.prepare(wanted);
        let number = prepared.as_ref().map(|it| it.number);
        self.with_change_set(prepared);
        self.operator.waiting = number;
    }

    /// Requests that the next steps of the other members of its change set are determined.
    pub(super) fn mark_set_pending(&mut self) {
        if let Some((_, others)) = self.change_set() {
            self.output.pending.extend(others);
        }
    }

    /// Returns whether a revision has an object that another member of its change set has now.
    pub(super) fn takes_from_member(&self, draft: &RevisionDraft) -> bool {
        let Some((_, others)) = self.change_set() else { return false };
        let keys = draft.objects.iter().map(|it| &it.manifest.key);
        let keys: BTreeSet<&ObjectKey> = keys.filter(|it| !is_namespace(it)).collect();
        let holders = self.peers.holders(&keys);
        holders.values().any(|holder| others.iter().any(|it| it == holder))
    }
}
