//! Holding an update before a run level, and letting it go on.

use jiff::Timestamp;

use super::Progress;
use super::track::State;
use crate::mode::Mode;
use crate::pause::Pause;

impl Progress {
    /// Holds the update at a run level, or lets it go on. What is under way is finished; a step
    /// that is done is still kept as it is.
    pub fn set_pause(&mut self, pause: Option<Pause>, now: Timestamp) {
        self.paused_before = match pause {
            None => None,
            Some(Pause::Before(level)) => Some(level),
            Some(Pause::Next) => Some(self.next_level()),
        };
        let plan = self.plan.clone();
        for (index, node) in plan.graph.nodes.iter().enumerate() {
            let untouched = node.tasks.iter().all(|&step| !self.is_touched(step));
            if self.lanes[index].begun && self.is_held(node.level) && untouched {
                self.lanes[index].begun = false;
                for &step in &node.tasks {
                    self.tracks[step].enter(State::Pending, now);
                }
            }
        }
        self.advance(now);
    }

    /// The run level that the update is held before; `None` while it goes on or something before
    /// that level is not done yet.
    pub fn paused_at(&self) -> Option<u32> {
        let lanes = self.plan.graph.nodes.iter().zip(&self.lanes);
        let held = lanes.filter(|(node, lane)| {
            !lane.begun
                && self.is_held(node.level)
                && node.after.iter().all(|&before| self.lanes[before].cleared)
        });
        held.filter_map(|(node, _)| node.level).min()
    }

    /// Whether lanes of a level may not begin. Levels only mean something while updating.
    pub(super) fn is_held(&self, level: Option<u32>) -> bool {
        self.mode == Mode::Updating
            && self.paused_before.is_some_and(|before| level.is_some_and(|level| level >= before))
    }

    /// The first level of which nothing has been touched, after which nothing has been either.
    fn next_level(&self) -> u32 {
        let nodes = self.plan.graph.nodes.iter();
        let touched = nodes
            .filter(|node| node.tasks.iter().any(|&step| self.is_touched(step)))
            .filter_map(|node| node.level);
        touched.max().map_or(0, |level| level + 1)
    }

    /// Whether a step was done once, or something of it has been tried.
    fn is_touched(&self, step: usize) -> bool {
        let track = &self.tracks[step];
        track.reached
            || track.attempts > 0
            || !matches!(track.state, State::Pending | State::Due | State::Blocked(_))
    }
}
