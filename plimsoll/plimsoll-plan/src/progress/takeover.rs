//! Takeover: what a plan takes up from the record of an earlier process, or from the plan before it
//! in the same process.

use std::collections::BTreeSet;

use jiff::Timestamp;
use plimsoll_api::ObjectKey;
use plimsoll_content::inclusion::is_same_but_for_profiles;

use super::track::{State, Trace};
use super::{NodeProgress, Progress};
use crate::plan::Action;

impl Progress {
    /// Takes up a plan where an earlier process left it: `done` steps count as done and are
    /// checked by the watches instead of being executed again.
    ///
    /// The record is no proof: anybody who may write ReleaseProgress can have written it. So gates
    /// pass only when their ClusterOperators report the release, and one that does not contradicts the
    /// whole record. What a complete plan took up without proof is applied once more, but for Jobs, which
    /// nothing shows any more to have completed.
    pub fn resume(mut self, done: &[usize], now: Timestamp) -> Self {
        for &index in done {
            let Some(track) = self.tracks.get_mut(index) else { continue };
            if track.is_proven() {
                // What this process knows of it is newer than the record.
                continue;
            }
            let runs_once = self.plan.steps[index].runs_once();
            if !runs_once && track.observed.is_some_and(|mark| mark.trace == Trace::Gone) {
                // What a watch showed to be gone meanwhile is to be applied.
                continue;
            }
            match self.plan.steps[index].action {
                Action::Gate => {
                    track.reached = true;
                    track.is_claimed = true;
                }
                Action::Apply
                | Action::CreateOnly
                | Action::Delete
                | Action::Migrate
                | Action::Refuse(_) => {
                    track.is_completed = runs_once;
                    track.enter(State::Done(None), now);
                    self.taken_up.insert(index);
                    if runs_once {
                        self.record_job(index);
                    }
                }
            }
        }
        self.advance(now);
        self
    }

    /// Takes up a plan after another one in the same process: steps whose manifest is unchanged
    /// and done stay done, with what is known of their objects; gates do if the release is the same.
    /// What was done and is being put right counts as done, and is put right at once.
    pub fn succeed(mut self, before: &Self, now: Timestamp) -> Self {
        self.repairs = before.repairs;
        self.sweeps = before.sweeps;
        self.completed_jobs.clone_from(&before.completed_jobs);
        let same_release = before.plan.release == self.plan.release;
        for (index, step) in self.plan.steps.iter().enumerate() {
            let Some(old) = before.step_of(&step.manifest.key) else {
                continue;
            };
            let old_track = &before.tracks[old];
            let track = &mut self.tracks[index];
            track.health = old_track.health.clone();
            let old_manifest = &before.plan.steps[old].manifest;
            // A Job does not run again because its release is built for other profiles.
            let same = old_manifest.raw == step.manifest.raw
                || (step.runs_once() && is_same_but_for_profiles(&step.manifest, old_manifest));
            let is_back = step.action == Action::Delete
                && old_track
                    .observed
                    .is_some_and(|mark| mark.trace != Trace::Gone && !mark.is_terminating);
            let means_the_same = step.action != Action::Gate || same_release;
            if !same || is_back || !means_the_same {
                continue;
            }
            if old_track.reached && old_track.is_claimed {
                // What an earlier process recorded is still to be shown.
                track.reached = true;
                track.is_claimed = true;
            }
            if old_track.is_proven() {
                if before.taken_up.contains(&old) {
                    self.taken_up.insert(index);
                }
                track.applied = old_track.applied;
                track.is_repair_counted = old_track.is_repair_counted;
                track.is_completed = old_track.is_completed;
                track.expect_list();
                track.reached = true;
                let is_done = matches!(old_track.state, State::Done(_));
                track.enter(if is_done { State::Done(None) } else { State::Due }, now);
            }
        }
        self.take_up_jobs(now);
        self.advance(now);
        self
    }

    /// The deletion of these objects was refused to an earlier process: it is tried again in every
    /// mode, and holds up nothing (DEL-4).
    pub fn retry_deletions(&mut self, refused: &BTreeSet<ObjectKey>) {
        for (step, track) in self.plan.steps.iter().zip(&mut self.tracks) {
            if step.action == Action::Delete && refused.contains(&step.manifest.key) {
                track.attempts = track.attempts.max(1);
                track.reached = true;
                if matches!(track.state, State::Done(_)) {
                    track.state = State::Due;
                }
            }
        }
    }

    /// The cluster contradicts the record of an earlier process: nothing of it counts any more, and
    /// the plan begins anew but for what this process has done itself.
    pub(super) fn reject_record(&mut self, now: Timestamp) {
        for index in 0..self.tracks.len() {
            let is_taken_up = self.taken_up.contains(&index);
            let track = &mut self.tracks[index];
            if is_taken_up && matches!(track.state, State::Done(_) | State::Due) {
                track.reached = false;
                track.is_completed = false;
                track.enter(State::Pending, now);
            } else if track.is_claimed {
                track.reached = false;
                track.is_claimed = false;
            }
        }
        self.taken_up.clear();
        self.forget_recorded_jobs();
        self.nodes = vec![NodeProgress::default(); self.plan.graph.nodes.len()];
    }

    /// Applies what an earlier process recorded as done of a chain whose operator does not report the
    /// release: the record may be wrong, and the operator would wait for ever. Jobs do not run again.
    pub(super) fn apply_taken_up(&mut self, tasks: &[usize], now: Timestamp) {
        for &index in tasks {
            let is_applied = self.plan.steps[index].action == Action::Apply;
            let track = &self.tracks[index];
            let is_done = matches!(track.state, State::Done(_)) && !track.is_completed;
            if is_applied && is_done && self.taken_up.remove(&index) {
                self.tracks[index].enter(State::Due, now);
            }
        }
    }

    fn step_of(&self, key: &ObjectKey) -> Option<usize> {
        self.steps_of.get(key).and_then(|steps| steps.last()).copied()
    }
}
