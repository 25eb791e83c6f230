//! Drift: observations of objects, and what is applied once more because of them or of a sweep.

use jiff::Timestamp;
use plimsoll_api::{GroupKind, Reason};

use super::schedule::order;
use super::track::{Deleted, Mark, State, Trace, Transience, TryError};
use super::{Progress, REPAIRS_AT_ONCE, REPAIRS_FORGOTTEN, RETRY_DELAY_MAX, RETRY_DELAY_MIN};
use crate::plan::Action;
use crate::plan::mode::Mode;

impl Progress {
    pub(super) fn observed(&mut self, index: usize, mark: Mark, now: Timestamp) {
        if self.plan.steps[index].action == Action::Migrate {
            // The step that applies the definition reverts what others change of it.
            return;
        }
        let create_only = self.plan.steps[index].action == Action::CreateOnly;
        let track = &mut self.tracks[index];
        if track.observed.is_some_and(|before| before.is_after(&mark)) {
            return;
        }
        track.observed = Some(mark);
        self.count_reverted(index);
        let track = &mut self.tracks[index];
        if !track.is_executed() {
            return;
        }
        if self.plan.steps[index].action == Action::Delete {
            if mark.trace == Trace::Gone && track.deletion.is_some() {
                track.deletion = Some(Deleted::Gone);
            }
            self.repair_if_drifted(index, now);
            return;
        }
        let ours = matches!(mark.trace, Trace::Ours(_));
        if create_only && mark.trace != Trace::Gone {
            track.applied = Some(mark);
        } else if track.applied.is_none() {
            // Done by an earlier process: what is there now is the baseline, if it is ours.
            track.applied = Some(if ours { mark } else { Mark::new(0, Trace::Ours(0)) });
        }
        self.repair_if_drifted(index, now);
    }

    /// The objects of a kind are going to be listed: at least as our writes have left them.
    pub(super) fn expect_list(&mut self, kind: &GroupKind) {
        for (step, track) in self.plan.steps.iter().zip(&mut self.tracks) {
            if step.manifest.key.group_kind() == *kind {
                track.expect_list();
            }
        }
    }

    /// Steps done by an earlier process, or under an earlier plan, whose object a complete listing did
    /// not show are due; and those whose object is older than our write before it left it: the API
    /// server was restored from a backup.
    pub(super) fn listed(&mut self, kind: &GroupKind, now: Timestamp) {
        for index in 0..self.tracks.len() {
            let step = &self.plan.steps[index];
            let track = &mut self.tracks[index];
            let is_applied = !matches!(step.action, Action::Delete | Action::Migrate);
            if !is_applied || step.manifest.key.group_kind() != *kind {
                continue;
            }
            let unseen = track.observed.is_none() && track.written.is_none();
            let is_older = track.is_listed_older();
            let is_executed = matches!(track.state, State::Waiting(_) | State::Done(_));
            if is_executed && !track.is_completed && (unseen || is_older) {
                track.enter(State::Due, now);
                // What this process has applied and no watch shows was deleted between two plans.
                if unseen && track.applied.is_some() {
                    self.count_repair(index);
                }
            }
        }
    }

    pub(super) fn repair_if_drifted(&mut self, index: usize, now: Timestamp) {
        let track = &mut self.tracks[index];
        let is_deletion = self.plan.steps[index].action == Action::Delete;
        let has_drifted = match is_deletion {
            true => track.has_reappeared(),
            false => track.has_drifted(),
        };
        if !track.is_executed() || !has_drifted || track.is_completed {
            self.confirm(index, now);
            return;
        }
        let rested = track.repaired.is_none_or(|at| now > at + REPAIRS_FORGOTTEN);
        track.repairs = if rested { 1 } else { track.repairs + 1 };
        track.repaired = Some(now);
        if !is_deletion {
            self.count_repair(index);
        }
        let track = &mut self.tracks[index];
        let excess = track.repairs.saturating_sub(REPAIRS_AT_ONCE);
        if excess == 0 {
            track.enter(State::Due, now);
        } else {
            let delay = (RETRY_DELAY_MIN * 2u32.pow(excess.min(10))).min(RETRY_DELAY_MAX);
            let error = TryError {
                reason: Reason::UpdatePayloadResourceConflict,
                cause: format!(
                    "another client changed fields of this resource {} times within a minute",
                    track.repairs
                ),
                transience: Transience::Transient,
                retry_after: None,
            };
            track.enter(State::Retry { at: now + delay }, now);
            track.error = Some(error);
        }
    }

    /// Counts a change by another client that a write reverts which is due anyway, as in a sweep, or that
    /// one has reverted before a watch showed it.
    pub(super) fn count_reverted(&mut self, index: usize) {
        let is_applied = !matches!(self.plan.steps[index].action, Action::Delete | Action::Migrate);
        let track = &mut self.tracks[index];
        if !is_applied || track.is_completed {
            return;
        }
        let is_due = match &track.state {
            State::Due | State::Blocked(_) => true,
            // A write that confirms another is not needed: what drifted is repaired.
            State::Retry { .. } => track.error.is_some(),
            State::Pending | State::Running | State::Waiting(_) | State::Done(_) => false,
        };
        if is_due && track.has_drifted() {
            self.count_repair(index);
        } else if track.takes_reverted() {
            self.repairs += 1;
            self.repaired.push(index);
        }
    }

    /// Counts a repair of an object, once until it is written.
    fn count_repair(&mut self, index: usize) {
        if !std::mem::replace(&mut self.tracks[index].is_repair_counted, true) {
            self.repairs += 1;
            self.repaired.push(index);
        }
    }

    /// Applies an object once more of which a watch has shown a change that the trace does not
    /// explain.
    pub(super) fn confirm(&mut self, index: usize, now: Timestamp) {
        let is_applied = matches!(self.plan.steps[index].action, Action::Apply | Action::Gate);
        let track = &mut self.tracks[index];
        if let Some(at) = track.confirm_at()
            && is_applied
            && !track.is_completed
            && matches!(track.state, State::Done(_))
        {
            track.enter(State::Retry { at }, now);
        }
    }

    pub(super) fn sweep(&mut self, now: Timestamp) {
        self.sweeps += 1;
        if self.mode == Mode::Reconciling {
            self.order = order(&self.plan, self.mode, self.sweeps);
        }
        for (step, track) in self.plan.steps.iter().zip(&mut self.tracks) {
            let swept = matches!(step.action, Action::Apply);
            if swept && !track.is_completed && matches!(track.state, State::Done(_)) {
                track.enter(State::Due, now);
            }
        }
    }
}
