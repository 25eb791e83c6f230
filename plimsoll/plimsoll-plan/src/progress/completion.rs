//! Completion: a Job that has completed is done for good.

use jiff::Timestamp;
use plimsoll_api::Verdict;

use super::Progress;
use super::track::State;

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
        track.is_completed = true;
        if matches!(track.state, State::Retry { .. }) {
            track.enter(State::Done(None), now);
        }
    }
}
