//! Jobs on record: those that completed do not run again, whatever plan has them.

use std::collections::BTreeSet;

use jiff::Timestamp;
use plimsoll_api::ObjectKey;
use plimsoll_api::progress::CompletedJob;
use plimsoll_content::inclusion::hash_but_for_profiles;

use super::Progress;
use super::track::State;

/// The maximum number of Jobs on record that the plan does not have.
const OTHERS_MAX: usize = 100;

impl Progress {
    /// The Jobs that completed under this plan and those before it, oldest first.
    pub fn completed_jobs(&self) -> &[CompletedJob] {
        &self.completed_jobs
    }

    /// Takes up the Jobs that an earlier process recorded as completed, whatever its plan was.
    #[must_use]
    pub fn recall(mut self, jobs: &[CompletedJob], now: Timestamp) -> Self {
        self.completed_jobs = jobs.to_vec();
        self.forget_old_jobs();
        self.take_up_jobs(now);
        self.advance(now);
        self
    }

    /// Marks the Jobs of the plan that are on record as done for good, unless more is known of them.
    pub(super) fn take_up_jobs(&mut self, now: Timestamp) {
        for (index, step) in self.plan.steps.iter().enumerate() {
            let track = &mut self.tracks[index];
            let is_open = matches!(track.state, State::Pending | State::Due | State::Blocked(_));
            if !is_open || track.reached || !step.runs_once() {
                continue;
            }
            let key = &step.manifest.key;
            let recorded = self.completed_jobs.iter().find(|it| it.object == *key);
            let hash = || hash_but_for_profiles(&step.manifest);
            if recorded.is_some_and(|it| it.manifest_hash == hash()) {
                track.is_completed = true;
                track.enter(State::Done(None), now);
                self.taken_up.insert(index);
            }
        }
    }

    /// Records that the Job of a step has completed.
    pub(super) fn record_job(&mut self, index: usize) {
        let manifest = &self.plan.steps[index].manifest;
        let job = CompletedJob {
            object: manifest.key.clone(),
            manifest_hash: hash_but_for_profiles(manifest),
        };
        if !self.completed_jobs.contains(&job) {
            self.completed_jobs.retain(|it| it.object != job.object);
            self.completed_jobs.push(job);
            self.forget_old_jobs();
        }
    }

    /// Forgets that a Job has completed: it is there anew, perhaps from another manifest.
    pub(super) fn forget_job(&mut self, index: usize) {
        let step = &self.plan.steps[index];
        if step.runs_once() && !self.tracks[index].is_completed {
            self.completed_jobs.retain(|it| it.object != step.manifest.key);
        }
    }

    /// Forgets the Jobs that an earlier process recorded, but for those that this one knows to have completed.
    pub(super) fn forget_recorded_jobs(&mut self) {
        let steps = self.plan.steps.iter().zip(&self.tracks);
        let known = steps.filter(|(_, track)| track.is_completed);
        let known: BTreeSet<&ObjectKey> = known.map(|(step, _)| &step.manifest.key).collect();
        self.completed_jobs.retain(|it| known.contains(&it.object));
    }

    /// Forgets the oldest Jobs that the plan does not have, if there are too many.
    fn forget_old_jobs(&mut self) {
        let is_other = |it: &CompletedJob| !self.steps_of.contains_key(&it.object);
        let others = self.completed_jobs.iter().filter(|it| is_other(it)).count();
        let mut excess = others.saturating_sub(OTHERS_MAX);
        self.completed_jobs.retain(|it| {
            let is_forgotten = excess > 0 && is_other(it);
            excess -= usize::from(is_forgotten);
            !is_forgotten
        });
    }
}
