//! A package's update graph: from which bundle one may update to which.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_content::catalog::{IndexedEntry, IndexedPackage};

use crate::render::graph::{Edge, Graph, Node, Tone};

/// The graph of the channels of a package. Edges point from a bundle to what it can update from;
/// those by range are written into the node.
pub(super) fn of(package: &IndexedPackage<'_>) -> Graph {
    let mut graph = Graph::default();
    let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
    let heads: BTreeSet<&str> = package
        .channels
        .iter()
        .filter_map(|channel| channel.head().map(|entry| &*entry.name))
        .collect();
    let mut entries: BTreeMap<&str, Vec<(&str, &IndexedEntry<'_>)>> = BTreeMap::new();
    for channel in &package.channels {
        for entry in &channel.entries {
            entries.entry(&entry.name).or_default().push((&channel.name, entry));
        }
    }
    // The highest version first, then what is only named.
    let known = package.bundles.iter().map(|bundle| &*bundle.name);
    let order: Vec<&str> = known
        .filter(|name| entries.contains_key(name))
        .chain(entries.keys().copied().filter(|name| package.bundle(name).is_none()))
        .collect();
    for name in order {
        numbers.insert(name, graph.nodes.len());
        let is_head = heads.contains(name);
        graph.nodes.push(node(package, name, &entries[name], is_head));
    }
    let mut seen = BTreeSet::new();
    for (name, places) in &entries {
        for (_, entry) in places {
            let replaced = entry.replaces.iter().map(|it| (&**it, false));
            for (other, is_dashed) in replaced.chain(entry.skips.iter().map(|it| (&**it, true))) {
                if !seen.insert((*name, other)) {
                    continue;
                }
                let from = numbers[name];
                let to = *numbers.entry(other).or_insert_with(|| {
                    let lines = vec![other.to_owned(), "not in the catalog".to_owned()];
                    graph.nodes.push(Node { lines, tone: Tone::Faint });
                    graph.nodes.len() - 1
                });
                let label = if is_dashed { "skips" } else { "" }.to_owned();
                graph.edges.push(Edge { from, to, label, is_dashed });
            }
        }
    }
    graph
}

fn node(
    package: &IndexedPackage<'_>,
    name: &str,
    places: &[(&str, &IndexedEntry<'_>)],
    is_head: bool,
) -> Node {
    let bundle = package.bundle(name);
    let channels: Vec<&str> = places.iter().map(|(channel, _)| *channel).collect();
    let mut lines = vec![name.to_owned(), channels.join(", ")];
    let ranges: BTreeSet<&str> =
        places.iter().filter_map(|(_, entry)| entry.skip_range.as_deref()).collect();
    lines.extend(ranges.iter().map(|range| format!("from {range}")));
    let state = bundle.map_or(Some("not in the catalog"), |bundle| {
        if bundle.invalid.is_some() {
            Some("invalid")
        } else {
            bundle.deprecated.as_ref().map(|_| "deprecated")
        }
    });
    lines.extend(state.map(str::to_owned));
    let tone = match (state, is_head) {
        (Some(_), _) => Tone::Faint,
        (None, true) => Tone::Strong,
        (None, false) => Tone::Plain,
    };
    Node { lines, tone }
}
