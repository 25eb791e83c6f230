//! Completion: a Job that has completed is done for good, and so is a step once a later one of the same
//! object begins, or a migration that is left out.

use jiff::Timestamp;
use plimsoll_api::Verdict;

use super::Progress;
use super::track::State;
use crate::plan::Action;

impl Progress {
    /// Notes that a Job has completed, as seen after it was applied: its deletion is no drift from now on,
    /// and nothing applies it again.
    pub(super) fn note_completion(&mut self, index: usize, now: Timestamp) {
        let runs_once = self.plan.steps[index].runs_once();
        let track = &mut self.tracks[index];
        let written = track.applied_revision();
        let is_seen =
            matches!(&track.health, Some((revision, Verdict::Ready)) if *revision >= written);
        if !runs_once || !is_seen || !track.is_executed() {
            return;
        }
        let is_new = !std::mem::replace(&mut track.is_completed, true);
        if matches!(track.state, State::Retry { .. }) {
            track.enter(State::Done(None), now);
        }
        if is_new {
            self.record_job(index);
        }
    }

    /// Leaves out the migrations of the plan. A part that is under way ends.
    pub fn skip_migrations(&mut self) {
        for (step, track) in self.plan.steps.iter().zip(&mut self.tracks) {
            if step.action == Action::Migrate {
                track.is_completed = true;
                track.part_done = None;
            }
        }
    }

    /// Marks the steps that a step replaces as done for good. Returns false if one of them is being
    /// executed: it would undo what the step does.
    pub(super) fn supersede(&mut self, index: usize, now: Timestamp) -> bool {
        let key = &self.plan.steps[index].manifest.key;
        let same = self.steps_of.get(key).into_iter().flatten().copied();
        let replaced: Vec<usize> =
            same.filter(|&it| it < index && self.plan.steps[it].is_repeated).collect();
        if replaced.iter().any(|&it| self.tracks[it].state == State::Running) {
            return false;
        }
        for it in replaced {
            let track = &mut self.tracks[it];
            track.is_completed = true;
            if !matches!(track.state, State::Waiting(_) | State::Done(_)) {
                track.enter(State::Done(None), now);
            }
        }
        true
    }
}
