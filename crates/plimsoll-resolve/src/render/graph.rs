//! Solutions and explanations as graphs: who needs whom, for whatever draws them.

use std::collections::{BTreeMap, BTreeSet};

use crate::explain::{Explanation, SentenceKind};
use crate::solution::{Because, Solution};

/// A graph from what was asked to what is installed, or to what is in the way.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Graph {
    /// In the order in which they are to be drawn.
    pub vertices: Vec<Vertex>,
    /// Between the vertices, by their places.
    pub edges: Vec<Edge>,
}

/// Something in a graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vertex {
    /// Its lines.
    pub label: String,
    /// It is what somebody asked for, not a bundle.
    pub request: bool,
    /// It is in the way of a solution.
    pub problem: bool,
}

/// A line of a graph.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edge {
    /// Where it begins.
    pub from: usize,
    /// Where it ends.
    pub to: usize,
    /// What it says.
    pub label: String,
}

impl Graph {
    /// Who asked for what, and what needs what.
    pub fn of_solution(solution: &Solution) -> Self {
        let mut graph = Self::default();
        let mut places = BTreeMap::new();
        let items = solution.install.iter().map(|item| {
            let verb = if item.updates.is_some() { "update" } else { "install" };
            (&item.bundle, &item.because, format!("{verb} {} {}", item.package, item.version))
        });
        let stays =
            solution.stays.iter().map(|stay| (&stay.bundle, &stay.because, stay.bundle.clone()));
        let all: Vec<_> = items.chain(stays).collect();
        for (bundle, _, label) in &all {
            places.insert((*bundle).clone(), graph.vertex(label, false, false));
        }
        for (bundle, because, _) in &all {
            let to = places[*bundle];
            for reason in *because {
                match reason {
                    Because::Requested { request } => {
                        let from = graph.vertex(request, true, false);
                        graph.edge(from, to, "");
                    }
                    Because::Required { by, requirement } => {
                        let from = match places.get(by) {
                            Some(from) => *from,
                            None => graph.vertex(by, false, false),
                        };
                        graph.edge(from, to, requirement);
                    }
                    Because::Follows { channel } => {
                        let from = graph.vertex(&format!("channel {channel}"), true, false);
                        graph.edge(from, to, "");
                    }
                }
            }
        }
        graph
    }

    /// From what was asked along what is needed to what is in the way.
    pub fn of_explanation(explanation: &Explanation) -> Self {
        let mut graph = Self::default();
        let mut offered: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
        for sentence in &explanation.conflict {
            let request = matches!(
                sentence.kind,
                SentenceKind::Request | SentenceKind::Installed | SentenceKind::Chosen
            );
            let dead_end =
                sentence.kind == SentenceKind::Requirement && sentence.candidates.is_empty();
            let problem =
                dead_end || matches!(sentence.kind, SentenceKind::Unfit | SentenceKind::Exclusion);
            let at = graph.vertex(&sentence.text, request, problem);
            let before: BTreeSet<usize> = sentence
                .bundles
                .iter()
                .filter_map(|name| offered.get(name.as_str()))
                .flatten()
                .copied()
                .collect();
            for from in before.into_iter().filter(|from| *from != at) {
                graph.edge(from, at, "");
            }
            for name in &sentence.candidates {
                offered.entry(name).or_default().insert(at);
            }
        }
        graph
    }

    /// The graph in the language of Mermaid.
    pub fn mermaid(&self) -> String {
        let mut text = String::from("flowchart TD\n");
        for (at, Vertex { label, request, problem }) in self.vertices.iter().enumerate() {
            let label = escaped(label);
            let (open, close) = if *request { ("([", "])") } else { ("[", "]") };
            let class = if *problem { ":::problem" } else { "" };
            text.push_str(&format!("  n{at}{open}\"{label}\"{close}{class}\n"));
        }
        for Edge { from, to, label } in &self.edges {
            match label.as_str() {
                "" => text.push_str(&format!("  n{from} --> n{to}\n")),
                label => text.push_str(&format!("  n{from} -->|\"{}\"| n{to}\n", escaped(label))),
            }
        }
        if self.vertices.iter().any(|vertex| vertex.problem) {
            text.push_str("  classDef problem stroke:#c00,stroke-width:2px\n");
        }
        text
    }

    fn vertex(&mut self, label: &str, request: bool, problem: bool) -> usize {
        let vertex = Vertex { label: label.to_owned(), request, problem };
        if let Some(at) = self.vertices.iter().position(|known| *known == vertex) {
            return at;
        }
        self.vertices.push(vertex);
        self.vertices.len() - 1
    }

    fn edge(&mut self, from: usize, to: usize, label: &str) {
        let edge = Edge { from, to, label: label.to_owned() };
        if !self.edges.contains(&edge) {
            self.edges.push(edge);
        }
    }
}

/// As Mermaid wants it between quotes.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '"' => escaped.push_str("#quot;"),
            '#' => escaped.push_str("#35;"),
            '<' => escaped.push_str("#lt;"),
            '>' => escaped.push_str("#gt;"),
            '`' => escaped.push('\''),
            '\n' => escaped.push(' '),
            other => escaped.push(other),
        }
    }
    escaped
}
