//! What a report names by itself, without its details: what is replaced, and what is taken over.

use std::collections::BTreeMap;

use plimsoll_plan::forecast::StepChangeKind;

use super::{ForecastReport, StepReport, short};

/// Returns the steps whose objects are deleted and created again.
pub(super) fn replaced(report: &ForecastReport) -> Vec<&StepReport> {
    steps(report).filter(|step| is_replaced(step)).collect()
}

/// Returns the sentence part about an object that is replaced: `replaces job.batch/a (spec.template)`; `None` if it
/// is not.
pub(super) fn replacement(step: &StepReport) -> Option<String> {
    is_replaced(step).then(|| format!("replaces {}{}", short(&step.object), cause(step)))
}

/// Returns the fields that make a replacement necessary, in parentheses.
pub(super) fn cause(step: &StepReport) -> String {
    match step.replaced_for.as_slice() {
        [] => String::new(),
        fields => format!(" ({})", fields.join(", ")),
    }
}

/// Returns the number of objects each earlier manager's fields are taken over of.
pub(super) fn taken_over(report: &ForecastReport) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for manager in steps(report).flat_map(|step| &step.takes_over) {
        *counts.entry(manager.as_str()).or_default() += 1;
    }
    counts
}

fn is_replaced(step: &StepReport) -> bool {
    step.change == StepChangeKind::Replaced.as_str()
}

fn steps(report: &ForecastReport) -> impl Iterator<Item = &StepReport> {
    let components = report.levels.iter().flat_map(|level| &level.components);
    components.flat_map(|component| &component.steps)
}
