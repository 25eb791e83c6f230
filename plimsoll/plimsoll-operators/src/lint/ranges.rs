//! Version ranges of dependencies.

use plimsoll_resolve::version::parse_tolerant;
use semver::Version;

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

/// Returns the range of a dependency: the versions that all of its dependants accept, from the chosen one up
/// to the next minor version. `required` are the ranges on the package, `refused` the known versions that a
/// dependant does not accept.
pub(crate) fn dependency_range<'a>(
    chosen: &Version,
    required: impl Iterator<Item = &'a str>,
    refused: &[&Version],
) -> String {
    if !chosen.pre.is_empty() {
        return chosen.to_string();
    }
    let mut end = Version::new(chosen.major, chosen.minor + 1, 0);
    let mut is_inclusive = false;
    for range in required {
        // Alternatives may leave gaps: then only the known versions count.
        if range.contains("||") {
            continue;
        }
        for term in range.split([' ', ',']).filter(|it| it.starts_with('<')) {
            let includes = term.starts_with("<=");
            let bound = term.trim_start_matches(['<', '=']);
            let Ok(bound) = parse_tolerant(bound) else { continue };
            if bound < end && bound >= *chosen {
                (end, is_inclusive) = (bound, includes);
            }
        }
    }
    if let Some(first) = refused.iter().filter(|it| ***it > *chosen && ***it < end).min() {
        (end, is_inclusive) = ((*first).clone(), false);
    }
    let sign = if is_inclusive { "<=" } else { "<" };
    format!(">={chosen}, {sign}{end}")
}
