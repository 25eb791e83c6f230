//! Chains: when each begins, when its steps have their turn, and when the whole plan is complete.

use std::sync::Arc;

use jiff::Timestamp;

use super::Progress;
use super::track::State;
use crate::plan::mode::Mode;
use crate::plan::{Action, Readiness};

impl Progress {
    /// Lets chains begin and steps come to their turn; ends the pass when all is done.
    pub(super) fn advance(&mut self, now: Timestamp) {
        let plan = Arc::clone(&self.plan);
        let mut changed = true;
        while changed {
            changed = false;
            for (node_index, node) in plan.graph.nodes.iter().enumerate() {
                if self.nodes[node_index].complete {
                    continue;
                }
                if !self.nodes[node_index].begun {
                    if self.is_held(node.level)
                        || !node.after.iter().all(|&before| self.nodes[before].cleared)
                    {
                        continue;
                    }
                    self.nodes[node_index].begun = true;
                    self.begin_gates(&node.tasks, now);
                }
                self.advance_chain(node_index, &node.tasks, now);
                let progress = &mut self.nodes[node_index];
                progress.complete = node.tasks.iter().all(|&index| self.tracks[index].is_proven());
                let is_deferred_or_done = |index: &usize| {
                    matches!(self.tracks[*index].state, State::Blocked(_))
                        || self.tracks[*index].is_proven()
                };
                if !progress.cleared && node.tasks.iter().all(is_deferred_or_done) {
                    progress.cleared = true;
                    changed = true;
                }
            }
        }
        let complete = self.nodes.iter().all(|progress| progress.complete);
        if complete && self.passes == 0 {
            self.passes = 1;
            self.enter_reconciling(now);
        }
    }

    fn begin_gates(&mut self, tasks: &[usize], now: Timestamp) {
        for &index in tasks {
            let gate = self.plan.steps[index].readiness == Readiness::Gate;
            if gate && self.tracks[index].state == State::Pending {
                self.tracks[index].enter(State::Due, now);
            }
        }
    }

    fn advance_chain(&mut self, node_index: usize, tasks: &[usize], now: Timestamp) {
        while let Some(&index) = tasks.get(self.nodes[node_index].cursor) {
            if self.tracks[index].state == State::Pending {
                self.tracks[index].enter(State::Due, now);
            }
            if !self.is_passed(index) {
                let track = &self.tracks[index];
                let is_gate = self.plan.steps[index].readiness == Readiness::Gate;
                let is_waiting = matches!(track.state, State::Waiting(_));
                if is_gate && is_waiting && track.health.is_some() {
                    self.apply_taken_up(tasks, now);
                }
                return;
            }
            self.nodes[node_index].cursor += 1;
        }
    }

    /// Whether the next step of the chain may begin.
    fn is_passed(&self, index: usize) -> bool {
        let track = &self.tracks[index];
        match &track.state {
            _ if self.mode != Mode::Updating => true,
            State::Done(_) | State::Blocked(_) => true,
            State::Pending | State::Due | State::Running => track.is_proven(),
            // A refused deletion holds up nothing, nor does a write that confirms another.
            State::Retry { .. } => {
                let is_deletion = self.plan.steps[index].action == Action::Delete;
                track.is_proven() && (is_deletion || track.error.is_none())
            }
            State::Waiting(_) => false,
        }
    }

    /// From now on nothing is softened: what was passed is judged again.
    fn enter_reconciling(&mut self, now: Timestamp) {
        self.mode = Mode::Reconciling;
        for index in std::mem::take(&mut self.taken_up) {
            let is_applied = self.plan.steps[index].action == Action::Apply;
            let track = &self.tracks[index];
            if is_applied && !track.is_completed && matches!(track.state, State::Done(_)) {
                self.tracks[index].enter(State::Due, now);
            }
        }
        for index in 0..self.tracks.len() {
            let has_health =
                matches!(self.plan.steps[index].readiness, Readiness::RolledOut | Readiness::Gate);
            if has_health && matches!(self.tracks[index].state, State::Done(_)) {
                self.judge_health(index, now);
            }
        }
    }
}
