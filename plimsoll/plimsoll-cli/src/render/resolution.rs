//! Solutions and explanations as graphs: from the requests to what is installed, or to the blockers.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_resolve::{Explanation, ExplanationStepKind, InstallReason, Solution};

use super::graph::{Edge, Graph, Node, Tone};

/// Widest line of a node, in characters.
const LINE_MAX: usize = 48;

/// The requests with what is installed for them, and what requires what.
pub(crate) fn of_solution(solution: &Solution) -> Graph {
    let mut graph = Graph::default();
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    let items = solution.install.iter().map(|item| {
        let verb = if item.updates.is_some() { "update" } else { "install" };
        let text = format!("{verb} {} {}", item.package, item.version);
        (item.bundle.as_str(), &item.because, text)
    });
    let stays = solution
        .stays
        .iter()
        .map(|stay| (stay.bundle.as_str(), &stay.because, format!("{} stays", stay.bundle)));
    let all: Vec<_> = items.chain(stays).collect();
    for (bundle, _, text) in &all {
        places.insert(bundle, vertex(&mut graph, text, Tone::Strong));
    }
    for (bundle, because, _) in &all {
        for reason in *because {
            let (from, label) = match reason {
                InstallReason::Requested { request } => {
                    (vertex(&mut graph, &plain(request), Tone::Plain), String::new())
                }
                InstallReason::Required { by, requirement } => {
                    let known = places.get(by.as_str()).copied();
                    let from = known.unwrap_or_else(|| vertex(&mut graph, by, Tone::Plain));
                    (from, plain(requirement))
                }
                InstallReason::Follows { channel } => {
                    let text = format!("channel {channel}");
                    (vertex(&mut graph, &text, Tone::Plain), String::new())
                }
            };
            edge(&mut graph, from, places[bundle], label);
        }
    }
    graph
}

/// The chain of reasons; the blockers stand out.
pub(crate) fn of_explanation(explanation: &Explanation) -> Graph {
    let mut graph = Graph::default();
    let mut offered: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
    for sentence in explanation.conflicts.iter().flat_map(|conflict| &conflict.steps) {
        let blocks = match sentence.kind {
            ExplanationStepKind::Ineligible | ExplanationStepKind::Exclusion => true,
            ExplanationStepKind::Request | ExplanationStepKind::Requirement => {
                sentence.candidates.is_empty()
            }
            ExplanationStepKind::Installed | ExplanationStepKind::Chosen => false,
            ExplanationStepKind::Conclusion => continue,
        };
        let tone = if blocks { Tone::Strong } else { Tone::Plain };
        let at = vertex(&mut graph, &plain(&sentence.text), tone);
        let named = sentence.bundles.iter().filter_map(|name| offered.get(name.as_str()));
        let before: BTreeSet<usize> = named.flatten().copied().collect();
        for from in before {
            if from != at {
                edge(&mut graph, from, at, String::new());
            }
        }
        for name in &sentence.candidates {
            offered.entry(name).or_default().insert(at);
        }
    }
    graph
}

fn vertex(graph: &mut Graph, text: &str, tone: Tone) -> usize {
    let node = Node { lines: lines(text), tone };
    if let Some(at) = graph.nodes.iter().position(|known| *known == node) {
        return at;
    }
    graph.nodes.push(node);
    graph.nodes.len() - 1
}

fn edge(graph: &mut Graph, from: usize, to: usize, label: String) {
    let edge = Edge { from, to, label, is_dashed: false };
    if !graph.edges.contains(&edge) {
        graph.edges.push(edge);
    }
}

fn plain(text: &str) -> String {
    text.replace('`', "")
}

fn lines(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.last_mut().expect("there is always a line");
        if !last.is_empty() && last.chars().count() + 1 + word.chars().count() > LINE_MAX {
            lines.push(word.to_owned());
        } else {
            if !last.is_empty() {
                last.push(' ');
            }
            last.push_str(word);
        }
    }
    lines
}
