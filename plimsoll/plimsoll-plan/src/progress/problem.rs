//! Problems: why steps wait, as one value for status, live view, logs and ReleaseProgress.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use plimsoll_api::{Effect, Reason, Verdict};

use super::Progress;
use super::track::{State, Transience};
use crate::health::failure::could_not_update;
use crate::plan::mode::Mode;
use crate::plan::{Action, Readiness};

/// Tries after which a lasting failure is reported; before that it may well pass by itself.
pub const ATTEMPTS_UNREPORTED: u32 = 2;
/// How long a transient failure goes unreported: an API server that restarts needs about this.
pub const TRANSIENT_UNREPORTED: Duration = Duration::from_secs(30);
/// How long a missing kind or namespace is ordinary progress; after that it is a failure.
pub const OBSTACLE_TOLERATED: Duration = Duration::from_secs(5 * 60);

/// How long an operator that is not available is ordinary progress of a first installation: as
/// long as upstream's first pass, at whose end it reports (CV-11.3).
pub const UNAVAILABLE_TOLERATED: Duration = Duration::from_secs(4 * 60);

/// Whether a step waits for something or failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProblemState {
    /// Something is expected to happen by itself.
    Waiting,
    /// Something went wrong.
    Failed,
}

impl ProblemState {
    /// As ReleaseProgress spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "Waiting",
            Self::Failed => "Failed",
        }
    }
}

/// Why a step whose turn has come is not done, or what it has to report although it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The step.
    pub step: usize,
    /// Waiting or failed.
    pub state: ProblemState,
    /// The reason.
    pub reason: Reason,
    /// How it surfaces in conditions; `None` while it is too young to be reported there.
    pub effect: Option<Effect>,
    /// The whole story, naming the object.
    pub message: String,
    /// Tries since the last success.
    pub attempts: u32,
    /// Since when it waits or fails, for whatever reasons.
    pub since: Timestamp,
    /// Since when it does for this reason.
    pub reason_since: Timestamp,
}

impl Progress {
    /// Everything that waits or failed, in the order of the plan.
    pub fn problems(&self, now: Timestamp) -> Vec<Problem> {
        (0..self.tracks.len()).filter_map(|index| self.problem(index, now)).collect()
    }

    fn problem(&self, index: usize, now: Timestamp) -> Option<Problem> {
        let track = &self.tracks[index];
        if track.is_claimed {
            // It was done as far as anybody knows: nothing is said against it yet.
            return None;
        }
        match &track.state {
            State::Pending | State::Done(None) | State::Waiting(Verdict::Ready) => None,
            State::Blocked(_) => self.deferral(index, now),
            State::Due | State::Running | State::Retry { .. } => {
                self.failure(index, now).or_else(|| self.under_way(index))
            }
            State::Waiting(Verdict::Waiting { effect, reason, message }) => {
                Some(self.unmet(index, *effect, *reason, message, now))
            }
            State::Waiting(Verdict::ReadyWith { reason, message })
            | State::Done(Some((reason, message))) => {
                let (state, effect) = (ProblemState::Waiting, Some(Effect::Report));
                Some(self.new_problem(index, state, *reason, effect, message.clone()))
            }
        }
    }

    /// Returns a problem with the attempts and times of its step.
    fn new_problem(
        &self,
        index: usize,
        state: ProblemState,
        reason: Reason,
        effect: Option<Effect>,
        message: String,
    ) -> Problem {
        let track = &self.tracks[index];
        Problem {
            step: index,
            state,
            reason,
            effect,
            message,
            attempts: track.attempts,
            since: track.since,
            reason_since: track.reason_since,
        }
    }

    /// Returns what keeps a deferred step from being tried, if anything still does.
    fn deferral(&self, index: usize, now: Timestamp) -> Option<Problem> {
        let step = &self.plan.steps[index];
        // What it needs may have come while there was no slot for it.
        let blocker = self.world.blocker(step)?;
        let unseen = self.is_beginning(index, now) && self.world.is_unsure(step);
        let overdue = is_older(self.tracks[index].since, OBSTACLE_TOLERATED, now);
        let effect = if overdue { Effect::Fail } else { Effect::None };
        let state = if overdue { ProblemState::Failed } else { ProblemState::Waiting };
        let message = self.could_not(index, &blocker.message());
        let effect = (!unseen).then_some(effect);
        Some(self.new_problem(index, state, blocker.reason(), effect, message))
    }

    /// Returns why the last try failed, until one succeeds.
    fn failure(&self, index: usize, now: Timestamp) -> Option<Problem> {
        let track = &self.tracks[index];
        let error = track.error.as_ref()?;
        let quiet = match error.transience {
            Transience::Transient => !is_older(track.since, TRANSIENT_UNREPORTED, now),
            Transience::Lasting => track.attempts <= ATTEMPTS_UNREPORTED,
        };
        // A refused deletion shows in `Upgradeable` and in the list of deletions.
        let is_deletion = self.plan.steps[index].action == Action::Delete;
        let effect = (!quiet && !is_deletion).then_some(Effect::Fail);
        let message = self.could_not(index, &error.message());
        Some(self.new_problem(index, ProblemState::Failed, error.reason, effect, message))
    }

    /// Returns how far a step has come that is done in parts.
    fn under_way(&self, index: usize) -> Option<Problem> {
        let message = self.tracks[index].part_done.clone()?;
        let (reason, effect) = (Reason::StorageVersionMigrating, Some(Effect::None));
        Some(self.new_problem(index, ProblemState::Waiting, reason, effect, message))
    }

    /// Returns what an executed step waits for.
    fn unmet(
        &self,
        index: usize,
        effect: Effect,
        reason: Reason,
        message: &str,
        now: Timestamp,
    ) -> Problem {
        let (step, track) = (&self.plan.steps[index], &self.tracks[index]);
        let tolerated = self.mode == Mode::Initializing
            && reason == Reason::ClusterOperatorNotAvailable
            && !is_older(track.since, UNAVAILABLE_TOLERATED, now);
        let effect = if tolerated { Effect::None } else { effect };
        let is_gate = step.readiness == Readiness::Gate;
        let unseen = self.is_beginning(index, now) && is_gate && track.health.is_none();
        let state = match effect {
            Effect::Fail => ProblemState::Failed,
            Effect::None | Effect::FailAfterInterval | Effect::Report => ProblemState::Waiting,
        };
        let message = match step.action {
            Action::Refuse(_) => self.could_not(index, message),
            _ => message.to_owned(),
        };
        self.new_problem(index, state, reason, (!unseen).then_some(effect), message)
    }

    /// Returns whether watches may still list, as while a process begins: nothing is said against
    /// what they have not shown yet. What they never show is reported.
    fn is_beginning(&self, index: usize, now: Timestamp) -> bool {
        let since = self.tracks[index].since;
        self.mode == Mode::Reconciling && !is_older(since, TRANSIENT_UNREPORTED, now)
    }

    /// `Could not update KIND "NAME" (I of N): CAUSE`, as upstream words it (CV-12.1).
    fn could_not(&self, index: usize, cause: &str) -> String {
        let object = self.plan.steps[index].describe();
        could_not_update(&object, index + 1, self.plan.steps.len(), cause)
    }

    /// The name of the ClusterOperator whose gate a step is.
    pub fn cluster_operator(&self, index: usize) -> Option<&str> {
        let step = &self.plan.steps[index];
        (step.readiness == Readiness::Gate).then_some(step.manifest.key.name.as_str())
    }
}

fn is_older(since: Timestamp, age: Duration, now: Timestamp) -> bool {
    let age = SignedDuration::try_from(age).expect("bounds are minutes");
    now.duration_since(since) > age
}
