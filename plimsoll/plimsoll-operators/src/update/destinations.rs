//! What Operators may become: all that their channels lead to, in however many steps.

use std::collections::BTreeMap;

use plimsoll_resolve::offer::{Offer, destinations};
use plimsoll_resolve::range::masterminds::Range;
use plimsoll_resolve::{CatalogPart, Channel, ChannelEntry, Package};

use super::{is_pinned, may_move};
use crate::selection::offer_request;
use crate::{OperatorInputs, RequestedOperator, version_text};

/// Name of the channel that leads from what is installed straight to all that can be reached.
pub(super) const CHANNEL: &str = "destinations";

/// What Operators may become, by name.
pub(super) struct Destinations<'a> {
    by_name: BTreeMap<&'a str, Destination<'a>>,
}

struct Destination<'a> {
    /// Name of the bundle that is installed.
    installed: &'a str,
    /// The most preferred first.
    offers: Vec<Offer<'a>>,
    /// The range that it is to be in; `None` if any version will do.
    range: Option<String>,
    /// Why the highest version that the channel has is not among them, as a sentence without a stop;
    /// `None` if it is, or is installed.
    beyond: Option<String>,
}

impl<'a> Destinations<'a> {
    /// Those of all Operators that have something installed, without bundles that are refused;
    /// `ranges` are requested of some.
    pub(super) fn of(
        inputs: OperatorInputs<'a>,
        catalogs: &'a [CatalogPart],
        ranges: &BTreeMap<String, String>,
        is_refused: &dyn Fn(&str, &str) -> bool,
    ) -> Self {
        let operators = inputs.operators.iter().filter(|(_, it)| may_move(it));
        let by_name = operators.filter_map(|(name, operator)| {
            let range = ranges.get(name).map(String::as_str);
            let mut destination = Destination::of(inputs, catalogs, name, operator, range)?;
            destination.offers.retain(|it| !is_refused(name, &it.bundle.name));
            Some((name.as_str(), destination))
        });
        Self { by_name: by_name.collect() }
    }

    /// The catalogs, with packages of which something is installed leading from that to all that it
    /// may become in one step.
    pub(super) fn offered_by(&self, catalogs: &[CatalogPart]) -> Vec<CatalogPart> {
        let parts = catalogs.iter().map(|part| {
            let packages =
                part.packages.iter().map(|package| match self.by_name.get(package.name.as_str()) {
                    Some(destination) => destination.package(part, package),
                    None => package.clone(),
                });
            CatalogPart {
                name: part.name.clone(),
                weight: part.weight,
                packages: packages.collect(),
            }
        });
        parts.collect()
    }

    /// Whether an Operator has a channel that leads to them.
    pub(super) fn are_followed(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// The range that an Operator is to be in; `None` if any version will do.
    pub(super) fn range(&self, name: &str) -> Option<&str> {
        self.by_name.get(name)?.range.as_deref()
    }

    /// Whether an Operator may become a bundle.
    pub(super) fn has(&self, name: &str, bundle: &str) -> bool {
        let destination = self.by_name.get(name);
        destination.is_some_and(|it| it.offers.iter().any(|offer| offer.bundle.name == bundle))
    }

    /// Why an Operator cannot have the highest version of its channel whatever the others have, as a
    /// sentence without a stop; `None` if it can or has.
    pub(super) fn beyond(&self, name: &str) -> Option<&str> {
        self.by_name.get(name)?.beyond.as_deref()
    }
}

impl<'a> Destination<'a> {
    fn of(
        inputs: OperatorInputs<'a>,
        catalogs: &'a [CatalogPart],
        name: &'a str,
        operator: &'a RequestedOperator,
        range: Option<&str>,
    ) -> Option<Self> {
        let installed = operator.installed.as_ref()?;
        let current = &installed.bundle.version;
        let found = destinations(catalogs, inputs.facts, &offer_request(name, operator, None));
        let requested = operator.spec.version.as_str();
        // A version is a decision that moves on; a range holds, unless it was written for others.
        let holds =
            range.or((!is_pinned(requested) && !operator.is_dependency).then_some(requested));
        let holds = holds.filter(|range| !range.trim().is_empty());
        // The resolver can hold what is in its range already to it, and say so.
        let is_held = holds.is_some_and(|range| is_in_range(range, current));
        let limit = if is_held { range } else { holds };
        let mut offers: Vec<Offer<'a>> = found
            .offers
            .into_iter()
            .filter(|it| limit.is_none_or(|range| is_in_range(range, &it.bundle.version)))
            .filter(|it| range.is_some() || it.bundle.version > *current)
            .collect();
        if operator.is_dependency && !is_pinned(requested) {
            offers.sort_by_key(|it| !is_in_range(requested, &it.bundle.version));
        }
        // Who names a range knows what is outside of it.
        let is_asked = |it: &semver::Version| range.is_none_or(|range| is_in_range(range, it));
        let mut above = found.versions.iter().copied().filter(|it| *it > current);
        let highest = above.find(|it| is_asked(it));
        let is_offered = |version: &semver::Version| {
            let mut offers = offers.iter();
            let is_held_to = |version| holds.is_none_or(|range| is_in_range(range, version));
            offers.any(|it| it.bundle.version == *version && is_held_to(version))
        };
        let beyond = highest.filter(|it| !is_offered(it)).map(|highest| {
            let version = |it: &semver::Version| version_text(&it.to_string());
            let (from, to) = (version(current), version(highest));
            match holds {
                Some(range) if !is_in_range(range, highest) => {
                    format!("{to} is outside the range {range:?}")
                }
                _ => found.refused.get(highest).cloned().unwrap_or_else(|| {
                    format!(
                        "no update leads from {from} to {to}; spec.upgradePolicy says which may"
                    )
                }),
            }
        });
        // One that cannot get into its own range holds up nobody else.
        let range = range.or(holds.filter(|_| is_held)).map(str::to_owned);
        Some(Self { installed: &installed.reference.name, offers, range, beyond })
    }

    /// A package whose only channel has all that is offered, the most preferred at its head.
    fn package(&self, part: &CatalogPart, package: &Package) -> Package {
        let offers = self.offers.iter().filter(|it| it.catalog.name == part.name);
        let offers: Vec<&Offer<'_>> = offers.collect();
        let entries = offers.iter().enumerate().map(|(at, offer)| ChannelEntry {
            name: offer.bundle.name.clone(),
            replaces: offers.get(at + 1).map(|it| it.bundle.name.clone()),
            skips: vec![self.installed.to_owned()],
            skip_range: None,
        });
        Package {
            name: package.name.clone(),
            default_channel: Some(CHANNEL.to_owned()),
            deprecation: package.deprecation.clone(),
            channels: if offers.is_empty() {
                Vec::new()
            } else {
                let (name, entries) = (CHANNEL.to_owned(), entries.collect());
                vec![Channel { name, deprecation: None, entries }]
            },
            bundles: offers.iter().map(|it| it.bundle.clone()).collect(),
        }
    }
}

/// Whether a range has a version; one that cannot be read has none, an empty one has all.
pub(super) fn is_in_range(range: &str, version: &semver::Version) -> bool {
    range.trim().is_empty() || Range::parse(range).is_ok_and(|it| it.matches(version))
}
