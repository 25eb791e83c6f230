//! Diagnoses of requests and requirements that nothing satisfies: what there is instead.

use std::collections::{BTreeMap, BTreeSet};

use semver::Version;

use super::format::{joined, spanned};
use crate::bundle::{Bundle, Constraint, Requirement};
use crate::channel::skipped;
use crate::matching::ConstraintMatcher;
use crate::model::{CatalogPackage, Index, provider_allowed};
use crate::package::ChannelEntry;
use crate::problem::{ChannelPolicy, InstalledBundle, PackageRequest};
use crate::range::masterminds;

/// Returns why a request has no candidate, as the rest of a sentence; `installed` is what it
/// updates.
pub(super) fn of_request(
    index: &Index<'_>,
    request: &PackageRequest,
    installed: Option<&InstalledBundle>,
) -> String {
    let PackageRequest { namespace, package, version, bundle, .. } = request;
    let range = match version.as_deref().map(masterminds::Range::parse).transpose() {
        Ok(range) => range,
        Err(error) => return error.to_string(),
    };
    let follows = installed.and_then(|item| item.follows.as_ref());
    let catalog = request.catalog.as_ref().or_else(|| follows?.catalog.as_ref());
    let channel = request.channel.as_ref().or_else(|| follows.map(|follows| &follows.channel));
    let seen = |package_id: &usize| {
        let theirs = index.packages[*package_id].catalog;
        index.sees(namespace, theirs) && catalog.is_none_or(|name| *name == theirs.name)
    };
    if let Some(name) = catalog
        && !index.problem.catalogs.iter().any(|catalog| catalog.name == *name)
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
    let places = match places_of(index, namespace, &package_ids, channel) {
        Ok(places) => places,
        Err(text) => return text,
    };
    if let (Some(item), Some(range), Some(text)) = (installed, &range, version) {
        let reached = entries(index, &places)
            .map(|bundle| &bundle.version)
            .filter(|version| range.matches(version));
        let reached: BTreeSet<&Version> = reached.collect();
        if !reached.is_empty() {
            return format!(
                "{} is installed, and no update path leads from it to a version that matches \
                 `{text}`; the channel has {}",
                item.bundle.name,
                spanned(&reached)
            );
        }
    }
    let wanted = |_: &str, candidate: &Bundle| match bundle {
        Some(name) if installed.is_none() => candidate.name == *name,
        _ => range.as_ref().is_none_or(|range| range.matches(&candidate.version)),
    };
    let counts = |package_id, channel| {
        if places.contains(&(package_id, channel)) { Standing::Counts } else { Standing::Elsewhere }
    };
    let near_misses =
        NearMisses::find(index, namespace, package_ids.iter().copied(), &counts, &wanted);
    if let Some(text) = near_misses.describe(index, namespace, channel.is_some()) {
        return text;
    }
    let versions = versions(index, &places);
    let skipped = || skipped_version(index, &places, range.as_ref()?);
    match (bundle, version) {
        (Some(bundle), _) => format!("no bundle there is named {bundle}; available: {versions}"),
        (None, Some(text)) => skipped()
            .unwrap_or_else(|| format!("no version matches `{text}`; available: {versions}")),
        (None, None) => "there are no bundles in its channels".to_owned(),
    }
}

/// Returns that a version in a range is skipped although it is no entry of the channel, as the rest of a
/// sentence; `None` if there is none.
fn skipped_version(
    index: &Index<'_>,
    places: &[(usize, usize)],
    range: &masterminds::Range,
) -> Option<String> {
    places.iter().find_map(|(package_id, at)| {
        let package = &index.packages[*package_id];
        let channel = &package.package.channels[*at];
        let version = |name: &str| package.bundle(name).map(|bundle| &bundle.version);
        let mut skipped = skipped(channel, &version).into_iter();
        let (version, by) = skipped.find(|(version, _)| range.matches(version))?;
        let by = &channel.entries[by].name;
        let (package, channel) = (&package.package.name, &channel.name);
        Some(format!("{package} {version} is skipped by {by} in channel `{channel}`"))
    })
}

/// Returns why what is installed has no update, as the rest of a sentence.
pub(super) fn of_followed(index: &Index<'_>, item: &InstalledBundle) -> String {
    let none = "its channel has no update for it".to_owned();
    let (Some(package), Some(follows)) = (&item.package, &item.follows) else { return none };
    let seen = |package_id: &usize| {
        let theirs = index.packages[*package_id].catalog;
        index.sees(&item.namespace, theirs)
            && follows.catalog.as_ref().is_none_or(|name| *name == theirs.name)
    };
    let package_ids: Vec<usize> = index.named(package).iter().copied().filter(seen).collect();
    if package_ids.is_empty() {
        return format!("no catalog has a package `{package}` to update it from");
    }
    places_of(index, &item.namespace, &package_ids, Some(&follows.channel)).err().unwrap_or(none)
}

/// Returns why a requirement has no candidate in a namespace, as the rest of a sentence.
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
    let matcher = ConstraintMatcher::new(constraint);
    let counts = |package_id, channel| {
        if !provider_allowed(index, constraint, package_id) {
            Standing::NotChosen
        } else if index.channels(namespace, package_id).contains(&channel) {
            Standing::Counts
        } else {
            Standing::Elsewhere
        }
    };
    let wanted = |name: &str, bundle: &Bundle| {
        matcher.holds(bundle, Some(name), &|rule| index.rule_holds(rule, bundle))
    };
    let package_ids = index.packages_for(constraint);
    let near_misses = NearMisses::find(index, namespace, package_ids, &counts, &wanted);
    if let Some(text) = near_misses.describe(index, namespace, false) {
        return text;
    }
    match constraint {
        Constraint::Package { name, range } => {
            let places = places(index, namespace, index.named(name), None);
            let there = installed_besides(index, namespace, name, &places);
            let available = match (versions(index, &places), there.is_empty()) {
                (offered, true) => offered,
                (_, false) if entries(index, &places).next().is_none() => {
                    format!("{} (installed)", spanned(&there))
                }
                (offered, false) => format!("{offered}, and {} (installed)", spanned(&there)),
            };
            format!("no version of {name} matches `{range}`; available: {available}")
        }
        Constraint::Api(_)
        | Constraint::Label(_)
        | Constraint::All(_)
        | Constraint::Any(_)
        | Constraint::Not(_)
        | Constraint::Cel { .. } => "no catalog has one".to_owned(),
    }
}

/// Returns the installed versions of a package that channels do not offer.
fn installed_besides<'p>(
    index: &Index<'p>,
    namespace: &str,
    name: &str,
    places: &[(usize, usize)],
) -> BTreeSet<&'p Version> {
    let offered: BTreeSet<&Version> = entries(index, places).map(|it| &it.version).collect();
    let items = index.problem.query.installed.iter();
    let items = items.filter(|it| it.namespace == namespace && it.package.as_deref() == Some(name));
    items.map(|it| &it.bundle.version).filter(|it| !offered.contains(it)).collect()
}

/// Versions of packages.
type Versions<'p> = BTreeMap<&'p str, BTreeSet<&'p Version>>;

/// Bundles that would do although they are no candidates, by the reason.
#[derive(Default)]
struct NearMisses<'p> {
    /// Not in the order of a channel that counts.
    out_of_order: BTreeMap<OutOfOrder<'p>, Versions<'p>>,
    /// In channels that do not count.
    elsewhere: BTreeMap<&'p str, Versions<'p>>,
    /// Of a package that is not the chosen provider.
    not_chosen: Versions<'p>,
    /// In catalogs that the namespace does not see.
    unseen: BTreeMap<String, Versions<'p>>,
}

/// Whether the entries of a channel are candidates, as far as their channel decides that.
enum Standing {
    /// Those in its order are.
    Counts,
    /// Another channel is used.
    Elsewhere,
    /// Another provider is chosen.
    NotChosen,
}

/// Why an entry has no place in the order of a channel.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum OutOfOrder<'p> {
    /// The channel has no order, which is why.
    Broken(&'p str, String),
    /// Another entry skips it.
    Skipped(&'p str),
    /// The head does not lead to it.
    Stranded(&'p str),
}

impl<'p> NearMisses<'p> {
    fn find(
        index: &Index<'p>,
        namespace: &str,
        package_ids: impl IntoIterator<Item = usize>,
        counts: &dyn Fn(usize, usize) -> Standing,
        wanted: &dyn Fn(&str, &Bundle) -> bool,
    ) -> Self {
        let mut found = Self::default();
        for package_id in package_ids {
            let CatalogPackage { catalog, package, .. } = index.packages[package_id];
            for (at, channel) in package.channels.iter().enumerate() {
                for entry in &channel.entries {
                    let Some(bundle) = index.packages[package_id].bundle(&entry.name) else {
                        continue;
                    };
                    if !wanted(&package.name, bundle) {
                        continue;
                    }
                    let versions = if !index.sees(namespace, catalog) {
                        found.unseen.entry(catalog.name.to_string()).or_default()
                    } else {
                        match counts(package_id, at) {
                            Standing::NotChosen => &mut found.not_chosen,
                            Standing::Elsewhere => {
                                found.elsewhere.entry(&channel.name).or_default()
                            }
                            Standing::Counts => {
                                let why =
                                    OutOfOrder::of(&index.packages[package_id], at, &entry.name);
                                found.out_of_order.entry(why).or_default()
                            }
                        }
                    };
                    versions.entry(&package.name).or_default().insert(&bundle.version);
                }
            }
        }
        found
    }

    /// The nearest of them, as a clause that completes "..., but ...". None when there are none.
    fn describe(
        self,
        index: &Index<'_>,
        namespace: &str,
        is_channel_named: bool,
    ) -> Option<String> {
        let Self { out_of_order, elsewhere, not_chosen, unseen } = self;
        if !out_of_order.is_empty() {
            let texts: Vec<String> =
                out_of_order.iter().map(|(why, versions)| why.describe(versions)).collect();
            return Some(joined(&texts, "and"));
        }
        if !elsewhere.is_empty() {
            let policy = match index.problem.query.channels {
                _ if is_channel_named => "only the requested or followed channel is used",
                ChannelPolicy::DefaultOnly => "only the default channel or a requested one is used",
                ChannelPolicy::PreferDefault => "only the requested channel is used",
            };
            let text = |(channel, versions): (&&str, &Versions<'_>)| {
                format!("{} in channel `{channel}`", listed(versions))
            };
            let texts: Vec<String> = elsewhere.iter().map(text).collect();
            return Some(format!("the catalogs have {}, and {policy}", joined(&texts, "and")));
        }
        if !not_chosen.is_empty() {
            let listed = listed(&not_chosen);
            return Some(format!("an override selects another provider than {listed}"));
        }
        if !unseen.is_empty() {
            let text = |(catalog, versions): (&String, &Versions<'_>)| {
                format!("{} of catalog {catalog}", listed(versions))
            };
            let texts: Vec<String> = unseen.iter().map(text).collect();
            let texts = joined(&texts, "and");
            return Some(format!("namespace `{namespace}` does not see {texts}"));
        }
        None
    }
}

impl<'p> OutOfOrder<'p> {
    fn of(package: &CatalogPackage<'p>, at: usize, name: &str) -> Self {
        let channel = &package.package.channels[at];
        let skips = |entry: &ChannelEntry| entry.skips.iter().any(|skipped| skipped == name);
        match &package.order(at).broken {
            Some(why) => Self::Broken(&channel.name, why.clone()),
            None if channel.entries.iter().any(skips) => Self::Skipped(&channel.name),
            None => Self::Stranded(&channel.name),
        }
    }

    fn describe(&self, versions: &Versions<'_>) -> String {
        let what = listed(versions);
        let many = versions.values().map(BTreeSet::len).sum::<usize>() > 1;
        match self {
            Self::Broken(channel, why) => {
                format!("channel `{channel}`, which has {what}, is invalid: {why}")
            }
            Self::Skipped(channel) => {
                let verb = if many { "are" } else { "is" };
                format!("{what} {verb} skipped in channel `{channel}`")
            }
            Self::Stranded(channel) => {
                format!("the head of channel `{channel}` does not lead to {what}")
            }
        }
    }
}

fn listed(versions: &Versions<'_>) -> String {
    let text =
        |(name, versions): (&&str, &BTreeSet<&Version>)| format!("{name} {}", spanned(versions));
    joined(&versions.iter().map(text).collect::<Vec<_>>(), "and")
}

/// The channels that count, or why there are none, as the rest of a sentence.
fn places_of(
    index: &Index<'_>,
    namespace: &str,
    package_ids: &[usize],
    channel: Option<&String>,
) -> Result<Vec<(usize, usize)>, String> {
    let names = channel_names(index, package_ids);
    if let Some(channel) = channel
        && !names.contains(channel.as_str())
    {
        return Err(format!("it has no channel `{channel}`; available: {}", quoted(&names)));
    }
    let places = places(index, namespace, package_ids, channel.map(String::as_str));
    if places.is_empty() {
        let packages = package_ids.iter().map(|at| &index.packages[*at]);
        return Err(match packages.filter_map(CatalogPackage::default_channel).next() {
            _ if names.is_empty() => "it has no channels".to_owned(),
            Some(name) => {
                let names = quoted(&names);
                format!("its default channel `{name}` does not exist; specify one of {names}")
            }
            None => format!("it has no default channel; specify one of {}", quoted(&names)),
        });
    }
    match broken(index, &places) {
        Some(text) => Err(text),
        None => Ok(places),
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
    match entries(index, places).map(|bundle| &bundle.version).collect::<BTreeSet<_>>() {
        versions if versions.is_empty() => "none".to_owned(),
        versions => spanned(&versions),
    }
}

/// The bundles in the order of channels.
fn entries<'i, 'p>(
    index: &'i Index<'p>,
    places: &'i [(usize, usize)],
) -> impl Iterator<Item = &'p Bundle> + 'i {
    places.iter().flat_map(|(package_id, channel)| {
        let catalog_package = &index.packages[*package_id];
        let entries = catalog_package.order(*channel).entries.iter();
        entries.filter_map(|at| {
            let entry = &catalog_package.package.channels[*channel].entries[*at];
            catalog_package.bundle(&entry.name)
        })
    })
}
