//! Which bundles would satisfy what, and which of them is preferred: the one total order.

use super::Index;
use crate::bundle::Constraint;
use crate::channel::{leading_to, updates};
use crate::matching::Test;
use crate::package::{Channel, ChannelEntry};
use crate::problem::{CatalogName, CatalogPart, InstalledBundle, PackageRequest};
use crate::range::masterminds;

/// Where among others a candidate stands; the least is preferred.
///
/// DEP-14 and DEP-15: same catalog, then same namespace, then weight; upstream where the design is
/// silent. What people prefer comes before all of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Preference<'p> {
    /// The place of its catalog among those that people prefer.
    pub(crate) chosen_catalog: usize,
    pub(crate) other_catalog: bool,
    pub(crate) other_namespace: bool,
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
    pub(crate) shelf: usize,
    pub(crate) channel: usize,
    pub(crate) entry: usize,
}

/// For whom candidates are sought.
#[derive(Clone, Copy)]
pub(crate) struct Seeker<'p> {
    pub(crate) namespace: &'p str,
    /// The catalog that it comes from itself.
    pub(crate) catalog: Option<&'p CatalogPart>,
}

/// The entries that satisfy a constraint, in order of preference.
pub(crate) fn satisfying<'p>(
    index: &Index<'p>,
    seeker: Seeker<'p>,
    constraint: &'p Constraint,
) -> Vec<Candidate<'p>> {
    let test = Test::new(constraint);
    let mut found = Vec::new();
    for shelf in index.shelves_for(constraint) {
        let package = index.shelves[shelf].package;
        if !index.sees(seeker.namespace, index.shelves[shelf].catalog)
            || !provider_allowed(index, constraint, shelf)
        {
            continue;
        }
        let name = Some(package.name.as_str());
        for channel in index.channels(seeker.namespace, shelf) {
            entries(index, seeker, (shelf, channel), &mut found, &mut |_, bundle| {
                test.holds(bundle, name, &|rule| index.rule_holds(rule, bundle))
            });
        }
    }
    sorted(found)
}

/// Whether nobody chose another provider for what is required.
pub(crate) fn provider_allowed(index: &Index<'_>, constraint: &Constraint, shelf: usize) -> bool {
    let Constraint::Api(api) = constraint else { return true };
    let shelf = &index.shelves[shelf];
    let mut choices = index.problem.query.overrides.providers.iter();
    let Some(choice) = choices.find(|choice| choice.api == *api) else { return true };
    choice.package == shelf.package.name
        && choice.catalog.as_ref().is_none_or(|catalog| *catalog == shelf.catalog.name)
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
    let seeker = Seeker { namespace: &request.namespace, catalog: None };
    let mut found = Vec::new();
    for place in offered(index, &request.namespace, &request.package, catalog, channel) {
        if let (Some(name), None) = (&request.bundle, installed) {
            // What is named may be skipped by another.
            named_entry(index, seeker, place, name, &mut found);
            continue;
        }
        let (shelf, channel) = place;
        let leads = |entry: &ChannelEntry| {
            installed.is_none_or(|item| updates(entry, &item.bundle.name, &item.bundle.version))
        };
        let shown = &index.shelves[shelf];
        let onwards = installed.and_then(|_| {
            let range = range.as_ref()?.as_ref().ok()?;
            let version = |name: &str| shown.bundle(name).map(|bundle| &bundle.version);
            let of = &shown.package.channels[channel];
            Some(leading_to(of, &version, &|version| range.matches(version)))
        });
        entries(index, seeker, place, &mut found, &mut |entry, bundle| {
            let in_range = match &range {
                None => true,
                Some(Ok(range)) => {
                    range.matches(&bundle.version)
                        || onwards.as_ref().is_some_and(|names| names.contains(entry.name.as_str()))
                }
                Some(Err(_)) => false,
            };
            in_range && leads(entry)
        });
    }
    sorted(found)
}

/// The entries that what is installed may be updated to.
pub(crate) fn following<'p>(index: &Index<'p>, item: &'p InstalledBundle) -> Vec<Candidate<'p>> {
    let (Some(package), Some(follows)) = (&item.package, &item.follows) else { return Vec::new() };
    let seeker = Seeker { namespace: &item.namespace, catalog: None };
    let mut found = Vec::new();
    let (catalog, channel) = (follows.catalog.as_ref(), Some(&follows.channel));
    for place in offered(index, &item.namespace, package, catalog, channel) {
        entries(index, seeker, place, &mut found, &mut |entry, _| {
            updates(entry, &item.bundle.name, &item.bundle.version)
        });
    }
    sorted(found)
}

/// The channels, as shelf and channel, that offer a package to a namespace.
fn offered(
    index: &Index<'_>,
    namespace: &str,
    package: &str,
    catalog: Option<&CatalogName>,
    channel: Option<&String>,
) -> Vec<(usize, usize)> {
    let mut places = Vec::new();
    for shelf in index.named(package) {
        let theirs = index.shelves[*shelf].catalog;
        if !index.sees(namespace, theirs) || catalog.is_some_and(|name| *name != theirs.name) {
            continue;
        }
        let channels = &index.shelves[*shelf].package.channels;
        match channel {
            Some(name) => {
                let found = channels.iter().position(|channel| channel.name == *name);
                places.extend(found.map(|channel| (*shelf, channel)));
            }
            None => {
                let found = index.channels(namespace, *shelf).into_iter();
                places.extend(found.map(|channel| (*shelf, channel)));
            }
        }
    }
    places
}

/// The entries of a channel that a test holds for, with the bundles that they name.
fn entries<'p>(
    index: &Index<'p>,
    seeker: Seeker<'p>,
    (shelf, channel): (usize, usize),
    found: &mut Vec<Candidate<'p>>,
    test: &mut dyn FnMut(&'p ChannelEntry, &'p crate::Bundle) -> bool,
) {
    let shown = &index.shelves[shelf];
    let of: &'p Channel = &shown.package.channels[channel];
    for (position, at) in shown.order(channel).entries.iter().enumerate() {
        let entry = &of.entries[*at];
        let Some(bundle) = shown.bundle(&entry.name) else { continue };
        if test(entry, bundle) {
            let preference = preference(index, seeker, (shelf, channel), position, &entry.name);
            found.push(Candidate { preference, shelf, channel, entry: *at });
        }
    }
}

fn named_entry<'p>(
    index: &Index<'p>,
    seeker: Seeker<'p>,
    (shelf, channel): (usize, usize),
    name: &str,
    found: &mut Vec<Candidate<'p>>,
) {
    let shown = &index.shelves[shelf];
    let of: &'p Channel = &shown.package.channels[channel];
    let Some(at) = of.entries.iter().position(|entry| entry.name == name) else { return };
    if shown.bundle(name).is_some() {
        let preference = preference(index, seeker, (shelf, channel), 0, &of.entries[at].name);
        found.push(Candidate { preference, shelf, channel, entry: at });
    }
}

fn preference<'p>(
    index: &Index<'p>,
    seeker: Seeker<'p>,
    (shelf, channel): (usize, usize),
    position: usize,
    bundle: &'p str,
) -> Preference<'p> {
    let shelf = &index.shelves[shelf];
    let catalog = shelf.catalog;
    let preferred = &index.problem.query.overrides.prefer_catalogs;
    let chosen = preferred.iter().position(|name| *name == catalog.name);
    let channel = &shelf.package.channels[channel].name;
    Preference {
        chosen_catalog: chosen.unwrap_or(preferred.len()),
        other_catalog: seeker.catalog.is_some_and(|own| own.name != catalog.name),
        other_namespace: catalog.name.namespace != seeker.namespace,
        weight: catalog.weight,
        catalog: &catalog.name,
        other_channel: shelf.default_channel() != Some(channel),
        package: &shelf.package.name,
        channel,
        position,
        bundle,
    }
}

fn sorted(mut found: Vec<Candidate<'_>>) -> Vec<Candidate<'_>> {
    found.sort_by(|left, right| left.preference.cmp(&right.preference));
    found
}
