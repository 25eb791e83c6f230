//! Selection of a bundle among those that catalogs offer, or the reason that there is none.

use std::collections::BTreeSet;

use plimsoll_api::Reason;
use plimsoll_api::olm::{BundleReference, UpgradePolicy};
use plimsoll_content::capability::suggestion;
use plimsoll_resolve::offer::{
    ChannelIndex, InstalledVersion, Offer, OfferRequest, Offers, SkippedVersion, UpgradeEdges,
    offers_indexed,
};
use plimsoll_resolve::range::masterminds::Range;
use plimsoll_resolve::{Bundle, CatalogPart, Package};

use super::{OperatorBlock, OperatorInputs, RequestedOperator, version_text};

/// The maximum number of versions that a message lists.
const VERSIONS_LISTED: usize = 5;

/// The bundles that an Operator may be installed from or updated to.
pub(super) struct Candidates<'a> {
    /// The offers, the most preferred first; all are compatible with the cluster.
    pub(super) offers: Vec<Offer<'a>>,
    /// The reasons that bundles preferred to all of these cannot be installed, as sentences.
    pub(super) passed_over: Vec<String>,
}

/// Returns the bundles that an Operator may be installed from or updated to; none if the installed one is the
/// most preferred.
///
/// # Errors
///
/// When no offer is usable and the installed bundle does not match the request.
pub(super) fn candidates<'a>(
    inputs: OperatorInputs<'_>,
    catalogs: &'a [CatalogPart],
    name: &str,
    operator: &RequestedOperator,
) -> Result<Candidates<'a>, OperatorBlock> {
    candidates_indexed(inputs, catalogs, &ChannelIndex::default(), name, operator)
}

/// Returns the bundles that an Operator may be installed from or updated to. `index` is of these catalogs only.
///
/// # Errors
///
/// When no offer is usable and the installed bundle does not match the request.
pub(super) fn candidates_indexed<'a>(
    inputs: OperatorInputs<'_>,
    catalogs: &'a [CatalogPart],
    index: &ChannelIndex,
    name: &str,
    operator: &RequestedOperator,
) -> Result<Candidates<'a>, OperatorBlock> {
    let range = range(&operator.spec.version)?;
    let installed = operator.installed.as_ref();
    let spec = &operator.spec;
    let request = offer_request(name, operator, range.as_ref());
    let is_in_range = installed
        .is_some_and(|it| range.as_ref().is_none_or(|range| range.matches(&it.bundle.version)));
    let found = offers_indexed(catalogs, index, inputs.facts, &request);
    let tied = found.tied_catalogs(request.installed.map_or("", |it| it.catalog));
    if !tied.is_empty() {
        let message = format!(
            "catalogs {} of the same weight have {name}: name one in spec.repository, or give one a \
             lower spec.weight",
            tied.join(", ")
        );
        return Err(OperatorBlock::new(Reason::AmbiguousCatalog, message));
    }
    let mut usable = Vec::new();
    let mut passed_over = Vec::new();
    // If one step leads to a requested version, intermediate steps are not needed.
    let is_direct = found.offers.iter().any(|offer| !offer.is_step);
    let wanted = found.offers.iter().filter(|offer| {
        is_wanted(offer, operator, is_in_range, &found) && !(is_direct && offer.is_step)
    });
    for offer in wanted {
        match &offer.ineligible {
            None => usable.push(offer.clone()),
            Some(why) if usable.is_empty() => passed_over.push(why.clone()),
            Some(_) => {}
        }
    }
    if usable.is_empty() && !is_in_range {
        return Err(nothing_offered(inputs, catalogs, &request, &found, spec, passed_over.first()));
    }
    Ok(Candidates { offers: usable, passed_over })
}

/// Returns the request of an Operator to the catalogs.
pub(super) fn offer_request<'a>(
    name: &'a str,
    operator: &'a RequestedOperator,
    range: Option<&'a Range>,
) -> OfferRequest<'a> {
    let spec = &operator.spec;
    OfferRequest {
        package: name,
        channel: &spec.channel,
        catalog: &spec.repository,
        range,
        installed: operator.installed.as_ref().map(|it| InstalledVersion {
            bundle: &it.reference.name,
            version: &it.bundle.version,
            catalog: &it.reference.catalog,
            channel: &it.reference.channel,
        }),
        edges: match spec.upgrade_policy {
            UpgradePolicy::Graph => UpgradeEdges::Graph,
            UpgradePolicy::Semver => UpgradeEdges::Higher,
            UpgradePolicy::Any => UpgradeEdges::Any,
        },
    }
}

/// Returns whether an offer is preferred to the installed bundle: a deprecated offer only if the installed
/// one is deprecated too, a lower version only if the policy is `Graph`.
fn is_wanted(
    offer: &Offer<'_>,
    operator: &RequestedOperator,
    is_in_range: bool,
    found: &Offers<'_>,
) -> bool {
    let Some(installed) = operator.installed.as_ref().filter(|_| is_in_range) else { return true };
    let is_deprecated = found.installed_deprecation.is_some();
    let is_lower = offer.bundle.version < installed.bundle.version;
    (offer.deprecation.is_none() || is_deprecated)
        && (!is_lower || operator.spec.upgrade_policy == UpgradePolicy::Graph)
}

/// Reads `spec.version`; `None` means any version.
fn range(text: &str) -> Result<Option<Range>, OperatorBlock> {
    if text.trim().is_empty() {
        return Ok(None);
    }
    Range::parse(text).map(Some).map_err(|error| {
        let message = format!(
            "spec.version: {error}; write a version such as 1.2.3, or a range such as ~1.2 or \
             >=1.2.5, <1.3"
        );
        OperatorBlock::new(Reason::InvalidVersionRange, message)
    })
}

/// Returns the reason that no offer is usable.
fn nothing_offered(
    inputs: OperatorInputs<'_>,
    catalogs: &[CatalogPart],
    request: &OfferRequest<'_>,
    found: &Offers<'_>,
    spec: &plimsoll_api::olm::OperatorSpec,
    passed_over: Option<&String>,
) -> OperatorBlock {
    let package = request.package;
    if let Some(why) = passed_over {
        return OperatorBlock::new(Reason::ClusterIncompatible, why.clone());
    }
    if found.catalogs.is_empty() {
        return no_catalog(inputs, catalogs, request);
    }
    if !spec.channel.is_empty() && !found.channels.contains(&spec.channel.as_str()) {
        return no_channel(package, &spec.channel, &found.channels);
    }
    if let Some(broken) = found.broken.first().filter(|_| found.versions.is_empty()) {
        return OperatorBlock::new(Reason::ChannelNotFound, broken.clone());
    }
    if found.versions.is_empty() {
        return no_versions(catalogs, request, found);
    }
    let listed: Vec<String> =
        found.versions.iter().take(VERSIONS_LISTED).map(|it| format!("v{it}")).collect();
    let more = found.versions.len().saturating_sub(VERSIONS_LISTED);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    let listed = format!("{}{more}", listed.join(", "));
    let is_there =
        found.versions.iter().any(|it| request.range.is_none_or(|range| range.matches(it)));
    if let Some(SkippedVersion { version, by, channel }) =
        found.skipped.first().filter(|_| !is_there)
    {
        let message = format!(
            "{package} v{version} is skipped by {by} in channel {channel}: it is not offered any more; \
             there is {listed}"
        );
        return OperatorBlock::new(Reason::VersionSkipped, message);
    }
    match request.installed {
        Some(installed) if is_there => OperatorBlock::new(
            Reason::NoUpgradePath,
            format!(
                "no update leads from v{} to {}; the channel has {listed}. Set spec.upgradePolicy to \
                 Semver or Any to update without the channel's graph",
                installed.version, spec.version
            ),
        ),
        _ => OperatorBlock::new(
            Reason::NoMatchingVersion,
            format!("no version of {package} matches {}; there is {listed}", spec.version),
        ),
    }
}

/// Returns the reason that no channel counts, or that the one that does has no bundles.
fn no_versions(
    catalogs: &[CatalogPart],
    request: &OfferRequest<'_>,
    found: &Offers<'_>,
) -> OperatorBlock {
    let package = request.package;
    let channels = match found.channels.as_slice() {
        [] => "it has no channels".to_owned(),
        channels => format!("name one of its channels in spec.channel: {}", channels.join(", ")),
    };
    let parts = catalogs.iter().filter(|it| found.catalogs.contains(&it.name.name.as_str()));
    let mut packages = parts.filter_map(|it| it.package(package));
    let default = packages.find_map(|it| it.default_channel.as_deref());
    let message = match (request.channel, default) {
        ("", None) => format!("package {package} has no default channel; {channels}"),
        ("", Some(name)) if !found.channels.contains(&name) => {
            format!("package {package} has no channel {name}, which is its default one; {channels}")
        }
        ("", Some(name)) | (name, _) => {
            format!("channel {name} of package {package} has no bundles; {channels}")
        }
    };
    OperatorBlock::new(Reason::ChannelNotFound, message)
}

/// Returns the reason that a package has nothing in the channel that an Operator names.
fn no_channel(package: &str, channel: &str, channels: &[&str]) -> OperatorBlock {
    let instead =
        instead(channel, channels, || format!("its channels are {}", channels.join(", ")));
    let message = format!("{package} has no channel {channel}{instead}");
    OperatorBlock::new(Reason::ChannelNotFound, message)
}

/// Returns the end of a sentence about a name that does not exist: the one that may be meant, or else what there is.
fn instead(wanted: &str, there: &[&str], all: impl FnOnce() -> String) -> String {
    match suggestion(wanted, there.iter().copied()) {
        it if it.is_empty() => format!("; {}", all()),
        it => it,
    }
}

/// Returns the reason that no catalog offers a package to an Operator, whatever the version and whatever is installed;
/// `None` if one does.
pub(super) fn not_offered(
    inputs: OperatorInputs<'_>,
    catalogs: &[CatalogPart],
    name: &str,
    operator: &RequestedOperator,
) -> Option<OperatorBlock> {
    let request = offer_request(name, operator, None);
    let counting =
        catalogs.iter().filter(|it| request.catalog.is_empty() || it.name.name == request.catalog);
    let packages: Vec<&Package> = counting.filter_map(|it| it.package(name)).collect();
    if packages.is_empty() {
        return Some(no_catalog(inputs, catalogs, &request));
    }
    let channels = packages.iter().flat_map(|it| &it.channels).map(|it| it.name.as_str());
    let channels: BTreeSet<&str> = channels.collect();
    let is_there = request.channel.is_empty() || channels.contains(request.channel);
    let channels: Vec<&str> = channels.into_iter().collect();
    (!is_there).then(|| no_channel(name, request.channel, &channels))
}

/// Returns the reason that the channel or the catalog that an Operator requests does not exist; `None` if they do, or
/// if that is not known. A package that is gone counts only if the Operator names the catalog that lacks it.
pub(super) fn unknown_source(
    inputs: OperatorInputs<'_>,
    catalogs: &[CatalogPart],
    name: &str,
    operator: &RequestedOperator,
) -> Option<OperatorBlock> {
    let block = not_offered(inputs, catalogs, name, operator)?;
    let is_of_spec = match block.reason {
        Reason::CatalogUnavailable => false,
        Reason::PackageNotFound => !operator.spec.repository.is_empty(),
        _ => true,
    };
    is_of_spec.then_some(block)
}

fn no_catalog(
    inputs: OperatorInputs<'_>,
    catalogs: &[CatalogPart],
    request: &OfferRequest<'_>,
) -> OperatorBlock {
    let (package, catalog) = (request.package, request.catalog);
    let unavailable: Vec<String> = inputs
        .unavailable
        .iter()
        .filter(|(name, _)| catalog.is_empty() || name.as_str() == catalog)
        .map(|(name, why)| format!("{name} ({why})"))
        .collect();
    if !unavailable.is_empty() {
        let message = format!(
            "no catalog that is served has {package}; not served: {}",
            unavailable.join(", ")
        );
        return OperatorBlock::new(Reason::CatalogUnavailable, message);
    }
    if !catalog.is_empty() && catalogs.iter().all(|it| it.name.name != catalog) {
        let names: Vec<&str> = catalogs.iter().map(|it| it.name.name.as_str()).collect();
        let instead = instead(catalog, &names, || match names.is_empty() {
            true => "catalogs: there is none".to_owned(),
            false => format!("catalogs: {}", names.join(", ")),
        });
        let message = format!("there is no catalog {catalog}{instead}");
        return OperatorBlock::new(Reason::CatalogNotFound, message);
    }
    let message = match catalog {
        "" => format!("no catalog has a package {package}"),
        _ => format!("catalog {catalog} has no package {package}"),
    };
    OperatorBlock::new(Reason::PackageNotFound, message)
}

/// Returns a reference to the bundle of an offer.
pub(super) fn reference(offer: &Offer<'_>) -> BundleReference {
    BundleReference {
        name: offer.bundle.name.clone(),
        version: offer.bundle.version.to_string(),
        digest: String::new(),
        channel: offer.channel.to_owned(),
        catalog: offer.catalog.name.name.clone(),
    }
}

/// Returns the name and version of a bundle as messages show them.
pub(super) fn named(name: &str, bundle: &Bundle) -> String {
    format!("{name} {}", version_text(&bundle.version.to_string()))
}
