//! Comparison of Operators before a plan and after it: their versions, what moves them, and orphans.

use std::collections::BTreeMap;

use semver::Version;
use serde::Serialize;

use crate::RequestedOperator;
use crate::planner::{Outcome, Wanted, is_pinned};

/// The requested and the installed version of an Operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OperatorVersion {
    /// `spec.version`; empty for any version.
    pub requested: String,
    /// The installed version; absent if none is installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub installed: Option<Version>,
}

/// A requirement of one Operator for another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VersionRequirement {
    /// The name of the Operator that has the requirement.
    pub operator: String,
    /// The version of that Operator.
    pub version: Version,
    /// The requirement, such as `bar >=1.2.7`.
    pub requirement: String,
}

impl OperatorVersion {
    /// Returns the versions of an Operator.
    pub(crate) fn of(operator: &RequestedOperator) -> Self {
        Self {
            requested: operator.spec.version.clone(),
            installed: operator.installed.as_ref().map(|it| it.bundle.version.clone()),
        }
    }

    /// Returns the reason that an Operator with these versions moves, as a sentence without a full stop; `None` if
    /// no requirement displaces it.
    pub(crate) fn displacement(&self, name: &str, displaced_by: &[String]) -> Option<String> {
        let version = self.installed.as_ref().filter(|_| !displaced_by.is_empty())?;
        let requirements = displaced_by.join(" and ");
        Some(format!("{name} cannot stay at v{version}: it depends on {requirements}"))
    }

    /// Returns the line of an Operator that stays in these versions and becomes an orphan.
    pub(crate) fn orphan_row(&self, name: &str) -> String {
        let text = self.text(name);
        format!("{text} -> {text} (orphaned)")
    }

    /// Formats an Operator with its version: `foo@v1.2.5`, or `foo ~1.2 (@v1.2.5)` if it follows a range.
    pub(crate) fn text(&self, name: &str) -> String {
        let Self { requested, installed } = self;
        let is_exact =
            |it: &Version| *requested == it.to_string() || *requested == format!("v{it}");
        let name = match requested.as_str() {
            "" => name.to_owned(),
            pinned if is_pinned(pinned) => {
                format!("{name}@v{}", pinned.trim_start_matches(['=', 'v']))
            }
            range => format!("{name} {range}"),
        };
        match installed {
            Some(installed) if is_exact(installed) => name,
            Some(installed) => format!("{name} (@v{installed})"),
            None => format!("{name} (not installed)"),
        }
    }
}

/// Returns the requirements that are satisfied after an update and were not, of the same bundles, before it, by
/// the package that satisfies them.
pub(crate) fn newly_required<'a>(
    before: &Outcome<'_>,
    after: &Outcome<'a>,
) -> BTreeMap<&'a str, Vec<VersionRequirement>> {
    let mut required: BTreeMap<&str, Vec<VersionRequirement>> = BTreeMap::new();
    for (name, bundle) in &after.bundles {
        let now = before.check(name, bundle);
        for (then, now) in after.requirements(name).into_iter().zip(now) {
            if let Some(provider) = after.provider(&then)
                && now.provider.is_none()
            {
                required.entry(provider).or_default().push(VersionRequirement {
                    operator: (*name).to_owned(),
                    version: bundle.version.clone(),
                    requirement: then.text,
                });
            }
        }
    }
    required
}

/// Returns the requirements that bundles have before a plan, and for which the plan moves them: they are satisfied
/// before it and would not be afterwards; by package. Those that are `wanted` themselves, or whose new version is
/// `required`, move for that, and so does everything if nothing is named.
pub(crate) fn displaced(
    before: &Outcome<'_>,
    after: &Outcome<'_>,
    wanted: &BTreeMap<String, Wanted>,
    required: &BTreeMap<&str, Vec<VersionRequirement>>,
) -> BTreeMap<String, Vec<String>> {
    let mut displaced = BTreeMap::new();
    for (&name, &bundle) in &before.bundles {
        let is_moved = after.bundles.get(name).is_some_and(|it| it.version != bundle.version);
        let has_reason = wanted.contains_key(name) || required.contains_key(name);
        if wanted.is_empty() || !is_moved || has_reason {
            continue;
        }
        let checked = before.requirements(name).into_iter().zip(after.check(name, bundle));
        let lost = checked.filter(|(then, now)| then.provider.is_some() && now.provider.is_none());
        let lost: Vec<String> = lost.map(|(then, _)| then.text).collect();
        if !lost.is_empty() {
            displaced.insert(name.to_owned(), lost);
        }
    }
    displaced
}

/// Returns the Operators that no Operator depends on after a plan, with their versions before it, by name: those that
/// were installed as dependencies, and those that another one depended on before and that no person asked for. What is
/// requested is no orphan.
pub(crate) fn orphans(
    before: &Outcome<'_>,
    after: &Outcome<'_>,
    is_requested: &dyn Fn(&str) -> bool,
) -> BTreeMap<String, OperatorVersion> {
    let used = after.needed();
    let were_used = before.used_by(before.bundles.keys().copied());
    let orphans = before.inputs.operators.iter().filter(|(name, it)| {
        let name = name.as_str();
        it.installed.is_some()
            && !is_requested(name)
            && !used.contains(name)
            && it.may_be_orphaned(were_used.contains(name))
    });
    orphans.map(|(name, it)| (name.clone(), OperatorVersion::of(it))).collect()
}
