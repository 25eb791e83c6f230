//! Graphs in the language of Mermaid.

use super::{Edge, Graph, Node, Tone, entities, line};

/// The styles, by the names that nodes refer to.
const CLASSES: [(Tone, &str, &str); 4] = [
    (Tone::Strong, "strong", "stroke-width:3px"),
    (Tone::Faint, "faint", "stroke-dasharray:4"),
    (Tone::Active, "active", "fill:#cfe6fa,stroke:#3b7fb5,color:#12344d"),
    (Tone::Bad, "bad", "fill:#fbdcd8,stroke:#b5443b,color:#4d1612"),
];

pub(super) fn draw(graph: &Graph) -> String {
    let mut text = String::new();
    if !graph.title.is_empty() {
        line(&mut text, format_args!("---\ntitle: \"{}\"\n---", entities(&graph.title)));
    }
    text.push_str("flowchart TD\n");
    if graph.ranks.is_empty() {
        graph.nodes.iter().enumerate().for_each(|(index, node)| self::node(&mut text, index, node));
    }
    for (number, rank) in graph.ranks.iter().enumerate() {
        line(&mut text, format_args!("  subgraph r{number} [\"{}\"]", entities(&rank.label)));
        rank.nodes.iter().for_each(|&index| node(&mut text, index, &graph.nodes[index]));
        text.push_str("  end\n");
    }
    for Edge { from, to, label, is_dashed } in &graph.edges {
        let arrow = if *is_dashed { "-.->" } else { "-->" };
        let label =
            if label.is_empty() { String::new() } else { format!("|\"{}\"|", entities(label)) };
        line(&mut text, format_args!("  n{from} {arrow}{label} n{to}"));
    }
    for after in 1..graph.ranks.len() {
        line(&mut text, format_args!("  r{} --> r{after}", after - 1));
    }
    for (tone, name, style) in CLASSES {
        if graph.nodes.iter().any(|node| node.tone == tone) {
            line(&mut text, format_args!("  classDef {name} {style}"));
        }
    }
    text
}

fn node(text: &mut String, index: usize, node: &Node) {
    let label = node.lines.iter().map(|it| entities(it)).collect::<Vec<_>>().join("<br/>");
    let class = CLASSES.iter().find(|(tone, ..)| *tone == node.tone);
    let class = class.map_or(String::new(), |(_, name, _)| format!(":::{name}"));
    line(text, format_args!("  n{index}[\"{label}\"]{class}"));
}
