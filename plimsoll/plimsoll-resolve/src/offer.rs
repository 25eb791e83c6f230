//! Offers of catalogs for one package that is to be installed or upgraded by itself, without its
//! dependencies (OPR-7, OPR-12, OPR-13).
//!
//! The order is the resolver's (DEP-14, DEP-15): what is not deprecated, then the catalog that the
//! installed bundle came from, then weight, then the place in the channel. So the first offer is what a
//! resolution chooses when nothing else has a say.

mod index;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use semver::Version;

pub use self::index::ChannelIndex;
use self::index::IndexedChannel;
use crate::bundle::Bundle;
use crate::model::{Ineligible, malformed, unfit};
use crate::package::{Channel, Package};
use crate::problem::{CatalogPart, ClusterFacts};
use crate::range::masterminds::Range;

/// Which versions an installed one may be upgraded to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpgradeEdges {
    /// Those that the channel's graph leads to.
    Graph,
    /// Any higher one.
    Higher,
    /// Any other one.
    Any,
}

/// What is installed of a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InstalledVersion<'a> {
    /// Name of the bundle.
    pub bundle: &'a str,
    /// Its version.
    pub version: &'a Version,
    /// Name of the catalog that it came from; empty if that is not known.
    pub catalog: &'a str,
    /// The channel that it came from; empty if that is not known.
    pub channel: &'a str,
}

/// A package that is to be installed or upgraded.
#[derive(Debug, Clone, Copy)]
pub struct OfferRequest<'a> {
    /// Name of the package.
    pub package: &'a str,
    /// The channel; empty for the one that the installed bundle came from, else the default one.
    pub channel: &'a str,
    /// Name of the catalog; empty for any.
    pub catalog: &'a str,
    /// The versions that will do; `None` for all.
    pub range: Option<&'a Range>,
    /// What is installed; `None` for a fresh installation.
    pub installed: Option<InstalledVersion<'a>>,
    /// Which versions the installed one may be upgraded to.
    pub edges: UpgradeEdges,
}

/// A bundle that is offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer<'p> {
    /// The catalog.
    pub catalog: &'p CatalogPart,
    /// Name of the channel.
    pub channel: &'p str,
    /// The bundle.
    pub bundle: &'p Bundle,
    /// What is deprecated, such as "channel `alpha`", and the message; `None` if nothing is.
    pub deprecation: Option<(String, &'p str)>,
    /// Whether its version is outside the range and only a step towards it.
    pub is_step: bool,
    /// Why it cannot be installed in the cluster, as a sentence without a stop; `None` if it can.
    pub ineligible: Option<String>,
}

/// A version in the range that a channel does not offer any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedVersion<'p> {
    /// The version.
    pub version: Version,
    /// Name of the bundle that skips it.
    pub by: &'p str,
    /// Name of the channel.
    pub channel: &'p str,
}

/// What a package has to offer to a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Offers<'p> {
    /// The bundles that will do, the most preferred first.
    pub offers: Vec<Offer<'p>>,
    /// The catalogs that have the package, by name.
    pub catalogs: Vec<&'p str>,
    /// The channels of the package in these catalogs, by name.
    pub channels: Vec<&'p str>,
    /// The versions of the package in the channels that count, the highest first, whether or not they
    /// are in the range or can be reached.
    pub versions: Vec<&'p Version>,
    /// The versions in the range that entries of the channels that count skip.
    pub skipped: Vec<SkippedVersion<'p>>,
    /// Why channels that count have no order and so nothing to offer.
    pub broken: Vec<String>,
    /// What is deprecated of the installed bundle, and the message; `None` if nothing is, or if no
    /// catalog has it.
    pub installed_deprecation: Option<(String, &'p str)>,
}

impl Offers<'_> {
    /// The catalogs of the same weight that the preferred bundles come from, if there are several: which
    /// one is meant is not said (DEP-15).
    pub fn tied_catalogs(&self, installed_from: &str) -> Vec<&str> {
        let Some(first) = self.offers.first() else { return Vec::new() };
        if first.catalog.name.name == installed_from {
            return Vec::new();
        }
        let is_tied = |offer: &&Offer<'_>| {
            offer.catalog.weight == first.catalog.weight
                && offer.deprecation.is_some() == first.deprecation.is_some()
                && offer.is_step == first.is_step
        };
        let names = self.offers.iter().filter(is_tied).map(|it| it.catalog.name.name.as_str());
        let mut names: Vec<&str> = names.collect();
        names.sort_unstable();
        names.dedup();
        if names.len() > 1 { names } else { Vec::new() }
    }
}

/// Finds what catalogs offer to a request.
pub fn offers<'p>(
    catalogs: &'p [CatalogPart],
    facts: &ClusterFacts,
    request: &OfferRequest<'_>,
) -> Offers<'p> {
    offers_indexed(catalogs, &ChannelIndex::default(), facts, request)
}

/// Finds what catalogs offer to a request. `index` is of these catalogs only.
pub fn offers_indexed<'p>(
    catalogs: &'p [CatalogPart],
    index: &ChannelIndex,
    facts: &ClusterFacts,
    request: &OfferRequest<'_>,
) -> Offers<'p> {
    let mut found = Offers::default();
    let mut ranked = Vec::new();
    let places = places(catalogs, index, request, &mut |catalog, package| {
        found.catalogs.push(&catalog.name.name);
        found.channels.extend(package.channels.iter().map(|channel| channel.name.as_str()));
    });
    for place in &places {
        let CatalogChannel { catalog, package, channel, indexed } = place;
        if let Some(cause) = &indexed.order.broken {
            let (name, catalog) = (&channel.name, &catalog.name);
            found.broken.push(format!("channel `{name}` of catalog {catalog}: {cause}"));
        }
        if let Some(range) = request.range {
            let in_range = indexed.in_range(package, channel, range);
            found.skipped.extend(in_range.skipped.iter().map(|(version, at)| SkippedVersion {
                version: version.clone(),
                by: &channel.entries[*at].name,
                channel: &channel.name,
            }));
        }
        in_channel(place, facts, request, &mut found, &mut ranked);
    }
    ranked.sort_by_key(|(rank, _)| *rank);
    found.offers = ranked.into_iter().map(|(_, offer)| offer).collect();
    for names in [&mut found.catalogs, &mut found.channels] {
        names.sort_unstable();
        names.dedup();
    }
    found.versions = versions(&places);
    found
}

/// What an installed bundle may become.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReachedOffers<'p> {
    /// The bundles that updates lead to, in one step or several, the most preferred first.
    pub offers: Vec<Offer<'p>>,
    /// The versions of the package in the channels that count, the highest first, whether or not they
    /// can be reached.
    pub versions: Vec<&'p Version>,
    /// Why a version that updates lead to cannot be installed in the cluster, as a sentence without a
    /// stop.
    pub refused: BTreeMap<&'p Version, String>,
}

/// Finds what the installed bundle of a request may become, whatever its range. A way leads only
/// through bundles that can be installed.
pub fn destinations<'p>(
    catalogs: &'p [CatalogPart],
    facts: &ClusterFacts,
    request: &OfferRequest<'_>,
) -> ReachedOffers<'p> {
    let mut found = ReachedOffers::default();
    let Some(installed) = request.installed else { return found };
    let index = ChannelIndex::default();
    let places = places(catalogs, &index, request, &mut |_, _| {});
    let mut reached = Vec::new();
    let mut passed: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); places.len()];
    let mut queue = vec![(installed.bundle, installed.version)];
    while let Some((name, version)) = queue.pop() {
        for (place, passed) in places.iter().zip(&mut passed) {
            for position in place.reached_from(request.edges, name, version) {
                let Some(bundle) = place.bundle(position) else { continue };
                if bundle.name == installed.bundle || !passed.insert(position) {
                    continue;
                }
                let offer = offer(place, bundle, facts, false);
                match &offer.ineligible {
                    Some(why) => {
                        found.refused.insert(&bundle.version, why.clone());
                    }
                    None => {
                        // Without the graph, everything is one step away.
                        if request.edges == UpgradeEdges::Graph {
                            queue.push((&bundle.name, &bundle.version));
                        }
                        reached.push((position, offer));
                    }
                }
            }
        }
    }
    let by_version = request.edges != UpgradeEdges::Graph;
    reached.sort_by_key(|(position, offer)| {
        let catalog = offer.catalog;
        (
            offer.deprecation.is_some(),
            catalog.name.name != installed.catalog,
            catalog.weight,
            Reverse(by_version.then_some(&offer.bundle.version)),
            catalog.name.name.as_str(),
            *position,
        )
    });
    found.offers = reached.into_iter().map(|(_, offer)| offer).collect();
    found.versions = versions(&places);
    found
}

/// The place of an offer among others; the least is preferred. Versions count before the place in the
/// channel where its graph does not.
type Rank<'p> = (bool, bool, bool, i64, Reverse<Option<&'p Version>>, &'p str, usize);

/// A channel of a package of a catalog.
#[derive(Clone)]
struct CatalogChannel<'p> {
    /// The catalog.
    catalog: &'p CatalogPart,
    /// The package, of that catalog.
    package: &'p Package,
    /// The channel, of that package.
    channel: &'p Channel,
    /// The index of the channel.
    indexed: Rc<IndexedChannel>,
}

impl<'p> CatalogChannel<'p> {
    /// Returns the bundle at a place in the channel's order; `None` if the catalog does not have it.
    fn bundle(&self, position: usize) -> Option<&'p Bundle> {
        let at = self.indexed.bundles[self.indexed.order.entries[position]]?;
        Some(&self.package.bundles[at])
    }

    /// Returns the places in the channel's order of what updates lead to from a version, in order.
    fn reached_from(&self, edges: UpgradeEdges, name: &str, version: &Version) -> Vec<usize> {
        let is_reached = |position: &usize| {
            let bundle = self.bundle(*position);
            bundle.is_some_and(|bundle| match edges {
                UpgradeEdges::Graph => true,
                UpgradeEdges::Higher => bundle.version > *version,
                UpgradeEdges::Any => bundle.version != *version,
            })
        };
        if edges != UpgradeEdges::Graph {
            return (0..self.indexed.order.entries.len()).filter(is_reached).collect();
        }
        let next = self.indexed.graph(self.package, self.channel).updates(name, version);
        let positions = next.into_iter().filter_map(|at| self.indexed.positions[at]);
        let mut positions: Vec<usize> = positions.filter(is_reached).collect();
        positions.sort_unstable();
        positions
    }
}

/// Returns the channels that count for a request. `visit` sees the packages that they are of.
fn places<'p>(
    catalogs: &'p [CatalogPart],
    index: &ChannelIndex,
    request: &OfferRequest<'_>,
    visit: &mut dyn FnMut(&'p CatalogPart, &'p Package),
) -> Vec<CatalogChannel<'p>> {
    let mut places = Vec::new();
    for (of, catalog) in catalogs.iter().enumerate() {
        if !request.catalog.is_empty() && catalog.name.name != request.catalog {
            continue;
        }
        let named = catalog.packages.iter().position(|it| it.name == request.package);
        let Some(at) = named else { continue };
        let package = &catalog.packages[at];
        visit(catalog, package);
        for id in channels(package, request) {
            let channel = &package.channels[id];
            let indexed = index.channel([of, at, id], package, channel);
            places.push(CatalogChannel { catalog, package, channel, indexed });
        }
    }
    places
}

/// Returns the versions in the orders of channels, the highest first.
fn versions<'p>(places: &[CatalogChannel<'p>]) -> Vec<&'p Version> {
    let of = |place: &CatalogChannel<'p>| {
        let bundles = &place.package.bundles;
        place.indexed.versions.iter().map(|at| &bundles[*at].version).collect::<Vec<_>>()
    };
    let mut versions: Vec<&Version> = places.iter().flat_map(of).collect();
    // Those of a single channel are in order.
    if places.len() > 1 {
        versions.sort_by(|left, right| right.cmp(left));
        versions.dedup();
    }
    versions
}

fn in_channel<'p>(
    place: &CatalogChannel<'p>,
    facts: &ClusterFacts,
    request: &OfferRequest<'_>,
    found: &mut Offers<'p>,
    ranked: &mut Vec<(Rank<'p>, Offer<'p>)>,
) {
    let CatalogChannel { catalog, package, channel, indexed } = place;
    let is_in_range = |version: &Version| request.range.is_none_or(|range| range.matches(version));
    // Only from outside the range a step outside of it leads anywhere.
    let onwards = match (request.installed, request.edges, request.range) {
        (Some(installed), UpgradeEdges::Graph, Some(range))
            if !range.matches(installed.version) =>
        {
            Some(indexed.in_range(package, channel, range))
        }
        _ => None,
    };
    let reached = match request.installed {
        None => (0..indexed.order.entries.len()).collect(),
        Some(from) => {
            let named = indexed.graph(package, channel).named(from.bundle).iter();
            let mut named = named.filter_map(|at| place.bundle(indexed.positions[*at]?));
            if let Some(bundle) = named.next() {
                found.installed_deprecation = deprecation(package, channel, bundle);
            }
            place.reached_from(request.edges, from.bundle, from.version)
        }
    };
    for position in reached {
        let Some(bundle) = place.bundle(position) else { continue };
        // A skipRange may include the version that has it: what is installed is no offer.
        if request.installed.is_some_and(|from| from.bundle == bundle.name) {
            continue;
        }
        let entry = indexed.order.entries[position];
        let is_step = !is_in_range(&bundle.version);
        if is_step && !onwards.as_ref().is_some_and(|it| it.leading.contains(&entry)) {
            continue;
        }
        let offer = offer(place, bundle, facts, is_step);
        let by_version = request.installed.is_some() && request.edges != UpgradeEdges::Graph;
        let rank = (
            is_step,
            offer.deprecation.is_some(),
            request.installed.is_some_and(|from| from.catalog != catalog.name.name),
            catalog.weight,
            Reverse(by_version.then_some(&bundle.version)),
            catalog.name.name.as_str(),
            position,
        );
        ranked.push((rank, offer));
    }
}

/// A bundle of a channel as an offer.
fn offer<'p>(
    place: &CatalogChannel<'p>,
    bundle: &'p Bundle,
    facts: &ClusterFacts,
    is_step: bool,
) -> Offer<'p> {
    let CatalogChannel { catalog, package, channel, indexed: _ } = place;
    let ineligible = malformed(bundle)
        .map(Ineligible::Defect)
        .or_else(|| bundle.deprecated.then_some(Ineligible::Deprecated))
        .or_else(|| unfit(facts, bundle));
    let who = format!("{} {}", package.name, bundle.version);
    Offer {
        catalog,
        channel: &channel.name,
        bundle,
        deprecation: deprecation(package, channel, bundle),
        is_step,
        ineligible: ineligible.map(|it| it.sentence(&who, false, facts)),
    }
}

/// The channels of a package that count, by index: the one that is named, else that of the installed bundle,
/// else the default one (DEP-12).
fn channels(package: &Package, request: &OfferRequest<'_>) -> Vec<usize> {
    let named = |name: &str| -> Vec<usize> {
        let channels = package.channels.iter().enumerate();
        channels.filter(|(_, it)| it.name == name).map(|(at, _)| at).collect()
    };
    if !request.channel.is_empty() {
        return named(request.channel);
    }
    let followed = request.installed.map_or("", |installed| installed.channel);
    let found = named(followed);
    match (found.is_empty(), &package.default_channel, package.channels.as_slice()) {
        (false, ..) => found,
        (true, Some(name), _) => named(name),
        (true, None, [_]) => vec![0],
        (true, None, _) => Vec::new(),
    }
}

fn deprecation<'p>(
    package: &'p Package,
    channel: &'p Channel,
    bundle: &'p Bundle,
) -> Option<(String, &'p str)> {
    if let Some(message) = &bundle.deprecation {
        return Some((format!("version {}", bundle.version), message));
    }
    if let Some(message) = &channel.deprecation {
        return Some((format!("channel `{}`", channel.name), message));
    }
    let message = package.deprecation.as_ref()?;
    Some((format!("package `{}`", package.name), message))
}

#[cfg(test)]
mod tests;
