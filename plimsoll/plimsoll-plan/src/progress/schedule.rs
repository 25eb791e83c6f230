//! Schedule: the order in which steps are considered, and whether one can be started.

use std::sync::Arc;

use jiff::Timestamp;
use plimsoll_api::{Effect, Reason, Verdict};

use super::Progress;
use super::track::{State, Trace};
use crate::plan::mode::Mode;
use crate::plan::{Action, Plan, Readiness};

impl Progress {
    pub(super) fn pending(&self) -> usize {
        self.tracks.iter().filter(|track| track.state == State::Pending).count()
    }

    pub(super) fn is_due(&self, index: usize, now: Timestamp) -> bool {
        match &self.tracks[index].state {
            State::Due | State::Blocked(_) => true,
            State::Retry { at } => *at <= now,
            State::Pending | State::Running | State::Waiting(_) | State::Done(_) => false,
        }
    }

    /// Starts a step unless something it needs is missing or nothing is to be done.
    pub(super) fn try_start(&mut self, index: usize, now: Timestamp) -> bool {
        let step = &self.plan.steps[index];
        let track = &mut self.tracks[index];
        if step.action == Action::Migrate && track.is_completed {
            track.enter(State::Done(None), now);
            return false;
        }
        // Only an update deletes; a refused deletion is tried on until it succeeds, and what was
        // deleted and is applied by a late write of ours is deleted again.
        let is_tried_on =
            step.action == Action::Delete && (track.attempts > 0 || track.deletion.is_some());
        // A deferred step lets the steps after it begin, and what need not be deleted is done: not
        // for want of an answer.
        if (self.mode == Mode::Updating || is_tried_on) && self.world.is_unsure(step) {
            return false;
        }
        let blocker = self.world.blocker(step);
        if step.action == Action::Delete {
            // What is not served, or whose namespace is gone or going, is gone or goes with it.
            if blocker.is_some() || (self.mode != Mode::Updating && !is_tried_on) {
                track.enter(State::Done(None), now);
                return false;
            }
        }
        if let Action::Refuse(message) = &step.action {
            let verdict = Verdict::Waiting {
                effect: Effect::Fail,
                reason: Reason::UpdatePayloadFailed,
                message: message.clone(),
            };
            track.enter(State::Waiting(verdict), now);
            return false;
        }
        if let Some(blocker) = blocker {
            track.enter(State::Blocked(blocker), now);
            return false;
        }
        let exists = track.observed.is_some_and(|mark| mark.trace != Trace::Gone);
        if step.action == Action::CreateOnly && exists {
            track.applied = track.observed;
            track.enter(State::Done(None), now);
            return false;
        }
        if !self.supersede(index, now) {
            return false;
        }
        let track = &mut self.tracks[index];
        track.start(now);
        track.enter(State::Running, now);
        self.running += 1;
        true
    }
}

/// While updating, the plan's order; while reconciling, one that differs from pass to pass. But for
/// updating, what others may need comes first: namespaces, then definitions, whose kinds take a
/// moment to be served.
pub(super) fn order(plan: &Plan, mode: Mode, attempt: u32) -> Arc<[usize]> {
    let rank = |index: &usize| {
        let step = &plan.steps[*index];
        if mode == Mode::Updating {
            0
        } else if step.manifest.key.kind == "Namespace" {
            1
        } else if step.readiness == Readiness::Served {
            2
        } else {
            3
        }
    };
    let mut order: Vec<usize> = match mode {
        Mode::Initializing | Mode::Updating => (0..plan.steps.len()).collect(),
        Mode::Reconciling => plan.reconciling_order(attempt),
    };
    order.sort_by_key(rank);
    order.into()
}
