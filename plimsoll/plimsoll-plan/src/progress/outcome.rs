//! Outcomes: how an execution went, and the state in which it leaves its step.

use jiff::Timestamp;

use super::track::{Deleted, Mark, State, Trace, Transience, TryError};
use super::world::{NamespaceState, StepBlocker};
use super::{Progress, RETRY_DELAY_MAX, RETRY_DELAY_MIN};
use crate::plan::Action;

/// How an execution went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepOutcome {
    /// The object is as the manifest wants it.
    Applied(Mark),
    /// Part of it is done, and the rest is done next. The text says how far it has come.
    Continued(String),
    /// The API server was asked to delete the object.
    Deleted(Deleted),
    /// Something that it needs is not there after all.
    Blocked(StepBlocker),
    /// It failed.
    Failed(TryError),
}

impl Progress {
    pub(super) fn executed(&mut self, index: usize, outcome: StepOutcome, now: Timestamp) {
        self.running = self.running.saturating_sub(1);
        self.taken_up.remove(&index);
        match outcome {
            StepOutcome::Applied(mark) => {
                self.is_rolled_back |= mark.revision < self.tracks[index].started_at_revision;
                self.tracks[index].wrote(mark, now);
                self.count_reverted(index);
                self.tracks[index].attempts = 0;
                self.tracks[index].error = None;
                self.tracks[index].part_done = None;
                self.forget_job(index);
                self.judge(index, now);
                self.note_completion(index, now);
                self.repair_if_drifted(index, now);
            }
            StepOutcome::Continued(part_done) => {
                let track = &mut self.tracks[index];
                track.part_done = Some(part_done);
                // What an administrator has to change is reported until all is done.
                if track.error.as_ref().is_some_and(|it| it.transience == Transience::Transient) {
                    track.attempts = 0;
                    track.error = None;
                }
                track.enter(State::Due, now);
            }
            StepOutcome::Deleted(deleted) => {
                let track = &mut self.tracks[index];
                track.attempts = 0;
                track.error = None;
                track.deletion = Some(deleted);
                // What a watch showed before is no object that came back.
                track.observed = track.observed.filter(|mark| mark.trace == Trace::Gone);
                track.enter(State::Done(None), now);
            }
            StepOutcome::Blocked(blocker) => {
                match &blocker {
                    StepBlocker::KindNotServed(kind) => self.world.withdraw(kind),
                    StepBlocker::NamespaceMissing(name) => self.world.set_namespace(name, None),
                    StepBlocker::NamespaceTerminating(name) => {
                        self.world.set_namespace(name, Some(NamespaceState::Terminating));
                    }
                }
                self.tracks[index].error = None;
                self.tracks[index].enter(State::Blocked(blocker), now);
            }
            StepOutcome::Failed(error) => {
                let track = &mut self.tracks[index];
                track.attempts += 1;
                let doublings = track.attempts.saturating_sub(1).min(10);
                let delay = (RETRY_DELAY_MIN * 2u32.pow(doublings)).min(RETRY_DELAY_MAX);
                let at = now + delay.max(error.asked_delay());
                track.enter(State::Retry { at }, now);
                // A refused deletion holds up nothing (DEL-4).
                track.reached |= self.plan.steps[index].action == Action::Delete
                    && error.transience == Transience::Lasting;
                track.error = Some(error);
            }
        }
    }
}
