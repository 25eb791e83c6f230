//! Offers of catalogs for one package that is to be installed or upgraded by itself, without its
//! dependencies (OPR-7, OPR-12, OPR-13).
//!
//! The order is the resolver's (DEP-14, DEP-15): what is not deprecated, then the catalog that the
//! installed bundle came from, then weight, then the place in the channel. So the first offer is what a
//! resolution chooses when nothing else has a say.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use semver::Version;

use crate::bundle::Bundle;
use crate::channel::{leading_to, order, skipped, updates};
use crate::model::{Ineligible, malformed, unfit};
use crate::package::{Channel, ChannelEntry, Package};
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
    let mut found = Offers::default();
    let mut ranked = Vec::new();
    for catalog in catalogs {
        if !request.catalog.is_empty() && catalog.name.name != request.catalog {
            continue;
        }
        let Some(package) = catalog.package(request.package) else { continue };
        found.catalogs.push(&catalog.name.name);
        found.channels.extend(package.channels.iter().map(|channel| channel.name.as_str()));
        for channel in channels(package, request) {
            let order = order(channel);
            if let Some(cause) = order.broken {
                let (name, catalog) = (&channel.name, &catalog.name);
                found.broken.push(format!("channel `{name}` of catalog {catalog}: {cause}"));
            }
            if let Some(range) = request.range {
                let version = |name: &str| {
                    let bundle = package.bundles.iter().find(|bundle| bundle.name == name);
                    bundle.map(|bundle| &bundle.version)
                };
                let in_range = skipped(channel, &version).into_iter();
                let in_range = in_range.filter(|(version, _)| range.matches(version));
                let channel = channel.name.as_str();
                let in_range =
                    in_range.map(|(version, by)| SkippedVersion { version, by, channel });
                found.skipped.extend(in_range);
            }
            in_channel(
                CatalogChannel { catalog, package, channel },
                &order.entries,
                facts,
                request,
                &mut found,
                &mut ranked,
            );
        }
    }
    ranked.sort_by_key(|(rank, _)| *rank);
    found.offers = ranked.into_iter().map(|(_, offer)| offer).collect();
    for names in [&mut found.catalogs, &mut found.channels] {
        names.sort_unstable();
        names.dedup();
    }
    found.versions.sort_by(|left, right| right.cmp(left));
    found.versions.dedup();
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
    let mut left: Vec<(usize, &ChannelEntry, Offer<'p>)> = Vec::new();
    for catalog in catalogs {
        if !request.catalog.is_empty() && catalog.name.name != request.catalog {
            continue;
        }
        let Some(package) = catalog.package(request.package) else { continue };
        for channel in channels(package, request) {
            for (position, at) in order(channel).entries.into_iter().enumerate() {
                let entry = &channel.entries[at];
                let bundle = package.bundles.iter().find(|bundle| bundle.name == entry.name);
                let Some(bundle) = bundle else { continue };
                found.versions.push(&bundle.version);
                if bundle.name != installed.bundle {
                    let place = CatalogChannel { catalog, package, channel };
                    let offer = offer(place, bundle, facts, false);
                    left.push((position, entry, offer));
                }
            }
        }
    }
    let mut reached = Vec::new();
    let mut queue = vec![(installed.bundle, installed.version)];
    while let Some((name, version)) = queue.pop() {
        let is_reached = |entry: &ChannelEntry, bundle: &Bundle| match request.edges {
            UpgradeEdges::Graph => updates(entry, name, version),
            UpgradeEdges::Higher => bundle.version > *installed.version,
            UpgradeEdges::Any => bundle.version != *installed.version,
        };
        let next = left.extract_if(.., |(_, entry, offer)| is_reached(entry, offer.bundle));
        for (position, _, offer) in next.collect::<Vec<_>>() {
            match &offer.ineligible {
                Some(why) => {
                    found.refused.insert(&offer.bundle.version, why.clone());
                }
                None => {
                    queue.push((&offer.bundle.name, &offer.bundle.version));
                    reached.push((position, offer));
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
    found.versions.sort_by(|left, right| right.cmp(left));
    found.versions.dedup();
    found
}

/// The place of an offer among others; the least is preferred. Versions count before the place in the
/// channel where its graph does not.
type Rank<'p> = (bool, bool, bool, i64, Reverse<Option<&'p Version>>, &'p str, usize);

/// A channel of a package of a catalog.
#[derive(Clone, Copy)]
struct CatalogChannel<'p> {
    /// The catalog.
    catalog: &'p CatalogPart,
    /// The package, of that catalog.
    package: &'p Package,
    /// The channel, of that package.
    channel: &'p Channel,
}

fn in_channel<'p>(
    place: CatalogChannel<'p>,
    entries: &[usize],
    facts: &ClusterFacts,
    request: &OfferRequest<'_>,
    found: &mut Offers<'p>,
    ranked: &mut Vec<(Rank<'p>, Offer<'p>)>,
) {
    let CatalogChannel { catalog, package, channel } = place;
    let bundle = |name: &str| package.bundles.iter().find(|bundle| bundle.name == name);
    let is_in_range = |version: &Version| request.range.is_none_or(|range| range.matches(version));
    // Only from outside the range a step outside of it leads anywhere.
    let onwards = match (request.installed, request.edges) {
        (Some(installed), UpgradeEdges::Graph) if !is_in_range(installed.version) => {
            leading_to(channel, &|name| bundle(name).map(|it| &it.version), &is_in_range)
        }
        _ => std::collections::BTreeSet::new(),
    };
    for (position, at) in entries.iter().enumerate() {
        let entry = &channel.entries[*at];
        let Some(bundle) = bundle(&entry.name) else { continue };
        found.versions.push(&bundle.version);
        if request.installed.is_some_and(|from| from.bundle == bundle.name) {
            found.installed_deprecation = deprecation(package, channel, bundle);
            // A skipRange may include the version that has it: what is installed is no offer.
            continue;
        }
        let is_reached = match (request.installed, request.edges) {
            (None, _) => true,
            (Some(from), UpgradeEdges::Graph) => updates(entry, from.bundle, from.version),
            (Some(from), UpgradeEdges::Higher) => bundle.version > *from.version,
            (Some(from), UpgradeEdges::Any) => bundle.version != *from.version,
        };
        let is_step = !is_in_range(&bundle.version);
        if !is_reached || (is_step && !onwards.contains(entry.name.as_str())) {
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
    place: CatalogChannel<'p>,
    bundle: &'p Bundle,
    facts: &ClusterFacts,
    is_step: bool,
) -> Offer<'p> {
    let CatalogChannel { catalog, package, channel } = place;
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

/// The channels of a package that count: the one that is named, else that of the installed bundle, else
/// the default one (DEP-12).
fn channels<'p>(package: &'p Package, request: &OfferRequest<'_>) -> Vec<&'p Channel> {
    let named = |name: &str| package.channels.iter().filter(|it| it.name == name).collect();
    if !request.channel.is_empty() {
        return named(request.channel);
    }
    let followed = request.installed.map_or("", |installed| installed.channel);
    let found: Vec<&Channel> = named(followed);
    match (found.is_empty(), &package.default_channel, package.channels.as_slice()) {
        (false, ..) => found,
        (true, Some(name), _) => named(name),
        (true, None, [only]) => vec![only],
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
