//! Why nothing at all would satisfy a request or a requirement: what there is instead.

use std::collections::BTreeSet;

use semver::Version;

use super::words::joined;
use crate::bundle::{Constraint, Requirement};
use crate::matching::Test;
use crate::model::Index;
use crate::problem::{ChannelPolicy, Request};
use crate::range::masterminds;

/// Why a request has no candidate, as the rest of a sentence.
pub(super) fn of_request(index: &Index<'_>, request: &Request) -> String {
    let Request { namespace, package, channel, version, bundle, catalog, .. } = request;
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
    let test = Test::new(constraint);
    let mut elsewhere = BTreeSet::new();
    let mut skipped = BTreeSet::new();
    let mut unseen = BTreeSet::new();
    let mut refused = BTreeSet::new();
    for at in index.shelves_for(constraint) {
        let shelf = &index.shelves[at];
        let name = shelf.package.name.as_str();
        let holds = |entry: &str| {
            shelf.bundle(entry).filter(|bundle| {
                test.holds(bundle, Some(name), &|rule| index.rule_holds(rule, bundle))
            })
        };
        let counting = index.channels(namespace, at);
        for (channel_at, channel) in shelf.package.channels.iter().enumerate() {
            for entry in &channel.entries {
                let Some(bundle) = holds(&entry.name) else { continue };
                let text = format!("{name} {}", bundle.version);
                if !index.sees(namespace, shelf.catalog) {
                    unseen.insert(format!("{text} is in {}", shelf.catalog.name));
                } else if !crate::model::provider_allowed(index, constraint, at) {
                    refused.insert(text);
                } else if !counting.contains(&channel_at) {
                    elsewhere.insert(format!("{text} in channel `{}`", channel.name));
                } else {
                    match &shelf.order(channel_at).broken {
                        Some(why) => {
                            skipped.insert(format!(
                                "channel `{}` of {name} is broken: {why}",
                                channel.name
                            ));
                        }
                        None => {
                            skipped
                                .insert(format!("{text} is skipped in channel `{}`", channel.name));
                        }
                    }
                }
            }
        }
    }
    let listed = |texts: BTreeSet<String>| joined(&texts.into_iter().collect::<Vec<_>>(), "and");
    if !skipped.is_empty() {
        return listed(skipped);
    }
    if !elsewhere.is_empty() {
        let policy = match index.problem.question.channels {
            ChannelPolicy::DefaultOnly => "only the default channel, or one that is named, counts",
            ChannelPolicy::PreferDefault => "only the channel that is named counts",
        };
        return format!("there is {}, but {policy}", listed(elsewhere));
    }
    if !refused.is_empty() {
        return format!("there is {}, but another provider was chosen", listed(refused));
    }
    if !unseen.is_empty() {
        return format!("{}, which namespace `{namespace}` does not see", listed(unseen));
    }
    match constraint {
        Constraint::Package { name, range } => {
            let places = places(index, namespace, index.named(name), None);
            format!("{name} has nothing in `{range}`: there is {}", versions(index, &places))
        }
        _ => "no bundle of any catalog is".to_owned(),
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
