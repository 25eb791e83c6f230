//! Small graphs as pictures.

use super::{Edge, Graph, Node, Picture, Tone, layout};

/// A graph with the edges `0>1 1>2`; a dash before the arrow makes a broken line.
fn graph(nodes: usize, edges: &str) -> Graph {
    let node = |index: usize| Node { lines: vec![format!("<{index}>")], tone: Tone::Plain };
    let edge = |word: &str| {
        let (from, to) = word.split_once('>').expect("an edge has an arrow");
        let number = |text: &str| text.trim_end_matches('-').parse().expect("a node's number");
        Edge {
            from: number(from),
            to: number(to),
            label: String::new(),
            is_dashed: from.ends_with('-'),
        }
    };
    Graph {
        nodes: (0..nodes).map(node).collect(),
        edges: edges.split_whitespace().map(edge).collect(),
    }
}

#[test]
fn edges_lead_downwards_and_circles_end() {
    let check = |nodes: usize, edges: &str, expected: &[&[usize]]| {
        assert_eq!(layout::rows(&graph(nodes, edges)), expected, "{edges}");
    };
    check(1, "", &[&[0]]);
    check(3, "0>1 1>2 0>2", &[&[0], &[1], &[2]]);
    check(4, "0>1 0>2 1>3 2>3", &[&[0], &[1, 2], &[3]]);
    check(2, "0>1 1>0", &[&[0], &[1]]);
    check(1, "0>0", &[&[0]]);
    // A crossing that is undone.
    check(4, "0>3 1>2", &[&[0, 1], &[3, 2]]);
}

#[test]
fn pictures_name_every_node_and_edge_and_no_text_is_markup() {
    let graph = graph(3, "0>1 0->2");
    let dot = graph.draw(Picture::Dot);
    assert!(
        dot.contains("n0 [label=\"<0>\"]") && dot.contains("n0 -> n2 [label=\"\", style=dashed]")
    );
    let mermaid = graph.draw(Picture::Mermaid);
    assert!(mermaid.contains("n1[\"&lt;1&gt;\"]") && mermaid.contains("n0 -.-> n2"), "{mermaid}");
    let svg = graph.draw(Picture::Svg);
    assert_eq!(svg.matches("<rect x").count(), 3);
    assert_eq!(svg.matches("marker-end").count(), 2);
    assert!(svg.contains("&lt;2&gt;") && svg.ends_with("</svg>\n"));
    assert!(Graph::default().draw(Picture::Svg).contains("<svg"));
}
