//! A graph as an SVG document: boxes in rows or ranks, lines between them.

use std::fmt::Write as _;

use super::layout::rows;
use super::{Edge, Graph, Node, Tone, entities, line};

/// Sizes in pixels. The font is of fixed width, so that a text's length is known.
const CHARACTER: usize = 8;
const LINE: usize = 18;
const PADDING: usize = 10;
const GAP: usize = 30;
const ROW_GAP: usize = 50;
/// Nodes beyond this begin another row of their rank.
const WIDTH: usize = 1200;

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

/// Where everything stands.
struct Places {
    frames: Vec<Frame>,
    /// The frames of the ranks.
    bands: Vec<Frame>,
    width: usize,
    height: usize,
}

/// Draws a graph.
pub(super) fn draw(graph: &Graph) -> String {
    let places = if graph.ranks.is_empty() { by_edges(graph) } else { by_ranks(graph) };
    let Places { frames, bands, width, height } = places;
    let title_width = graph.title.chars().count() * CHARACTER + 2 * GAP;
    let width = width.max(title_width);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"monospace\" font-size=\"13\">\n\
         <defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"8\" \
         markerHeight=\"8\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"#555\"/></marker>\
         </defs>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
    );
    if !graph.title.is_empty() {
        let title = entities(&graph.title);
        line(
            &mut text,
            format_args!(
                "<title>{title}</title>\n<text x=\"{GAP}\" y=\"{LINE}\" font-weight=\"bold\">\
                 {title}</text>"
            ),
        );
    }
    for (rank, band) in graph.ranks.iter().zip(&bands) {
        draw_band(&rank.label, *band, &mut text);
    }
    for pair in bands.windows(2) {
        let (x, from, to) = (pair[0].middle(), pair[0].bottom(), pair[1].top);
        line(
            &mut text,
            format_args!(
                "<path d=\"M{x} {from}L{x} {to}\" stroke=\"#555\" marker-end=\"url(#arrow)\"/>"
            ),
        );
    }
    for edge in &graph.edges {
        draw_edge(edge, &frames, &mut text);
    }
    for (node, frame) in graph.nodes.iter().zip(&frames) {
        draw_node(node, *frame, &mut text);
    }
    text.push_str("</svg>\n");
    text
}

fn size(node: &Node) -> (usize, usize) {
    let longest = node.lines.iter().map(|line| line.chars().count()).max().unwrap_or(1);
    (longest * CHARACTER + 2 * PADDING, node.lines.len().max(1) * LINE + PADDING)
}

/// Where the first row begins.
fn first(graph: &Graph) -> usize {
    if graph.title.is_empty() { GAP } else { LINE + GAP }
}

/// Nodes in rows, so that edges point downwards where they can.
fn by_edges(graph: &Graph) -> Places {
    let rows = rows(graph);
    let widths: Vec<usize> = rows
        .iter()
        .map(|row| row.iter().map(|node| size(&graph.nodes[*node]).0 + GAP).sum::<usize>())
        .collect();
    let all = widths.iter().copied().max().unwrap_or_default() + GAP;
    let mut frames = vec![Frame::default(); graph.nodes.len()];
    let mut top = first(graph);
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
    let (width, height) = (all + 4 * GAP, top - ROW_GAP.min(top) + GAP);
    Places { frames, bands: Vec::new(), width, height }
}

/// Nodes in their ranks, in as many rows as each needs.
fn by_ranks(graph: &Graph) -> Places {
    let mut frames = vec![Frame::default(); graph.nodes.len()];
    let mut bands = Vec::with_capacity(graph.ranks.len());
    let labels = graph.ranks.iter().map(|rank| rank.label.chars().count()).max().unwrap_or(0);
    let start = GAP + labels * CHARACTER + 2 * PADDING;
    let mut top = first(graph);
    let mut widest = start;
    for rank in &graph.ranks {
        let (mut x, mut y, mut tallest) = (start, top + PADDING, LINE);
        for &index in &rank.nodes {
            let (width, height) = size(&graph.nodes[index]);
            if x > start && x + width > WIDTH {
                (x, y, tallest) = (start, y + tallest + PADDING, 0);
            }
            frames[index] = Frame { left: x, top: y, width, height };
            (x, tallest) = (x + width + PADDING, tallest.max(height));
            widest = widest.max(x);
        }
        let height = y + tallest + PADDING - top;
        bands.push(Frame { left: GAP, top, width: 0, height });
        top += height + GAP;
    }
    bands.iter_mut().for_each(|band| band.width = widest - GAP);
    Places { frames, bands, width: widest + GAP, height: top }
}

fn draw_band(label: &str, band: Frame, text: &mut String) {
    let Frame { left, top, width, height } = band;
    let (x, y, label) = (left + PADDING, top + height / 2 + LINE / 4, entities(label));
    line(
        text,
        format_args!(
            "<rect x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height}\" rx=\"6\" \
             fill=\"#f6f6f6\" stroke=\"#ddd\"/><text x=\"{x}\" y=\"{y}\" fill=\"#555\">{label}</text>"
        ),
    );
}

fn draw_node(node: &Node, frame: Frame, text: &mut String) {
    let (fill, stroke, line, colour) = match node.tone {
        Tone::Plain => ("#fff", "#555", 1, "#111"),
        Tone::Strong => ("#fff", "#06c", 3, "#111"),
        Tone::Faint => ("#fff", "#bbb", 1, "#888"),
        Tone::Active => ("#cfe6fa", "#3b7fb5", 1, "#12344d"),
        Tone::Bad => ("#fbdcd8", "#b5443b", 1, "#4d1612"),
    };
    let Frame { left, top, width, height } = frame;
    write!(
        text,
        "<rect x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height}\" rx=\"4\" \
         fill=\"{fill}\" stroke=\"{stroke}\" stroke-width=\"{line}\"/>"
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
