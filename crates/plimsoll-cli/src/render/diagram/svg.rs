//! Diagrams as pictures that need nothing but a browser.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{Diagram, Node, Rank, Tone};

/// Sizes in pixels. Texts are set in a font whose letters are all of one width.
const LETTER: usize = 7;
const LINE: usize = 15;
const MARGIN: usize = 16;
const PADDING: usize = 8;
const GAP: usize = 10;
/// Between two ranks: room for an arrow.
const BETWEEN: usize = 26;
/// Room for the names of the ranks, at the left.
const LABELS: usize = 90;
/// Nodes beyond this begin another row of their rank.
const WIDTH: usize = 1100;

/// Where a node lies.
#[derive(Debug, Clone, Copy)]
struct Place {
    x: usize,
    y: usize,
    width: usize,
    height: usize,
}

pub(super) fn render(diagram: &Diagram) -> String {
    let mut body = String::new();
    let mut places = BTreeMap::new();
    let mut top = MARGIN + 2 * LINE;
    let mut width = LABELS + diagram.title.chars().count() * LETTER;
    let mut bands: Vec<(usize, usize)> = Vec::new();
    for (number, rank) in diagram.ranks.iter().enumerate() {
        let (laid, height) = lay_out(rank, top + GAP);
        for (index, place) in laid.iter().enumerate() {
            places.insert((number, index), *place);
            width = width.max(place.x + place.width + GAP);
        }
        bands.push((top, height + 2 * GAP));
        top += height + 2 * GAP + BETWEEN;
    }
    let height = top.saturating_sub(BETWEEN) + MARGIN;
    let width = width + MARGIN;
    for ((rank, (top, height)), number) in diagram.ranks.iter().zip(&bands).zip(0..) {
        band(&mut body, &rank.label, *top, *height, width);
        for (index, node) in rank.nodes.iter().enumerate() {
            if let Some(place) = places.get(&(number, index)) {
                draw(&mut body, node, *place);
            }
        }
    }
    edges(&mut body, diagram, &places, &bands, width);
    let title = escaped(&diagram.title);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"monospace\" font-size=\"12\">\n\
         <title>{title}</title>\n\
         <defs><marker id=\"tip\" markerWidth=\"8\" markerHeight=\"8\" refX=\"7\" refY=\"4\" \
         orient=\"auto\"><path d=\"M0,0 L8,4 L0,8 z\" fill=\"#777\"/></marker></defs>\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n\
         <text x=\"{MARGIN}\" y=\"{}\" font-weight=\"bold\" font-size=\"14\">{title}</text>\n\
         {body}</svg>\n",
        MARGIN + LINE
    )
}

/// Places the nodes of a rank in rows; returns the height of all rows.
fn lay_out(rank: &Rank, top: usize) -> (Vec<Place>, usize) {
    let (mut x, mut y, mut row) = (LABELS, top, 0);
    let mut places = Vec::with_capacity(rank.nodes.len());
    for node in &rank.nodes {
        let letters = node.lines.iter().map(|line| line.chars().count()).max().unwrap_or(0);
        let (width, height) = (letters * LETTER + 2 * PADDING, node.lines.len() * LINE + PADDING);
        if x > LABELS && x + width > WIDTH {
            (x, y, row) = (LABELS, y + row + GAP, 0);
        }
        places.push(Place { x, y, width, height });
        (x, row) = (x + width + GAP, row.max(height));
    }
    (places, y + row - top)
}

fn band(body: &mut String, label: &str, top: usize, height: usize, width: usize) {
    let (middle, wide) = (top + height / 2 + LINE / 3, width - MARGIN);
    // Writing to a string does not fail.
    let _ = writeln!(
        body,
        "<rect x=\"{}\" y=\"{top}\" width=\"{}\" height=\"{height}\" rx=\"6\" fill=\"#fafafa\" \
         stroke=\"#ddd\"/>\n<text x=\"{MARGIN}\" y=\"{middle}\" fill=\"#555\">{}</text>",
        MARGIN / 2,
        wide,
        escaped(label)
    );
}

fn draw(body: &mut String, node: &Node, place: Place) {
    let Place { x, y, width, height } = place;
    let (fill, stroke) = match node.tone {
        Tone::Plain => ("#ffffff", "#888888"),
        Tone::Quiet => ("#f2f2f2", "#b8b8b8"),
        Tone::Active => ("#cfe6fa", "#3b7fb5"),
        Tone::Bad => ("#fbdcd8", "#b5443b"),
    };
    let _ = writeln!(
        body,
        "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"4\" fill=\"{fill}\" \
         stroke=\"{stroke}\"/>"
    );
    for (index, line) in node.lines.iter().enumerate() {
        let (x, y) = (x + PADDING, y + (index + 1) * LINE);
        let _ = writeln!(body, "<text x=\"{x}\" y=\"{y}\">{}</text>", escaped(line));
    }
}

fn edges(
    body: &mut String,
    diagram: &Diagram,
    places: &BTreeMap<(usize, usize), Place>,
    bands: &[(usize, usize)],
    width: usize,
) {
    let mut line = |x1: usize, y1: usize, x2: usize, y2: usize| {
        let _ = writeln!(
            body,
            "<path d=\"M{x1},{y1} L{x2},{y2}\" stroke=\"#777\" fill=\"none\" \
             marker-end=\"url(#tip)\"/>"
        );
    };
    for (from, to) in &diagram.edges {
        if let (Some(from), Some(to)) = (places.get(from), places.get(to)) {
            line(from.x + from.width / 2, from.y + from.height, to.x + to.width / 2, to.y);
        }
    }
    if diagram.edges.is_empty() {
        for pair in bands.windows(2) {
            line(width / 2, pair[0].0 + pair[0].1, width / 2, pair[1].0);
        }
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
