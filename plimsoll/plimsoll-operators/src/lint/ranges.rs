//! Version ranges of dependencies.

use crate::loadout::DeclaredOperator;
use crate::planner::{Outcome, is_pinned};
use crate::version_text;

/// Returns the defect of a dependency's range, as a sentence without a full stop, and the range that it
/// should have; `None` if there is no defect.
pub(super) fn problem(
    outcome: &Outcome<'_>,
    declared: &DeclaredOperator,
) -> Option<(String, String)> {
    let (name, range) = (declared.name.as_str(), declared.spec.version.as_str());
    if is_pinned(range) {
        return None;
    }
    let better = outcome.dependency_range(name);
    let message = match outcome.refused_within(name, range) {
        Some(refusal) => format!(
            "the range {range:?} admits {}, but {} depends on {}",
            version_text(&refusal.version.to_string()),
            refusal.dependant,
            refusal.requirement
        ),
        None => {
            let version = outcome.accepted_beyond(name, &better, range)?;
            let version = version_text(&version.to_string());
            format!("the range {range:?} excludes {version}, which all dependants accept")
        }
    };
    Some((message, better))
}
