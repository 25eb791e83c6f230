//! Where the ClusterVersion asks an update to pause.

use jiff::Timestamp;

use super::execution::PlanExecution;
use crate::plan::mode::Mode;
use crate::progress::pause::Pause;

/// The pause annotation of the ClusterVersion, and what it means for the plan under way.
#[derive(Debug, Clone, Default)]
pub struct PauseRequest {
    /// The annotation; `None` without one.
    annotation: Option<String>,
    /// Where the update under way pauses; `None` if it does not.
    pause: Option<Pause>,
}

impl PauseRequest {
    /// Starts with the annotation as it was read.
    pub fn new(annotation: Option<String>) -> Self {
        Self { annotation, pause: None }
    }

    /// The annotation is this now: pauses or resumes the update under way. True if it changed.
    pub fn annotation_changed(
        &mut self,
        annotation: Option<String>,
        execution: &mut PlanExecution,
        now: Timestamp,
    ) -> bool {
        if annotation == self.annotation {
            return false;
        }
        self.annotation = annotation;
        self.apply(Pause::parse(self.annotation.as_deref()), execution, now);
        true
    }

    /// Whether nothing asks for a pause.
    pub fn is_none(&self) -> bool {
        self.annotation.is_none()
    }

    /// Pauses the update under way somewhere, or resumes it.
    pub fn apply(&mut self, pause: Option<Pause>, execution: &mut PlanExecution, now: Timestamp) {
        execution.set_pause(pause, now);
        self.pause = pause;
        self.pin(execution);
    }

    /// Another release is to be applied: "next" means its next run level.
    pub fn release_changed(&mut self) {
        self.pause = Pause::parse(self.annotation.as_deref());
    }

    /// Where the plan that is begun next pauses.
    pub fn current(&self) -> Option<Pause> {
        self.pause
    }

    /// While updating, the next run level becomes a number: it stays the same when the rest of the
    /// update is planned anew.
    pub fn pin(&mut self, execution: &PlanExecution) {
        let progress = execution.progress();
        if progress.mode() == Mode::Updating {
            self.pause = progress.pause_level().map(Pause::Before);
        }
    }
}
