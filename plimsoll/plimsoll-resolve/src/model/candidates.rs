//! Candidates for requests and requirements, and the one total order of preference.

use super::Index;
use crate::bundle::Constraint;
use crate::matching::ConstraintMatcher;
use crate::package::Channel;
use crate::problem::{CatalogName, CatalogPart, InstalledBundle, PackageRequest};
use crate::range::masterminds;

/// Where among others a candidate stands; the least is preferred.
///
/// DEP-14 and DEP-15: same catalog, then same namespace, then weight; upstream where the design is
/// silent. Updates of the catalog that something was installed from come before weight. What people
/// prefer comes before all of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Preference<'p> {
    /// The place of its catalog among those that people prefer.
    pub(crate) chosen_catalog: usize,
    pub(crate) other_catalog: bool,
    pub(crate) other_namespace: bool,
    /// It, its channel or its package is deprecated.
    pub(crate) deprecated: bool,
    /// Its catalog is not the one that what it updates came from.
    pub(crate) leaves_catalog: bool,
    pub(crate) weight: i64,
    pub(crate) catalog: &'p CatalogName,
    pub(crate) other_channel: bool,
    pub(crate) package: &'p str,
    pub(crate) channel: &'p str,
    /// How far from the channel's head.
    pub(crate) position: usize,
    pub(crate) bundle: &'p str,
}

/// An entry of a channel that would do.
pub(crate) struct Candidate<'p> {
    pub(crate) preference: Preference<'p>,
    pub(crate) package_id: usize,
    pub(crate) channel: usize,
    pub(crate) entry: usize,
}

/// For whom candidates are sought.
#[derive(Clone, Copy)]
pub(crate) struct Requester<'p> {
    pub(crate) namespace: &'p str,
    /// The catalog that it comes from itself.
    pub(crate) catalog: Option<&'p CatalogPart>,
    /// What is updated; `None` for what is new.
    pub(crate) installed: Option<&'p InstalledBundle>,
}

/// The entries that satisfy a constraint, in order of preference.
pub(crate) fn satisfying<'p>(
    index: &Index<'p>,
    requester: Requester<'p>,
    constraint: &'p Constraint,
) -> Vec<Candidate<'p>> {
    let matcher = ConstraintMatcher::new(constraint);
    let mut found = Vec::new();
    for package_id in index.packages_for(constraint) {
        let package = index.packages[package_id].package;
        if !index.sees(requester.namespace, index.packages[package_id].catalog)
            || !provider_allowed(index, constraint, package_id)
        {
            continue;
        }
        let name = Some(package.name.as_str());
        for channel in index.channels(requester.namespace, package_id) {
            entries(index, requester, package_id, channel, &mut found, &mut |_, bundle| {
                matcher.holds(bundle, name, &|rule| index.rule_holds(rule, bundle))
            });
        }
    }
    sorted(found)
}

/// Returns whether no other provider was chosen for what is required.
pub(crate) fn provider_allowed(
    index: &Index<'_>,
    constraint: &Constraint,
    package_id: usize,
) -> bool {
    let Constraint::Api(api) = constraint else { return true };
    let catalog_package = &index.packages[package_id];
    let mut choices = index.problem.query.overrides.providers.iter();
    let Some(choice) = choices.find(|choice| choice.api == *api) else { return true };
    choice.package == catalog_package.package.name
        && choice.catalog.as_ref().is_none_or(|catalog| *catalog == catalog_package.catalog.name)
}

/// The entries that a request may be satisfied by, in order of preference; what is installed is
/// not among them.
pub(crate) fn requested<'p>(
    index: &Index<'p>,
    request: &'p PackageRequest,
    installed: Option<&'p InstalledBundle>,
) -> Vec<Candidate<'p>> {
    let follows = installed.and_then(|item| item.follows.as_ref());
    let catalog = request.catalog.as_ref().or_else(|| follows?.catalog.as_ref());
    let channel = request.channel.as_ref().or_else(|| follows.map(|follows| &follows.channel));
    let range = request.version.as_deref().map(masterminds::Range::parse);
    let requester = Requester { namespace: &request.namespace, catalog: None, installed };
    let mut found = Vec::new();
    let places = channels_with(index, &request.namespace, &request.package, catalog, channel);
    for (package_id, channel) in places {
        if let (Some(name), None) = (&request.bundle, installed) {
            // What is named may be skipped by another.
            named_entry(index, requester, package_id, channel, name, &mut found);
            continue;
        }
        let catalog_package = &index.packages[package_id];
        let of = &catalog_package.package.channels[channel];
        let graph = installed.map(|item| (item, catalog_package.graph(channel)));
        let next =
            graph.map(|(item, graph)| graph.updates(&item.bundle.name, &item.bundle.version));
        let onwards = graph.and_then(|(_, graph)| {
            let range = range.as_ref()?.as_ref().ok()?;
            Some(graph.leading_to(of, &|version| range.matches(version)))
        });
        entries(index, requester, package_id, channel, &mut found, &mut |at, bundle| {
            let in_range = match &range {
                None => true,
                Some(Ok(range)) => {
                    range.matches(&bundle.version)
                        || onwards.as_ref().is_some_and(|onwards| onwards.contains(&at))
                }
                Some(Err(_)) => false,
            };
            in_range && next.as_ref().is_none_or(|next| next.contains(&at))
        });
    }
    sorted(found)
}

/// The entries that what is installed may be updated to.
pub(crate) fn following<'p>(index: &Index<'p>, item: &'p InstalledBundle) -> Vec<Candidate<'p>> {
    let (Some(package), Some(follows)) = (&item.package, &item.follows) else { return Vec::new() };
    let requester = Requester { namespace: &item.namespace, catalog: None, installed: Some(item) };
    let mut found = Vec::new();
    let (catalog, channel) = (follows.catalog.as_ref(), Some(&follows.channel));
    let places = channels_with(index, &item.namespace, package, catalog, channel);
    for (package_id, channel) in places {
        let graph = index.packages[package_id].graph(channel);
        let next = graph.updates(&item.bundle.name, &item.bundle.version);
        let test = &mut |at: usize, _: &crate::Bundle| next.contains(&at);
        entries(index, requester, package_id, channel, &mut found, test);
    }
    sorted(found)
}

/// The entries with later versions than what is installed that a request accepts, or that the followed
/// channel has, whether or not updates lead there.
pub(crate) fn later<'p>(
    index: &Index<'p>,
    request: Option<&'p PackageRequest>,
    item: &'p InstalledBundle,
) -> Vec<Candidate<'p>> {
    let follows = item.follows.as_ref();
    let Some(package) = request.map(|it| &it.package).or(item.package.as_ref()) else {
        return Vec::new();
    };
    let catalog = request.and_then(|it| it.catalog.as_ref());
    let catalog = catalog.or_else(|| follows?.catalog.as_ref());
    let channel = request.and_then(|it| it.channel.as_ref());
    let channel = channel.or_else(|| follows.map(|follows| &follows.channel));
    let range = request.and_then(|it| it.version.as_deref()).map(masterminds::Range::parse);
    let requester = Requester { namespace: &item.namespace, catalog: None, installed: Some(item) };
    let mut found = Vec::new();
    for (package_id, channel) in channels_with(index, &item.namespace, package, catalog, channel) {
        entries(index, requester, package_id, channel, &mut found, &mut |_, bundle| {
            let is_accepted = match &range {
                None => true,
                Some(range) => range.as_ref().is_ok_and(|range| range.matches(&bundle.version)),
            };
            is_accepted && bundle.version.cmp_precedence(&item.bundle.version).is_gt()
        });
    }
    found
}

/// The channels, as package and channel, that offer a package to a namespace.
fn channels_with(
    index: &Index<'_>,
    namespace: &str,
    package: &str,
    catalog: Option<&CatalogName>,
    channel: Option<&String>,
) -> Vec<(usize, usize)> {
    let mut places = Vec::new();
    for package_id in index.named(package) {
        let theirs = index.packages[*package_id].catalog;
        if !index.sees(namespace, theirs) || catalog.is_some_and(|name| *name != theirs.name) {
            continue;
        }
        let channels = &index.packages[*package_id].package.channels;
        match channel {
            Some(name) => {
                let found = channels.iter().position(|channel| channel.name == *name);
                places.extend(found.map(|channel| (*package_id, channel)));
            }
            None => {
                let found = index.channels(namespace, *package_id).into_iter();
                places.extend(found.map(|channel| (*package_id, channel)));
            }
        }
    }
    places
}

/// The entries of a channel that a test holds for, which sees their indexes and the bundles that they name.
fn entries<'p>(
    index: &Index<'p>,
    requester: Requester<'p>,
    package_id: usize,
    channel: usize,
    found: &mut Vec<Candidate<'p>>,
    test: &mut dyn FnMut(usize, &'p crate::Bundle) -> bool,
) {
    let catalog_package = &index.packages[package_id];
    let of: &'p Channel = &catalog_package.package.channels[channel];
    for (position, at) in catalog_package.order(channel).entries.iter().enumerate() {
        let entry = &of.entries[*at];
        let Some(bundle) = catalog_package.bundle(&entry.name) else { continue };
        if test(*at, bundle) {
            let preference =
                preference(index, requester, package_id, channel, position, &entry.name);
            found.push(Candidate { preference, package_id, channel, entry: *at });
        }
    }
}

fn named_entry<'p>(
    index: &Index<'p>,
    requester: Requester<'p>,
    package_id: usize,
    channel: usize,
    name: &str,
    found: &mut Vec<Candidate<'p>>,
) {
    let catalog_package = &index.packages[package_id];
    let of: &'p Channel = &catalog_package.package.channels[channel];
    let Some(at) = of.entries.iter().position(|entry| entry.name == name) else { return };
    if catalog_package.bundle(name).is_some() {
        let preference = preference(index, requester, package_id, channel, 0, &of.entries[at].name);
        found.push(Candidate { preference, package_id, channel, entry: at });
    }
}

fn preference<'p>(
    index: &Index<'p>,
    requester: Requester<'p>,
    package_id: usize,
    channel: usize,
    position: usize,
    bundle: &'p str,
) -> Preference<'p> {
    let catalog_package = &index.packages[package_id];
    let catalog = catalog_package.catalog;
    let preferred = &index.problem.query.overrides.prefer_catalogs;
    let chosen = preferred.iter().position(|name| *name == catalog.name);
    let package = catalog_package.package;
    let of = &package.channels[channel];
    let deprecated = package.deprecation.is_some()
        || of.deprecation.is_some()
        || catalog_package.bundle(bundle).is_some_and(|bundle| bundle.deprecation.is_some());
    let channel = &of.name;
    let from = requester.installed.and_then(|item| item.catalog.as_ref());
    Preference {
        chosen_catalog: chosen.unwrap_or(preferred.len()),
        other_catalog: requester.catalog.is_some_and(|own| own.name != catalog.name),
        other_namespace: catalog.name.namespace != requester.namespace,
        deprecated,
        leaves_catalog: from.is_some_and(|from| *from != catalog.name),
        weight: catalog.weight,
        catalog: &catalog.name,
        other_channel: catalog_package.default_channel() != Some(channel),
        package: &package.name,
        channel,
        position,
        bundle,
    }
}

fn sorted(mut found: Vec<Candidate<'_>>) -> Vec<Candidate<'_>> {
    found.sort_by(|left, right| left.preference.cmp(&right.preference));
    found
}
