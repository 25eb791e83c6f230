//! Graphs in the language of Graphviz.

use plimsoll_resolve::printable::on_one_line;

use super::{Edge, Graph, Node, Tone, line};

pub(super) fn draw(graph: &Graph) -> String {
    let mut text = "digraph {\n  node [shape=box, fontname=\"sans-serif\"];\n".to_owned();
    if !graph.title.is_empty() {
        line(&mut text, format_args!("  label=\"{}\"; labelloc=t;", quoted(&graph.title)));
    }
    if graph.ranks.is_empty() {
        graph.nodes.iter().enumerate().for_each(|(index, node)| self::node(&mut text, index, node));
    } else {
        text.push_str("  compound=true; newrank=true;\n");
    }
    for (number, rank) in graph.ranks.iter().enumerate() {
        line(&mut text, format_args!("  subgraph cluster_{number} {{"));
        let label = quoted(&rank.label);
        line(&mut text, format_args!("  label=\"{label}\"; labeljust=l; color=gray80;"));
        rank.nodes.iter().for_each(|&index| node(&mut text, index, &graph.nodes[index]));
        text.push_str("  }\n");
    }
    for Edge { from, to, label, is_dashed } in &graph.edges {
        let style = if *is_dashed { "dashed" } else { "solid" };
        let label = quoted(label);
        line(&mut text, format_args!("  n{from} -> n{to} [label=\"{label}\", style={style}];"));
    }
    for (before, pair) in graph.ranks.windows(2).enumerate() {
        if let ([from, ..], [to, ..]) = (&pair[0].nodes[..], &pair[1].nodes[..]) {
            let after = before + 1;
            let ends = format!("ltail=cluster_{before}, lhead=cluster_{after}");
            line(&mut text, format_args!("  n{from} -> n{to} [{ends}];"));
        }
    }
    text.push_str("}\n");
    text
}

fn node(text: &mut String, index: usize, node: &Node) {
    let label = node.lines.iter().map(|it| quoted(it)).collect::<Vec<_>>().join("\\n");
    let style = match node.tone {
        Tone::Plain => "",
        Tone::Strong => ", style=bold",
        Tone::Faint => ", style=dashed",
        Tone::Active => ", style=filled, fillcolor=lightskyblue1",
        Tone::Bad => ", style=filled, fillcolor=mistyrose",
    };
    line(text, format_args!("  n{index} [label=\"{label}\"{style}];"));
}

fn quoted(text: &str) -> String {
    on_one_line(text).replace('\\', "\\\\").replace('"', "\\\"")
}
