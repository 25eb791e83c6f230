//! What is written in `spec.version`: a pin, or a range that no dependant refuses a version of.

use std::collections::BTreeSet;

use plimsoll_resolve::range::masterminds::Range;
use plimsoll_resolve::requirement::named_versions;
use plimsoll_resolve::{Bundle, BundleExclusion};
use semver::Version;

use super::{Outcome, check, may_move};
use crate::RequestedOperator;

/// Returns whether a range is a single version.
pub(crate) fn is_pinned(range: &str) -> bool {
    pinned_version(range).is_some()
}

/// Returns the version that a range is; `None` if it is not a single one.
fn pinned_version(range: &str) -> Option<Version> {
    let version = range.trim().trim_start_matches('=').trim_start().trim_start_matches('v');
    Version::parse(version).ok()
}

/// Returns whether a range takes back a pin that waits: what is installed of the Operator is in the range, and
/// the pinned version is not.
pub(crate) fn takes_back(range: &str, operator: &RequestedOperator) -> bool {
    let (Some(pinned), Some(installed)) =
        (pinned_version(&operator.spec.version), &operator.installed)
    else {
        return false;
    };
    is_in_range(range, &installed.bundle.version) && !is_in_range(range, &pinned)
}

/// Returns whether a range contains a version. An invalid range contains none, an empty one all.
pub(crate) fn is_in_range(range: &str, version: &Version) -> bool {
    range.trim().is_empty() || Range::parse(range).is_ok_and(|it| it.matches(version))
}

/// A dependant that does not accept a bundle.
pub(crate) struct Refusal<'a> {
    /// The version of the bundle.
    pub(crate) version: Version,
    /// The name of the Operator that depends on the package.
    pub(crate) dependant: &'a str,
    /// The requirement that the bundle does not satisfy, such as `bar >=1.2.7`.
    pub(crate) requirement: String,
}

/// A range that limits what is written.
struct LimitedRange<'a> {
    text: &'a str,
    limit: Range,
}

impl LimitedRange<'_> {
    /// Returns the versions that the text names: only at these, or after them, what is in it changes.
    fn named(&self) -> BTreeSet<Version> {
        let words = self.text.split(|it: char| !(it.is_ascii_digit() || it == '.'));
        words.filter_map(|it| Version::parse(it).ok()).collect()
    }
}

impl<'a> Outcome<'a> {
    /// Returns what is written in `spec.version` of an Operator that has a bundle in the outcome and that no
    /// request names. `present` is the Operator before, and `pins` is whether a new one is pinned.
    ///
    /// A pin stays a pin. A range stays if the version is in it; that of a dependency only if each dependant
    /// accepts all of it.
    pub(crate) fn version(
        &self,
        name: &str,
        present: Option<&RequestedOperator>,
        pins: bool,
    ) -> String {
        let chosen = &self.bundles[name].version;
        match present.map(|it| (it, it.spec.version.as_str())) {
            Some((it, range)) if is_in_range(range, chosen) => {
                self.revised(name, it).unwrap_or_else(|| range.to_owned())
            }
            Some((_, range)) if is_pinned(range) => chosen.to_string(),
            None if pins => chosen.to_string(),
            Some(_) | None => self.dependency_range(name),
        }
    }

    /// Returns the range that replaces that of a dependency; `None` if each dependant accepts all of it, or if the
    /// bundle is outside of it.
    pub(crate) fn revised(&self, name: &str, present: &RequestedOperator) -> Option<String> {
        let range = &present.spec.version;
        let is_revised = present.is_dependency
            && may_move(present)
            && is_in_range(range, &self.bundles.get(name)?.version)
            && self.refused_within(name, range).is_some();
        is_revised.then(|| self.dependency_range(name))
    }

    /// Returns the range for a dependency: from its version up to the next minor version, or up to the first
    /// version that a dependant does not accept. It is a pin if that is the next one.
    pub(crate) fn dependency_range(&self, name: &str) -> String {
        self.range_in(name, None)
    }

    /// Does the same as [`Self::dependency_range`], with the versions of a range only.
    pub(crate) fn range_within(&self, name: &str, range: &str) -> String {
        match Range::parse(range) {
            Ok(limit) => self.range_in(name, Some(&LimitedRange { text: range, limit })),
            Err(_) => self.bundles[name].version.to_string(),
        }
    }

    fn range_in(&self, name: &str, limit: Option<&LimitedRange<'_>>) -> String {
        let chosen = &self.bundles[name].version;
        let Version { major, minor, patch, .. } = *chosen;
        if !chosen.pre.is_empty() {
            return chosen.to_string();
        }
        match self.first_refused(name, limit) {
            None => format!(">={chosen}, <{major}.{}.0", minor.saturating_add(1)),
            Some(end) if end == patch.saturating_add(1) => chosen.to_string(),
            // Dependants accept what is excluded here: it is no end of their range.
            Some(end) if limit.is_none() && self.is_end_excluded(name, end) => chosen.to_string(),
            Some(end) => format!(">={chosen}, <{major}.{minor}.{end}"),
        }
    }

    /// Returns the first offered version in a range that a dependant does not accept.
    pub(crate) fn refused_within(&self, name: &str, range: &str) -> Option<Refusal<'a>> {
        let range = Range::parse(range).ok()?;
        let mut offered = self.offered(name).filter(|it| range.matches(&it.version));
        offered.find_map(|it| self.refusal(name, it))
    }

    /// Does the same as [`Self::refused_within`] for versions above that of the outcome only.
    pub(crate) fn refused_above(&self, name: &str, range: &str) -> Option<Refusal<'a>> {
        let chosen = &self.bundles.get(name)?.version;
        let range = Range::parse(range).ok()?;
        let mut offered =
            self.offered(name).filter(|it| it.version > *chosen && range.matches(&it.version));
        offered.find_map(|it| self.refusal(name, it))
    }

    /// Returns the first offered version that is in one range, not in another, and accepted by each dependant.
    pub(crate) fn accepted_beyond(
        &self,
        name: &str,
        wanted: &str,
        range: &str,
    ) -> Option<&Version> {
        let (wanted, range) = (Range::parse(wanted).ok()?, Range::parse(range).ok()?);
        let mut offered = self.offered(name).filter(|it| {
            wanted.matches(&it.version)
                && !range.matches(&it.version)
                && self.refusal(name, it).is_none()
        });
        offered.next().map(|it| &it.version)
    }

    fn offered(&self, name: &str) -> impl Iterator<Item = &'a Bundle> {
        self.catalogs.iter().filter_map(move |it| it.package(name)).flat_map(|it| &it.bundles)
    }

    /// Returns the patch number of the first version above the installed one, of the same minor version, that a
    /// dependant does not accept, or that itself requires something that is not installed; `None` if there is
    /// no such version.
    fn first_refused(&self, name: &str, limit: Option<&LimitedRange<'_>>) -> Option<u64> {
        let installed = self.bundles[name];
        let Version { major, minor, patch, .. } = installed.version;
        let Some(named) = self.named_by_dependants(name) else {
            return Some(patch.saturating_add(1));
        };
        // Whether a version is accepted only changes at those that a range names or a catalog offers.
        let offered = self.offered(name).map(|it| &it.version);
        let limits = limit.map(LimitedRange::named).unwrap_or_default();
        let versions = named.iter().chain(offered).chain(&limits);
        let versions = versions.filter(|it| (it.major, it.minor) == (major, minor));
        let patches = versions.flat_map(|it| [it.patch, it.patch.saturating_add(1)]);
        let patches: BTreeSet<u64> = patches.filter(|it| *it > patch).collect();
        let is_complete = self.is_complete(name, installed);
        patches.into_iter().find(|patch| {
            let version = Version::new(major, minor, *patch);
            if limit.is_some_and(|it| !it.limit.matches(&version)) {
                return true;
            }
            let mut offered = self
                .offered(name)
                .filter(|it| it.version.cmp_precedence(&version).is_eq())
                .peekable();
            match offered.peek() {
                None => {
                    let unknown = Bundle { version: version.clone(), ..installed.clone() };
                    self.refusal(name, &unknown).is_some()
                }
                Some(_) => offered.any(|it| {
                    self.is_excluded(name, it)
                        || self.refusal(name, it).is_some()
                        || (is_complete && !self.is_complete(name, it))
                }),
            }
        })
    }

    fn is_end_excluded(&self, name: &str, end: u64) -> bool {
        let Version { major, minor, .. } = self.bundles[name].version;
        let end = Version::new(major, minor, end);
        let mut offered = self.offered(name).filter(|it| it.version.cmp_precedence(&end).is_eq());
        offered.any(|it| self.is_excluded(name, it))
    }

    fn is_excluded(&self, name: &str, bundle: &Bundle) -> bool {
        let is_it = |it: &BundleExclusion| {
            it.package == name && it.bundle.as_ref().is_none_or(|it| *it == bundle.name)
        };
        self.excluded.iter().any(is_it)
    }

    /// Returns the versions that the requirements which a package satisfies name; `None` if a requirement does
    /// not say by versions what satisfies it.
    fn named_by_dependants(&self, name: &str) -> Option<BTreeSet<Version>> {
        let mut named = BTreeSet::new();
        for dependant in self.dependants(name) {
            let required = self.bundles[dependant].requires.iter();
            for (required, checked) in required.zip(self.requirements(dependant)) {
                if self.provider(&checked) == Some(name) {
                    named.extend(named_versions(required, name)?);
                }
            }
        }
        Some(named)
    }

    /// Returns whether the requirements of a bundle are satisfied if it is the one of its package.
    fn is_complete(&self, name: &str, bundle: &Bundle) -> bool {
        self.check(name, bundle).iter().all(|it| it.provider.is_some())
    }

    /// Returns the first requirement that the installed bundle of a package satisfies and another one does not.
    fn refusal(&self, name: &str, candidate: &Bundle) -> Option<Refusal<'a>> {
        let after = self.packages.with(name, candidate);
        self.dependants(name).find_map(|dependant| {
            let now = self.requirements(dependant).into_iter();
            let mut after = now.zip(check(self.inputs, &after, dependant, self.bundles[dependant]));
            let (broken, _) =
                after.find(|(now, after)| now.provider.is_some() && after.provider.is_none())?;
            let (version, requirement) = (candidate.version.clone(), broken.text);
            Some(Refusal { version, dependant, requirement })
        })
    }

    /// Returns the other packages whose requirements a package may satisfy.
    fn dependants(&self, name: &str) -> impl Iterator<Item = &'a str> {
        let concerned = self.packages.concerned_by(name, &self.bundles[name].provides);
        concerned.into_iter().filter(move |it| *it != name)
    }
}
