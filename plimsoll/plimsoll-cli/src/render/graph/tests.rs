//! Small graphs as pictures.

use super::{Edge, Graph, Node, Picture, Rank, Tone, layout};

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
        ..Graph::default()
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

#[test]
fn text_of_others_stays_text_in_every_picture() {
    let mut graph = graph(2, "0>1");
    let text = "a\"];b[\"\\\n</text><script>\u{202e}|c\r--> d";
    graph.title = text.to_owned();
    graph.nodes[0].lines = vec![text.to_owned()];
    graph.edges[0].label = text.to_owned();
    graph.ranks = vec![Rank { label: text.to_owned(), nodes: vec![0, 1] }];
    for picture in [Picture::Dot, Picture::Mermaid, Picture::Svg] {
        let drawn = graph.draw(picture);
        let hidden = drawn.chars().find(|it| *it != '\n' && (it.is_control() || *it == '\u{202e}'));
        assert_eq!(hidden, None, "{drawn}");
        let count = |part: &str| drawn.matches(part).count();
        match picture {
            // Quotes of the text are escaped, and so is what escapes.
            Picture::Dot => {
                assert_eq!((count("a\""), count("a\\\"];b[\\\"\\\\\\\\n")), (0, 4), "{drawn}")
            }
            Picture::Mermaid | Picture::Svg => {
                assert_eq!(
                    (count("a\""), count("<script>"), count("</text><")),
                    (0, 0, 0),
                    "{drawn}"
                );
            }
        }
    }
}

/// A graph whose nodes lie in two ranks: one node, and the others.
fn ranked(nodes: usize) -> Graph {
    let mut graph = graph(nodes, "");
    graph.title = "from \"1\" to <2>".to_owned();
    graph.nodes[0].tone = Tone::Active;
    let rank = |label: &str, nodes: std::ops::Range<usize>| Rank {
        label: label.to_owned(),
        nodes: nodes.collect(),
    };
    graph.ranks = vec![rank("10", 0..1), rank("20", 1..nodes)];
    graph
}

#[test]
fn ranks_follow_each_other_as_a_whole() {
    let graph = ranked(3);
    let dot = graph.draw(Picture::Dot);
    assert!(dot.contains("n0 -> n1 [ltail=cluster_0, lhead=cluster_1];"), "{dot}");
    assert!(dot.contains(r#"label="from \"1\" to <2>""#), "{dot}");
    assert!(dot.contains(r#"n0 [label="<0>", style=filled, fillcolor=lightskyblue1]"#), "{dot}");
    let mermaid = graph.draw(Picture::Mermaid);
    assert!(mermaid.contains("  r0 --> r1\n"), "{mermaid}");
    assert!(mermaid.contains("n0[\"&lt;0&gt;\"]:::active"), "{mermaid}");
    assert!(mermaid.contains("title: \"from &quot;1&quot; to &lt;2&gt;\""), "{mermaid}");
    assert_eq!(graph.draw(Picture::Svg).matches("marker-end").count(), 1);
}

#[test]
fn a_picture_holds_all_its_boxes() {
    let mut graph = ranked(60);
    graph.nodes.iter_mut().for_each(|node| node.lines = vec!["some-component".to_owned()]);
    let svg = graph.draw(Picture::Svg);
    let number = |line: &str, name: &str| -> usize {
        let start = line.find(&format!(" {name}=\"")).expect("a number") + name.len() + 3;
        let end = line[start..].find('"').expect("an end") + start;
        line[start..end].parse().expect("a number")
    };
    let (width, height) = (number(&svg, "width"), number(&svg, "height"));
    assert!(width < 1400, "rows are broken: {width}");
    let boxes: Vec<&str> = svg.lines().filter(|line| line.starts_with("<rect x")).collect();
    assert_eq!(boxes.len(), 60 + 2);
    for line in boxes {
        assert!(number(line, "x") + number(line, "width") <= width, "{line}");
        assert!(number(line, "y") + number(line, "height") <= height, "{line}");
    }
}
