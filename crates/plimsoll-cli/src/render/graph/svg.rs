//! A graph as an SVG document: boxes in rows, lines between them.

use std::fmt::Write as _;

use super::layout::rows;
use super::{Edge, Graph, Node, Tone, entities};

/// Sizes in pixels. The font is of fixed width, so that a text's length is known.
const CHARACTER: usize = 8;
const LINE: usize = 18;
const PADDING: usize = 10;
const GAP: usize = 30;
const ROW_GAP: usize = 50;

/// A box.
#[derive(Debug, Clone, Copy, Default)]
struct Frame {
    left: usize,
    top: usize,
    width: usize,
    height: usize,
}

impl Frame {
    fn middle(self) -> usize {
        self.left + self.width / 2
    }

    fn bottom(self) -> usize {
        self.top + self.height
    }
}

/// Draws a graph.
pub(super) fn draw(graph: &Graph) -> String {
    let (frames, width, height) = place(graph);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"monospace\" font-size=\"13\">\n\
         <defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"8\" \
         markerHeight=\"8\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"#555\"/></marker>\
         </defs>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
    );
    for edge in &graph.edges {
        draw_edge(edge, &frames, &mut text);
    }
    for (node, frame) in graph.nodes.iter().zip(&frames) {
        draw_node(node, *frame, &mut text);
    }
    text.push_str("</svg>\n");
    text
}

fn place(graph: &Graph) -> (Vec<Frame>, usize, usize) {
    let size = |node: &Node| {
        let longest = node.lines.iter().map(|line| line.chars().count()).max().unwrap_or(1);
        (longest * CHARACTER + 2 * PADDING, node.lines.len().max(1) * LINE + PADDING)
    };
    let rows = rows(graph);
    let widths: Vec<usize> = rows
        .iter()
        .map(|row| row.iter().map(|node| size(&graph.nodes[*node]).0 + GAP).sum::<usize>())
        .collect();
    let all = widths.iter().copied().max().unwrap_or_default() + GAP;
    let mut frames = vec![Frame::default(); graph.nodes.len()];
    let mut top = GAP;
    for (row, row_width) in rows.iter().zip(widths) {
        let mut left = (all - row_width + GAP) / 2;
        let mut tallest = 0;
        for node in row {
            let (width, height) = size(&graph.nodes[*node]);
            frames[*node] = Frame { left, top, width, height };
            left += width + GAP;
            tallest = tallest.max(height);
        }
        top += tallest + ROW_GAP;
    }
    // Bent lines need room at the right.
    (frames, all + 4 * GAP, top - ROW_GAP.min(top) + GAP)
}

fn draw_node(node: &Node, frame: Frame, text: &mut String) {
    let (stroke, line, colour) = match node.tone {
        Tone::Plain => ("#555", 1, "#111"),
        Tone::Strong => ("#06c", 3, "#111"),
        Tone::Faint => ("#bbb", 1, "#888"),
    };
    let Frame { left, top, width, height } = frame;
    write!(
        text,
        "<rect x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height}\" rx=\"4\" \
         fill=\"#fafafa\" stroke=\"{stroke}\" stroke-width=\"{line}\"/>"
    )
    .expect("writing to a string does not fail");
    for (index, content) in node.lines.iter().enumerate() {
        let (x, y) = (frame.middle(), top + PADDING / 2 + (index + 1) * LINE - 4);
        let content = entities(content);
        write!(
            text,
            "<text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\" fill=\"{colour}\">{content}</text>"
        )
        .expect("writing to a string does not fail");
    }
    text.push('\n');
}

fn draw_edge(edge: &Edge, frames: &[Frame], text: &mut String) {
    let (from, to) = (frames[edge.from], frames[edge.to]);
    let downwards = to.top > from.top;
    let (x1, y1) = (from.middle(), if downwards { from.bottom() } else { from.top });
    let (x2, y2) = (to.middle(), if downwards { to.top } else { to.bottom() });
    // A line over several rows bends aside, so that it does not run through boxes.
    let far = y1.abs_diff(y2) > 2 * ROW_GAP;
    let aside = if far { from.width.max(to.width) / 2 + GAP / 2 } else { 0 };
    let middle = (y1 + y2) / 2;
    let dash = if edge.is_dashed { " stroke-dasharray=\"5 4\"" } else { "" };
    let bend = (x1 + x2) / 2 + 2 * aside;
    write!(
        text,
        "<path d=\"M{x1} {y1}Q{bend} {middle} {x2} {y2}\" fill=\"none\" stroke=\"#555\"{dash} \
         marker-end=\"url(#arrow)\"/>"
    )
    .expect("writing to a string does not fail");
    if !edge.label.is_empty() {
        let (x, label) = ((x1 + x2) / 2 + aside + 4, entities(&edge.label));
        write!(
            text,
            "<text x=\"{x}\" y=\"{middle}\" fill=\"#555\" font-size=\"11\">{label}</text>"
        )
        .expect("writing to a string does not fail");
    }
    text.push('\n');
}
