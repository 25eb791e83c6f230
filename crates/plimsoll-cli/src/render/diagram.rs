//! Small layered graphs as SVG, DOT or Mermaid: run levels and their lanes, packages and what they
//! need.
//!
//! What is drawn is a value; the three forms of it say the same. The SVG needs nothing but a
//! browser, so it is laid out here: ranks from top to bottom, the nodes of a rank in rows.

mod dot;
mod mermaid;
mod svg;

/// What a node is drawn as.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tone {
    /// Nothing particular.
    #[default]
    Plain,
    /// Nothing happens there.
    Quiet,
    /// Something changes.
    Active,
    /// Something stands in the way.
    Bad,
}

/// A box.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Node {
    /// What stands in it, line by line.
    pub lines: Vec<String>,
    /// How it looks.
    pub tone: Tone,
}

/// Nodes that belong side by side.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rank {
    /// What stands beside them.
    pub label: String,
    /// The nodes.
    pub nodes: Vec<Node>,
}

/// A graph whose nodes lie in ranks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Diagram {
    /// What stands above it.
    pub title: String,
    /// The ranks, from the top.
    pub ranks: Vec<Rank>,
    /// Edges between nodes, each by rank and number in the rank. Without any, each rank follows the
    /// one before as a whole.
    pub edges: Vec<((usize, usize), (usize, usize))>,
}

impl Diagram {
    /// As a language that Graphviz reads.
    pub fn dot(&self) -> String {
        dot::render(self)
    }

    /// As a language that Markdown viewers read.
    pub fn mermaid(&self) -> String {
        mermaid::render(self)
    }

    /// As a picture.
    pub fn svg(&self) -> String {
        svg::render(self)
    }
}

#[cfg(test)]
mod tests;
