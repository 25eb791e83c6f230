//! Why nothing at all would satisfy a request or a requirement: what there is instead.

use std::collections::BTreeSet;

use semver::Version;

use super::format::joined;
use crate::bundle::{Constraint, Requirement};
use crate::matching::Test;
use crate::model::{Index, provider_allowed};
use crate::problem::{ChannelPolicy, PackageRequest};
use crate::range::masterminds;

/// Why a request has no candidate, as the rest of a sentence.
pub(super) fn of_request(index: &Index<'_>, request: &PackageRequest) -> String {
    let PackageRequest { namespace, package, channel, version, bundle, catalog, .. } = request;
    if let Some(Err(error)) = version.as_deref().map(masterminds::Range::parse) {
        return error.to_string();
    }
    let catalogs = &index.problem.catalogs;
    let seen = |shelf: &usize| {
        let theirs = index.shelves[*shelf].catalog;
        index.sees(namespace, theirs) && catalog.as_ref().is_none_or(|name| *name == theirs.name)
    };
    if let Some(name) = catalog
        && !catalogs.iter().any(|catalog| catalog.name == *name)
    {
        return format!("there is no catalog {name}");
    }
    let shelves: Vec<usize> = index.named(package).iter().copied().filter(seen).collect();
    if shelves.is_empty() {
        return match catalog {
            Some(catalog) => format!("catalog {catalog} has no package `{package}`"),
            None => format!("no catalog has a package `{package}`"),
        };
    }
    if let Some(channel) = channel {
        let names = channel_names(index, &shelves);
        if !names.contains(channel.as_str()) {
            return format!("it has no channel `{channel}`; there is {}", quoted(&names));
        }
    }
    let places = places(index, namespace, &shelves, channel.as_deref());
    if places.is_empty() {
        let names = channel_names(index, &shelves);
        return format!("it has no default channel; name one of {}", quoted(&names));
    }
    if let Some(text) = broken(index, &places) {
        return text;
    }
    if let Some(bundle) = bundle {
        return format!("no bundle there is called {bundle}");
    }
    let versions = versions(index, &places);
    match version {
        Some(range) => format!("none of its versions is in `{range}`: there is {versions}"),
        None if versions.is_empty() => "there are no bundles".to_owned(),
        None => format!("nothing there updates what is installed: there is {versions}"),
    }
}

/// Why a requirement has no candidate in a namespace, as the rest of a sentence.
pub(super) fn of_requirement(
    index: &Index<'_>,
    namespace: &str,
    requirement: &Requirement,
) -> String {
    let constraint = &requirement.constraint;
    if let Constraint::Package { name, .. } = constraint
        && index.named(name).is_empty()
    {
        return format!("no catalog has a package `{name}`");
    }
    let instead = Instead::find(index, namespace, constraint);
    if let Some(told) = instead.told(index, namespace) {
        return told;
    }
    match constraint {
        Constraint::Package { name, range } => {
            let places = places(index, namespace, index.named(name), None);
            format!("{name} has nothing in `{range}`: there is {}", versions(index, &places))
        }
        _ => "no bundle of any catalog is".to_owned(),
    }
}

/// Bundles that a constraint holds for although they are no candidates, by the reason.
#[derive(Default)]
struct Instead {
    /// Not in the order of a channel that counts.
    out_of_order: BTreeSet<String>,
    /// In channels that do not count.
    elsewhere: BTreeSet<String>,
    /// Of a package that is not the chosen provider.
    not_chosen: BTreeSet<String>,
    /// In catalogs that the namespace does not see.
    unseen: BTreeSet<String>,
}

impl Instead {
    fn find(index: &Index<'_>, namespace: &str, constraint: &Constraint) -> Self {
        let mut found = Self::default();
        let test = Test::new(constraint);
        for at in index.shelves_for(constraint) {
            let shelf = &index.shelves[at];
            let name = shelf.package.name.as_str();
            let allowed = provider_allowed(index, constraint, at);
            let counting = index.channels(namespace, at);
            for (channel_at, channel) in shelf.package.channels.iter().enumerate() {
                for entry in &channel.entries {
                    let Some(bundle) = shelf.bundle(&entry.name) else { continue };
                    if !test.holds(bundle, Some(name), &|rule| index.rule_holds(rule, bundle)) {
                        continue;
                    }
                    let text = format!("{name} {}", bundle.version);
                    let channel = &channel.name;
                    if !index.sees(namespace, shelf.catalog) {
                        found.unseen.insert(format!("{text} is in {}", shelf.catalog.name));
                    } else if !allowed {
                        found.not_chosen.insert(text);
                    } else if !counting.contains(&channel_at) {
                        found.elsewhere.insert(format!("{text} in channel `{channel}`"));
                    } else if let Some(why) = &shelf.order(channel_at).broken {
                        let text = format!("channel `{channel}` of {name} is broken: {why}");
                        found.out_of_order.insert(text);
                    } else {
                        let text = format!("{text} is skipped in channel `{channel}`");
                        found.out_of_order.insert(text);
                    }
                }
            }
        }
        found
    }

    /// What comes closest, as the rest of a sentence.
    fn told(self, index: &Index<'_>, namespace: &str) -> Option<String> {
        let listed =
            |texts: BTreeSet<String>| joined(&texts.into_iter().collect::<Vec<_>>(), "and");
        let Self { out_of_order, elsewhere, not_chosen, unseen } = self;
        if !out_of_order.is_empty() {
            return Some(listed(out_of_order));
        }
        if !elsewhere.is_empty() {
            let policy = match index.problem.query.channels {
                ChannelPolicy::DefaultOnly => {
                    "only the default channel, or one that is named, counts"
                }
                ChannelPolicy::PreferDefault => "only the channel that is named counts",
            };
            return Some(format!("there is {}, and {policy}", listed(elsewhere)));
        }
        if !not_chosen.is_empty() {
            let listed = listed(not_chosen);
            return Some(format!("there is {listed}, and another provider was chosen"));
        }
        if !unseen.is_empty() {
            let listed = listed(unseen);
            return Some(format!("{listed}, which namespace `{namespace}` does not see"));
        }
        None
    }
}

fn channel_names<'i>(index: &'i Index<'_>, shelves: &[usize]) -> BTreeSet<&'i str> {
    let channels = shelves.iter().flat_map(|shelf| &index.shelves[*shelf].package.channels);
    channels.map(|channel| channel.name.as_str()).collect()
}

fn quoted(names: &BTreeSet<&str>) -> String {
    let texts: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    joined(&texts, "and")
}

/// The channels that count, as shelf and channel.
fn places(
    index: &Index<'_>,
    namespace: &str,
    shelves: &[usize],
    channel: Option<&str>,
) -> Vec<(usize, usize)> {
    let mut places = Vec::new();
    for shelf in shelves {
        match channel {
            None => {
                let counting = index.channels(namespace, *shelf);
                places.extend(counting.into_iter().map(|channel| (*shelf, channel)));
            }
            Some(name) => {
                let channels = &index.shelves[*shelf].package.channels;
                let found = channels.iter().position(|channel| channel.name == name);
                places.extend(found.map(|channel| (*shelf, channel)));
            }
        }
    }
    places
}

fn broken(index: &Index<'_>, places: &[(usize, usize)]) -> Option<String> {
    places.iter().find_map(|(shelf, channel)| {
        let shelf = &index.shelves[*shelf];
        let why = shelf.order(*channel).broken.as_ref()?;
        let name = &shelf.package.channels[*channel].name;
        Some(format!("channel `{name}` is broken: {why}"))
    })
}

/// The versions that channels offer.
fn versions(index: &Index<'_>, places: &[(usize, usize)]) -> String {
    let mut versions: BTreeSet<&Version> = BTreeSet::new();
    for (shelf, channel) in places {
        let shelf = &index.shelves[*shelf];
        for at in &shelf.order(*channel).entries {
            let entry = &shelf.package.channels[*channel].entries[*at];
            versions.extend(shelf.bundle(&entry.name).map(|bundle| &bundle.version));
        }
    }
    match (versions.first(), versions.last(), versions.len()) {
        (Some(first), Some(last), count) if count > 2 => {
            format!("{first} to {last} ({count} versions)")
        }
        _ => {
            let texts: Vec<String> = versions.iter().map(ToString::to_string).collect();
            joined(&texts, "and")
        }
    }
}
