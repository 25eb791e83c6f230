//! Graphs as pictures: for Graphviz, for Mermaid, and as SVG that needs neither.

mod layout;
mod svg;

use std::fmt::Write as _;

use clap::ValueEnum;

/// How a graph is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
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
    /// Its nodes.
    pub nodes: Vec<Node>,
    /// Its edges.
    pub edges: Vec<Edge>,
}

/// A node of a graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// What stands in it, line by line.
    pub lines: Vec<String>,
    /// Whether it stands out.
    pub tone: Tone,
}

/// How much a node stands out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Tone {
    /// Like most.
    #[default]
    Plain,
    /// What it is about.
    Strong,
    /// Of no use any more.
    Faint,
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

impl Graph {
    /// Draws the graph.
    pub fn draw(&self, picture: Picture) -> String {
        match picture {
            Picture::Dot => self.dot(),
            Picture::Mermaid => self.mermaid(),
            Picture::Svg => svg::draw(self),
        }
    }

    fn dot(&self) -> String {
        let mut text = "digraph {\n  node [shape=box, fontname=\"sans-serif\"];\n".to_owned();
        for (index, node) in self.nodes.iter().enumerate() {
            let label = node.lines.iter().map(|it| quoted(it)).collect::<Vec<_>>().join("\\n");
            let style = match node.tone {
                Tone::Plain => "",
                Tone::Strong => ", style=bold",
                Tone::Faint => ", style=dashed",
            };
            line(&mut text, format_args!("  n{index} [label=\"{label}\"{style}];"));
        }
        for Edge { from, to, label, is_dashed } in &self.edges {
            let style = if *is_dashed { "dashed" } else { "solid" };
            let label = quoted(label);
            line(&mut text, format_args!("  n{from} -> n{to} [label=\"{label}\", style={style}];"));
        }
        text.push_str("}\n");
        text
    }

    fn mermaid(&self) -> String {
        let mut text = "flowchart TD\n".to_owned();
        for (index, node) in self.nodes.iter().enumerate() {
            let label = node.lines.iter().map(|it| entities(it)).collect::<Vec<_>>().join("<br/>");
            line(&mut text, format_args!("  n{index}[\"{label}\"]"));
            if node.tone != Tone::Plain {
                let class = if node.tone == Tone::Strong { "strong" } else { "faint" };
                line(&mut text, format_args!("  class n{index} {class}"));
            }
        }
        for Edge { from, to, label, is_dashed } in &self.edges {
            let arrow = if *is_dashed { "-.->" } else { "-->" };
            let label =
                if label.is_empty() { String::new() } else { format!("|\"{}\"|", entities(label)) };
            line(&mut text, format_args!("  n{from} {arrow}{label} n{to}"));
        }
        text.push_str("  classDef strong stroke-width:3px\n");
        text.push_str("  classDef faint stroke-dasharray:4\n");
        text
    }
}

fn line(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    writeln!(text, "{arguments}").expect("writing to a string does not fail");
}

fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', " ")
}

/// A text in which nothing is markup.
fn entities(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            character if character.is_control() => escaped.push(' '),
            character => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests;
