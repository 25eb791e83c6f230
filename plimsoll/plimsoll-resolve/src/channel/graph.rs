//! The update graph of a channel, with indexed names and ranges that are read once. A question costs what it
//! finds, not a search through all entries.

use std::collections::{BTreeMap, BTreeSet};

use semver::Version;

use crate::package::Channel;
use crate::range::blang;

/// Who can be updated to what in a channel. Entries are meant by their indexes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ChannelGraph {
    /// The entries of a name.
    named: BTreeMap<String, Vec<usize>>,
    /// The entries that replace or skip a name.
    followers: BTreeMap<String, Vec<usize>>,
    /// The different `skipRange`s that can be read, each with the entries that have it. One that cannot be read
    /// leads from nowhere.
    ranges: Vec<(blang::Range, Vec<usize>)>,
    /// The place of an entry's range.
    range_of: BTreeMap<usize, usize>,
    /// The entries of which the version is known, in order of precedence.
    versions: Vec<(Version, usize)>,
    /// The place of an entry among these.
    place_of: BTreeMap<usize, usize>,
}

impl ChannelGraph {
    /// Indexes a channel. `version` knows the versions of entries.
    pub(crate) fn new<'p>(
        channel: &Channel,
        version: &dyn Fn(&str) -> Option<&'p Version>,
    ) -> Self {
        let mut graph = Self::default();
        let mut texts: BTreeMap<&str, Option<usize>> = BTreeMap::new();
        for (at, entry) in channel.entries.iter().enumerate() {
            graph.named.entry(entry.name.clone()).or_default().push(at);
            for name in entry.replaces.iter().chain(&entry.skips) {
                graph.followers.entry(name.clone()).or_default().push(at);
            }
            graph.versions.extend(version(&entry.name).map(|version| (version.clone(), at)));
            let Some(text) = entry.skip_range.as_deref() else { continue };
            let place = *texts.entry(text).or_insert_with(|| {
                let range = blang::Range::parse(text).ok()?;
                graph.ranges.push((range, Vec::new()));
                Some(graph.ranges.len() - 1)
            });
            if let Some(place) = place {
                graph.ranges[place].1.push(at);
                graph.range_of.insert(at, place);
            }
        }
        graph.versions.sort_by(|(one, at), (other, other_at)| {
            one.cmp_precedence(other).then(at.cmp(other_at))
        });
        graph.place_of =
            graph.versions.iter().enumerate().map(|(place, (_, at))| (*at, place)).collect();
        graph
    }

    /// Returns the entries of a name.
    pub(crate) fn named(&self, name: &str) -> &[usize] {
        self.named.get(name).map_or(&[], Vec::as_slice)
    }

    /// Returns the entries that are a step onwards from what is installed: by name for `replaces` and `skips`, by
    /// version for `skipRange`.
    pub(crate) fn updates(&self, name: &str, version: &Version) -> BTreeSet<usize> {
        let mut found: BTreeSet<usize> =
            self.followers.get(name).into_iter().flatten().copied().collect();
        for (range, entries) in &self.ranges {
            if range.matches(version) {
                found.extend(entries);
            }
        }
        found
    }

    /// Returns the entries from which steps onwards lead to an entry that is a goal; the goals themselves are not
    /// among them, unless they lead to others.
    pub(crate) fn leading_to(
        &self,
        channel: &Channel,
        goal: &dyn Fn(&Version) -> bool,
    ) -> BTreeSet<usize> {
        let goals = self.versions.iter().filter(|(version, _)| goal(version));
        let mut targets: Vec<usize> = goals.map(|(_, at)| *at).collect();
        let mut leading = BTreeSet::new();
        let mut left: BTreeSet<usize> = (0..self.versions.len()).collect();
        let mut passed = BTreeSet::new();
        while let Some(target) = targets.pop() {
            let entry = &channel.entries[target];
            let names = entry.replaces.iter().chain(&entry.skips);
            let named = names.flat_map(|name| self.named(name));
            let mut from: Vec<usize> =
                named.filter_map(|at| self.place_of.get(at)).copied().collect();
            // What a range leads from is found once, however many entries have the range.
            if let Some(place) = self.range_of.get(&target).filter(|it| passed.insert(**it)) {
                let (range, _) = &self.ranges[*place];
                for span in range.spans(&self.versions, |(version, _)| version) {
                    let there = left.range(span).copied();
                    from.extend(there.filter(|it| range.matches(&self.versions[*it].0)));
                }
            }
            for place in from {
                let at = self.versions[place].1;
                left.remove(&place);
                if leading.insert(at) {
                    targets.push(at);
                }
            }
        }
        leading
    }
}
