//! The update graph of a channel: in which order its entries are preferred, and who can be
//! updated to what.

use std::collections::{BTreeMap, BTreeSet};

use semver::Version;

use crate::package::{Channel, ChannelEntry};
use crate::range::blang;

/// A channel's entries, from its head along `replaces`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ChannelOrder {
    /// Indexes of entries, the head first. Entries that another one skips are not among them, nor
    /// are those that the head does not lead to.
    pub(crate) entries: Vec<usize>,
    /// Why the entries have no order. Then there are none.
    pub(crate) broken: Option<String>,
}

/// Puts the entries of a channel in order, as upstream does: there must be one head.
pub(crate) fn order(channel: &Channel) -> ChannelOrder {
    let by_name: BTreeMap<&str, usize> =
        channel.entries.iter().enumerate().map(|(at, entry)| (entry.name.as_str(), at)).collect();
    let mut followed = BTreeSet::new();
    let mut skipped = BTreeSet::new();
    for entry in &channel.entries {
        followed.extend(entry.replaces.as_deref());
        skipped.extend(entry.skips.iter().map(String::as_str));
    }
    let is_head = |name: &str| !followed.contains(name) && !skipped.contains(name);
    let heads: Vec<&str> = by_name.keys().copied().filter(|name| is_head(name)).collect();
    let broken = |text: String| ChannelOrder { entries: Vec::new(), broken: Some(text) };
    let head = match heads.as_slice() {
        [] if channel.entries.is_empty() => return broken("it has no entries".to_owned()),
        [] => {
            return broken("it has no head: its entries replace each other".to_owned());
        }
        [head] => *head,
        [first, second, ..] => {
            let count = heads.len();
            return broken(format!("it has {count} heads, such as {first} and {second}"));
        }
    };
    let mut entries = Vec::new();
    let mut visited = BTreeSet::new();
    let mut next = by_name.get(head).copied();
    while let Some(at) = next {
        let ChannelEntry { name, replaces, .. } = &channel.entries[at];
        if !visited.insert(at) {
            return broken(format!("its entries replace each other in a cycle at {name}"));
        }
        if !skipped.contains(name.as_str()) {
            entries.push(at);
        }
        next = replaces.as_deref().and_then(|name| by_name.get(name)).copied();
    }
    ChannelOrder { entries, broken: None }
}

/// Returns whether an entry is a step onwards from what is installed: by name for `replaces` and
/// `skips`, by version for `skipRange`. A `skipRange` that cannot be read leads from nowhere.
pub(crate) fn updates(entry: &ChannelEntry, name: &str, version: &Version) -> bool {
    entry.replaces.as_deref() == Some(name)
        || entry.skips.iter().any(|skipped| skipped == name)
        || entry
            .skip_range
            .as_deref()
            .and_then(|text| blang::Range::parse(text).ok())
            .is_some_and(|range| range.matches(version))
}

/// Returns the versions that entries of a channel skip, each with the name of the entry that does. A bundle
/// that is skipped need not be in the catalog: then its name tells the version. `version` knows those of
/// bundles.
pub(crate) fn skipped<'c>(
    channel: &'c Channel,
    version: &dyn Fn(&str) -> Option<&'c Version>,
) -> Vec<(Version, &'c str)> {
    let mut skipped = Vec::new();
    for entry in &channel.entries {
        let versions = entry.skips.iter().filter_map(|name| {
            let named = || Version::parse(name.split_once(".v")?.1).ok();
            version(name).cloned().or_else(named)
        });
        skipped.extend(versions.map(|version| (version, entry.name.as_str())));
    }
    skipped
}

/// Longest channel in which ways of several steps are sought: every pair of entries is compared.
pub(crate) const WAYS_MAX: usize = 2_000;

/// The entries from which steps onwards lead to an entry that is a goal; the goals themselves are
/// not among them, unless they lead to others. `version` knows the versions of entries.
pub(crate) fn leading_to<'c>(
    channel: &'c Channel,
    version: &dyn Fn(&str) -> Option<&'c Version>,
    goal: &dyn Fn(&Version) -> bool,
) -> BTreeSet<&'c str> {
    let mut leading = BTreeSet::new();
    if channel.entries.len() > WAYS_MAX {
        return leading;
    }
    let is_goal = |entry: &&ChannelEntry| version(&entry.name).is_some_and(goal);
    let mut targets: Vec<&ChannelEntry> = channel.entries.iter().filter(is_goal).collect();
    while let Some(target) = targets.pop() {
        for entry in &channel.entries {
            let Some(from) = version(&entry.name) else { continue };
            if updates(target, &entry.name, from) && leading.insert(entry.name.as_str()) {
                targets.push(entry);
            }
        }
    }
    leading
}

#[cfg(test)]
mod tests;
