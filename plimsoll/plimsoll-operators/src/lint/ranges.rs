//! Version ranges of dependencies.

use std::collections::BTreeMap;

use plimsoll_resolve::range::masterminds::Range;
use plimsoll_resolve::requirement::InstalledPackages;
use plimsoll_resolve::version::parse_tolerant;
use plimsoll_resolve::{Bundle, Constraint};
use semver::Version;

use super::LintInputs;
use crate::loadout::{DeclaredOperator, SettledOperators};
use crate::{InstalledOperator, OperatorDecision, version_text};

/// Returns whether a range is a single version.
pub fn is_pinned(range: &str) -> bool {
    let version = range.trim().trim_start_matches('=').trim_start().trim_start_matches('v');
    version.split('.').count() >= 3 && Version::parse(version).is_ok()
}

/// Returns the range of a dependency: the versions that all of its dependants accept, from the chosen one up
/// to the next minor version. `required` are the ranges on the package, `refused` the known versions that a
/// dependant does not accept.
pub fn dependency_range<'a>(
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

/// Returns the defect of a dependency's range, as a sentence without a full stop, and the range that it
/// should have; `None` if there is no defect.
pub(super) fn problem(
    inputs: LintInputs<'_>,
    settled: &SettledOperators,
    declared: &DeclaredOperator,
    decision: &OperatorDecision,
    installed: &InstalledOperator,
) -> Option<(String, String)> {
    let name = declared.name.as_str();
    if is_pinned(&declared.spec.version) {
        return None;
    }
    let range = Range::parse(&declared.spec.version).ok()?;
    let dependants: Vec<(&str, &str, &Bundle)> = decision
        .dependants
        .iter()
        .filter_map(|it| {
            let operator = settled.operators.get(&it.operator)?.installed.as_ref()?;
            Some((it.operator.as_str(), it.requirement.as_str(), &operator.bundle))
        })
        .collect();
    let refusing = |candidate: &Bundle| {
        dependants.iter().find(|(dependant, requirement, bundle)| {
            let installed = InstalledPackages::new(BTreeMap::from([(name, candidate)]));
            let checked = installed.check(dependant, bundle, inputs.facts, inputs.expressions);
            checked.iter().any(|it| it.text == *requirement && it.provider.is_none())
        })
    };
    let versions = inputs.catalogs.iter().flat_map(|it| &it.packages);
    let versions: Vec<&Bundle> =
        versions.filter(|it| it.name == name).flat_map(|it| &it.bundles).collect();
    let refused: Vec<&Version> =
        versions.iter().filter(|it| refusing(it).is_some()).map(|it| &it.version).collect();
    let required = dependants.iter().flat_map(|(_, _, bundle)| &bundle.requires);
    let required = required.filter_map(|it| match &it.constraint {
        Constraint::Package { name: package, range } if package == name => Some(range.as_str()),
        _ => None,
    });
    let chosen = &installed.bundle.version;
    let better = dependency_range(chosen, required, &refused);
    let wider = versions.iter().find(|it| range.matches(&it.version) && refusing(it).is_some());
    if let Some(bundle) = wider
        && let Some((dependant, requirement, _)) = refusing(bundle)
    {
        let version = version_text(&bundle.version.to_string());
        let message = format!(
            "the range {:?} admits {version}, but {dependant} depends on {requirement}",
            declared.spec.version
        );
        return Some((message, better));
    }
    let wanted = Range::parse(&better).ok()?;
    let narrower = versions.iter().find(|it| {
        wanted.matches(&it.version) && !range.matches(&it.version) && refusing(it).is_none()
    })?;
    let version = version_text(&narrower.version.to_string());
    let message = format!(
        "the range {:?} excludes {version}, which all dependants accept",
        declared.spec.version
    );
    Some((message, better))
}
