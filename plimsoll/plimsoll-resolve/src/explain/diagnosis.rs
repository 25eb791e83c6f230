//! Why nothing at all would satisfy a request or a requirement: what there is instead.

use std::collections::BTreeSet;

use semver::Version;

use super::format::joined;
use crate::bundle::{Constraint, Requirement};
use crate::matching::ConstraintMatcher;
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
    let seen = |package_id: &usize| {
        let theirs = index.packages[*package_id].catalog;
        index.sees(namespace, theirs) && catalog.as_ref().is_none_or(|name| *name == theirs.name)
    };
    if let Some(name) = catalog
        && !catalogs.iter().any(|catalog| catalog.name == *name)
    {
        return format!("there is no catalog {name}");
    }
    let package_ids: Vec<usize> = index.named(package).iter().copied().filter(seen).collect();
    if package_ids.is_empty() {
        return match catalog {
            Some(catalog) => format!("catalog {catalog} has no package `{package}`"),
            None => format!("no catalog has a package `{package}`"),
        };
    }
    if let Some(channel) = channel {
        let names = channel_names(index, &package_ids);
        if !names.contains(channel.as_str()) {
            return format!("it has no channel `{channel}`; available: {}", quoted(&names));
        }
    }
    let places = places(index, namespace, &package_ids, channel.as_deref());
    if places.is_empty() {
        let names = channel_names(index, &package_ids);
        return format!("it has no default channel; specify one of {}", quoted(&names));
    }
    if let Some(text) = broken(index, &places) {
        return text;
    }
    if let Some(bundle) = bundle {
        return format!("no bundle there is named {bundle}");
    }
    let versions = versions(index, &places);
    match version {
        Some(range) => format!("no version matches `{range}`; available: {versions}"),
        None if versions.is_empty() => "there are no bundles in its channels".to_owned(),
        None => format!("no entry updates the installed bundle; available: {versions}"),
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
    let near_misses = NearMisses::find(index, namespace, constraint);
    if let Some(text) = near_misses.describe(index, namespace) {
        return text;
    }
    match constraint {
        Constraint::Package { name, range } => {
            let places = places(index, namespace, index.named(name), None);
            format!(
                "no version of {name} matches `{range}`; available: {}",
                versions(index, &places)
            )
        }
        _ => "no catalog has one".to_owned(),
    }
}

/// Bundles that a constraint holds for although they are no candidates, by the reason.
#[derive(Default)]
struct NearMisses {
    /// Not in the order of a channel that counts.
    out_of_order: BTreeSet<String>,
    /// In channels that do not count.
    elsewhere: BTreeSet<String>,
    /// Of a package that is not the chosen provider.
    not_chosen: BTreeSet<String>,
    /// In catalogs that the namespace does not see.
    unseen: BTreeSet<String>,
}

impl NearMisses {
    fn find(index: &Index<'_>, namespace: &str, constraint: &Constraint) -> Self {
        let mut found = Self::default();
        let matcher = ConstraintMatcher::new(constraint);
        for at in index.packages_for(constraint) {
            let catalog_package = &index.packages[at];
            let name = catalog_package.package.name.as_str();
            let allowed = provider_allowed(index, constraint, at);
            let counting = index.channels(namespace, at);
            for (channel_at, channel) in catalog_package.package.channels.iter().enumerate() {
                for entry in &channel.entries {
                    let Some(bundle) = catalog_package.bundle(&entry.name) else { continue };
                    if !matcher.holds(bundle, Some(name), &|rule| index.rule_holds(rule, bundle)) {
                        continue;
                    }
                    let text = format!("{name} {}", bundle.version);
                    let channel = &channel.name;
                    if !index.sees(namespace, catalog_package.catalog) {
                        found
                            .unseen
                            .insert(format!("{text} is in {}", catalog_package.catalog.name));
                    } else if !allowed {
                        found.not_chosen.insert(text);
                    } else if !counting.contains(&channel_at) {
                        found.elsewhere.insert(format!("{text} in channel `{channel}`"));
                    } else if let Some(why) = &catalog_package.order(channel_at).broken {
                        let text = format!("channel `{channel}` of {name} is invalid: {why}");
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

    /// The nearest of them, as a clause that completes "..., but ...". None when there are none.
    fn describe(self, index: &Index<'_>, namespace: &str) -> Option<String> {
        let listed =
            |texts: BTreeSet<String>| joined(&texts.into_iter().collect::<Vec<_>>(), "and");
        let Self { out_of_order, elsewhere, not_chosen, unseen } = self;
        if !out_of_order.is_empty() {
            return Some(listed(out_of_order));
        }
        if !elsewhere.is_empty() {
            let policy = match index.problem.query.channels {
                ChannelPolicy::DefaultOnly => "only the default channel or a requested one is used",
                ChannelPolicy::PreferDefault => "only the requested channel is used",
            };
            return Some(format!("the catalogs have {}, and {policy}", listed(elsewhere)));
        }
        if !not_chosen.is_empty() {
            let listed = listed(not_chosen);
            return Some(format!("an override selects another provider than {listed}"));
        }
        if !unseen.is_empty() {
            let listed = listed(unseen);
            return Some(format!("{listed}, not visible to namespace `{namespace}`"));
        }
        None
    }
}

fn channel_names<'i>(index: &'i Index<'_>, package_ids: &[usize]) -> BTreeSet<&'i str> {
    let channels =
        package_ids.iter().flat_map(|package_id| &index.packages[*package_id].package.channels);
    channels.map(|channel| channel.name.as_str()).collect()
}

fn quoted(names: &BTreeSet<&str>) -> String {
    let texts: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    joined(&texts, "and")
}

/// The channels that count, as package and channel.
fn places(
    index: &Index<'_>,
    namespace: &str,
    package_ids: &[usize],
    channel: Option<&str>,
) -> Vec<(usize, usize)> {
    let mut places = Vec::new();
    for package_id in package_ids {
        match channel {
            None => {
                let counting = index.channels(namespace, *package_id);
                places.extend(counting.into_iter().map(|channel| (*package_id, channel)));
            }
            Some(name) => {
                let channels = &index.packages[*package_id].package.channels;
                let found = channels.iter().position(|channel| channel.name == name);
                places.extend(found.map(|channel| (*package_id, channel)));
            }
        }
    }
    places
}

fn broken(index: &Index<'_>, places: &[(usize, usize)]) -> Option<String> {
    places.iter().find_map(|(package_id, channel)| {
        let catalog_package = &index.packages[*package_id];
        let why = catalog_package.order(*channel).broken.as_ref()?;
        let name = &catalog_package.package.channels[*channel].name;
        Some(format!("channel `{name}` is invalid: {why}"))
    })
}

/// The versions that channels offer.
fn versions(index: &Index<'_>, places: &[(usize, usize)]) -> String {
    let mut versions: BTreeSet<&Version> = BTreeSet::new();
    for (package_id, channel) in places {
        let catalog_package = &index.packages[*package_id];
        for at in &catalog_package.order(*channel).entries {
            let entry = &catalog_package.package.channels[*channel].entries[*at];
            versions.extend(catalog_package.bundle(&entry.name).map(|bundle| &bundle.version));
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
