//! Verdicts: what an executed step waits for, by what is served and by the health of its object.

use jiff::Timestamp;
use plimsoll_api::{Effect, Reason, Verdict};

use super::Progress;
use super::track::State;
use crate::plan::mode::Mode;
use crate::plan::{GroupVersionKind, Readiness, Step};

impl Progress {
    /// Decides what an executed step waits for.
    pub(super) fn judge(&mut self, index: usize, now: Timestamp) {
        let step = &self.plan.steps[index];
        match step.readiness {
            Readiness::Applied => self.tracks[index].enter(State::Done(None), now),
            Readiness::Served => {
                let state = match step.serves.iter().find(|k| self.world.scope(k).is_none()) {
                    None => State::Done(None),
                    Some(kind) => State::Waiting(not_served(kind)),
                };
                self.tracks[index].enter(state, now);
            }
            Readiness::RolledOut | Readiness::Gate => self.judge_health(index, now),
        }
    }

    pub(super) fn judge_served(&mut self, kind: &GroupVersionKind, now: Timestamp) {
        for index in 0..self.tracks.len() {
            let waiting = matches!(self.tracks[index].state, State::Waiting(_));
            if waiting && self.plan.steps[index].serves.contains(kind) {
                self.judge(index, now);
            }
        }
    }

    pub(super) fn judge_health(&mut self, index: usize, now: Timestamp) {
        let step = &self.plan.steps[index];
        let track = &mut self.tracks[index];
        if track.is_completed && matches!(track.state, State::Done(_)) {
            return;
        }
        let written = track.applied_revision();
        let verdict = match (step.readiness, &track.health) {
            (Readiness::Gate, Some((_, verdict))) => verdict.clone(),
            (Readiness::RolledOut, Some((revision, verdict))) if *revision >= written => {
                verdict.clone()
            }
            (Readiness::RolledOut, _) => not_seen(step),
            (Readiness::Gate, None) => Verdict::Waiting {
                effect: Effect::None,
                reason: Reason::ClusterOperatorNotAvailable,
                message: format!(
                    "Cluster operator {} has not reported yet",
                    step.manifest.key.name
                ),
            },
            (Readiness::Applied | Readiness::Served, _) => return,
        };
        if track.is_claimed && step.readiness == Readiness::Gate && track.health.is_some() {
            // It passed its gate once if it reports the release, whatever became of it since.
            let is_behind = matches!(
                verdict,
                Verdict::Waiting {
                    reason: Reason::ClusterOperatorUpdating
                        | Reason::UpdatePayloadResourceNotFound
                        | Reason::ClusterOperatorNoVersions,
                    ..
                }
            );
            if is_behind {
                track.enter(State::Waiting(verdict), now);
                self.reject_record(now);
            } else {
                track.is_claimed = false;
                track.enter(State::Done(None), now);
            }
            return;
        }
        if self.mode != Mode::Reconciling && matches!(track.state, State::Done(_)) {
            // It is passed for good. What it has to report is what was seen last.
            match verdict {
                Verdict::Ready => track.state = State::Done(None),
                Verdict::ReadyWith { reason, message } => {
                    track.state = State::Done(Some((reason, message)));
                }
                Verdict::Waiting { .. } => {}
            }
            return;
        }
        let state = match verdict {
            Verdict::Ready => State::Done(None),
            Verdict::ReadyWith { reason, message } => State::Done(Some((reason, message))),
            Verdict::Waiting { effect: Effect::None, .. }
                if self.mode == Mode::Reconciling && step.readiness == Readiness::RolledOut =>
            {
                // A rollout that another client started is not a failure to reconcile.
                State::Done(None)
            }
            verdict @ Verdict::Waiting { .. } => State::Waiting(verdict),
        };
        track.enter(state, now);
        self.confirm(index, now);
    }
}

fn not_served(kind: &GroupVersionKind) -> Verdict {
    Verdict::Waiting {
        effect: Effect::None,
        reason: Reason::CustomResourceDefinitionNotEstablished,
        message: format!("{kind} is not served yet"),
    }
}

fn not_seen(step: &Step) -> Verdict {
    Verdict::Waiting {
        effect: Effect::None,
        reason: Reason::WorkloadProgressing,
        message: format!(
            "{} \"{}\" has not been observed since it was applied",
            step.manifest.key.kind,
            step.manifest.key.namespaced_name()
        ),
    }
}
