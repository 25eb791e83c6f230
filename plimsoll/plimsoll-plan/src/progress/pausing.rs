//! Holding an update before a run level, and letting it go on.

use jiff::Timestamp;

use super::Progress;
use super::track::State;
use crate::plan::mode::Mode;
use crate::progress::pause::Pause;

impl Progress {
    /// Holds the update at a run level, or lets it go on. A step under way is finished; one that is
    /// done is still kept as it is.
    pub fn set_pause(&mut self, pause: Option<Pause>, now: Timestamp) {
        self.paused_before = match pause {
            None => None,
            Some(Pause::Before(level)) => Some(level),
            Some(Pause::Next) => Some(self.next_level()),
        };
        let plan = self.plan.clone();
        for (index, node) in plan.graph.nodes.iter().enumerate() {
            let resting = node.tasks.iter().all(|&step| !self.is_under_way(step));
            let open = self.nodes[index].begun && !self.nodes[index].complete;
            if open && self.is_held(node.level) && resting {
                self.nodes[index].begun = false;
                self.nodes[index].cursor = 0;
                for &step in &node.tasks {
                    if matches!(self.tracks[step].state, State::Due | State::Blocked(_))
                        && !self.tracks[step].reached
                    {
                        self.tracks[step].enter(State::Pending, now);
                    }
                }
            }
        }
        self.advance(now);
    }

    /// The run level that nothing is begun from on, once [`Pause::Next`] has become one.
    pub fn pause_level(&self) -> Option<u32> {
        self.paused_before
    }

    /// The run level that the update is held before; `None` while it goes on or something before
    /// that level is not done yet.
    pub fn paused_at(&self) -> Option<u32> {
        let nodes = self.plan.graph.nodes.iter().zip(&self.nodes);
        let held = nodes.filter(|(node, progress)| {
            !progress.begun
                && !progress.complete
                && self.is_held(node.level)
                && node.after.iter().all(|&before| self.is_past(before))
        });
        held.filter_map(|(node, _)| node.level).min()
    }

    /// Whether nothing of a node holds up others, as far as is known or recorded: what an earlier
    /// process recorded as done is reported as such until something contradicts it.
    fn is_past(&self, node: usize) -> bool {
        let mut tasks = self.plan.graph.nodes[node].tasks.iter();
        self.nodes[node].cleared || tasks.all(|&step| self.tracks[step].reached)
    }

    /// Whether chains of a level may not begin. Levels only mean something while updating.
    pub(super) fn is_held(&self, level: Option<u32>) -> bool {
        self.mode == Mode::Updating
            && self.paused_before.is_some_and(|before| level.is_some_and(|level| level >= before))
    }

    /// The level under way if nothing of it has been done or tried, or else the one after it.
    fn next_level(&self) -> u32 {
        let nodes = || self.plan.graph.nodes.iter().zip(&self.nodes);
        let open =
            nodes().filter(|(_, progress)| !progress.cleared).filter_map(|(node, _)| node.level);
        let Some(level) = open.min() else {
            return nodes().filter_map(|(node, _)| node.level).max().map_or(0, |last| last + 1);
        };
        let steps = nodes().filter(|(node, _)| node.level == Some(level));
        let mut steps = steps.flat_map(|(node, _)| &node.tasks);
        let touched = steps.any(|&step| self.tracks[step].reached || self.is_under_way(step));
        if touched { level + 1 } else { level }
    }

    /// Whether a step has been tried and is not done.
    fn is_under_way(&self, step: usize) -> bool {
        let track = &self.tracks[step];
        matches!(track.state, State::Running | State::Waiting(_) | State::Retry { .. })
    }
}
