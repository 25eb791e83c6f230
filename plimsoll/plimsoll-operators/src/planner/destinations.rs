//! Destinations of Operators: all bundles that their channels lead to, in any number of steps, or that they
//! can be installed from.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_resolve::offer::{Offer, destinations, offers};
use plimsoll_resolve::range::masterminds::Range;
use plimsoll_resolve::{CatalogPart, Channel, ChannelEntry, Package};

use super::{is_in_range, is_pinned, may_move};
use crate::selection::offer_request;
use crate::{OperatorInputs, RequestedOperator, version_text};

/// The name of the channel that leads from the installed bundle, if any, directly to all destinations.
pub(crate) const CHANNEL: &str = "destinations";

/// The destinations of Operators, by name.
pub(crate) struct Destinations<'a> {
    by_name: BTreeMap<&'a str, Destination<'a>>,
}

struct Destination<'a> {
    /// The name of the installed bundle; `None` if none is installed.
    installed: Option<&'a str>,
    /// The destinations, the most preferred first.
    offers: Vec<Offer<'a>>,
    /// The range that the version must be in; `None` for any version.
    range: Option<String>,
    /// The reason that the highest version of the channel is not a destination, as a sentence without a full
    /// stop; `None` if it is one, or is installed.
    beyond: Option<String>,
}

impl<'a> Destinations<'a> {
    /// Returns the destinations of concerned Operators, without bundles that are refused; `ranges` has requested
    /// ranges, by Operator, and others that are not `requested` do not leave the range of a user.
    pub(crate) fn of(
        inputs: OperatorInputs<'a>,
        catalogs: &'a [CatalogPart],
        ranges: &BTreeMap<String, String>,
        requested: &BTreeSet<&str>,
        is_refused: &dyn Fn(&str, &str) -> bool,
        is_concerned: &dyn Fn(&str) -> bool,
    ) -> Self {
        let operators =
            inputs.operators.iter().filter(|(name, it)| may_move(it) && is_concerned(name));
        let by_name = operators.filter_map(|(name, operator)| {
            let range = ranges.get(name).map(String::as_str);
            let mut destination = match operator.installed {
                Some(_) => {
                    let mut destination = Destination::of(inputs, catalogs, name, operator, range)?;
                    if range.is_none() && !requested.contains(name.as_str()) {
                        match operator.is_dependency {
                            true => destination.prefer(&operator.spec.version),
                            false => destination.keep_within(&operator.spec.version),
                        }
                    }
                    destination
                }
                None => Destination::of_new(inputs, catalogs, name, operator, range),
            };
            destination.offers.retain(|it| !is_refused(name, &it.bundle.name));
            Some((name.as_str(), destination))
        });
        Self { by_name: by_name.collect() }
    }

    /// Returns the catalogs; the only channel of each installed package leads to its destinations in one
    /// step.
    pub(crate) fn offered_by(&self, catalogs: &[CatalogPart]) -> Vec<CatalogPart> {
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

    /// Returns whether an Operator, of which nothing is installed, cannot be installed from any bundle.
    pub(crate) fn has_none(&self, name: &str) -> bool {
        self.by_name.get(name).is_some_and(|it| it.installed.is_none() && it.offers.is_empty())
    }

    /// Returns whether an Operator has a channel to its destinations.
    pub(crate) fn are_followed(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// Returns the range that the version of an Operator must be in; `None` for any version.
    pub(crate) fn range(&self, name: &str) -> Option<&str> {
        self.by_name.get(name)?.range.as_deref()
    }

    /// Returns the names of the bundles that are destinations of an Operator.
    pub(crate) fn bundles(&self, name: &str) -> impl Iterator<Item = &'a str> {
        let offers = self.by_name.get(name).into_iter().flat_map(|it| &it.offers);
        offers.map(|it| it.bundle.name.as_str())
    }

    /// Returns whether updates lead an Operator on, within the range that its version must be in.
    pub(crate) fn lead_on(&self, name: &str) -> bool {
        self.by_name.get(name).is_some_and(|it| {
            let range = it.range.as_deref();
            let mut versions = it.offers.iter().map(|it| &it.bundle.version);
            versions.any(|version| range.is_none_or(|range| is_in_range(range, version)))
        })
    }

    /// Returns the reason that an Operator cannot have the highest version of its channel, whatever versions
    /// the others have, as a sentence without a full stop; `None` if it can have it, or has it.
    pub(crate) fn beyond(&self, name: &str) -> Option<&str> {
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
        // A pinned version is replaced by an update; a range is kept, unless it is that of a dependency.
        let holds =
            range.or((!is_pinned(requested) && !operator.is_dependency).then_some(requested));
        let holds = holds.filter(|range| !range.trim().is_empty());
        // The resolver keeps an Operator in its range if it is there already, and reports that.
        let is_held = holds.is_some_and(|range| is_in_range(range, current));
        let limit = if is_held { range } else { holds };
        let offers: Vec<Offer<'a>> = found
            .offers
            .into_iter()
            .filter(|it| limit.is_none_or(|range| is_in_range(range, &it.bundle.version)))
            .filter(|it| range.is_some() || it.bundle.version > *current)
            .collect();
        // Versions outside of a requested range need no explanation.
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
        // An Operator that cannot reach its own range does not block others.
        let range = range.or(holds.filter(|_| is_held)).map(str::to_owned);
        Some(Self { installed: Some(&installed.reference.name), offers, range, beyond })
    }

    /// Prefers the destinations in a range that is no pin.
    fn prefer(&mut self, range: &str) {
        if !is_pinned(range) {
            self.offers.sort_by_key(|it| !is_in_range(range, &it.bundle.version));
        }
    }

    /// Drops the destinations outside of a range that is no pin.
    fn keep_within(&mut self, range: &str) {
        if !is_pinned(range) {
            self.offers.retain(|it| is_in_range(range, &it.bundle.version));
        }
    }

    /// Returns the bundles that an Operator of which nothing is installed may be installed from: those of the
    /// requested range, or else of its own.
    fn of_new(
        inputs: OperatorInputs<'a>,
        catalogs: &'a [CatalogPart],
        name: &'a str,
        operator: &'a RequestedOperator,
        range: Option<&str>,
    ) -> Self {
        let holds = range.unwrap_or(&operator.spec.version);
        let holds = Some(holds).filter(|it| !it.trim().is_empty());
        let limit = holds.map(Range::parse).transpose();
        let found = limit.as_ref().ok().map(|limit| {
            offers(catalogs, inputs.facts, &offer_request(name, operator, limit.as_ref()))
        });
        let found = found.into_iter().flat_map(|it| it.offers);
        let offers = found.filter(|it| it.ineligible.is_none()).collect();
        Self { installed: None, offers, range: holds.map(str::to_owned), beyond: None }
    }

    /// Returns a package whose only channel has all destinations, the most preferred at its head.
    fn package(&self, part: &CatalogPart, package: &Package) -> Package {
        let offers = self.offers.iter().filter(|it| it.catalog.name == part.name);
        let offers: Vec<&Offer<'_>> = offers.collect();
        let entries = offers.iter().enumerate().map(|(at, offer)| ChannelEntry {
            name: offer.bundle.name.clone(),
            replaces: offers.get(at + 1).map(|it| it.bundle.name.clone()),
            skips: self.installed.iter().map(|it| (*it).to_owned()).collect(),
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
