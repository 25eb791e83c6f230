//! The update graph of a channel: in which order its entries are preferred, and who can be
//! updated to what.

mod graph;

use std::collections::{BTreeMap, BTreeSet};

use semver::Version;

pub(crate) use self::graph::ChannelGraph;
use crate::package::{Channel, ChannelEntry};

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

/// Returns the versions that entries of a channel skip, each with the index of the entry that does. A bundle
/// that is skipped need not be in the catalog: then its name tells the version. `version` knows those of
/// bundles.
pub(crate) fn skipped<'p>(
    channel: &Channel,
    version: &dyn Fn(&str) -> Option<&'p Version>,
) -> Vec<(Version, usize)> {
    let mut skipped = Vec::new();
    for (at, entry) in channel.entries.iter().enumerate() {
        let versions = entry.skips.iter().filter_map(|name| {
            let named = || Version::parse(name.split_once(".v")?.1).ok();
            version(name).cloned().or_else(named)
        });
        skipped.extend(versions.map(|version| (version, at)));
    }
    skipped
}

#[cfg(test)]
mod tests;
