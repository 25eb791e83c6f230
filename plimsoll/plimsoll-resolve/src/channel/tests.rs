//! Orders of channels, each written as one line.

use super::*;

/// Reads `a<-b` as "a replaces b", `a!b` as "a skips b".
fn channel(text: &str) -> Channel {
    let entries = text.split_whitespace().map(|word| {
        let (word, skips) = match word.split_once('!') {
            Some((word, skips)) => (word, skips.split('!').map(str::to_owned).collect()),
            None => (word, Vec::new()),
        };
        let (name, replaces) = match word.split_once("<-") {
            Some((name, replaces)) => (name, Some(replaces.to_owned())),
            None => (word, None),
        };
        ChannelEntry { name: name.to_owned(), replaces, skips, skip_range: None }
    });
    Channel { name: "stable".to_owned(), entries: entries.collect(), ..Channel::default() }
}

fn check(text: &str, expected: &str) {
    let channel = channel(text);
    let order = order(&channel);
    let names: Vec<&str> =
        order.entries.iter().map(|at| channel.entries[*at].name.as_str()).collect();
    assert_eq!(order.broken.unwrap_or_else(|| names.join(" ")), expected, "{text}");
}

#[test]
fn entries_are_in_order_from_the_one_head() {
    check("a", "a");
    check("a b<-a c<-b", "c b a");
    check("a b<-a c<-b!a", "c b");
    check("a b!a", "b");
    check("b<-gone", "b");
    check("a b<-a stray!a c<-b!stray", "c b");
}

#[test]
fn a_channel_without_one_head_is_broken() {
    check("", "it has no entries");
    check("a<-b b<-a", "it has no head: its entries replace each other");
    check("a<-b b<-a c<-b", "its entries replace each other in a cycle at b");
    check("a b", "it has 2 heads, such as a and b");
}

/// Entries 1.0.0, 1.0.1, …, each of which replaces the one before.
fn chain(length: usize) -> Channel {
    let name = |at: usize| format!("foo.v1.0.{at}");
    let entry = |at: usize| ChannelEntry {
        name: name(at),
        replaces: at.checked_sub(1).map(name),
        ..ChannelEntry::default()
    };
    Channel { entries: (0..length).map(entry).collect(), ..Channel::default() }
}

fn versions(channel: &Channel) -> BTreeMap<&str, Version> {
    let version = |name: &str| Version::parse(name.split_once(".v").unwrap().1).unwrap();
    channel.entries.iter().map(|it| (it.name.as_str(), version(&it.name))).collect()
}

fn graph(channel: &Channel, versions: &BTreeMap<&str, Version>) -> ChannelGraph {
    ChannelGraph::new(channel, &|name| versions.get(name))
}

#[test]
fn a_way_through_a_channel_of_any_length_is_found() {
    let mut channel = chain(50_000);
    let of = |channel: &Channel| {
        let versions = versions(channel);
        let graph = graph(channel, &versions);
        graph.leading_to(channel, &|version| version.patch == 49_999)
    };
    assert_eq!(of(&channel), (0..49_999).collect());
    // A range on every entry does not make it longer.
    for (at, entry) in channel.entries.iter_mut().enumerate() {
        entry.replaces = None;
        entry.skip_range = Some(format!(">=1.0.0 <1.0.{at}"));
    }
    assert_eq!(of(&channel), (0..49_999).collect());
}

#[test]
fn steps_are_by_name_and_by_version() {
    let ranges = [
        ">=1.0.0 <1.0.4",
        "<1.0.2 || >1.0.5 <=1.0.6",
        "!=1.0.3",
        "=1.0.1",
        "1.0.x",
        ">1.0.6",
        "nonsense",
        "<0.1.0",
    ];
    let length = 8;
    for seed in 0..ranges.len() * length {
        let mut channel = chain(length);
        for (at, entry) in channel.entries.iter_mut().enumerate() {
            let number = (seed + 1) * (at + 3);
            entry.replaces = entry.replaces.take().filter(|_| number % 3 != 0);
            entry.skips = vec![format!("foo.v1.0.{}", number % length)];
            entry.skips.retain(|_| number % 5 == 0);
            entry.skip_range = (number % 4 == 1).then(|| ranges[number % ranges.len()].to_owned());
        }
        let versions = versions(&channel);
        let graph = graph(&channel, &versions);
        let is_step = |from: &ChannelEntry, to: &ChannelEntry| {
            let range = to.skip_range.as_deref().map(crate::range::blang::Range::parse);
            to.replaces.as_ref() == Some(&from.name)
                || to.skips.contains(&from.name)
                || range
                    .is_some_and(|it| it.is_ok_and(|it| it.matches(&versions[from.name.as_str()])))
        };
        let entries = || channel.entries.iter().enumerate();
        for (_, from) in entries() {
            let next: BTreeSet<usize> =
                entries().filter(|(_, to)| is_step(from, to)).map(|(at, _)| at).collect();
            let version = &versions[from.name.as_str()];
            assert_eq!(graph.updates(&from.name, version), next, "{channel:?}");
        }
        let mut leading = BTreeSet::new();
        for _ in 0..length {
            for (at, from) in entries() {
                let leads = |(other, to): (usize, &ChannelEntry)| {
                    is_step(from, to) && (other == length - 1 || leading.contains(&other))
                };
                if entries().any(leads) {
                    leading.insert(at);
                }
            }
        }
        let found = graph.leading_to(&channel, &|version| version.patch == length as u64 - 1);
        assert_eq!(found, leading, "{channel:?}");
    }
}
