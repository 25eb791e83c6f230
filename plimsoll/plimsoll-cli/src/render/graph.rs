//! Graphs as pictures: for Graphviz, for Mermaid, and as SVG that needs neither.
//!
//! What is drawn is a value; the three forms of it say the same. Nodes lie where edges lead them, or
//! in ranks that follow each other, such as run levels and their components.

mod dot;
mod layout;
mod mermaid;
mod svg;

use plimsoll_resolve::printable::on_one_line;

/// How a graph is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Picture {
    /// The language of Graphviz
    Dot,
    /// The language of Mermaid, which many documents understand
    Mermaid,
    /// A picture for browsers
    Svg,
}

/// A graph; edges point from one node to what it comes after.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Graph {
    /// What stands above it; empty for nothing.
    pub title: String,
    /// Its nodes.
    pub nodes: Vec<Node>,
    /// Its edges.
    pub edges: Vec<Edge>,
    /// The ranks of its nodes, from the top; each follows the one before as a whole. Without any,
    /// nodes lie where the edges lead them.
    pub ranks: Vec<Rank>,
}

/// A node of a graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// What stands in it, line by line.
    pub lines: Vec<String>,
    /// Whether it stands out.
    pub tone: Tone,
}

/// How a node stands out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Tone {
    /// Like most.
    #[default]
    Plain,
    /// What it is about.
    Strong,
    /// Of no use any more, or nothing happens there.
    Faint,
    /// Something changes there.
    Active,
    /// Something stands in the way there.
    Bad,
}

/// An edge of a graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edge {
    /// Index of the node that it begins at.
    pub from: usize,
    /// Index of the node that it points to.
    pub to: usize,
    /// What is written beside it; may be empty.
    pub label: String,
    /// Whether its line is broken.
    pub is_dashed: bool,
}

/// Nodes that belong in parallel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rank {
    /// What stands beside them.
    pub label: String,
    /// Their indexes.
    pub nodes: Vec<usize>,
}

impl Graph {
    /// Draws the graph.
    pub fn draw(&self, picture: Picture) -> String {
        match picture {
            Picture::Dot => dot::draw(self),
            Picture::Mermaid => mermaid::draw(self),
            Picture::Svg => svg::draw(self),
        }
    }
}

fn line(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    use std::fmt::Write as _;
    writeln!(text, "{arguments}").expect("writing to a string does not fail");
}

/// A text in which nothing is markup, and nothing is hidden.
fn entities(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in on_one_line(text).chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            character => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests;
