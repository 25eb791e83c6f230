//! One small graph in its three forms.

use super::{Diagram, Node, Rank, Tone};

fn diagram() -> Diagram {
    let node = |text: &str, tone| Node { lines: text.lines().map(str::to_owned).collect(), tone };
    Diagram {
        title: "from \"1\" to <2>".to_owned(),
        ranks: vec![
            Rank { label: "10".to_owned(), nodes: vec![node("a\n1 created", Tone::Active)] },
            Rank {
                label: "20".to_owned(),
                nodes: vec![node("b", Tone::Bad), node("c", Tone::Quiet)],
            },
        ],
        edges: Vec::new(),
    }
}

#[test]
fn ranks_follow_each_other_where_no_edges_are_named() {
    let diagram = diagram();
    let dot = diagram.dot();
    assert!(dot.contains("n0_0 -> n1_0 [ltail=cluster_0, lhead=cluster_1];"), "{dot}");
    assert!(dot.contains(r#"label="from \"1\" to <2>""#), "{dot}");
    assert!(dot.contains(r#"label="a\n1 created", fillcolor=lightskyblue1"#), "{dot}");
    let mermaid = diagram.mermaid();
    assert!(mermaid.contains("  r0 --> r1\n"), "{mermaid}");
    assert!(mermaid.contains("n0_0[\"a<br/>1 created\"]:::active"), "{mermaid}");
    assert!(mermaid.contains("title: \"from #quot;1#quot; to #lt;2#gt;\""), "{mermaid}");
    assert_eq!(diagram.svg().matches("marker-end").count(), 1);
}

#[test]
fn edges_are_drawn_between_nodes() {
    let mut diagram = diagram();
    diagram.edges = vec![((0, 0), (1, 1)), ((0, 0), (1, 0))];
    assert!(diagram.dot().contains("n0_0 -> n1_1;"));
    assert!(diagram.mermaid().contains("n0_0 --> n1_1"));
    assert_eq!(diagram.svg().matches("marker-end").count(), 2);
}

#[test]
fn a_picture_holds_all_its_boxes() {
    let many = (0..40).map(|it| Node { lines: vec![format!("component-{it}")], tone: Tone::Plain });
    let diagram = Diagram {
        title: "many".to_owned(),
        ranks: vec![Rank { label: "50".to_owned(), nodes: many.collect() }],
        edges: Vec::new(),
    };
    let svg = diagram.svg();
    let size = |name: &str| -> usize {
        let start = svg.find(&format!(" {name}=\"")).expect("a size") + name.len() + 3;
        let end = svg[start..].find('"').expect("an end") + start;
        svg[start..end].parse().expect("a number")
    };
    let (width, height) = (size("width"), size("height"));
    assert!(width < 1400, "rows are broken: {width}");
    let boxes = svg.lines().filter(|line| line.contains("fill=\"#ffffff\""));
    let mut count = 0;
    for line in boxes {
        let number = |name: &str| -> usize {
            let start = line.find(&format!(" {name}=\"")).expect("a number") + name.len() + 3;
            let end = line[start..].find('"').expect("an end") + start;
            line[start..end].parse().expect("a number")
        };
        assert!(number("x") + number("width") <= width && number("y") + number("height") <= height);
        count += 1;
    }
    assert_eq!(count, 40);
}
