//! Diagrams in Graphviz' language.

use std::fmt::Write as _;

use super::{Diagram, Node, Tone};

pub(super) fn render(diagram: &Diagram) -> String {
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = writeln!(out, "digraph {{");
    let _ = writeln!(out, "  label={};", quoted(&diagram.title));
    out.push_str("  labelloc=t; compound=true; newrank=true;\n");
    out.push_str("  node [shape=box, style=\"rounded,filled\", fontname=\"sans-serif\"];\n");
    for (number, rank) in diagram.ranks.iter().enumerate() {
        let _ = writeln!(out, "  subgraph cluster_{number} {{");
        let _ = writeln!(out, "    label={}; labeljust=l; color=gray80;", quoted(&rank.label));
        for (index, node) in rank.nodes.iter().enumerate() {
            let _ = writeln!(out, "    n{number}_{index} [{}];", attributes(node));
        }
        out.push_str("  }\n");
    }
    for ((from, from_node), (to, to_node)) in &diagram.edges {
        let _ = writeln!(out, "  n{from}_{from_node} -> n{to}_{to_node};");
    }
    if diagram.edges.is_empty() {
        for after in 1..diagram.ranks.len() {
            let before = after - 1;
            let _ = writeln!(
                out,
                "  n{before}_0 -> n{after}_0 [ltail=cluster_{before}, lhead=cluster_{after}];"
            );
        }
    }
    out.push_str("}\n");
    out
}

fn attributes(node: &Node) -> String {
    let colour = match node.tone {
        Tone::Plain => "white",
        Tone::Quiet => "gray95",
        Tone::Active => "lightskyblue1",
        Tone::Bad => "mistyrose",
    };
    format!("label={}, fillcolor={colour}", quoted(&node.lines.join("\n")))
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}
