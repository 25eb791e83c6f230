//! The order of a channel: its head, and what each entry replaces (RES-3).

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_resolve::range::blang::Range;
use semver::Version;

use super::model::{ChannelError, IndexedEntry};

/// The order of a channel's entries from its head along `replaces`; skipped entries are left out.
///
/// # Errors
/// Why there is no such order. The order of `entries` does not matter.
pub(super) fn order(entries: &[IndexedEntry<'_>]) -> Result<Vec<u32>, ChannelError> {
    let mut by_name: BTreeMap<&str, u32> = BTreeMap::new();
    for (index, entry) in (0..).zip(entries) {
        if by_name.insert(&entry.name, index).is_some() {
            return Err(ChannelError::Twice(entry.name.to_string()));
        }
    }
    if entries.is_empty() {
        return Err(ChannelError::Empty);
    }
    let skipped = skipped(entries);
    let head = head(entries, &skipped)?;
    let mut order = Vec::new();
    let mut seen = BTreeSet::new();
    let mut at = by_name.get(head).copied();
    while let Some(index) = at {
        let entry = &entries[index as usize];
        if !seen.insert(index) {
            return Err(cycle(entries, &by_name, index));
        }
        if !skipped.contains(&*entry.name) {
            order.push(index);
        }
        let next = entry.replaces.as_ref().filter(|name| !name.is_empty());
        at = next.and_then(|name| by_name.get(&**name).copied());
    }
    Ok(order)
}

/// The names that entries skip; an entry that skips itself does not count.
fn skipped<'e>(entries: &'e [IndexedEntry<'_>]) -> BTreeSet<&'e str> {
    entries
        .iter()
        .flat_map(|entry| entry.skips.iter().map(move |skip| (entry, skip)))
        .filter(|(entry, skip)| entry.name != **skip)
        .map(|(_, skip)| &**skip)
        .collect()
}

fn head<'e>(
    entries: &'e [IndexedEntry<'_>],
    skipped: &BTreeSet<&str>,
) -> Result<&'e str, ChannelError> {
    let replaced: BTreeSet<&str> =
        entries.iter().filter_map(|entry| entry.replaces.as_deref()).collect();
    let names = entries.iter().map(|entry| &*entry.name);
    let mut heads: Vec<&str> =
        names.filter(|name| !replaced.contains(name) && !skipped.contains(name)).collect();
    heads.sort_unstable();
    match heads.as_slice() {
        [head] => Ok(head),
        [] => Err(ChannelError::NoHead),
        heads => Err(ChannelError::Heads(heads.iter().map(|&head| head.to_owned()).collect())),
    }
}

/// The circle that an entry is part of.
fn cycle(entries: &[IndexedEntry<'_>], by_name: &BTreeMap<&str, u32>, from: u32) -> ChannelError {
    let mut names = Vec::new();
    let mut at = Some(from);
    while let Some(index) = at {
        let entry = &entries[index as usize];
        names.push(entry.name.to_string());
        let next = entry.replaces.as_deref().and_then(|name| by_name.get(name).copied());
        at = next.filter(|next| *next != from);
    }
    names.push(entries[from as usize].name.to_string());
    ChannelError::Cycle(names)
}

/// Names of entries that cannot be reached from the head and that nothing skips.
pub(super) fn stranded<'e>(entries: &'e [IndexedEntry<'_>], order: &[u32]) -> Vec<&'e str> {
    let skipped = skipped(entries);
    let reached: BTreeSet<u32> = order.iter().copied().collect();
    let all = (0..).zip(entries);
    all.filter(|(index, entry)| !reached.contains(index) && !skipped.contains(&*entry.name))
        .map(|(_, entry)| &*entry.name)
        .collect()
}

/// Most comparisons of a version with a `skipRange`: some seconds. Real channels need a few thousand.
const COMPARISONS_MAX: usize = 10_000_000;

/// Names of entries besides the head from which no update leads on: what is ordered replaces or skips none
/// of them, nor has it a `skipRange` with their versions, since a later entry skips the one that does. Those
/// that the head does not lead to are not among them. `version` knows the versions of entries.
pub(super) fn without_update<'e>(
    entries: &'e [IndexedEntry<'_>],
    order: &[u32],
    version: &dyn Fn(&IndexedEntry<'_>) -> Option<Version>,
) -> Vec<&'e str> {
    let ordered = || order.iter().map(|index| &entries[*index as usize]);
    let mut followed: BTreeSet<&str> = stranded(entries, order).into_iter().collect();
    followed.extend(ordered().take(1).map(|head| &*head.name));
    let mut ranges: BTreeSet<&str> = BTreeSet::new();
    for entry in ordered() {
        followed.extend(entry.replaces.as_deref());
        followed
            .extend(entry.skips.iter().map(|skip| &**skip).filter(|skip| *skip != &*entry.name));
        ranges.extend(entry.skip_range.as_deref());
    }
    let mut left: Vec<&IndexedEntry<'_>> =
        entries.iter().filter(|entry| !followed.contains(&*entry.name)).collect();
    if left.len().saturating_mul(ranges.len()) > COMPARISONS_MAX {
        return Vec::new();
    }
    let ranges: Vec<Range> = ranges.into_iter().filter_map(|it| Range::parse(it).ok()).collect();
    left.retain(|entry| {
        // Of an entry without a readable bundle nothing is known, and it is reported itself.
        version(entry).is_some_and(|version| !ranges.iter().any(|range| range.matches(&version)))
    });
    left.into_iter().map(|entry| &*entry.name).collect()
}

#[cfg(test)]
mod tests {
    //! Small channels.

    use super::super::record::Text;
    use super::*;

    /// Entries written `name<replaces/skip/skip~skipRange`.
    fn entries(text: &str) -> Vec<IndexedEntry<'_>> {
        text.split(' ').map(parse).collect()
    }

    fn parse(word: &str) -> IndexedEntry<'_> {
        let (word, range) = word.split_once('~').unwrap_or((word, ""));
        let mut parts = word.split('/');
        let first = parts.next().unwrap_or_default();
        let (name, replaces) = first.split_once('<').unwrap_or((first, ""));
        IndexedEntry {
            name: name.into(),
            bundle: None,
            replaces: (!replaces.is_empty()).then(|| Text::from(replaces)),
            skips: parts.map(Text::from).collect(),
            skip_range: (!range.is_empty()).then(|| Text::from(range)),
        }
    }

    fn check(text: &str, expected: &str) {
        let entries = entries(text);
        let found = match order(&entries) {
            Ok(order) => {
                let names: Vec<&str> =
                    order.iter().map(|at| &*entries[*at as usize].name).collect();
                let mut described = names.join(" ");
                let stranded = stranded(&entries, &order);
                if !stranded.is_empty() {
                    described.push_str(&format!(", not {}", stranded.join(" ")));
                }
                described
            }
            Err(error) => error.to_string(),
        };
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn a_channel_is_ordered_from_its_head_along_what_is_replaced() {
        check("a", "a");
        check("a b<a c<b", "c b a");
        check("c<b a b<a", "c b a");
        check("b<gone", "b");
        check("a b<a c<a/b", "c a");
        check("a b<a/b", "b a");
        check("a b c<b/x/a", "c b");
        check("a b<a d<c e<d/b c", "e d c, not a");
    }

    #[test]
    fn entries_that_nothing_updates_are_found() {
        // The version of an entry is the place of its letter in the alphabet.
        let version = |entry: &IndexedEntry<'_>| {
            let letter = entry.name.bytes().next()?;
            Some(Version::new(u64::from(letter.checked_sub(b'a')?), 0, 0))
        };
        let check = |text: &str, expected: &[&str]| {
            let entries = entries(text);
            let order = order(&entries).expect("it has a head");
            assert_eq!(without_update(&entries, &order, &version), expected, "{text}");
        };
        check("a b<a c<b", &[]);
        check("a b<a c<b/b", &["a"]);
        check("a b<a c<b/b~<2.0.0", &[]);
        check("a b<a c<b/b~>=1.0.0", &["a"]);
        check("a b<a c<b/b/a", &[]);
        // What a skipped entry skips has no update either; of b there is one.
        check("a b c<b/a d<b/c", &["a"]);
        // The head does not lead to a: that is another defect.
        check("a b<a d<c e<d/b c", &[]);
    }

    #[test]
    fn a_channel_without_one_head_has_no_order() {
        check("a b", "it has several heads: a, b");
        check("a<b b<a", "it has no head: every entry is replaced or skipped by another");
        check("c<b b<a a<b", "its entries replace each other in a circle: b, a, b");
        check("a a", "the entry a occurs twice");
    }
}
