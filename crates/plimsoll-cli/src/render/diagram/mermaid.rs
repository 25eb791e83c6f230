//! Diagrams in Mermaid's language.

use std::fmt::Write as _;

use super::{Diagram, Tone};

/// The looks, by the names that nodes refer to.
const CLASSES: [(Tone, &str, &str); 3] = [
    (Tone::Quiet, "quiet", "fill:#f2f2f2,stroke:#b8b8b8,color:#6b6b6b"),
    (Tone::Active, "active", "fill:#cfe6fa,stroke:#3b7fb5,color:#12344d"),
    (Tone::Bad, "bad", "fill:#fbdcd8,stroke:#b5443b,color:#4d1612"),
];

pub(super) fn render(diagram: &Diagram) -> String {
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = writeln!(out, "---\ntitle: {}\n---", quoted(&diagram.title));
    out.push_str("flowchart TB\n");
    for (number, rank) in diagram.ranks.iter().enumerate() {
        let _ = writeln!(out, "  subgraph r{number} [{}]", quoted(&rank.label));
        for (index, node) in rank.nodes.iter().enumerate() {
            let class = CLASSES.iter().find(|(tone, ..)| *tone == node.tone);
            let class = class.map_or(String::new(), |(_, name, _)| format!(":::{name}"));
            let _ =
                writeln!(out, "    n{number}_{index}[{}]{class}", quoted(&node.lines.join("\n")));
        }
        out.push_str("  end\n");
    }
    for ((from, from_node), (to, to_node)) in &diagram.edges {
        let _ = writeln!(out, "  n{from}_{from_node} --> n{to}_{to_node}");
    }
    if diagram.edges.is_empty() {
        for after in 1..diagram.ranks.len() {
            let _ = writeln!(out, "  r{} --> r{after}", after - 1);
        }
    }
    for (_, name, style) in CLASSES {
        let _ = writeln!(out, "  classDef {name} {style}");
    }
    out
}

/// A text in quotes; quotes and angle brackets within it become entities.
fn quoted(text: &str) -> String {
    let text = text.replace('&', "#amp;").replace('"', "#quot;").replace('<', "#lt;");
    format!("\"{}\"", text.replace('>', "#gt;").replace('\n', "<br/>"))
}
