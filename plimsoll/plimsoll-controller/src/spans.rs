//! Spans of the work, for traces: a release, its run levels, and each time a step is carried out.
//!
//! A repair of a completed release belongs to no release under way: each such step is a trace of its
//! own. Without anybody who listens, spans cost next to nothing.

use std::collections::BTreeMap;

use plimsoll_plan::plan::Plan;
use plimsoll_plan::plan::graph;
use plimsoll_plan::plan::mode::Mode;
use plimsoll_plan::progress::{Progress, StepOutcome};
use tracing::Span;
use tracing::field::Empty;

/// The spans that are open.
pub(crate) struct Spans {
    release: Span,
    levels: BTreeMap<Option<u32>, Span>,
}

impl Spans {
    /// Begins those of a plan.
    pub(crate) fn begin(plan: &Plan) -> Self {
        let release = match plan.mode {
            Mode::Reconciling => Span::none(),
            mode => tracing::debug_span!(
                parent: None,
                "release",
                version = %plan.release.version,
                image = %plan.release.image,
                mode = mode.as_str(),
                steps = plan.steps.len(),
            ),
        };
        Self { release, levels: BTreeMap::new() }
    }

    /// A step is carried out: within its run level while the release is under way.
    pub(crate) fn step(&mut self, plan: &Plan, index: usize) -> Span {
        let step = &plan.steps[index];
        let level = level(plan, index);
        let parent = if self.release.is_disabled() {
            None
        } else {
            let release = &self.release;
            let number = level.map_or_else(String::new, |level| level.to_string());
            let span = self.levels.entry(level).or_insert_with(
                || tracing::debug_span!(parent: release, "run level", level = %number),
            );
            span.id()
        };
        tracing::debug_span!(
            parent: parent,
            "step",
            object = %step.manifest.key,
            file = %step.manifest.file,
            version = %plan.release.version,
            outcome = Empty,
            otel.status_code = Empty,
            otel.status_description = Empty,
        )
    }

    /// Ends those whose work is done.
    pub(crate) fn end_completed(&mut self, progress: &Progress) {
        if self.levels.is_empty() {
            return;
        }
        let nodes = &progress.plan().graph.nodes;
        self.levels.retain(|level, _| {
            let mut of_level = nodes.iter().filter(|node| node.level == *level);
            of_level.any(|node| !node.tasks.iter().all(|step| progress.is_done(*step)))
        });
        if progress.passes() > 0 {
            *self = Self { release: Span::none(), levels: BTreeMap::new() };
        }
    }
}

/// Returns the span of a step of an Operator's rollout, a trace of its own.
pub(crate) fn operator_step(plan: &Plan, index: usize, operator: &str) -> Span {
    let step = &plan.steps[index];
    tracing::debug_span!(
        parent: None,
        "step",
        operator,
        object = %step.manifest.key,
        version = %plan.release.version,
        outcome = Empty,
        otel.status_code = Empty,
        otel.status_description = Empty,
    )
}

/// Notes in a step's span how it ended.
pub(crate) fn ended(span: &Span, outcome: &StepOutcome) {
    match outcome {
        StepOutcome::Applied(_) | StepOutcome::Continued(_) | StepOutcome::Deleted(_) => {
            span.record("outcome", "success");
        }
        StepOutcome::Blocked(_) => {
            span.record("outcome", "blocked");
        }
        StepOutcome::Failed(error) => {
            span.record("outcome", "error");
            span.record("otel.status_code", "ERROR");
            span.record("otel.status_description", error.cause.as_str());
        }
    }
}

fn level(plan: &Plan, step: usize) -> Option<u32> {
    graph::position(&plan.steps[step].manifest.file).map(|position| position.level)
}
